"""What an attacker forges to be somebody else: claims in headers, tokens, assertions, paths. Each is refused, or changes nothing."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator
from urllib.parse import urlencode

import aiohttp
import pytest
from tests.e2e.federation.site import ACME, BETA, CORP
from tests.e2e.federation.stand import Stand
from tests.fakes.idp import SamlFault
from tests.fakes.idp.forgery import FORGED
from tests.fakes.idp.keys import SigningKey, b64url

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

CLAIMS = {
    "OIDC-ISS": "issuer",
    "OIDC-PREFERRED-USERNAME": FORGED,
    "OIDC-GROUPS": "eng;ops",
    "OIDC-SUB": FORGED,
    "MELLON-IDP": "entity",
    "MELLON-NAME-ID": FORGED,
    "MELLON-USERNAME": FORGED,
    "MELLON-GROUPS": "eng;ops",
}


def _spellings(header: str) -> Iterator[str]:
    """Every name that a WSGI server reads as this header."""
    first, *words = header.split("-")
    for joints in itertools.product("-_", repeat=len(words)):
        yield first + "".join(joint + word for joint, word in zip(joints, words, strict=True))


def _forged(site: Stand, name: str, case: str) -> dict[str, str]:
    """All claims in all spellings, for one provider, in one letter case."""
    remote = {"issuer": site.idp.issuer(ACME if name == CORP else name), "entity": site.idp.entity(CORP)}
    made = {}
    for header, value in CLAIMS.items():
        for spelling in _spellings(header):
            made[getattr(spelling, case)()] = remote.get(value, value)
    return made


CASES = ("upper", "lower", "title")


@pytest.mark.case("S2", "K10")
@pytest.mark.parametrize("case", CASES)
async def test_forged_claims_beside_a_bearer_token_change_nothing(site: Stand, case: str) -> None:
    """Dave, who is in no group, stays dave, who is in no group."""
    found = await site.bearer(site.idp.token(ACME, "dave", "cli"), ACME, _forged(site, ACME, case))
    assert (found.status, found.user, found.body["user"]["OS-FEDERATION"]["groups"]) == (201, "dave", []), found.text


@pytest.mark.case("S2", "K10")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("name", "user"), [(BETA, "dave"), (CORP, "erin")])
async def test_forged_claims_beside_a_session_change_nothing(site: Stand, name: str, user: str, case: str) -> None:
    """With a browser session of somebody who is in no group."""
    person = site.visitor()
    assert (await site.sign_in(person, name, user)).token
    page = await person.open(site.websso(name), **_forged(site, name, case))
    said = await site.said_of(page.token)
    assert (said["user"]["name"], said["user"]["OS-FEDERATION"]["groups"]) == (user, []), page.body[:300]


@pytest.mark.case("S1", "S2")
@pytest.mark.parametrize("name", [ACME, BETA, CORP])
async def test_forged_claims_alone_give_no_token(site: Stand, name: str) -> None:
    """Neither at the path for tokens nor at the one for browsers."""
    headers = _forged(site, name, "upper") | {"Accept": "application/json"}
    for kind in ("auth", "websso"):
        found = await site.raw("GET", f"{site.protected(name, kind)}?{urlencode({'origin': site.origin})}", headers)
        assert (found.status in (302, 303, 401), found.token) == (True, ""), (kind, found.status, found.text[:300])


@pytest.mark.case("S1", "S2")
@pytest.mark.parametrize("method", ["openid", "mapped"])
@pytest.mark.parametrize("name", [ACME, BETA, CORP])
async def test_the_path_of_passwords_takes_no_federated_method(site: Stand, name: str, method: str) -> None:
    """Keystone's federated methods answer at /v3/auth/tokens too, past every protected path: neither headers nor the query are claims."""
    remote = site.idp.entity(CORP) if name == CORP else site.idp.issuer(name)
    for protocol in ("openid", "mapped"):
        identity = {"methods": [method], method: {"identity_provider": name, "protocol": protocol}}
        for query in ("", f"?{remote}", f"?HTTP_OIDC_ISS={remote}&OIDC-ISS={remote}"):
            found = await site.authenticated(identity, query=query, claims=_forged(site, name, "upper"))
            assert (found.status in (400, 401, 403, 404), found.token) == (True, ""), (found.status, found.text[:300])


