"""The secret engine through the walk, against rows as a server may come to have them: migrated, expired, colliding, twenty of them.

What a row can be is the pure tests' (`test_secrets.py`); here the stored value goes on logging in, whatever was found.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.fakes.pocketid.model import Secret, digest

from moorage.core.meta import Key
from moorage.kube.resources import SECRETS
from moorage.pocketid.oidcclient.types import KIND, REGENERATE

from .scene import KEY, NAMESPACE, SECRET, Scene
from .test_secret_walk import DECLARED, ready_client, rejected

PAST = "2020-01-01T00:00:00Z"


def row(here: Scene, prefix: str, value: str = "", **more: Any) -> str:
    """A row at the server beside the others; its id."""
    made = Secret(digest(value or f"unknown-{prefix}-{len(rows(here))}"), prefix, here.fake.clock.now(), **more)
    rows(here).append(made)
    return made.id


def rows(here: Scene) -> list[Secret]:
    """The rows of the only client."""
    found: list[Secret] = here.server().secrets
    return found


def deletions(here: Scene) -> list[str]:
    """Ids of secrets in the order in which they were deleted."""
    return [line.rpartition("/")[2] for line in here.writes() if line.startswith("DELETE")]


async def regenerate(here: Scene) -> None:
    """A person asks for a new secret."""
    await here.annotate(regenerate_client_secret="true")


@pytest.mark.case("PIDS1")
async def test_the_row_with_the_prefix_is_ours_and_one_without_is_retired(here: Scene) -> None:
    mine = await ready_client(here)
    here.fake.place_legacy_secret(here.server().id, "carried-over-by-an-upgrade")
    await here.settle()
    assert await here.proven() == mine
    assert await rejected(here, "carried-over-by-an-upgrade")
    assert len(rows(here)) == 1


@pytest.mark.case("PIDS2", "PIDS17")
async def test_two_rows_that_may_be_ours_both_stay_until_the_next_rotation(here: Scene) -> None:
    """Nobody can tell which one it is: nothing is deleted, nothing is made."""
    mine = await ready_client(here)
    row(here, mine[:4])
    await here.settle()
    assert here.writes() == []
    assert await here.proven() == mine
    assert (await here.ready())[0] == "True/Reconciled"
    await regenerate(here)
    await here.settle()
    assert await here.proven() != mine
    assert len(rows(here)) == 1


@pytest.mark.case("PIDS3")
async def test_a_lone_row_without_prefix_is_claimed(here: Scene) -> None:
    """An upgrade of the server carried our secret over: it goes on working, no other is made."""
    mine = await ready_client(here)
    rows(here)[:] = []
    here.fake.place_legacy_secret(here.server().id, mine)
    await here.settle()
    assert here.writes() == []
    assert await here.proven() == mine


@pytest.mark.case("PIDS4")
async def test_our_own_row_once_expired_is_replaced(here: Scene) -> None:
    mine = await ready_client(here)
    rows(here)[:] = [replace(item, expires=PAST) for item in rows(here)]
    await here.settle()
    assert await here.proven() != mine
    assert len(rows(here)) == 1


@pytest.mark.case("PIDS4")
async def test_an_expired_row_with_our_prefix_makes_nothing_ambiguous(here: Scene) -> None:
    mine = await ready_client(here)
    stale = row(here, mine[:4], expires=PAST)
    await here.settle()
    assert deletions(here) == [stale]
    assert await here.proven() == mine


@pytest.mark.case("PIDS5", "PIDX11")
@pytest.mark.parametrize("garbage", ["abcd", "a", "\u00fc\u00fc\u00fc\u00fc\u00fc"])
async def test_a_stored_value_that_can_be_no_secret_is_replaced(here: Scene, garbage: str) -> None:
    await ready_client(here)
    await here.secret(SECRET, client_secret=garbage)
    await here.settle()
    assert await here.proven() != garbage
    assert len(rows(here)) == 1


@pytest.mark.case("PIDX11")
async def test_bytes_that_are_no_text_are_replaced(here: Scene) -> None:
    await ready_client(here)
    await here.client.patch(SECRETS, Key(NAMESPACE, SECRET), {"data": {"client_secret": "/wD/AP8A/wD/AP8A"}})
    await here.settle()
    await here.proven()


@pytest.mark.case("PIDX11")
async def test_a_key_that_was_taken_out_by_hand_comes_back_with_a_new_secret(here: Scene) -> None:
    old = await ready_client(here)
    await here.client.patch(SECRETS, Key(NAMESPACE, SECRET), {"data": {"client_secret": None, "client_id": None}})
    await here.settle()
    assert await here.proven() != old
    assert await rejected(here, old)


@pytest.mark.case("PIDX11")
async def test_a_deleted_credentials_secret_is_written_anew(here: Scene) -> None:
    old = await ready_client(here)
    await here.client.delete(SECRETS, Key(NAMESPACE, SECRET))
    await here.settle()
    assert await here.proven() != old
    assert await rejected(here, old)


@pytest.mark.case("PIDS7")
async def test_three_collisions_are_told_and_leave_nothing_behind(here: Scene) -> None:
    old = await ready_client(here)
    here.fake.forced_prefixes.extend([old[:4]] * 3)
    await regenerate(here)
    await here.once()
    assert (await here.ready())[0] == "False/SecretReconcileError"
    assert len(rows(here)) == 1
    assert await here.proven() == old
    await here.settle()
    assert await here.proven() != old


@pytest.mark.case("PIDS8")
async def test_an_expired_row_is_no_collision(here: Scene) -> None:
    """The first mint is kept although a dead secret begins like it."""
    old = await ready_client(here)
    row(here, "Zz9z", expires=PAST)
    here.fake.forced_prefixes.append("Zz9z")
    await regenerate(here)
    await here.settle()
    new = await here.proven()
    assert new[:4] == "Zz9z"
    assert new != old
    assert len([line for line in here.writes() if line.startswith("POST")]) == 1


@pytest.mark.case("PIDS9", "PIDS11")
async def test_what_is_retired_goes_oldest_first_foreign_ones_too(here: Scene) -> None:
    await ready_client(here)
    ids = [row(here, prefix) for prefix in ("aaa1", "aaa2", "aaa3")]
    for age, id in zip((10.0, 1000.0, 100.0), ids, strict=True):
        here.fake.age_secret(here.server().id, id, age)
    await here.settle()
    assert deletions(here) == [ids[1], ids[2], ids[0]]


@pytest.mark.case("PIDS12")
async def test_a_delete_that_fails_is_told_and_done_by_the_next_pass(here: Scene) -> None:
    """What comes after the failed one stays until then; the stored secret works all the while."""
    mine = await ready_client(here)
    for prefix in ("aaa1", "aaa2", "aaa3"):
        row(here, prefix)
    here.fake.faults.add("status", method="DELETE", path="*/secrets/*", skip=1)
    await here.once()
    assert (await here.ready())[0] == "False/SecretReconcileError"
    assert len(rows(here)) == 3
    assert await here.proven() == mine
    await here.settle()
    assert len(rows(here)) == 1
    assert (await here.ready())[0] == "True/Reconciled"


@pytest.mark.case("PIDS14")
async def test_twenty_rows_that_may_all_be_ours_are_left_alone(here: Scene) -> None:
    """No room for a new one and nothing that may go: told, with what to do; the stored secret works."""
    mine = await ready_client(here)
    while len(rows(here)) < 20:
        row(here, mine[:4])
    await regenerate(here)
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/SecretReconcileError"
    assert "delete" in message
    assert len(rows(here)) == 20
    assert await here.proven() == mine
    del rows(here)[1:3]
    await here.settle()
    assert await here.proven() != mine


@pytest.mark.case("PIDS13")
async def test_at_the_cap_expired_rows_count_and_the_oldest_goes(here: Scene) -> None:
    """One is enough: the overlap of all others is kept."""
    await ready_client(here, clientSecretOverlap="24h")
    living = [row(here, f"b{number:03}") for number in range(17)]
    dead = [row(here, f"c{number:03}", expires=PAST) for number in range(2)]
    for age, ids in ((3600, living), (7200, dead)):
        for id in ids:
            here.fake.age_secret(here.server().id, id, age)
    await regenerate(here)
    await here.settle()
    assert deletions(here) == dead[:1]
    assert {item.id for item in rows(here)} >= set(living)


@pytest.mark.case("PIDS15")
async def test_a_declared_value_gets_room_even_among_candidates(here: Scene) -> None:
    """It can be pushed again whatever goes, so the oldest candidate gives way."""
    await here.secret("source", value=DECLARED)
    await ready_client(here)
    rows(here)[:] = []
    while len(rows(here)) < 20:
        row(here, DECLARED[:4])
    oldest = rows(here)[0].id
    await here.edit(clientSecretRef={"name": "source", "key": "value"})
    await here.settle()
    assert await here.proven() == DECLARED
    assert deletions(here)[0] == oldest


@pytest.mark.case("PIDS20", "PIDX12")
async def test_switched_off_a_secret_of_somebody_else_stays(here: Scene) -> None:
    """The label alone does not make it ours."""
    await here.secret(SECRET, password="mine")
    await here.client.patch(
        SECRETS, Key(NAMESPACE, SECRET), {"metadata": {"labels": {"managed-by": "pocket-id-operator"}}}
    )
    await here.make(secret={"enabled": False})
    await here.settle()
    assert await here.credentials() == {"password": "mine"}
    assert (await here.ready())[0] == "True/Reconciled"


@pytest.mark.case("PIDS21")
async def test_a_label_that_was_taken_off_our_secret_comes_back(here: Scene) -> None:
    await ready_client(here)
    await here.client.patch(SECRETS, Key(NAMESPACE, SECRET), {"metadata": {"labels": {"managed-by": None}}})
    await here.settle()
    found = await here.client.get(SECRETS, Key(NAMESPACE, SECRET))
    assert found["metadata"]["labels"] == {"managed-by": "pocket-id-operator"}


@pytest.mark.case("PIDS22")
async def test_labels_and_annotations_are_what_is_declared_and_ours(here: Scene) -> None:
    """What is declared no more goes, what somebody added to the annotations, too; the operator's own cannot be overridden."""
    rotated = "pocketid.internal/last-rotated-at"
    wanted = {"additionalLabels": {"team": "a"}, "additionalAnnotations": {"reflect": "yes", rotated: "never"}}
    await ready_client(here, secret=wanted)
    before = await here.annotations()
    assert before["reflect"] == "yes"
    assert before[rotated] != "never"
    await here.client.patch(SECRETS, Key(NAMESPACE, SECRET), {"metadata": {"annotations": {"foreign": "x"}}})
    await here.edit(secret={"additionalLabels": {"team": None, "tier": "1"}, "additionalAnnotations": None})
    await here.settle()
    found = (await here.client.get(SECRETS, Key(NAMESPACE, SECRET)))["metadata"]
    assert found["labels"] == {"tier": "1", "managed-by": "pocket-id-operator"}
    assert not {"reflect", "foreign"} & found["annotations"].keys()
    assert found["annotations"][rotated] == before[rotated]


