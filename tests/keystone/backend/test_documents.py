"""Metadata documents of providers: declared ones at once, fetched ones beside the passes, kept fresh by a clock that the tests turn."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from structlog.testing import capture_logs
from tests.net.test_guard import HERE, web, whole
from tests.real.certificates import Authority

from moorage.core.meta import JsonObject, Key, ResourceType
from moorage.keystone.backend.document_memory import HINT, RETRY, TTL, Memory, memory_of
from moorage.keystone.backend.documents import forget, look
from moorage.keystone.backend.materials import Document, Fault
from moorage.keystone.backend.types import KIND, KeystoneIdentityBackend
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.net.guard import FetchFailed, UnusableRoots
from moorage.net.sessions import Sessions
from moorage.runtime.world import World

from .descriptors import ENTITY, ISSUER, certificate, descriptor, discovered, key_descriptor, provider, sign_on

URL = f"{ISSUER}/.well-known/openid-configuration"
NOW = datetime(2030, 6, 1, 12, tzinfo=UTC)


class Provider(Sessions):
    """Answers fetches from a script: bytes, an error, or an event to wait for; the last answer stays."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers: list[Any] = list(answers)
        self.asked: list[tuple[str, bytes | None]] = []
        self.flying = self.most = 0

    async def fetch(self, url: str, *, limit: int, roots: bytes | None = None) -> bytes:
        self.asked.append((url, roots))
        self.flying += 1
        self.most = max(self.most, self.flying)
        try:
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if isinstance(answer, asyncio.Event):
                await answer.wait()
                answer = discovered()
            if isinstance(answer, Exception):
                raise answer
            return cast("bytes", answer)
        finally:
            self.flying -= 1


FAILS = FetchFailed(URL)


