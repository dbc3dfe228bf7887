"""The probe of the directory against a real slapd, and what is kept of it between passes."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.real.directory import CORP, CORP_PASSWORD, CORP_READER, Directory, corp
from tests.real.ports import free_port

from moorage.core.meta import Key
from moorage.core.secret import SecretText
from moorage.keystone.backend import directory
from moorage.keystone.backend.directory import Probes, Target, probe, refused, target_of
from moorage.keystone.backend.ldap import BindCredentials
from moorage.keystone.backend.seen import Directory as Found
from moorage.keystone.backend.types import KIND

from .test_admission import changed

KEY = Key("openstack", "corp-ldap")
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
GOOD = Found("True", "DirectoryAnswers", "fine")
BAD = Found("False", "BindFailed", "no")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    """One directory for all tests of this file."""
    with corp(tmp_path_factory.mktemp("slapd")) as running:
        yield running


def target(served: Directory, **changes: object) -> Target:
    """A target that works, with changes."""
    works = Target(
        urls=(f"ldap://127.0.0.1:{served.port}",),
        start_tls=False,
        verify=True,
        ca=served.authority.pem,
        user=CORP_READER,
        password=SecretText(CORP_PASSWORD),
        base=f"ou=people,{CORP}",
        query="(&(objectClass=inetOrgPerson)(uid=*))",
        subtree=False,
    )
    return replace(works, **changes)  # type: ignore[arg-type]


@pytest.mark.e2e
@pytest.mark.case("K20")
def test_a_working_directory_is_told_with_a_sample_of_users(served: Directory) -> None:
    """Plain, STARTTLS and ldaps with the private CA, by address and by a name that only Keystone's network knows."""
    wanted = Found("True", "DirectoryAnswers", f"bind works and 3 users stand below ou=people,{CORP}")
    assert probe(target(served)) == wanted
    assert probe(target(served, start_tls=True)) == wanted
    assert probe(target(served, urls=(f"ldaps://127.0.0.1:{served.tls_port}",))) == wanted
    named = {"urls": (f"ldaps://localhost:{served.tls_port}",), "addresses": (("localhost", "127.0.0.1"),)}
    assert probe(target(served, **named)) == wanted


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("changes", "reason", "says"),
    [
        ({"password": SecretText("wrong")}, "BindFailed", "invalidCredentials"),
        ({"base": f"ou=nowhere,{CORP}"}, "BaseDNNotFound", "ou=nowhere"),
        ({"query": "(((broken"}, "SearchFailed", ""),
        ({"start_tls": True, "ca": None}, "TLSFailed", ""),
    ],
)
def test_each_stage_that_fails_has_its_reason(
    served: Directory, changes: dict[str, object], reason: str, says: str
) -> None:
    """Address, TLS, bind, base DN, search: the first that fails is named, with the server's word for it."""
    found = probe(target(served, **changes))
    assert (found.status, found.reason) == ("False", reason)
    assert says in found.message
    assert CORP_PASSWORD not in found.message


@pytest.mark.e2e
def test_tls_must_be_trusted_unless_it_is_declared_not_to_be(served: Directory) -> None:
    """A certificate of an unknown authority fails; tls_req_cert never accepts it, as Keystone would."""
    url = (f"ldaps://127.0.0.1:{served.tls_port}",)
    assert probe(target(served, urls=url, ca=None)).reason == "TLSFailed"
    assert probe(target(served, urls=url, ca=None, verify=False)).reason == "DirectoryAnswers"


@pytest.mark.e2e
def test_a_dead_address_is_named_and_the_next_one_is_tried(served: Directory) -> None:
    """Keystone takes the first address that answers, and so does the probe."""
    dead = f"ldap://127.0.0.1:{free_port()}"
    found = probe(target(served, urls=(dead,)))
    assert found.reason == "AddressUnreachable"
    assert dead in found.message
    assert "Connection refused" in found.message
    assert probe(target(served, urls=(dead, *target(served).urls))).reason == "DirectoryAnswers"


@pytest.mark.e2e
def test_an_empty_tree_and_a_single_user_are_told_as_such(served: Directory) -> None:
    """A declared base without users is what people look for."""
    assert "no users" in probe(target(served, base=f"ou=empty,{CORP}")).message
    assert " 1 user stand" in probe(target(served, query="(uid=u1)")).message


@pytest.mark.e2e
def test_many_users_are_not_counted(tmp_path: Path) -> None:
    """The search ends at ten, so a large directory is not read, and the sentence does not change with each user."""
    with corp(tmp_path, users=25) as running:
        assert "10 or more users" in probe(target(running)).message


