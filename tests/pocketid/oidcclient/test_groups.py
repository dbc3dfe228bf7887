"""Who may use a client: the union of both directions, proven at the server, never opened by accident."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.core.meta import Key
from moorage.pocketid.oidcclient.types import GROUP_FINALIZER, KIND
from moorage.pocketid.usergroup.types import KIND as USER_GROUP

from .scene import NAMESPACE, Scene


def allowed(here: Scene) -> tuple[bool, set[str]]:
    """The restriction and the set, as the server has them."""
    found: Any = here.server()
    return found.settings["isGroupRestricted"], set(found.groups)


@pytest.mark.case("PIDG1", "PIDG2", "PIDG3", "B72")
async def test_the_set_is_the_union_of_both_directions(here: Scene) -> None:
    """By resource, by exact name, by id, and from the group's side."""
    declared, listing = await here.group("declared"), await here.group("listing", clients=("wiki",))
    named, by_id = here.server_group("People"), here.server_group("admins")
    here.server_group("people")
    refs = [{"name": "declared"}, {"groupName": "People"}, {"groupID": by_id}, {"groupID": by_id}]
    await here.make(allowedUserGroups=refs)
    await here.settle()
    assert allowed(here) == (True, {declared, listing, named, by_id})
    assert (await here.status())["allowedUserGroupIDs"] == sorted({declared, listing, named, by_id})
    assert (await here.ready())[0] == "True/Reconciled"
    here.fake.journal.clear()
    await here.settle()
    assert here.writes() == []
    assert here.fake.journal.lines() == [
        "GET /api/user-groups",
        "GET /api/oidc/clients",
        f"GET /api/oidc/clients/{here.server().id}",
    ]


@pytest.mark.case("PIDG4", "B72")
async def test_a_group_that_is_gone_is_told_and_opens_nothing(here: Scene) -> None:
    staff = here.server_group("staff")
    await here.make(allowedUserGroups=[{"groupName": "staff"}])
    await here.settle()
    here.fake.store.delete_group(staff)
    here.fake.journal.clear()
    await here.settle()
    assert (await here.ready())[0] == "False/UserGroupNotFound"
    assert allowed(here) == (True, set())
    assert here.writes() == []


@pytest.mark.case("PIDG4")
async def test_a_reference_that_leads_nowhere_creates_nothing(here: Scene) -> None:
    await here.make(allowedUserGroups=[{"groupID": "no-such-group"}])
    await here.settle()
    assert (await here.ready())[0] == "False/UserGroupNotFound"
    assert here.writes() == []


@pytest.mark.case("PIDG5", "B72")
async def test_taking_the_last_reference_away_opens_the_client(here: Scene) -> None:
    here.server_group("staff")
    await here.make(allowedUserGroups=[{"groupName": "staff"}])
    await here.settle()
    await here.edit(allowedUserGroups=None)
    await here.settle()
    assert allowed(here) == (False, set())


@pytest.mark.case("PIDG5")
async def test_taking_the_client_out_of_the_last_list_opens_it_and_says_so(here: Scene) -> None:
    await here.group("staff", clients=("wiki",))
    await here.make()
    await here.settle()
    await here.client.patch(USER_GROUP.resource, Key(NAMESPACE, "staff"), {"spec": {"allowedOIDCClients": None}})
    await here.settle()
    assert allowed(here) == (False, set())
    assert [event.type for event in here.told if event.reason == "ClientOpened"] == ["Warning"]


async def test_a_group_that_is_deleted_opens_nothing(here: Scene) -> None:
    """Whoever deletes a group that lists the client does not open it: the client's own word does, or a group that lists it again."""
    staff = await here.group("staff", clients=("wiki",))
    await here.make()
    await here.settle()
    await here.client.delete(USER_GROUP.resource, Key(NAMESPACE, "staff"))
    here.fake.store.delete_group(staff)
    for _ in range(2):
        await here.settle()
        assert (await here.ready())[0] == "False/UserGroupNotFound"
        assert allowed(here) == (True, set())
    other = await here.group("people", clients=("wiki",))
    await here.settle()
    assert allowed(here) == (True, {other})
    assert "groupsVanished" not in await here.status()
    await here.client.delete(USER_GROUP.resource, Key(NAMESPACE, "people"))
    await here.edit(allowedUserGroups=[])
    await here.settle()
    assert allowed(here) == (False, set())
    assert (await here.ready())[0] == "True/Reconciled"


@pytest.mark.case("PIDG6")
async def test_groups_are_set_before_the_restriction_is_switched_on(here: Scene) -> None:
    await here.make()
    await here.settle()
    here.server_group("staff")
    here.fake.journal.clear()
    await here.edit(allowedUserGroups=[{"groupName": "staff"}])
    await here.settle()
    id = here.server().id
    assert here.writes() == [f"PUT oidc/clients/{id}/allowed-user-groups", f"PUT oidc/clients/{id}"]


async def test_groups_that_cannot_be_set_leave_the_client_as_it_was(here: Scene) -> None:
    """A failed write of groups never closes the client to everybody, nor opens it."""
    await here.make()
    await here.settle()
    here.server_group("staff")
    here.fake.faults.add("status", method="PUT", path="*/allowed-user-groups", times=-1)
    await here.edit(allowedUserGroups=[{"groupName": "staff"}], description="new")
    await here.once()
    assert allowed(here) == (False, set())
    assert here.server().settings["description"] == "new"
    assert (await here.ready())[0] == "False/ReconcileError"


@pytest.mark.case("B72")
async def test_a_group_that_is_still_to_come_keeps_a_new_client_closed(here: Scene) -> None:
    """It lists the client and is not at the server yet: nobody gets in until it is."""
    await here.group("late", clients=("wiki",), made=False)
    await here.make()
    await here.settle()
    assert allowed(here) == (True, set())
    assert (await here.ready())[0] == "False/ReconcileError"
    id = here.server_group("late")
    await here.says(USER_GROUP, "late", {"groupID": id}, ready=False)
    await here.settle()
    assert allowed(here) == (True, {id})
    assert (await here.ready())[0] == "True/Reconciled"


@pytest.mark.case("PIDF1", "PIDF2")
async def test_a_group_that_lists_the_client_holds_its_deletion(here: Scene) -> None:
    """Ready all the while; once the group lets go, deletion ends."""
    await here.group("staff", clients=("wiki",))
    await here.make()
    await here.settle()
    assert GROUP_FINALIZER in ((await here.stored()) or {})["metadata"]["finalizers"]
    await here.client.delete(KIND.resource, Key(NAMESPACE, "wiki"))
    await here.settle()
    assert (await here.ready())[0] == "True/DeletionBlocked"
    assert len(here.fake.store.clients) == 1
    await here.client.patch(USER_GROUP.resource, Key(NAMESPACE, "staff"), {"spec": {"allowedOIDCClients": None}})
    await here.settle()
    assert await here.stored() is None
    assert here.fake.store.clients == {}


@pytest.mark.case("PIDF1")
async def test_the_second_finalizer_goes_with_the_reference(here: Scene) -> None:
    await here.group("staff", clients=("wiki",))
    await here.make()
    await here.settle()
    await here.client.delete(USER_GROUP.resource, Key(NAMESPACE, "staff"))
    await here.settle()
    assert GROUP_FINALIZER not in ((await here.stored()) or {})["metadata"]["finalizers"]