async def _hidden(site: Stand) -> None:
    """Have an identity provider that Keystone takes and the sidecar does not know, as one that is being attached or detached."""
    if not site.hidden:
        async with site.administrator() as admin:
            domain = await admin.domain("hidden")
            await admin.provider("hidden", domain, "https://hidden.example", "mapped", "HTTP_MELLON")
        site.hidden = True


HIDDEN_CLAIMS = {"Mellon-Idp": "https://hidden.example", "Mellon-Username": FORGED, "Mellon-Groups": "eng"}
SPELLED = {
    "plain": "/v3/OS-FEDERATION/identity_providers/hidden/protocols/mapped/auth",
    "websso": "/v3/auth/OS-FEDERATION/identity_providers/hidden/protocols/mapped/websso?origin=x",
    "slash at the end": "/v3/OS-FEDERATION/identity_providers/hidden/protocols/mapped/auth/",
    "slashes": "/v3//OS-FEDERATION//identity_providers/hidden/protocols/mapped//auth",
    "slash in front": "//v3/OS-FEDERATION/identity_providers/hidden/protocols/mapped/auth",
    "dot": "/v3/OS-FEDERATION/./identity_providers/hidden/protocols/mapped/auth",
    "dots": "/v3/OS-FEDERATION/identity_providers/acme/../hidden/protocols/mapped/auth",
    "dots, encoded": "/v3/OS-FEDERATION/identity_providers/acme/%2e%2e/hidden/protocols/mapped/auth",
    "letter, encoded": "/v3/OS-FEDERATION/identity_providers/hidden/protocols/mapped/%61uth",
    "dash, encoded": "/v3/OS%2DFEDERATION/identity_providers/hidden/protocols/mapped/auth",
    "lower case": "/v3/os-federation/identity_providers/hidden/protocols/mapped/auth",
    "upper case": "/V3/OS-FEDERATION/IDENTITY_PROVIDERS/hidden/PROTOCOLS/mapped/AUTH",
    "slash, encoded": "/v3/OS-FEDERATION/identity_providers/hidden%2Fprotocols/mapped/auth",
    "parameter": "/v3/OS-FEDERATION/identity_providers/hidden/protocols/mapped/auth;x",
    "blank": "/v3/OS-FEDERATION/identity_providers/hidden/protocols/mapped/auth%20",
    "line feed": "/v3/OS-FEDERATION/identity_providers/hidden/protocols/mapped/auth%0a",
    "zero": "/v3/OS-FEDERATION/identity_providers/hidden/protocols/mapped/auth%00",
    "mellon of another": "/v3/OS-FEDERATION/identity_providers/hidden/protocols/mapped/auth/mellon/../",
    "a protocol of ours that is not its own": "/v3/OS-FEDERATION/identity_providers/acme/protocols/mapped/auth",
    "global websso": "/v3/auth/OS-FEDERATION/websso/saml2?origin=x",
    "backslash": "/v3/OS-FEDERATION/identity_providers/hidden/protocols/mapped%5Cauth",
}


@pytest.mark.case("S1", "S2")
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "PUT"])
@pytest.mark.parametrize("spelling", SPELLED)
async def test_a_provider_that_the_sidecar_does_not_know_is_closed_in_every_spelling(
    site: Stand, spelling: str, method: str
) -> None:
    """With the claims that Keystone itself would take."""
    await _hidden(site)
    found = await site.raw(method, SPELLED[spelling], HIDDEN_CLAIMS)
    assert (found.status >= 400, found.token) == (True, ""), (found.status, found.text[:300])


@pytest.mark.case("S1")
async def test_without_the_sidecar_keystone_would_have_believed_it(site: Stand) -> None:
    """So the test before this one proves something: the fence is what refuses."""
    await _hidden(site)
    async with (
        aiohttp.ClientSession(headers=HIDDEN_CLAIMS) as session,
        session.get(f"{site.keystone}{SPELLED['plain'].removeprefix('/v3')}") as answer,
    ):
        assert (answer.status, (await answer.json())["token"]["user"]["name"]) == (201, FORGED)


# --- tokens


@pytest.mark.case("B25", "S3")
async def test_a_token_of_another_client_is_refused(site: Stand) -> None:
    """The provider made it for somebody else's service."""
    assert (await site.bearer(site.idp.token(ACME, "alice", "other"))).status == 401


