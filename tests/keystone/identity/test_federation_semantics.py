"""One suite for the seam: what our rules rely on in OS-FEDERATION, groups and role assignments holds for the stub and for a real Keystone 30."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from moorage.keystone.identity import Identity
from moorage.keystone.identity_access import Grant, Scope
from moorage.keystone.identity_errors import Conflict, NotFound, Refused
from moorage.keystone.identity_federation import REMOTE_ID_LIMIT, IdentityProvider, Protocol

pytestmark = pytest.mark.xdist_group("keystone")
RULES: list[dict[str, Any]] = [
    {
        "local": [{"user": {"name": "{0}"}}, {"group": {"name": "eng", "domain": {"name": "corp"}}}],
        "remote": [{"type": "HTTP_OIDC_SUB"}],
    }
]


def new() -> str:
    """A name that nobody has."""
    return uuid.uuid4().hex


async def domain(identity: Identity) -> str:
    """A domain of its own for a test; its id."""
    id = new()
    await identity.create_domain(f"d{id}", id=id, description=None)
    return id


async def provider(identity: Identity, **fields: Any) -> IdentityProvider:
    """A closed identity provider in a domain of its own."""
    id = new()
    wanted = {"remote_ids": (f"https://{id}",), "description": "ours", "enabled": False, **fields}
    return await identity.federation.create_provider(IdentityProvider(f"i{id}", await domain(identity), **wanted))


async def test_an_identity_provider_is_what_was_asked_for(identity: Identity) -> None:
    """Closed, in our domain, described; found again by id and in the list."""
    made = await provider(identity)
    assert (made.enabled, made.description, len(made.remote_ids)) == (False, "ours", 1)
    assert await identity.federation.provider(made.id) == made
    assert made in await identity.federation.providers()
    assert await identity.federation.provider("nobody") is None


async def test_an_identity_provider_is_changed_in_place(identity: Identity) -> None:
    """Only what is named changes; remote ids are replaced as a whole, their order means nothing."""
    made = await provider(identity)
    ids = (f"{made.remote_ids[0]}/b", made.remote_ids[0])
    changed = await identity.federation.update_provider(made.id, {"remote_ids": list(ids)})
    assert (set(changed.remote_ids), changed.enabled, changed.description) == (set(ids), False, "ours")
    opened = await identity.federation.update_provider(made.id, {"enabled": True, "description": "x"})
    assert (opened.enabled, opened.description, set(opened.remote_ids)) == (True, "x", set(ids))


@pytest.mark.case("B28")
async def test_a_remote_id_is_taken_once_only(identity: Identity) -> None:
    """Whoever holds it, at creation and at change; the id of an identity provider conflicts too."""
    first, second = await provider(identity), await provider(identity)
    with pytest.raises(Conflict):
        await identity.federation.update_provider(second.id, {"remote_ids": [*second.remote_ids, *first.remote_ids]})
    with pytest.raises(Conflict):
        await identity.federation.create_provider(IdentityProvider(new(), first.domain_id, False, first.remote_ids))
    with pytest.raises(Conflict):
        await identity.federation.create_provider(
            IdentityProvider(first.id, first.domain_id, False, ("https://other",))
        )
    assert await identity.federation.provider(second.id) == second


async def test_a_remote_id_of_more_than_64_characters_is_refused(identity: Identity) -> None:
    """Keystone 30 checks the length before it looks at its table, which would hold 255."""
    with pytest.raises(Refused):
        await provider(identity, remote_ids=("https://" + "x" * (REMOTE_ID_LIMIT - 7),))
    fits = "https://" + new() + "x" * (REMOTE_ID_LIMIT - 40)
    assert (await provider(identity, remote_ids=(fits,))).remote_ids == (fits,)


async def test_an_identity_provider_stays_in_its_domain(identity: Identity) -> None:
    """Keystone refuses to move it, and refuses a domain that does not exist."""
    made = await provider(identity)
    with pytest.raises(Refused):
        await identity.federation.update_provider(made.id, {"domain_id": await domain(identity)})
    with pytest.raises(NotFound):
        await identity.federation.create_provider(IdentityProvider(new(), new(), False, (f"https://{new()}",)))


async def test_a_deleted_domain_takes_its_identity_providers_along(identity: Identity) -> None:
    """So that deletion by policy leaves nothing behind."""
    made = await provider(identity)
    await identity.update_domain(made.domain_id, {"enabled": False})
    await identity.delete_domain(made.domain_id)
    assert await identity.federation.provider(made.id) is None


async def test_a_mapping_is_created_changed_in_place_and_deleted(identity: Identity) -> None:
    """Rules come back as they were sent; one without rules is refused; once is enough."""
    id = f"m{new()}"
    assert (await identity.federation.create_mapping(id, RULES)).rules == tuple(RULES)
    with pytest.raises(Conflict):
        await identity.federation.create_mapping(id, RULES)
    changed = [
        {**RULES[0], "remote": [{"type": "HTTP_OIDC_SUB"}, {"type": "HTTP_OIDC_ISS", "any_one_of": ["2024", "España"]}]}
    ]
    await identity.federation.update_mapping(id, changed)
    found = await identity.federation.mapping(id)
    assert found is not None
    assert list(found.rules) == changed
    for attempt in (identity.federation.update_mapping(id, []), identity.federation.create_mapping(f"n{new()}", [])):
        with pytest.raises(Refused):
            await attempt
    await identity.federation.delete_mapping(id)
    assert await identity.federation.mapping(id) is None
    for late in (identity.federation.delete_mapping(id), identity.federation.update_mapping(id, RULES)):
        with pytest.raises(NotFound):
            await late


async def test_a_protocol_belongs_to_its_identity_provider(identity: Identity) -> None:
    """Its mapping must exist; the list alone tells its remote id attribute; change is in place."""
    made, mapping = await provider(identity), f"m{new()}"
    wanted = Protocol("openid", mapping, "HTTP_OIDC_ISS")
    with pytest.raises(Refused):
        await identity.federation.create_protocol(made.id, wanted)
    await identity.federation.create_mapping(mapping, RULES)
    with pytest.raises(NotFound):
        await identity.federation.create_protocol("nobody", wanted)
    await identity.federation.create_protocol(made.id, wanted)
    with pytest.raises(Conflict):
        await identity.federation.create_protocol(made.id, wanted)
    assert await identity.federation.protocols(made.id) == (wanted,)
    changed = Protocol("openid", mapping, "HTTP_OTHER")
    await identity.federation.update_protocol(made.id, changed)
    assert await identity.federation.protocols(made.id) == (changed,)
    await identity.federation.delete_protocol(made.id, "openid")
    assert await identity.federation.protocols(made.id) == ()
    for late in (
        identity.federation.delete_protocol(made.id, "openid"),
        identity.federation.update_protocol(made.id, wanted),
    ):
        with pytest.raises(NotFound):
            await late


async def test_a_deleted_identity_provider_takes_its_protocols_along(identity: Identity) -> None:
    """Its mapping stays; a second deletion finds nothing."""
    made, mapping = await provider(identity), f"m{new()}"
    await identity.federation.create_mapping(mapping, RULES)
    await identity.federation.create_protocol(made.id, Protocol("openid", mapping, "HTTP_OIDC_ISS"))
    await identity.federation.delete_provider(made.id)
    assert await identity.federation.protocols(made.id) == ()
    assert await identity.federation.mapping(mapping) is not None
    with pytest.raises(NotFound):
        await identity.federation.delete_provider(made.id)


async def test_groups_are_found_by_domain(identity: Identity) -> None:
    """By list and by name; the same name in another domain is another group."""
    here, there = await domain(identity), await domain(identity)
    eng, ops = (
        await identity.access.create_group(here, "eng", "engineers"),
        await identity.access.create_group(here, "ops", None),
    )
    await identity.access.create_group(there, "eng", None)
    assert await identity.access.groups(here) == {"eng": eng, "ops": ops}
    assert await identity.access.group(here, "eng") == eng
    assert await identity.access.group(here, "nobody") == ""
    with pytest.raises(Conflict):
        await identity.access.create_group(here, "eng", None)


async def test_roles_are_those_outside_domains(identity: Identity) -> None:
    """A domain's own role of the same name is never taken for it."""
    name, here = f"r{new()}", await domain(identity)
    await identity.call("POST", "/roles", body={"role": {"name": name, "domain_id": here}})
    assert name not in await identity.access.roles()
    made = (await identity.call("POST", "/roles", body={"role": {"name": name}}))["role"]["id"]
    assert (await identity.access.roles())[name] == made


