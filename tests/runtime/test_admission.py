"""AdmissionReview: answers, the HTTP side, certificates."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from moorage.core.meta import JsonObject, Key, ResourceType
from moorage.kube.client import Client
from moorage.kube.errors import ApiError, Invalid
from moorage.kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from moorage.runtime.admission import Webhooks
from moorage.runtime.admission_http import MOST, serve
from moorage.runtime.admission_server import AdmissionServer, Files, OwnAuthority, Place
from moorage.schema import Admission, FieldError, Review, Verdict, invalid, required, verdict
from moorage.serving.certificates import Pair, issue, make_authority

from .conftest import until
from .widget import KIND, widget

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def default(obj: JsonObject) -> JsonObject:
    obj["spec"].setdefault("color", "grey")
    return obj


def complaints(review: Review) -> Iterator[FieldError]:
    spec = review.object["spec"]
    if "bad" in spec.get("text", ""):
        yield invalid("spec.text", spec["text"], "must not be bad")
    if not spec.get("color"):
        yield required("spec.color", "a color is needed")
    for position, part in enumerate(spec.get("parts", ())):
        if "bad" in part:
            yield invalid(f"spec.parts[{position}]", part, "must not be bad")
    if any(item["spec"].get("color") == spec.get("color") for item in review.siblings):
        yield invalid("spec.color", spec.get("color"), "another widget has it")


def check(review: Review) -> Verdict:
    return verdict(
        complaints(review), ["green is out of fashion"] if review.object["spec"].get("color") == "green" else []
    )


ADMISSION = Admission(KIND, default, check)
VALIDATE, MUTATE = ADMISSION.validate_path, ADMISSION.mutate_path


def review(obj: JsonObject, old: JsonObject | None = None, **request: Any) -> JsonObject:
    body = {
        "uid": "u1",
        "operation": "CREATE" if old is None else "UPDATE",
        "name": obj["metadata"]["name"],
        "namespace": "default",
        "object": obj,
        "oldObject": old,
        **request,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body}


def ask(path: str, body: JsonObject, siblings: tuple[JsonObject, ...] = ()) -> JsonObject:
    webhooks = Webhooks([ADMISSION], lambda _rt, _namespace, _shared=None: siblings, lambda: NOW)
    response: JsonObject = webhooks.answers()[path](body)["response"]
    return response


def colored(name: str, text: str = "fine", color: str = "red", **spec: Any) -> JsonObject:
    obj = widget(name, text)
    obj["spec"] |= {"color": color, **spec}
    return obj


def test_all_violations_stand_in_one_answer_worded_as_kubernetes_words_them() -> None:
    """One message for all, one cause for each, code 422."""
    status = ask(VALIDATE, review(widget("w", "bad")))["status"]
    assert status["message"] == (
        'Widget.test.moorage.internal "w" is invalid: '
        '[spec.text: Invalid value: "bad": must not be bad, spec.color: Required value: a color is needed]'
    )
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert [cause["field"] for cause in status["details"]["causes"]] == ["spec.text", "spec.color"]


def test_one_violation_stands_without_brackets() -> None:
    """As apimachinery prints an aggregate of one."""
    status = ask(VALIDATE, review(colored("w", "bad")))["status"]
    assert status["message"].endswith('is invalid: spec.text: Invalid value: "bad": must not be bad')


def test_an_update_meets_the_siblings_of_what_was_stored_as_well() -> None:
    """The stored object is judged beside the new one, with all that may be said of either; what cannot be read meets nobody."""
    asked: list[Any] = []

    def siblings(_rt: ResourceType, _namespace: str, shared: Any = None, /) -> tuple[JsonObject, ...]:
        asked.append(shared)
        return ()

    by_color = replace(ADMISSION, meets=lambda obj: [obj["spec"]["color"]])
    answer = Webhooks([by_color], siblings, lambda: NOW).answers()[VALIDATE]
    for body in (review(colored("w")), review(colored("w", color="blue"), colored("w")), review(widget("w"))):
        answer(body)
    assert asked == [{"red"}, {"blue", "red"}, set()]


def test_defaults_are_a_json_patch() -> None:
    """Only what was filled in is sent; nothing to fill in, no patch."""
    response = ask(MUTATE, review(widget("w")))
    assert json.loads(base64.b64decode(response["patch"])) == [{"op": "add", "path": "/spec/color", "value": "grey"}]
    assert ask(MUTATE, review(colored("w"))) == {"uid": "u1", "allowed": True}


def test_warnings_come_with_either_answer() -> None:
    """Once each."""
    assert ask(VALIDATE, review(colored("w", color="green"))) == {
        "uid": "u1", "allowed": True, "warnings": ["green is out of fashion"],
    }  # fmt: skip
    refused = ask(VALIDATE, review(colored("w", "bad", color="green")))
    assert refused["warnings"] == ["green is out of fashion"]
    assert not refused["allowed"]


def test_siblings_come_from_the_callable_and_the_object_itself_is_none() -> None:
    """A duplicate is found; an update does not collide with itself."""
    assert not ask(VALIDATE, review(colored("w")), (colored("x"),))["allowed"]
    assert ask(VALIDATE, review(colored("w")), (colored("w"),))["allowed"]


@pytest.mark.case("B79")
def test_a_terminating_object_passes_though_nothing_of_it_is_valid() -> None:
    """A finalizer can always be removed."""
    gone = widget("w", "bad")
    gone["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z"
    assert ask(VALIDATE, review(gone, widget("w", "bad")))["allowed"]
    assert ask(MUTATE, review(gone, widget("w", "bad"))) == {"uid": "u1", "allowed": True}


@pytest.mark.case("B79")
def test_what_is_stored_already_does_not_block_an_update() -> None:
    """An invalid stored value passes when it stays, also at another place of its list; a new one does not."""
    old = colored("w", "bad", parts=["bad one", "good"])
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    moved = colored("w", "bad", parts=["good", "bad one"])
    assert ask(VALIDATE, review(labelled, old))["allowed"]
    assert ask(VALIDATE, review(moved, old))["allowed"]
    worse = ask(VALIDATE, review(colored("w", "bad too", parts=["bad one", "bad two"]), old))
    assert [cause["field"] for cause in worse["status"]["details"]["causes"]] == ["spec.text", "spec.parts[1]"]


def test_deletions_and_subresources_are_not_ours() -> None:
    """They pass."""
    body = review(widget("w", "bad"), operation="DELETE", object=None)
    assert ask(VALIDATE, body)["allowed"]
    assert ask(VALIDATE, review(widget("w", "bad"), widget("w"), subResource="status"))["allowed"]


def test_a_bug_in_a_rule_is_an_answer() -> None:
    """500 with a sentence, and no traceback in it."""

    def broken(_review: Review) -> Verdict:
        raise ZeroDivisionError("secret detail")

    webhooks = Webhooks([Admission(KIND, default, broken)])
    response = webhooks.answers()[VALIDATE](review(widget("w")))["response"]
    assert response["status"]["code"] == 500
    assert "secret detail" not in json.dumps(response)


# --- over HTTPS


def write(folder: Path, pair: Pair) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "tls.crt").write_text(pair.certificate)
    (folder / "tls.key").write_text(pair.key.reveal())


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[AdmissionServer, str, Pair]]:
    authority = make_authority("test", datetime.now(UTC))
    write(folder, issue(authority, ["localhost", "127.0.0.1"], datetime.now(UTC)))
    server = AdmissionServer(serve([ADMISSION]), "127.0.0.1:0", Files(folder), period=3600)
    await server.renew()
    await server.listener.start()
    try:
        yield server, f"https://localhost:{server.listener.port}", authority
    finally:
        await server.listener.stop()


def trusting(authority: Pair) -> aiohttp.ClientSession:
    context = ssl.create_default_context(cadata=authority.certificate)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, force_close=True))


@pytest.mark.case("B79")
async def test_bad_requests_get_clean_answers_and_never_a_redirect(tmp_path: Path) -> None:
    """Unknown path, wrong method, no JSON, no review, oversized: each its own 4xx, and the server goes on."""
    good = review(widget("w"))
    cases: list[tuple[str, str, dict[str, Any], int]] = [
        ("POST", "/nothing", {"json": good}, 404),
        ("POST", VALIDATE + "/", {"json": good}, 404),
        ("GET", VALIDATE, {}, 405),
        ("POST", VALIDATE, {"data": b"{}", "headers": {"Content-Type": "text/plain"}}, 415),
        ("POST", VALIDATE, {"data": b"{", "headers": {"Content-Type": "application/json"}}, 400),
        ("POST", VALIDATE, {"data": b"[" * 100_000, "headers": {"Content-Type": "application/json"}}, 400),
        ("POST", VALIDATE, {"json": []}, 400),
        ("POST", VALIDATE, {"json": {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}}, 400),
        ("POST", VALIDATE, {"json": review(widget("w"), uid="")}, 400),
        ("POST", VALIDATE, {"json": {**good, "request": {**good["request"], "object": None}}}, 400),
        (
            "POST",
            VALIDATE,
            {"data": io.BytesIO(b" " * (MOST + 1)), "headers": {"Content-Type": "application/json"}},
            413,
        ),
        ("POST", VALIDATE, {"json": good}, 200),
    ]
    async with served(tmp_path / "tls") as (_, url, authority), trusting(authority) as session:
        for method, path, body, wanted in cases:
            async with session.request(method, url + path, allow_redirects=False, **body) as response:
                assert response.status == wanted, (method, path, await response.text())
                await response.json()


@pytest.mark.case("B79")
async def test_a_renewed_certificate_is_served_without_a_restart(tmp_path: Path) -> None:
    """New connections see the new one; a half-written pair changes nothing."""
    folder = tmp_path / "tls"
    async with served(folder) as (server, _, authority):
        first = await shown(server, authority)
        fresh = issue(authority, ["localhost"], datetime.now(UTC))
        (folder / "tls.crt").write_text(fresh.certificate)
        assert not await server.renew()
        assert await shown(server, authority) == first
        (folder / "tls.key").write_text(fresh.key.reveal())
        assert await server.renew()
        assert await shown(server, authority) == fresh.parsed.serial_number


@pytest.mark.parametrize("kind", ["no key", "another key", "a key with a passphrase", "no text"])
async def test_a_pair_that_cannot_be_served_is_told_at_each_look_and_never_served(tmp_path: Path, kind: str) -> None:
    """Nobody is asked for a passphrase; when the pair is right, it is taken."""
    authority, other = (make_authority(name, datetime.now(UTC)) for name in ("test", "other"))
    pair = issue(authority, ["localhost"], datetime.now(UTC))
    key = load_pem_private_key(pair.key.reveal().encode(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    keys = {
        "no key": b"",
        "another key": other.key.reveal().encode(),
        "a key with a passphrase": locked,
        "no text": b"\xff\xfe",
    }
    write(tmp_path, pair)
    (tmp_path / "tls.key").write_bytes(keys[kind])
    server = AdmissionServer(serve([ADMISSION]), "127.0.0.1:0", Files(tmp_path), period=3600)
    assert [await server.renew() for _ in range(3)] == [False, False, False]
    write(tmp_path, pair)
    assert await server.renew()


async def shown(server: AdmissionServer, authority: Pair) -> int:
    """Serial number of the certificate that a new connection is shown."""
    from cryptography import x509

    context = ssl.create_default_context(cadata=authority.certificate)
    _, writer = await asyncio.open_connection(
        "127.0.0.1", server.listener.port, ssl=context, server_hostname="localhost"
    )
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    await asyncio.sleep(0)
    return x509.load_der_x509_certificate(der).serial_number


def configuration(kind: str, name: str) -> JsonObject:
    """Two webhooks: of our Service, and of a stranger's."""
    rule = {"apiGroups": ["x.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}
    webhooks = [
        {
            "name": f"a.{service}.internal", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "default", "name": service, "path": VALIDATE}},
        }
        for service in ("moorage-webhook", "stranger")
    ]  # fmt: skip
    return {"kind": kind, "metadata": {"name": name}, "webhooks": webhooks}