@pytest.mark.case("S3", "B25")
async def test_a_token_of_another_realm_is_refused(site: Stand) -> None:
    """At the backend that takes tokens, and at the one that takes none."""
    for name in (ACME, BETA):
        assert (await site.bearer(site.idp.token(BETA, "bob", "keystone"), name)).status == 401


async def test_a_token_that_has_ended_or_was_revoked_is_refused(site: Stand) -> None:
    """Each time the provider is asked, so a revoked token is worth nothing at once."""
    token = site.idp.token(ACME, "alice", "cli")
    assert (await site.bearer(token)).status == 201
    site.idp.realm(ACME).revoked.add(token)
    assert (await site.bearer(token)).status == 401
    site.idp.realm(ACME).lifetime = -60
    assert (await site.bearer(site.idp.token(ACME, "alice", "cli"))).status == 401


async def test_a_token_that_nobody_or_a_stranger_signed_is_refused(site: Stand) -> None:
    """`alg: none`, a key of the attacker's own, a changed payload."""
    good = site.idp.token(ACME, "dave", "cli")
    head, body, signature = good.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "==")) | {"preferred_username": FORGED}
    none = b64url(json.dumps({"alg": "none", "typ": "JWT"}).encode())
    changed = b64url(json.dumps(claims).encode())
    for token in (f"{none}.{changed}.", SigningKey().jwt(claims), f"{head}.{changed}.{signature}", good[:-4], "x"):
        found = await site.bearer(token)
        assert (found.status, found.token) == (401, ""), token[:40]


async def test_a_token_in_the_query_or_in_a_form_is_not_taken(site: Stand) -> None:
    """It would stand in logs and histories."""
    token = site.idp.token(ACME, "alice", "cli")
    found = await site.raw("GET", f"{site.protected(ACME)}?access_token={token}", {"Accept": "application/json"})
    assert (found.status, found.token) == (401, "")


@pytest.mark.case("K21")
async def test_no_token_of_anybody_stands_in_the_sidecar_s_log(site: Stand) -> None:
    """Neither one that was taken nor one that was refused."""
    tokens = [site.idp.token(ACME, "alice", client) for client in ("cli", "other")]
    for token in tokens:
        await site.bearer(token)
    log = site.proxy.process.log.read_text(errors="replace")
    assert not [token for token in tokens if token in log or token.split(".")[2] in log]


# --- sessions


@pytest.mark.case("S3", "B25")
async def test_a_session_of_one_realm_is_none_at_the_other(site: Stand) -> None:
    """Tokens: refused. Browsers: sent to the other realm's own login, which then works."""
    person = site.visitor()
    assert (await site.sign_in(person, ACME)).token
    page = await person.once(f"{site.base}{site.protected(BETA)}", Accept="application/json")
    assert (page.status, page.token) == (401, "")
    page = await person.open(site.websso(BETA))
    assert page.url.startswith(site.idp.issuer(BETA)), (page.way, page.body[:300])
    page = await person.sign_in(page, "bob")
    said = await site.said_of(page.token)
    assert (said["user"]["name"], said["user"]["domain"]["name"]) == ("bob", BETA)


async def test_a_session_of_saml_opens_nothing_at_an_oidc_provider_and_the_other_way_round(site: Stand) -> None:
    """Two modules, two cookies."""
    for here, there in ((CORP, ACME), (ACME, CORP)):
        person = site.visitor()
        assert (await site.sign_in(person, here)).token
        page = await person.once(f"{site.base}{site.protected(there)}", Accept="application/json")
        assert (page.status in (302, 303, 401, 403), page.token) == (True, ""), (here, there, page.status)


@pytest.mark.parametrize(("first", "then"), [(CORP, ACME), (ACME, CORP)])
async def test_who_is_signed_in_by_one_module_can_sign_in_by_the_other(site: Stand, first: str, then: str) -> None:
    """A session of one provider is no dead end at another's."""
    person = site.visitor()
    assert (await site.sign_in(person, first)).token
    page = await site.sign_in(person, then)
    assert (await site.said_of(page.token))["user"]["domain"]["name"] == then, (page.way, page.body[:300])


async def test_a_changed_session_cookie_is_no_session(site: Stand) -> None:
    """It is encrypted and signed."""
    person = site.visitor()
    assert (await site.sign_in(person, ACME)).token
    for key, (value, path, secure) in person.jar.kept.items():
        person.jar.kept[key] = (value[:-6] + "AAAAAA", path, secure)
    page = await person.once(f"{site.base}{site.protected(ACME)}", Accept="application/json")
    assert page.status == 401