@pytest.mark.case("S4")
async def test_assignments_are_listed_by_group_and_by_scope(identity: Identity) -> None:
    """Granted twice is granted once; both lists tell the same; revoked twice is not found."""
    here = await domain(identity)
    role = (await identity.call("POST", "/roles", body={"role": {"name": f"r{new()}"}}))["role"]["id"]
    project = (await identity.call("POST", "/projects", body={"project": {"name": "p", "domain_id": here}}))["project"][
        "id"
    ]
    eng, ops = [await identity.access.create_group(here, name, None) for name in ("eng", "ops")]
    on_domain, on_project = Grant(eng, role, Scope("domain", here)), Grant(eng, role, Scope("project", project))
    other = Grant(ops, role, Scope("project", project))
    for grant in (on_domain, on_project, other, on_domain):
        await identity.access.grant(grant)
    assert await identity.access.grants_of(eng) == {on_domain, on_project}
    assert await identity.access.grants_on(Scope("domain", here)) == {on_domain}
    assert await identity.access.grants_on(Scope("project", project)) == {on_project, other}
    assert await identity.access.project(here, "p") == project
    assert await identity.access.projects(here) == {"p": project}
    await identity.access.revoke(on_domain)
    with pytest.raises(NotFound):
        await identity.access.revoke(on_domain)
    assert await identity.access.grants_of(eng) == {on_project}