@dataclass
class Scene:
    """A process with a clock, and who was woken when."""

    http: Provider
    now: datetime = NOW
    woken: list[tuple[str, str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(cast("Any", None), cast("Any", None), self.http, clock=lambda: self.now)
        for kind in (KIND, KEYSTONE):
            self.world.wakers[kind.resource] = self._waker(kind.resource)
        _steady(self.http)

    def _waker(self, rt: ResourceType) -> Any:
        return lambda key, after: self.woken.append((rt.kind, key.name, after))

    def look(
        self, backend: KeystoneIdentityBackend, last_good: bytes | None = None, **secrets: Any
    ) -> Document | Fault | None:
        """One pass."""
        return look(self.world, backend, secrets, last_good)

    async def settle(self) -> None:
        """Until no fetch is under way."""
        while tasks := [item for item in asyncio.all_tasks() if item.get_name().startswith("metadata-")]:
            await asyncio.wait(tasks)

    async def pass_(
        self, backend: KeystoneIdentityBackend, last_good: bytes | None = None, **secrets: Any
    ) -> Document | Fault | None:
        """A pass, the fetch that it begins, and the pass after it."""
        self.look(backend, last_good, **secrets)
        await self.settle()
        return self.look(backend, last_good, **secrets)

    def later(self, span: timedelta) -> None:
        """Turn the clock."""
        self.now += span

    def at_once(self) -> set[str]:
        """Kinds that were woken now; forgets the rest."""
        found = {kind for kind, _, after in self.woken if after == 0}
        self.woken.clear()
        return found


def _steady(http: Sessions) -> None:
    """Backoff and lifetime without chance."""
    memory_of(http)._chance = lambda: 0.0


def _backend(
    name: str, type_: str, block: JsonObject, annotations: JsonObject | None = None
) -> KeystoneIdentityBackend:
    return KIND.parse(
        {
            "apiVersion": "keystone.openstack.c5c3.io/v1alpha1",
            "kind": "KeystoneIdentityBackend",
            "metadata": {"name": name, "namespace": "openstack", "annotations": annotations or {}},
            "spec": {
                "keystoneRef": {"name": "keystone"},
                "domain": {"name": name},
                "type": type_,
                type_.lower(): block,
            },
        }
    )


def oidc(
    name: str = "a", issuer: str = ISSUER, annotations: JsonObject | None = None, **fields: Any
) -> KeystoneIdentityBackend:
    """An OIDC backend."""
    block = {"issuer": issuer, "clientID": "keystone", "clientSecretRef": {"name": "client"}} | fields
    return _backend(name, "OIDC", block, annotations)


def saml(name: str = "a", entity: str = ENTITY, **source: Any) -> KeystoneIdentityBackend:
    """A SAML backend."""
    return _backend(
        name, "SAML", {"idpEntityID": entity, "idpMetadata": source or {"url": "https://idp.example.org/md"}}
    )


def document(found: Document | Fault | None) -> Document:
    assert isinstance(found, Document), found
    return found


def fault(found: Document | Fault | None) -> Fault:
    assert isinstance(found, Fault), found
    return found


@pytest.fixture
def here() -> Iterator[Scene]:
    return Scene(Provider(discovered()))


# --- declared documents


async def test_a_directory_has_no_document(here: Scene) -> None:
    """LDAP needs none."""
    block = {
        "url": "ldaps://x",
        "bindCredentialsSecretRef": {"name": "b"},
        "suffix": "dc=x",
        "users": {"treeDN": "dc=x"},
    }
    assert here.look(_backend("a", "LDAP", block)) is None


async def test_declared_documents_are_there_at_once_and_nothing_is_fetched(here: Scene) -> None:
    """Endpoints, inline, and from a Secret."""
    endpoints = {"authorizationEndpoint": "https://a/a", "tokenEndpoint": "https://a/t", "jwksURI": "https://a/k"}
    assert document(here.look(oidc(endpoints=endpoints))).ports == {443}
    inline = document(here.look(saml(inline=descriptor()))).content
    from_secret = here.look(saml(secretRef={"name": "md"}), md={"idp-metadata.xml": descriptor().encode()})
    assert document(from_secret).content == inline
    await here.settle()
    assert here.http.asked == []


@pytest.mark.case("B41")
@pytest.mark.parametrize(
    ("data", "reason", "says"),
    [
        (None, "MetadataUnavailable", "metadata Secret md does not exist"),
        ({}, "MetadataUnavailable", "key idp-metadata.xml of metadata Secret md is missing or empty"),
        ({"idp-metadata.xml": b""}, "MetadataUnavailable", "is missing or empty"),
        (
            {"idp-metadata.xml": b"<a/>"},
            "MetadataRefused",
            "key idp-metadata.xml of metadata Secret md: must be one EntityDescriptor",
        ),
        ({"idp-metadata.xml": b"x" * 300000}, "MetadataRefused", "more than 262144 bytes"),
        ({"idp-metadata.xml": descriptor(entity="urn:other").encode()}, "MetadataMismatch", "its entityID is not"),
    ],
)
async def test_what_is_wrong_with_a_secret_is_named(here: Scene, data: Any, reason: str, says: str) -> None:
    """The Secret, the key and the rule; not its content."""
    found = fault(here.look(saml(secretRef={"name": "md"}), md=data))
    assert found.reason == reason
    assert says in found.message
    assert "urn:other" not in found.message


async def test_an_inline_document_ends_with_its_valid_until(here: Scene) -> None:
    """Though nobody fetches it."""
    backend = saml(inline=descriptor(more='validUntil="2030-06-01T13:00:00Z"'))
    assert document(here.look(backend)).expires == NOW + timedelta(hours=1)
    here.later(timedelta(hours=1))
    assert "spec.saml.idpMetadata.inline: its validUntil has passed" in fault(here.look(backend)).message


@pytest.mark.parametrize(
    ("backend", "says"),
    [
        (
            oidc(providerMetadataURL="https://u:word@a/x"),
            "spec.oidc.providerMetadataURL: must not hold user information",
        ),
        (
            oidc(providerMetadataURL="https://a:6379/x"),
            "spec.oidc.providerMetadataURL: port 6379 is not one of a web server",
        ),
        (oidc(issuer="https://a:22"), "spec.oidc.issuer: port 22"),
        (saml(url="http://a/x"), "spec.saml.idpMetadata.url: must use https://"),
        (saml(url="https://a:25/x"), "spec.saml.idpMetadata.url: port 25"),
    ],
)
async def test_a_url_that_can_never_work_is_refused_by_its_field(
    here: Scene, backend: KeystoneIdentityBackend, says: str
) -> None:
    """For resources that bypassed admission; the password is not told."""
    found = fault(await here.pass_(backend))
    assert (found.reason, says in found.message, "word" in found.message) == ("MetadataRefused", True, False)
    assert here.http.asked == []


# --- fetched documents


async def test_a_pass_never_waits_and_both_rooms_are_woken_when_the_document_is_there(here: Scene) -> None:
    """The first pass says that it is not fetched yet."""
    assert fault(here.look(oidc())) == Fault("MetadataUnavailable", f"{URL} has not been fetched yet", pending=True)
    assert here.woken == []
    await here.settle()
    assert here.woken == [("KeystoneIdentityBackend", "a", 0.0), ("Keystone", "keystone", 0.0)]
    found = document(here.look(oidc()))
    assert (found.fetched, found.stale, found.why) == (NOW, False, "")
    assert here.http.asked == [(URL, None)]


@pytest.mark.case("B30")
async def test_a_document_is_fetched_again_after_its_lifetime_and_equal_content_wakes_nobody(here: Scene) -> None:
    """Between two fetches a pass asks for nothing, and is called again when the next one is due."""
    first = document(await here.pass_(oidc()))
    here.later(TTL - timedelta(seconds=1))
    assert document(await here.pass_(oidc())) == first
    assert here.woken[-2:] == [("KeystoneIdentityBackend", "a", 1.0), ("Keystone", "keystone", 1.0)]
    assert len(here.http.asked) == 1
    here.at_once()
    here.later(timedelta(seconds=1))
    here.http.answers = [discovered(response_types_supported=["none", "code"])]
    again = document(await here.pass_(oidc()))
    assert (again.content, again.fetched) == (first.content, here.now)
    assert here.at_once() == set()
    assert len(here.http.asked) == 2


@pytest.mark.case("B30", "K16")
async def test_changed_content_wakes_both_rooms(here: Scene) -> None:
    """A rotated key is seen within the lifetime."""
    here.http.answers = [descriptor().encode()]
    first = document(await here.pass_(saml()))
    here.at_once()
    here.later(TTL)
    here.http.answers = [descriptor(provider(key_descriptor(certificate(2)), sign_on())).encode()]
    assert document(await here.pass_(saml())).content != first.content
    assert here.at_once() == {"KeystoneIdentityBackend", "Keystone"}


@pytest.mark.case("B30", "C7", "K16")
async def test_a_failed_fetch_keeps_the_last_good_document_and_is_tried_again_with_backoff(here: Scene) -> None:
    """Stale once, whatever fails how often; healed by itself."""
    first = document(await here.pass_(oidc()))
    here.http.answers = [FAILS]
    here.later(TTL)
    here.at_once()
    for failures, delay in enumerate([15, 30, 60, 120, 240, 480, 600, 600]):
        assert RETRY.delay(failures, 0.0) == delay
        stale = document(await here.pass_(oidc()))
        assert (stale.content, stale.stale, stale.fetched) == (first.content, True, NOW)
        assert stale.why == f"fetching {URL} failed{HINT}"
        assert ("Keystone", "keystone", float(delay)) in here.woken
        assert here.at_once() == ({"KeystoneIdentityBackend", "Keystone"} if failures == 0 else set())
        here.later(timedelta(seconds=delay - 1))
        asked = len(here.http.asked)
        await here.pass_(oidc())
        assert len(here.http.asked) == asked
        here.later(timedelta(seconds=1))
    here.http.answers = [discovered()]
    healed = document(await here.pass_(oidc()))
    assert (healed.stale, healed.why, healed.fetched) == (False, "", here.now)
    assert here.at_once() == {"KeystoneIdentityBackend", "Keystone"}


@pytest.mark.case("B13", "B30")
@pytest.mark.parametrize(
    "answer", [b"<html>maintenance</html>", discovered("https://other.example"), discovered(jwks_uri=None)]
)
async def test_an_answer_that_is_refused_keeps_the_last_good_document(here: Scene, answer: bytes) -> None:
    """A maintenance page takes nothing away."""
    first = document(await here.pass_(oidc()))
    here.http.answers = [answer]
    here.later(TTL)
    found = document(await here.pass_(oidc()))
    assert (found.content, found.stale) == (first.content, True)
    assert "other.example" not in found.why


@pytest.mark.case("B13", "C7")
async def test_a_first_answer_that_is_refused_is_a_fault_and_is_tried_again(here: Scene) -> None:
    """It heals when the provider is mended."""
    here.http.answers = [discovered(f"{ISSUER}/")]
    assert fault(await here.pass_(oidc())).reason == "MetadataMismatch"
    here.http.answers = [FAILS]
    here.later(timedelta(seconds=15))
    assert fault(await here.pass_(oidc())) == Fault("MetadataUnavailable", f"fetching {URL} failed{HINT}")
    here.http.answers = [discovered()]
    here.later(timedelta(seconds=30))
    document(await here.pass_(oidc()))


async def test_a_bug_in_a_fetch_is_a_failure_like_any_other(here: Scene) -> None:
    """It is logged with its traceback, and the next fetch comes."""
    here.http.answers = [RuntimeError("boom"), discovered()]
    with capture_logs() as logs:
        assert "boom" not in fault(await here.pass_(oidc())).message
    assert [item["event"] for item in logs] == ["bug in a fetch"]
    here.later(timedelta(seconds=15))
    document(await here.pass_(oidc()))


@pytest.mark.case("B30", "P3")
async def test_after_a_restart_the_mounted_document_stands_in(here: Scene) -> None:
    """Not stale until a fetch has failed; the same bytes when the provider says the same."""
    mounted = document(await here.pass_(oidc())).content
    restarted = Scene(Provider(FAILS))
    first = document(restarted.look(oidc(), mounted))
    assert (first.content, first.stale, first.fetched) == (mounted, False, None)
    assert first.introspection_endpoint
    assert document(await restarted.pass_(oidc(), mounted)).stale
    healthy = Scene(Provider(discovered(response_types_supported=["none", "code"])))
    assert document(await healthy.pass_(oidc(), mounted)).content == mounted


async def test_what_is_mounted_for_another_issuer_does_not_stand_in(here: Scene) -> None:
    """Nor does what is no document at all."""
    for mounted in (discovered("https://other.example"), b"", b"\xff"):
        scene = Scene(Provider(FAILS))
        assert fault(scene.look(oidc(), mounted)).reason == "MetadataUnavailable"
        await scene.settle()


# --- ages


@pytest.mark.case("K16", "S6")
async def test_fetched_metadata_ends_with_its_valid_until(here: Scene) -> None:
    """It is fetched again at half of what is left; when that fails to the end, it is not used any more."""
    here.http.answers = [descriptor(more='validUntil="2030-06-01T13:00:00Z"').encode()]
    document(await here.pass_(saml()))
    assert here.woken[-1] == ("Keystone", "keystone", 1800.0)
    here.http.answers = [FAILS]
    here.later(timedelta(minutes=59, seconds=55))
    here.woken.clear()
    assert document(await here.pass_(saml())).stale
    assert ("Keystone", "keystone", 5.0) in here.woken
    here.later(timedelta(seconds=5))
    found = fault(here.look(saml()))
    assert found.reason == "MetadataRefused"
    assert "ended at 2030-06-01T13:00:00Z (validUntil)" in found.message


@pytest.mark.parametrize(("text", "seconds"), [("PT10M", 600.0), ("PT1S", 60.0), ("P7D", 3600.0)])
async def test_cache_duration_shortens_the_lifetime_within_reason(here: Scene, text: str, seconds: float) -> None:
    """Not below a minute, not above our own."""
    here.http.answers = [descriptor(more=f'cacheDuration="{text}"').encode()]
    await here.pass_(saml())
    assert here.woken[-1] == ("Keystone", "keystone", seconds)


# --- many backends


async def test_one_url_is_fetched_once_at_a_time(here: Scene) -> None:
    """By whatever backends; each gets its document."""
    gate = asyncio.Event()
    here.http.answers = [gate]
    for name in ("a", "b", "c"):
        here.look(oidc(name))
        here.look(oidc(name))
    await asyncio.sleep(0)
    gate.set()
    await here.settle()
    assert len(here.http.asked) == 1
    assert all(isinstance(here.look(oidc(name)), Document) for name in ("a", "b", "c"))


async def test_four_fetches_at_once_are_the_most(here: Scene) -> None:
    """A herd of slow providers leaves the process alone."""
    gate = asyncio.Event()
    here.http.answers = [gate]
    for number in range(20):
        here.look(oidc(f"a{number}", providerMetadataURL=f"https://idp.example.org/{number}"))
    while here.http.flying < 4:  # noqa: ASYNC110
        await asyncio.sleep(0)
    gate.set()
    await here.settle()
    assert (here.http.most, len(here.http.asked)) == (4, 20)


@pytest.mark.case("P4")
async def test_one_provider_that_fails_does_not_mark_another(here: Scene) -> None:
    """Each has its own state."""
    document(await here.pass_(oidc("a")))
    here.http.answers = [FAILS]
    assert fault(await here.pass_(oidc("b", providerMetadataURL="https://down.example/")))
    assert not document(here.look(oidc("a"))).stale


# --- changes of the declaration


async def test_another_address_or_authority_for_the_same_issuer_keeps_the_document_and_fetches_at_once(
    here: Scene,
) -> None:
    """An edit never takes a login away."""
    first = document(await here.pass_(oidc()))
    moved = oidc(providerMetadataURL="https://new.example/x", caBundleSecretRef={"name": "ca"})
    here.http.answers = [FAILS]
    assert document(here.look(moved, ca={"ca.crt": b"pem"})).content == first.content
    await here.settle()
    assert here.http.asked[-1] == ("https://new.example/x", b"pem")
    assert document(here.look(moved, ca={"ca.crt": b"pem"})).stale


async def test_another_issuer_starts_from_nothing(here: Scene) -> None:
    """The old provider's document is nobody's."""
    await here.pass_(oidc())
    assert fault(here.look(oidc(issuer="https://other.example"))).reason == "MetadataUnavailable"
    await here.settle()


async def test_a_person_can_ask_for_a_fetch_now(here: Scene) -> None:
    """By the annotation that asks a directory, too."""
    await here.pass_(oidc())
    document(await here.pass_(oidc(annotations={"moorage.internal/probe-at": "now"})))
    document(await here.pass_(oidc(annotations={"moorage.internal/probe-at": "now"})))
    assert len(here.http.asked) == 2


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (None, "CA Secret ca does not exist"),
        ({}, "key ca.crt of CA Secret ca is missing or empty"),
        ({"ca.crt": b""}, "is missing or empty"),
    ],
)
async def test_a_ca_bundle_that_is_missing_is_named(here: Scene, data: Any, says: str) -> None:
    """Nothing is fetched with other roots instead."""
    for backend in (oidc(caBundleSecretRef={"name": "ca"}), saml(url="https://a/", caBundleSecretRef={"name": "ca"})):
        found = fault(await here.pass_(backend, ca=data))
        assert found.reason == "CABundleUnavailable"
        assert says in found.message
    assert here.http.asked == []


