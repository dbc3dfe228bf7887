"""The client secret through the walk: rotated, overlapped, repaired, declared, renamed; the stored one works after each step."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from moorage.core.meta import Key
from moorage.kube.errors import Forbidden
from moorage.kube.resources import SECRETS
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.render import ROTATED_AT, SCHEDULED_AT
from moorage.pocketid.oidcclient.types import KIND, REGENERATE
from moorage.runtime.world import World

from .scene import INSTANCE_KEY, KEY, NAMESPACE, SECRET, Scene

ROTATION = {"enabled": True, "interval": "1h"}
DECLARED = "a-declared-secret-0123456789"


async def ready_client(here: Scene, **spec: Any) -> str:
    """A client that is Ready; its stored secret."""
    await here.make(**spec)
    await here.settle()
    here.fake.journal.clear()
    return await here.proven()


async def aged(here: Scene, hours: float = 2.0) -> None:
    """Let the last rotation lie in the past."""
    then = (datetime.now(UTC) - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    await here.client.patch(SECRETS, Key(NAMESPACE, SECRET), {"metadata": {"annotations": {ROTATED_AT: then}}})
    for item in list(here.server().secrets):
        here.fake.age_secret(here.server().id, item.id, hours * 3600)


async def rejected(here: Scene, value: str) -> bool:
    """Whether the token endpoint refuses a secret."""
    return await here.login(here.server().id, value) == 401


@pytest.mark.parametrize("edit", [lambda value: value[:20], lambda value: f"{value[:-1]}~", lambda value: value + "x"])
async def test_a_stored_value_that_was_cut_or_changed_is_replaced(here: Scene, edit: Any) -> None:
    """It begins as the server says; the mark beside it tells that it is not what was stored."""
    before = await ready_client(here, clientSecretOverlap="1h")
    await here.secret(SECRET, client_secret=edit(before))
    await here.settle()
    assert await here.proven() not in (before, edit(before))
    assert await here.login(here.server().id, before) == 200
    here.fake.journal.clear()
    await here.settle()
    assert here.writes() == []


async def test_a_replaced_declared_secret_that_begins_like_its_successor_ends_with_the_overlap(here: Scene) -> None:
    """Four characters do not tell them apart; the mark does, from the push on."""
    old, new = "prod-secret-value-0004", "prod-secret-value-0005"
    await here.secret("source", value=old)
    ref = {"name": "source", "key": "value"}
    await here.make(clientSecretRef=ref, clientSecretOverlap="1h")
    await here.settle()
    await here.secret("source", value=new)
    await here.settle()
    assert [await here.login(here.server().id, value) for value in (old, new)] == [200, 200]
    assert [row.get("current", False) for row in (await here.status())["secrets"]] == [False, True]
    here.later(hours=2)
    await here.settle()
    assert [await here.login(here.server().id, value) for value in (old, new)] == [401, 200]
    here.server().secrets.clear()
    await here.settle()
    assert await here.login(here.server().id, new) == 200


async def test_another_secret_of_the_client_that_a_person_stores_is_kept(here: Scene) -> None:
    """It was made at the server by hand, and is what they want."""
    await ready_client(here)
    made = "made-by-hand-at-the-server-012345"
    here.fake.place_legacy_secret(here.server().id, made)
    here.server().secrets[-1].prefix = made[:4]
    await here.secret(SECRET, client_secret=made)
    await here.settle()
    assert await here.proven() == made


async def test_a_secret_whose_owner_was_taken_away_is_ours_again(here: Scene) -> None:
    """A restore or an edit: it is the Secret that the status records, it names our client, and nobody owns it."""
    before = await ready_client(here)
    await here.client.patch(SECRETS, Key(NAMESPACE, SECRET), {"metadata": {"ownerReferences": None}})
    await here.settle()
    assert await here.proven() == before
    found = await here.client.get(SECRETS, Key(NAMESPACE, SECRET))
    assert [item["name"] for item in found["metadata"]["ownerReferences"]] == [KEY.name]


async def test_nobody_is_told_to_delete_the_key_of_an_instance(here: Scene) -> None:
    await here.make(secret={"name": "pocketid-key"})
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/ForeignSecret"
    assert message.startswith("spec.secret.name: ")
    assert "holds keys of PocketIDInstance pocketid" in message
    assert "elete" not in message


@pytest.mark.case("PIDS9", "PIDR1", "B68")
async def test_a_rotation_without_overlap_leaves_exactly_one_secret(here: Scene) -> None:
    old = await ready_client(here, clientSecretRotation=ROTATION)
    await aged(here)
    await here.settle()
    new = await here.proven()
    assert new != old
    assert await rejected(here, old)
    assert len(here.server().secrets) == 1
    id = here.server().id
    assert here.writes()[0] == f"POST oidc/clients/{id}/secrets"
    assert SCHEDULED_AT in await here.annotations()


@pytest.mark.case("PIDS10", "B68")
async def test_during_the_overlap_both_secrets_work_and_later_only_the_new_one(here: Scene) -> None:
    old = await ready_client(here, clientSecretRotation=ROTATION, clientSecretOverlap="30m")
    await aged(here)
    outcome: Any = await here.settle()
    new = await here.proven()
    assert await here.login(here.server().id, old) == 200
    assert [item.get("retires") is not None for item in (await here.status())["secrets"]] == [True, False]
    assert outcome.after <= 150
    for item in list(here.server().secrets):
        here.fake.age_secret(here.server().id, item.id, 1860)
    await here.settle()
    assert await here.proven() == new
    assert await rejected(here, old)


@pytest.mark.case("B70")
async def test_a_request_to_regenerate_is_followed_once(here: Scene) -> None:
    """The annotation goes after the Secret is written, and an asked-for rotation does not count for the instance."""
    old = await ready_client(here)
    await here.annotate(regenerate_client_secret="true")
    await here.settle()
    new = await here.proven()
    assert new != old
    stored = await here.stored()
    assert stored is not None
    assert REGENERATE not in (stored["metadata"].get("annotations") or {})
    assert (await here.credentials())["client_id"] == stored["status"]["clientID"]
    instance = await here.client.get(INSTANCE.resource, INSTANCE_KEY)
    assert "lastRotatedClientSecret" not in instance["status"]
    await here.settle()
    assert await here.proven() == new


@pytest.mark.case("PIDS16", "PIDX11")
async def test_a_secret_deleted_at_the_server_is_replaced(here: Scene) -> None:
    old = await ready_client(here)
    here.server().secrets.clear()
    await here.settle()
    assert await here.proven() != old


@pytest.mark.case("PIDX11")
async def test_a_credentials_secret_edited_by_hand_is_put_right(here: Scene) -> None:
    """A foreign key goes, a value replaced by garbage is made anew."""
    await ready_client(here)
    garbage = base64.b64encode(b"garbage-of-some-length").decode()
    data = {"client_secret": garbage, "mine": garbage, "token_url": None}
    await here.client.patch(SECRETS, Key(NAMESPACE, SECRET), {"data": data})
    await here.settle()
    await here.proven()
    found = await here.credentials()
    assert "mine" not in found
    assert found["token_url"].endswith("/api/oidc/token")
    assert len(here.server().secrets) == 1


@pytest.mark.case("PIDX12")
async def test_a_secret_of_somebody_else_is_left_alone_and_nothing_is_minted(here: Scene) -> None:
    await here.secret(SECRET, password="mine")
    await here.make()
    await here.settle()
    assert await here.credentials() == {"password": "mine"}
    ready, message = await here.ready()
    assert ready == "False/ForeignSecret"
    assert "spec.secret.name" in message
    assert here.server().secrets == []


@pytest.mark.case("PIDD1", "PIDD2", "PIDD6")
async def test_a_declared_secret_is_pushed_stored_and_alone(here: Scene) -> None:
    await here.secret("source", value=DECLARED)
    await here.make(clientSecretRef={"name": "source", "key": "value"})
    await here.settle()
    assert await here.proven() == DECLARED
    assert len(here.server().secrets) == 1
    status = await here.status()
    assert status["clientSecretSourceVersion"].startswith("source/value@")
    here.fake.journal.clear()
    await here.settle()
    assert here.writes() == []
    await here.secret("source", value=DECLARED + "-next")
    await here.settle()
    assert await here.proven() == DECLARED + "-next"
    assert await rejected(here, DECLARED)


@pytest.mark.case("PIDD3")
async def test_a_declared_secret_that_the_server_lost_is_pushed_again(here: Scene) -> None:
    await here.secret("source", value=DECLARED)
    await here.make(clientSecretRef={"name": "source", "key": "value"})
    await here.settle()
    here.server().secrets.clear()
    await here.settle()
    assert await here.proven() == DECLARED


@pytest.mark.case("PIDD4")
@pytest.mark.parametrize("value", ["short", "with-a-line-end-0123456789\n", "with-\u00fc-0123456789"])
async def test_a_declared_secret_that_cannot_be_used_is_told_and_changes_nothing(here: Scene, value: str) -> None:
    old = await ready_client(here)
    await here.secret("source", value=value)
    await here.edit(clientSecretRef={"name": "source", "key": "value"})
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/ClientSecretSyncError"
    assert value.strip() not in message
    assert await here.proven() == old


@pytest.mark.case("PIDD7", "PIDD8", "PIDS20")
@pytest.mark.parametrize("secret", [{"storeClientSecret": False}, {"enabled": False}])
async def test_a_declared_secret_is_pushed_even_when_it_is_not_stored(here: Scene, secret: dict[str, Any]) -> None:
    await here.secret("source", value=DECLARED)
    await here.make(clientSecretRef={"name": "source", "key": "value"}, secret=secret)
    await here.settle()
    assert await here.login(here.server().id, DECLARED) == 200
    assert "client_secret" not in await here.credentials()
    assert (await here.ready())[0] == "True/Reconciled"
    here.fake.journal.clear()
    await here.settle()
    assert here.writes() == []


@pytest.mark.case("PIDD9")
async def test_a_request_that_has_no_effect_is_taken_away_with_a_reason(here: Scene) -> None:
    await here.secret("source", value=DECLARED)
    await here.make(clientSecretRef={"name": "source", "key": "value"})
    await here.settle()
    await here.annotate(regenerate_client_secret="true")
    await here.settle()
    assert await here.proven() == DECLARED
    assert "RequestIgnored" in [event.reason for event in here.told]
    stored = await here.stored()
    assert stored is not None
    assert REGENERATE not in (stored["metadata"].get("annotations") or {})


@pytest.mark.case("PIDD10")
async def test_a_declaration_that_is_taken_away_leaves_the_value(here: Scene) -> None:
    await here.secret("source", value=DECLARED)
    await here.make(clientSecretRef={"name": "source", "key": "value"})
    await here.settle()
    await here.edit(clientSecretRef=None)
    await here.settle()
    assert await here.proven() == DECLARED
    assert "clientSecretSourceVersion" not in await here.status()


@pytest.mark.case("PIDS18", "PIDX18")
async def test_the_first_secret_of_a_client_that_we_made_is_stored_and_then_never_touched(here: Scene) -> None:
    """With storeClientSecret false: not replaced when it is gone, not retired, not regenerated."""
    await here.make(secret={"storeClientSecret": False})
    await here.settle()
    first = await here.proven()
    assert "initialSecretPending" not in await here.status()
    here.fake.place_legacy_secret(here.server().id, "pasted-by-a-person-012345")
    await here.settle()
    assert await here.login(here.server().id, "pasted-by-a-person-012345") == 200
    here.server().secrets.clear()
    await here.settle()
    assert here.server().secrets == []
    assert (await here.credentials())["client_secret"] == first
    await here.edit(secret={"storeClientSecret": True})
    await here.settle()
    assert await here.proven() != first


@pytest.mark.case("PIDX18")
async def test_the_secret_of_an_adopted_client_is_left_alone_when_it_is_not_stored(here: Scene) -> None:
    await here.make(deletionPolicy="Retain")
    await here.settle()
    mine = await here.proven()
    await here.client.delete(KIND.resource, KEY)
    await here.settle()
    async with asyncio.timeout(30):
        while await here.credentials():  # noqa: ASYNC110 - its owner is gone, and so is it in a moment
            await asyncio.sleep(0.005)
    await here.make(secret={"storeClientSecret": False})
    await here.settle()
    assert "client_secret" not in await here.credentials()
    assert await here.login(here.server().id, mine) == 200


@pytest.mark.case("PIDX17")
async def test_confidential_public_and_confidential_again(here: Scene) -> None:
    await ready_client(here)
    await here.edit(isPublic=True)
    await here.settle()
    assert "client_secret" not in await here.credentials()
    await here.edit(isPublic=False)
    await here.settle()
    await here.proven()
    assert len(here.server().secrets) == 1


@pytest.mark.case("PIDX19")
async def test_a_rename_moves_the_value(here: Scene) -> None:
    """Of the Secret and of its key at once: nothing is minted, the old Secret goes."""
    old = await ready_client(here)
    await here.edit(secret={"name": "wiki-login", "keys": {"clientSecret": "password"}})
    await here.settle()
    found = await here.credentials("wiki-login")
    assert found["password"] == old
    assert await here.credentials() == {}
    assert here.writes() == []


@pytest.mark.case("PIDS20")
async def test_a_secret_that_is_switched_off_goes(here: Scene) -> None:
    await ready_client(here)
    await here.edit(secret={"enabled": False})
    await here.settle()
    assert await here.credentials() == {}
    assert (await here.ready())[0] == "True/Reconciled"


@pytest.mark.case("PIDR4", "PIDR5")
async def test_a_schedule_that_cannot_be_read_stops_nothing_else(here: Scene) -> None:
    """Drift is repaired and the endpoints are written all the same."""
    old = await ready_client(
        here, clientSecretRotation={"enabled": True, "window": {"opens": "0 3 * *", "closesAfter": "2h"}}
    )
    here.server().secrets.clear()
    await here.settle()
    assert await here.proven() != old
    ready, message = await here.ready()
    assert ready == "False/SecretReconcileError"
    assert "clientSecretRotation" in message


@pytest.mark.case("PIDR9", "PIDR12")
async def test_the_spacing_of_the_instance_defers_the_next_scheduled_rotation(here: Scene) -> None:
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"spec": {"OIDCClientRotation": {"minSpacing": "4h"}}})
    await ready_client(here, clientSecretRotation=ROTATION)
    await aged(here)
    await here.settle()
    instance = await here.client.get(INSTANCE.resource, INSTANCE_KEY)
    assert instance["status"]["lastRotatedClientSecret"] == (await here.annotations())[SCHEDULED_AT]
    second = await here.proven()
    await aged(here)
    await here.settle()
    assert await here.proven() == second
    assert (await here.ready())[0] == "True/Reconciled"


@pytest.mark.case("PIDS6", "PIDS7")
async def test_a_mint_that_collides_is_made_again(here: Scene) -> None:
    old = await ready_client(here, clientSecretOverlap="24h")
    here.fake.forced_prefixes.extend([old[:4], old[:4]])
    await here.annotate(regenerate_client_secret="true")
    await here.settle()
    new = await here.proven()
    assert new[:4] != old[:4]
    assert len(here.server().secrets) == 2


@pytest.mark.case("PIDS13")
async def test_a_full_client_gets_room_for_a_new_secret(here: Scene) -> None:
    await ready_client(here, clientSecretOverlap="24h")
    while len(here.server().secrets) < 20:
        here.fake.place_legacy_secret(here.server().id, f"old-secret-{len(here.server().secrets):016}")
    mine, *others = here.server().secrets
    older = (replace(item, prefix=f"x{n:03}", created=mine.created - 10**12) for n, item in enumerate(others))
    here.server().secrets[:] = [*older, mine]
    await here.annotate(regenerate_client_secret="true")
    await here.settle()
    await here.proven()
    assert len(here.server().secrets) == 20


@pytest.mark.case("PIDX20")
async def test_a_secret_that_cannot_be_written_piles_up_none_at_the_server(
    here: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The namespace is going: the Secret is forbidden, so the minted value is taken back."""

    async def forbidden(*_: Any) -> Any:
        raise Forbidden(403, "Forbidden", "namespace apps is being terminated")

    monkeypatch.setattr(World, "create", forbidden)
    await here.make()
    for _ in range(3):
        await here.once()
    assert here.server().secrets == []
    assert (await here.ready())[0] == "False/SecretReconcileError"


@pytest.mark.case("PIDX10")
@pytest.mark.parametrize("ahead", [300.0, -300.0])
async def test_a_server_whose_clock_is_off_keeps_the_whole_overlap(here: Scene, ahead: float) -> None:
    here.fake.clock.offset = ahead
    old = await ready_client(here, clientSecretOverlap="4m")
    await here.annotate(regenerate_client_secret="true")
    await here.settle()
    assert await here.login(here.server().id, old) == 200
    await here.proven()


async def test_a_newer_server_makes_the_first_secret_with_the_client(here: Scene) -> None:
    """It is stored, and none is minted beside it."""
    here.fake.upgrade("2.17.0")
    await here.attach()
    here.fake.journal.clear()
    await here.make()
    await here.settle()
    await here.proven()
    assert here.writes() == ["POST oidc/clients"]
    assert len(here.server().secrets) == 1