@pytest.mark.case("PIDD2", "PIDD3")
async def test_a_declared_value_is_pushed_again_whenever_its_source_has_a_new_revision(here: Scene) -> None:
    """The new one is known by its id, so nothing is risked by retiring the other."""
    await here.secret("source", value=DECLARED)
    await here.make(clientSecretRef={"name": "source", "key": "value"})
    await here.settle()
    await here.client.patch(SECRETS, Key(NAMESPACE, "source"), {"metadata": {"annotations": {"touched": "yes"}}})
    await here.settle()
    assert len([line for line in here.writes() if line.startswith("POST")]) == 3
    assert len(rows(here)) == 1
    assert await here.proven() == DECLARED
    await here.secret("source", value="another-declared-value-0123")
    await here.settle()
    assert len(rows(here)) == 1
    assert await rejected(here, DECLARED)


@pytest.mark.case("PIDD5")
async def test_a_declared_secret_in_the_credentials_secret_itself_is_refused(here: Scene) -> None:
    mine = await ready_client(here)
    await here.edit(clientSecretRef={"name": SECRET, "key": "client_secret"})
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/ClientSecretSyncError"
    assert "another Secret" in message
    assert here.writes() == []
    assert await here.proven() == mine


@pytest.mark.case("PIDD4")
async def test_a_declared_secret_that_is_missing_is_told_whatever_optional_says(here: Scene) -> None:
    mine = await ready_client(here)
    await here.edit(clientSecretRef={"name": "absent", "key": "value", "optional": True})
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/ClientSecretSyncError"
    assert "absent/value" in message
    assert await here.proven() == mine