@pytest.fixture
async def configurations(client: Client) -> AsyncIterator[Client]:
    """Webhook configurations of our name and of another."""
    made: list[tuple[ResourceType, JsonObject]] = []
    for rt in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        for name in ("moorage", "t-another"):
            made.append((rt, await client.create(rt, configuration(rt.kind, name))))
    yield client
    for rt, obj in made:
        await client.delete(rt, Key("", obj["metadata"]["name"]))


async def test_replicas_share_one_authority_and_inject_it(configurations: Client) -> None:
    """Two replicas that start together agree; of our own configurations, what calls our Service is touched, and no other."""
    client, place = configurations, Place(namespace="default")
    replicas = [OwnAuthority(client, place), OwnAuthority(client, place)]
    pairs = await asyncio.gather(*(item.refresh() for item in replicas))
    authority = base64.b64decode((await client.get(SECRETS, Key("default", place.secret)))["data"]["ca.crt"]).decode()
    for pair in pairs:
        verify(pair, authority)
    for rt in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        ours, theirs = [item["clientConfig"] for item in (await client.get(rt, Key("", "moorage")))["webhooks"]]
        assert base64.b64decode(ours["caBundle"]).decode() == authority
        assert "caBundle" not in theirs
        another = await client.get(rt, Key("", "t-another"))
        assert not [hook for hook in another["webhooks"] if "caBundle" in hook["clientConfig"]]
    before = client.writes
    assert await replicas[0].refresh() == pairs[0]
    assert client.writes == before


