"""What people meet who cannot log in: each trouble of docs/guides/cannot-log-in.md brought about on a stand, and put right again.

Enters: a stand. Leaves: status and text as the person sees them. A row of the page is a promise about exactly one of these.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tests.e2e.federation.objects import FEDERATION
from tests.e2e.federation.site import ACME, BETA, CORP, PEOPLE, REDIRECT
from tests.e2e.federation.stand import Stand
from tests.e2e.federation.visitor import Page
from tests.e2e.federation.wire import exchange
from tests.fakes.idp import SamlFault, User

from moorage.core.meta import JsonObject


@dataclass(frozen=True)
class Met:
    """What came back to the person."""

    status: int
    text: str

    @classmethod
    def of(cls, page: Page) -> Met:
        return cls(page.status, page.body)


Trouble = Callable[[Stand], Awaitable[Met]]


async def _browser(site: Stand, name: str = ACME, user: str = "", origin: str = "") -> Met:
    """A whole login by somebody new."""
    return Met.of(await site.sign_in(site.visitor(), name, user, origin))


# --- Keystone


@contextlib.asynccontextmanager
async def _object(site: Stand, path: str, kind: str, change: JsonObject) -> AsyncIterator[None]:
    """An object of Keystone with a change in it; afterwards it is as before."""
    async with site.administrator() as admin:
        before = (await admin.made("GET", path))[kind]
        await admin.made("PATCH", path, {kind: change})
        try:
            yield
        finally:
            await admin.made("PATCH", path, {kind: {name: before[name] for name in change}})


async def _with_rules(site: Stand, local: Any, remote: Any = None) -> Met:
    """A login while the mapping of acme has this one rule; its first claim is the user's name, its second the groups."""
    asked = remote or [{"type": "HTTP_OIDC_PREFERRED_USERNAME"}, {"type": "HTTP_OIDC_GROUPS"}]
    rules = {"rules": [{"local": local, "remote": asked}]}
    async with _object(site, f"/OS-FEDERATION/mappings/{ACME}", "mapping", rules):
        return await _browser(site)


async def disabled(site: Stand) -> Met:
    """An identity provider that is closed."""
    async with _object(site, f"{FEDERATION}/{ACME}", "identity_provider", {"enabled": False}):
        return await _browser(site)


async def other_issuer(site: Stand) -> Met:
    """Keystone knows the issuer with a slash more."""
    ids = [f"{site.idp.issuer(ACME)}/"]
    async with _object(site, f"{FEDERATION}/{ACME}", "identity_provider", {"remote_ids": ids}):
        return await _browser(site)


async def unknown_path(site: Stand) -> Met:
    """Provider and protocol swapped in the dashboard's URL; nothing attached has that name."""
    path = f"/v3/auth/OS-FEDERATION/identity_providers/openid/protocols/{ACME}/websso?origin={site.origin}"
    return Met.of(await site.visitor().open(f"{site.base}{path}"))


async def shared_protocol(site: Stand) -> Met:
    """The short URL of a protocol that two backends share."""
    return Met.of(await site.visitor().open(f"{site.base}/v3/auth/OS-FEDERATION/websso/openid?origin={site.origin}"))


async def no_protocol(site: Stand) -> Met:
    """Somebody has deleted the protocol in Keystone by hand."""
    path = f"{FEDERATION}/{BETA}/protocols/openid"
    async with site.administrator() as admin:
        await admin.made("DELETE", path)
        try:
            return await _browser(site, BETA)
        finally:
            kept = {"mapping_id": BETA, "remote_id_attribute": "HTTP_OIDC_ISS"}
            await admin.made("PUT", path, {"protocol": kept})


async def foreign_dashboard(site: Stand) -> Met:
    """The dashboard's address without its last slash."""
    return await _browser(site, origin=site.origin.rstrip("/"))


async def no_rule(site: Stand) -> Met:
    """A rule that asks for a group that the person is not in."""
    asked = [{"type": "HTTP_OIDC_PREFERRED_USERNAME"}, {"type": "HTTP_OIDC_GROUPS", "any_one_of": ["nobody"]}]
    return await _with_rules(site, [{"user": {"name": "{0}"}}], asked)


async def out_of_range(site: Stand) -> Met:
    """The placeholder of the seed's own example."""
    asked = [{"type": "HTTP_OIDC_ISS", "any_one_of": [site.idp.issuer(ACME)]}, {"type": "HTTP_OIDC_PREFERRED_USERNAME"}]
    return await _with_rules(site, [{"user": {"name": "{1}"}}], asked)


async def unknown_group(site: Stand) -> Met:
    """The rule names a group that does not exist: the login works, and the token is good for nothing."""
    group = {"group": {"name": "nobody", "domain": {"name": ACME}}}
    asked = [{"type": "HTTP_OIDC_PREFERRED_USERNAME"}, {"type": "HTTP_OIDC_GROUPS"}]
    rules = {"rules": [{"local": [{"user": {"name": "{0}"}}, group], "remote": asked}]}
    async with _object(site, f"/OS-FEDERATION/mappings/{ACME}", "mapping", rules):
        found = await site.bearer(site.idp.token(ACME, PEOPLE[ACME], "cli"))
        assert await site.scoped(found.token, ACME) == []
        return Met(found.status, found.text)