# --- assertions

REFUSED = [fault for fault in SamlFault if fault.name not in ("NONE", "UNSOLICITED", "COMMENTED", "ENCRYPTED_MGF1P")]


@pytest.mark.parametrize("fault", REFUSED, ids=lambda fault: fault.name.lower())
async def test_an_assertion_that_is_not_as_it_must_be_is_refused(site: Stand, fault: SamlFault) -> None:
    """Unsigned, signed by a stranger, wrapped, too old, too early, for somebody else, encrypted in a way that the module cannot read."""
    site.idp.realm(CORP).fault = fault
    person = site.visitor()
    page = await site.sign_in(person, CORP)
    assert (page.status, page.token) == (400, ""), page.body[:300]
    assert not (await person.open(site.websso(CORP))).token, "no session was made of it"


async def test_a_comment_inside_a_name_does_not_make_it_another_name(site: Stand) -> None:
    """The signature holds without comments, so a parser that stops at one would read another user."""
    site.idp.realm(CORP).fault = SamlFault.COMMENTED
    token = await site.token_of(CORP)
    assert not token or (await site.said_of(token))["user"]["name"] == "carol"


async def test_a_response_that_was_changed_on_its_way_is_refused(site: Stand) -> None:
    """One name for another, under the old signature."""
    person = site.visitor()
    page = await person.sign_in(await person.open(site.websso(CORP)), "erin")
    assert page.form is not None
    made = base64.b64decode(page.form.fields["SAMLResponse"]).replace(b">erin<", b">root<")
    page = await person.submit(page, SAMLResponse=base64.b64encode(made).decode())
    assert (page.status, page.token) == (400, "")


async def test_a_response_is_good_once(site: Stand) -> None:
    """The same again, in the same browser and in the thief's."""
    person, thief = site.visitor(), site.visitor()
    page = await person.sign_in(await person.open(site.websso(CORP)), "carol")
    await thief.open(site.websso(CORP))
    assert (await person.carry_on(page)).token
    for who in (person, thief):
        again = await who.carry_on(page)
        assert (again.status, again.token) == (400, "")
    assert not (await thief.open(site.websso(CORP))).token


BOMB = '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in itertools.pairwise("abcdefghij")
)
HOSTILE = {
    "external entity": '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r>&x;</r>',
    "entity bomb": f"{BOMB}]><r>&j;</r>",
    "parameter entity": '<!DOCTYPE r [<!ENTITY % x SYSTEM "http://127.0.0.10:9/x">%x;]><r/>',
    "no XML": "nothing",
    "deep": "<r>" * 20000,
}


@pytest.mark.parametrize("what", HOSTILE)
async def test_hostile_xml_in_place_of_a_response_is_refused_and_hurts_nobody(site: Stand, what: str) -> None:
    """The next login works, and nothing of the file is shown."""
    person = site.visitor()
    page = await person.sign_in(await person.open(site.websso(CORP)), "carol")
    hostile = await person.submit(page, SAMLResponse=base64.b64encode(HOSTILE[what].encode()).decode())
    assert (hostile.status, hostile.token) == (400, "")
    assert "root:" not in hostile.body
    assert await site.token_of(CORP)


async def test_ecp_is_not_spoken(site: Stand) -> None:
    """The header that asks for it is dropped: such a request is one of a browser that is sent to its login, never a SOAP answer."""
    headers = {"PAOS": 'ver="urn:liberty:paos:2003-08"', "Accept": "application/vnd.paos+xml"}
    found = await site.raw("GET", site.protected(CORP), headers)
    assert (found.status in (303, 400, 401), "Envelope" in found.text) == (True, False)


@pytest.mark.parametrize("path", ["saml2", "saml2/ecp", "saml2/", "saml2//ecp", "saml2/%65cp"])
async def test_where_keystone_would_drop_the_connection_the_sidecar_says_that_only_a_post_will_do(
    site: Stand, path: str
) -> None:
    """Keystone's own assertions are made by POST, which reaches it."""
    where = f"/v3/auth/OS-FEDERATION/{path}"
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        found = await site.raw(method, where)
        assert (found.status, found.text if method == "HEAD" else "") == (405, ""), method
    found = await site.raw("POST", where, {"Content-Type": "application/json"})
    assert found.status in (308, 400, 401, 404), found.text