async def test_rotation_of_the_authority_trusts_old_and_new(configurations: Client) -> None:
    """While replicas still show certificates of the old one, the bundle holds both; ten years later the old one is gone."""
    client, place = configurations, Place(namespace="default")
    clock = datetime.now(UTC)
    replica = OwnAuthority(client, place, now=lambda: clock)
    old = await replica.refresh()
    clock += timedelta(days=3000)
    fresh = await replica.refresh()
    assert old != fresh
    bundle = await injected(client)
    assert bundle.count("BEGIN CERTIFICATE") == 2
    verify(fresh, bundle)
    clock += timedelta(days=1000)
    await replica.refresh()
    assert (await injected(client)).count("BEGIN CERTIFICATE") == 1


async def injected(client: Client) -> str:
    found = await client.get(VALIDATING_WEBHOOKS, Key("", "moorage"))
    return base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"]).decode()


def verify(pair: Pair, bundle: str) -> None:
    """Whether the certificate was issued by one of the bundle."""
    from cryptography import x509

    for authority in x509.load_pem_x509_certificates(bundle.encode()):
        if authority.subject == pair.parsed.issuer:
            try:
                pair.parsed.verify_directly_issued_by(authority)
            except Exception:  # noqa: BLE001
                continue
            return
    raise AssertionError("no authority of the bundle issued the certificate")