async def test_a_ca_bundle_that_cannot_be_read_is_said(here: Scene) -> None:
    """It is the declaration's fault, not the provider's."""
    here.http.answers = [UnusableRoots("no certificate can be read")]
    found = fault(await here.pass_(oidc(caBundleSecretRef={"name": "ca"}), ca={"ca.crt": b"x"}))
    assert found == Fault("CABundleUnavailable", f"the CA bundle for {URL} cannot be used: no certificate can be read")


async def test_a_backend_that_is_gone_is_forgotten(here: Scene) -> None:
    """Its fetch is cut short and nothing of it is kept, also when its document is declared from now on."""
    gate = asyncio.Event()
    here.http.answers = [gate]
    here.look(oidc())
    forget(here.world, Key("openstack", "a"))
    gate.set()
    await here.settle()
    assert here.woken == []
    assert memory_of(here.http)._entries == {}
    await here.pass_(oidc())
    here.look(saml("a", inline=descriptor()))
    assert memory_of(here.http)._entries == {}
    forget(here.world, Key("openstack", "never"))


async def test_backends_of_one_age_are_not_fetched_at_one_moment() -> None:
    """Up to a tenth of the lifetime is left to chance."""
    scene = Scene(Provider(discovered()))
    chances = iter([0.0, 1.0])
    memory_of(scene.http)._chance = lambda: next(chances)
    await scene.pass_(oidc("a"))
    await scene.pass_(oidc("b", providerMetadataURL="https://idp.example.org/b"))
    entries = memory_of(scene.http)._entries
    assert {item.due for item in entries.values()} == {NOW + TTL, NOW + TTL * 0.9}


def test_each_process_has_one_memory_for_both_rooms() -> None:
    """Keyed by its sessions, which all rooms share."""
    one, other = Sessions(), Sessions()
    assert memory_of(one) is memory_of(one)
    assert memory_of(one) is not memory_of(other)
    assert isinstance(memory_of(one), Memory)


# --- the real wire


async def test_a_private_provider_is_fetched_with_its_own_authority(tmp_path: Path) -> None:
    """Over TLS, at an address that a person allowed; with the wrong authority the last good document stays."""
    authority = Authority()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*authority.issue(tmp_path, "idp"))
    async with web(whole(descriptor().encode()), tls=tls) as server, Sessions(allowed=HERE) as http:
        scene = Scene(cast("Any", http))
        backend = saml(url=f"https://127.0.0.1:{server.port}/md", caBundleSecretRef={"name": "ca"})
        found = document(await scene.pass_(backend, ca={"ca.crt": authority.pem}))
        assert found.content == document(scene.look(saml("b", inline=descriptor()))).content
        wrong = await scene.pass_(backend, ca={"ca.crt": Authority("another").pem})
        assert document(wrong).stale
        assert len(server.requests) == 1