@pytest.mark.case("PIDD6")
async def test_the_revision_is_recorded_after_the_secret_is_written_only(here: Scene) -> None:
    """The Secret cannot be written: the value is pushed, and its revision is not called done."""
    await here.secret("source", value=DECLARED)
    await here.secret("taken", password="mine")
    await here.make(clientSecretRef={"name": "source", "key": "value"}, secret={"name": "taken"})
    await here.settle()
    assert (await here.ready())[0] == "False/ForeignSecret"
    assert "clientSecretSourceVersion" not in await here.status()
    await here.edit(secret={"name": "free"})
    await here.settle()
    assert (await here.credentials("free"))["client_secret"] == DECLARED
    assert (await here.status())["clientSecretSourceVersion"].startswith("source/value@")


@pytest.mark.case("PIDX17")
@pytest.mark.parametrize("overlap", [None, "24h"])
async def test_a_client_that_was_public_for_a_while_has_a_secret_of_its_own_again(
    here: Scene, overlap: str | None
) -> None:
    """The old one lives on at the server while the client is public; it is retired once the new one is stored."""
    old = await ready_client(here)
    await here.edit(isPublic=True)
    await here.settle()
    assert await here.login(here.server().id, old) != 200
    await here.edit(isPublic=False, clientSecretOverlap=overlap)
    await here.settle()
    assert await here.proven() != old
    assert await rejected(here, old) is (overlap is None)