async def no_role(site: Stand) -> Met:
    """Somebody in no group asks for a scope."""
    found = await site.bearer(site.idp.token(ACME, "dave", "cli"))
    asked = await site.authenticated({"methods": ["token"], "token": {"id": found.token}}, {"domain": {"name": ACME}})
    return Met(asked.status, asked.text)


async def no_local_user(site: Stand) -> Met:
    """A rule for users of Keystone itself, and nobody of that name."""
    return await _with_rules(site, [{"user": {"name": "{0}", "type": "local", "domain": {"name": ACME}}}])


async def no_domain_of_the_user(site: Stand) -> Met:
    """The same without a domain."""
    return await _with_rules(site, [{"user": {"name": "{0}", "type": "local"}}])


async def groups_without_domain(site: Stand) -> Met:
    """Names that Keystone cannot look up."""
    return await _with_rules(site, [{"user": {"name": "{0}"}}, {"groups": "{1}"}])


async def group_by_id(site: Stand) -> Met:
    """An id that is no group's."""
    return await _with_rules(site, [{"user": {"name": "{0}"}}, {"group": {"id": "0" * 32}}])


# --- the sidecar


async def token_of_another(site: Stand) -> Met:
    """A token that the provider made for somebody else's service."""
    headers = {"Authorization": f"Bearer {site.idp.token(ACME, PEOPLE[ACME], 'other')}", "Accept": "application/json"}
    found = await exchange(site.trust, "GET", f"{site.base}{site.protected(ACME)}", headers)
    return Met(found.status, f"{found.header('WWW-Authenticate')} {found.text}")


async def no_introspection(site: Stand) -> Met:
    """A token of beta, which takes none."""
    found = await site.bearer(site.idp.token(BETA, PEOPLE[BETA], "cli"), BETA)
    return Met(found.status, found.text)


async def second_provider(site: Stand) -> Met:
    """A session of acme at beta's path for tokens."""
    person = site.visitor()
    assert (await site.sign_in(person, ACME)).token
    return Met.of(await person.once(f"{site.base}{site.protected(BETA)}"))


async def script(site: Stand) -> Met:
    """A program at a browser's address."""
    found = await site.raw("GET", site.protected(BETA), {"Accept": "*/*"})
    return Met(found.status, found.text)


async def provider_down(site: Stand) -> Met:
    """The provider ends between its login form and the code."""
    person = site.visitor()
    page = await person.open(site.websso(ACME))
    form = page.form
    assert form is not None
    back = await person.once(form.action, {**form.fields, "username": PEOPLE[ACME], "password": f"{PEOPLE[ACME]}-pw"})
    site.idp.realm(ACME).down = True
    try:
        return Met.of(await person.open(back.headers["Location"]))
    finally:
        site.idp.realm(ACME).down = False


async def foreign_logout(site: Stand) -> Met:
    """Logout to an address that is not ours."""
    return Met.of(await site.visitor().once(f"{site.base}{REDIRECT}?logout=https://evil.example/"))


async def late_answer(site: Stand) -> Met:
    """The provider's answer a second time, or in a browser that began no login: the state is gone."""
    return Met.of(await site.visitor().once(f"{site.base}{REDIRECT}?code=x&state=y"))


async def lost_cookie(site: Stand) -> Met:
    """The login form was answered in a browser that has no cookie of ours."""
    person = site.visitor()
    page = await person.sign_in(await person.open(site.websso(CORP)), PEOPLE[CORP])
    return Met.of(await site.visitor().carry_on(page))


async def bad_signature(site: Stand) -> Met:
    """The provider signs with a key that its metadata here does not have."""
    site.idp.realm(CORP).fault = SamlFault.FOREIGN_KEY
    return await _browser(site, CORP)


async def used_answer(site: Stand) -> Met:
    """The back button."""
    person = site.visitor()
    page = await person.sign_in(await person.open(site.websso(CORP)), PEOPLE[CORP])
    assert (await person.carry_on(page)).token
    return Met.of(await person.carry_on(page))


async def expired_answer(site: Stand) -> Met:
    """Clocks that are an hour apart."""
    site.idp.realm(CORP).fault = SamlFault.EXPIRED
    return await _browser(site, CORP)


async def encrypted(site: Stand) -> Met:
    """Keycloak's default key transport."""
    site.idp.realm(CORP).fault = SamlFault.ENCRYPTED_OAEP11
    return await _browser(site, CORP)


async def too_many_claims(site: Stand) -> Met:
    """More cookies than the sidecar takes."""
    found = await site.raw("GET", site.protected(ACME), {"Cookie": f"a={'b' * 70_000}"})
    return Met(found.status, found.text)


async def semicolon(site: Stand) -> Met:
    """A group at the provider is called `x;ops`: who is in it gets the roles of ops."""
    realm = site.idp.realm(ACME)
    before, realm.users = realm.users, (*realm.users, User("grace", ("x;ops",)))
    try:
        found = await site.bearer(site.idp.token(ACME, "grace", "cli"))
        return Met(found.status, " ".join(await site.scoped(found.token, ACME)))
    finally:
        realm.users = before