@pytest.mark.case("S4")
async def test_assignments_on_all_projects_of_a_domain_are_one_list(identity: Identity) -> None:
    """At any depth; neither those on the domain itself, nor those of another domain."""
    here, there = await domain(identity), await domain(identity)
    role = (await identity.call("POST", "/roles", body={"role": {"name": f"r{new()}"}}))["role"]["id"]
    top, below, other = [
        (await identity.call("POST", "/projects", body={"project": {"name": name, "domain_id": home}}))["project"]["id"]
        for name, home in (("top", here), ("p", here), ("other", there))
    ]
    deep: dict[str, Any] = {"name": "deep", "domain_id": here, "parent_id": below}
    nested = (await identity.call("POST", "/projects", body={"project": deep}))["project"]["id"]
    eng = await identity.access.create_group(here, "eng", None)
    grants = [Grant(eng, role, Scope("project", id)) for id in (top, below, nested)]
    for grant in (*grants, Grant(eng, role, Scope("domain", here)), Grant(eng, role, Scope("project", other))):
        await identity.access.grant(grant)
    assert await identity.access.grants_below(here) == set(grants)
    assert await identity.access.grants_below(there) == {Grant(eng, role, Scope("project", other))}
    assert await identity.access.grants_below(await domain(identity)) == frozenset()
    everywhere, total = await identity.access.grants_with(role)
    assert {*grants, Grant(eng, role, Scope("project", other))} <= everywhere
    assert {grant.role for grant in everywhere} == {role}
    assert total >= len(everywhere)


@pytest.mark.case("S5")
async def test_keystone_deletes_a_mapping_that_a_protocol_uses(identity: Identity) -> None:
    """Without a word, so that it is ours to look who uses it: the protocol stays and refers to nothing."""
    made, mapping = await provider(identity), f"m{new()}"
    await identity.federation.create_mapping(mapping, RULES)
    await identity.federation.create_protocol(made.id, Protocol("openid", mapping, "HTTP_OIDC_ISS"))
    await identity.federation.delete_mapping(mapping)
    assert await identity.federation.protocols(made.id) == (Protocol("openid", mapping, "HTTP_OIDC_ISS"),)


async def test_assignments_go_with_role_and_group(identity: Identity) -> None:
    """What is deleted grants nothing any more; nobody's assignments are none; what does not exist cannot be granted."""
    here = await domain(identity)
    role = (await identity.call("POST", "/roles", body={"role": {"name": f"r{new()}"}}))["role"]["id"]
    eng, ops = [await identity.access.create_group(here, name, None) for name in ("eng", "ops")]
    for group in (eng, ops):
        await identity.access.grant(Grant(group, role, Scope("domain", here)))
    await identity.call("DELETE", f"/groups/{ops}")
    assert await identity.access.grants_on(Scope("domain", here)) == {Grant(eng, role, Scope("domain", here))}
    await identity.call("DELETE", f"/roles/{role}")
    assert await identity.access.grants_of(eng) == frozenset()
    assert await identity.access.grants_of(new()) == frozenset()
    for grant in (Grant(eng, role, Scope("domain", here)), Grant(eng, new(), Scope("domain", here))):
        with pytest.raises(NotFound):
            await identity.access.grant(grant)