@pytest.mark.case("PIDX18")
async def test_storing_switched_off_keeps_the_key_and_switched_on_again_keeps_the_secret(here: Scene) -> None:
    mine = await ready_client(here)
    for stores in (False, True):
        await here.edit(secret={"storeClientSecret": stores})
        await here.settle()
        assert await here.proven() == mine
    assert here.writes() == []


@pytest.mark.case("PIDX18", "PIDD9")
async def test_a_request_to_regenerate_is_not_followed_while_the_secret_is_managed_elsewhere(here: Scene) -> None:
    mine = await ready_client(here)
    await here.edit(secret={"storeClientSecret": False})
    await regenerate(here)
    await here.settle()
    assert await here.proven() == mine
    stored = await here.client.get(KIND.resource, KEY)
    assert REGENERATE not in (stored["metadata"].get("annotations") or {})
    assert "storeClientSecret" in next(event.message for event in here.told if event.reason == "RequestIgnored")


@pytest.mark.case("PIDX19")
async def test_two_renames_in_a_row_and_one_back_move_the_value_each_time(here: Scene) -> None:
    mine = await ready_client(here)
    for name, key in (("one", "password"), ("two", "token"), (SECRET, "client_secret")):
        await here.edit(secret={"name": name, "keys": {"clientSecret": key}})
        await here.settle()
        assert (await here.credentials(name))[key] == mine
    assert here.writes() == []
    for name in ("one", "two"):
        assert await here.credentials(name) == {}


@pytest.mark.case("PIDX19")
async def test_keys_that_change_places_do_not_mix_up_their_values(here: Scene) -> None:
    """The key of the secret gets the name of another one and the other way round."""
    mine = await ready_client(here)
    await here.edit(secret={"keys": {"clientSecret": "client_id", "clientID": "client_secret"}})
    await here.settle()
    found = await here.credentials()
    assert (found["client_id"], found["client_secret"]) == (mine, here.server().id)
    assert here.writes() == []


@pytest.mark.case("PIDX12")
async def test_a_rename_onto_a_secret_of_somebody_else_leaves_both_as_they_are(here: Scene) -> None:
    mine = await ready_client(here)
    await here.secret("taken", password="theirs")
    await here.edit(secret={"name": "taken"})
    await here.settle()
    assert (await here.ready())[0] == "False/ForeignSecret"
    assert await here.credentials("taken") == {"password": "theirs"}
    assert (await here.credentials())["client_secret"] == mine
    await here.edit(secret={"name": SECRET})
    await here.settle()
    assert await here.proven() == mine
    assert here.writes() == []