# --- through an API server


async def test_an_api_server_asks_our_webhooks_and_gets_all_violations(client: Client) -> None:
    """Own authority, injected by us; refused with every violation, defaulted and admitted when fine."""
    place = Place(namespace="default", extra_names=("localhost",), configuration="t-widgets")
    source = OwnAuthority(client, place)
    server = AdmissionServer(serve([ADMISSION]), "127.0.0.1:0", source, period=3600)
    await server.renew()
    await server.listener.start()
    rule = {
        "apiGroups": [KIND.group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [KIND.plural],
    }  # fmt: skip
    made: list[tuple[ResourceType, str]] = []
    try:
        for rt, path in ((MUTATING_WEBHOOKS, MUTATE), (VALIDATING_WEBHOOKS, VALIDATE)):
            hook = {
                "name": "w.moorage.internal", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": f"https://localhost:{server.listener.port}{path}"},
            }  # fmt: skip
            await client.create(rt, {"metadata": {"name": "t-widgets"}, "webhooks": [hook]})
            made.append((rt, "t-widgets"))
        await source.refresh()
        await until(lambda: _refused(client))
        stored = await client.create(KIND.resource, widget("fine"))
        assert stored["spec"]["color"] == "grey"
    finally:
        for rt, name in made:
            await client.delete(rt, Key("", name))
        await server.listener.stop()


async def _refused(client: Client) -> bool:
    """Configurations reach a server's admission after a moment."""
    obj = widget("w", "bad", finalizers=[])
    obj["spec"]["color"] = ""
    try:
        await client.create(KIND.resource, obj, dry_run=True)
    except Invalid as error:
        return [cause["field"] for cause in error.causes] == ["spec.text", "spec.color"]
    except ApiError:
        return False
    return False