def test_the_target_searches_as_keystone_does() -> None:
    """Filter, object class and id attribute as Keystone joins them; options that change the connection count."""
    obj = changed("ldap.users", {"treeDN": "ou=p", "filter": "(a=b)", "objectClass": "person", "idAttribute": "uid"})
    obj["spec"]["ldap"] |= {"url": "ldap://a, ldap://b", "tls": {"caBundleSecretRef": {"name": "corp-ca"}}}
    ldap = KIND.parse(obj).spec.ldap
    assert ldap is not None
    extra = {"use_tls": "True", "tls_req_cert": "never", "query_scope": "sub"}
    found = target_of(ldap, extra, BindCredentials("cn=svc", "s3cret"), None)
    assert found.query == "(&(a=b)(objectClass=person)(uid=*))"
    assert (found.urls, found.start_tls, found.verify, found.subtree) == (("ldap://a", "ldap://b"), True, False, True)
    assert found.authority == "corp-ca"
    assert "s3cret" not in repr(found)
    plain = target_of(ldap, {}, BindCredentials("cn=svc", "s3cret"), None)
    assert (plain.start_tls, plain.verify, plain.subtree) == (False, True, False)


class Stage:
    """A probe whose answers the test gives, and a clock that it moves."""

    def __init__(self, *answers: Found) -> None:
        self.answers, self.asked, self.time = list(answers), 0, NOON

    def __call__(self, _target: Target) -> Found:
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]

    def now(self) -> datetime:
        return self.time


WHERE = Target(("ldap://x",), False, True, None, "cn=svc", SecretText("a"), "ou=p", "(a=*)", False)


@pytest.mark.case("K20", "P1")
async def test_a_good_answer_is_kept_for_minutes_and_a_bad_one_for_less() -> None:
    """A steady pass asks nothing; a broken directory is asked again soon."""
    stage = Stage(GOOD, BAD, GOOD)
    probes = Probes(stage)
    for minutes, wanted, asked in ((0, GOOD, 1), (1, GOOD, 1), (2, BAD, 2), (2, BAD, 2), (3, GOOD, 3)):
        stage.time = NOON + timedelta(minutes=minutes)
        assert await probes.look(KEY, WHERE, stage.now) == wanted
        assert stage.asked == asked


async def test_a_person_can_ask_at_once() -> None:
    """Another value of the annotation is another question."""
    stage = Stage(GOOD, BAD)
    probes = Probes(stage)
    assert await probes.look(KEY, WHERE, stage.now) == GOOD
    assert await probes.look(KEY, replace(WHERE, asked="now"), stage.now) == BAD


async def test_changed_settings_are_asked_at_once() -> None:
    """A new password does not wait for the old answer to age; a backend that is gone is forgotten."""
    stage = Stage(BAD, GOOD)
    probes = Probes(stage)
    assert await probes.look(KEY, WHERE, stage.now) == BAD
    assert await probes.look(KEY, replace(WHERE, password=SecretText("b")), stage.now) == GOOD
    probes.forget(KEY)
    await probes.look(KEY, replace(WHERE, password=SecretText("b")), stage.now)
    assert stage.asked == 3


@pytest.mark.case("K20")
async def test_a_slow_directory_never_holds_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass goes on with what is known; the answer is read by the next one, and only one probe runs meanwhile."""
    monkeypatch.setattr(directory, "PATIENCE", 0.01)
    release, asked = threading.Event(), 0

    def slow(_target: Target) -> Found:
        nonlocal asked
        asked += 1
        release.wait(20)
        return GOOD

    probes = Probes(slow)
    for _ in range(3):
        assert (await probes.look(KEY, WHERE, lambda: NOON)).reason == "ProbePending"
    release.set()
    async with asyncio.timeout(20):
        while (await probes.look(KEY, WHERE, lambda: NOON)) != GOOD:
            continue
    assert asked == 1


async def test_a_fault_of_the_library_is_no_fact_about_the_directory() -> None:
    """Informational means: whatever goes wrong, the pass goes on."""

    def broken(_target: Target) -> Found:
        raise RuntimeError("bug")

    found = await Probes(broken).look(KEY, WHERE, lambda: NOON)
    assert (found.status, found.reason) == ("Unknown", "ProbeNotPossible")
    assert found.message == "the probe itself broke, the log of moorage says how"


def test_a_target_without_address_is_not_probed() -> None:
    """Nothing to ask is no answer."""
    assert probe(replace(WHERE, urls=())).status == "Unknown"


async def test_a_directory_that_is_down_costs_no_thread() -> None:
    """A refused connection is found out on the loop, in the words of the probe; one that is taken is for the probe."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        down = replace(WHERE, urls=(f"ldap://127.0.0.1:{taken.getsockname()[1]}",))
        wanted = probe(down)
        assert wanted.reason == "AddressUnreachable"
        stage = Stage(GOOD)
        assert await Probes(stage).look(KEY, down, stage.now) == wanted
        assert stage.asked == 0
        taken.listen()
        assert await Probes(stage).look(KEY, down, stage.now) == GOOD


async def test_names_are_not_resolved_on_the_loop() -> None:
    """A resolver that hangs holds neither the loop nor the end of the process; the address of a Service is known."""
    assert await refused(WHERE) is None
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        known = replace(WHERE, urls=(f"ldap://x:{taken.getsockname()[1]}",), addresses=(("x", "127.0.0.1"),))
        assert (await refused(known)) == probe(known)
