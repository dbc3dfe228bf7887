"""The projection of many backends: the order never matters, a bad one harms nobody, budgets hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from tests.keystone.service import given
from tests.real.certificates import Authority

from moorage.keystone.backend.authorities import readable
from moorage.keystone.backend.materials import Materials
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.service.domains import AUTHORITIES, BUDGET, project_all
from moorage.keystone.service.network import ldap_ports
from moorage.keystone.service.seen import Attached

_BIND = {"username": b"cn=a", "password": b"p"}
_BIG = {"ca.crt": b"x" * 250_000}
_short = st.fixed_dictionaries(
    {
        "name": st.sampled_from([f"b{i}" for i in range(8)]),
        "domain": st.sampled_from(["acme", "Acme", "umbra", "corp", "x1"]),
        "ready": st.booleans(),
        "deleting": st.booleans(),
        "bind": st.sampled_from(["bind", "nowhere"]),
    }
)
_backends = st.lists(_short, max_size=8, unique_by=lambda item: item["name"])


def attached(short: dict[str, Any]) -> Attached:
    return Attached(BACKEND.parse(given.backend(short)), Materials({"bind": _BIND, "big": _BIG}))


@settings(deadline=None)
@for_all(_backends, st.randoms())
def test_the_order_of_backends_changes_nothing(shorts: list[dict[str, Any]], random: Any) -> None:
    """Files, and who is left out and why, are the same for any order of the list."""
    shuffled = list(shorts)
    random.shuffle(shuffled)
    assert project_all(map(attached, shorts)) == project_all(map(attached, shuffled))


@settings(deadline=None)
@for_all(_backends)
def test_every_backend_is_attached_or_left_with_a_reason(shorts: list[dict[str, Any]]) -> None:
    """Nobody is forgotten; only terminating ones are silent, and only they."""
    found = project_all(map(attached, shorts))
    alive = {short["name"] for short in shorts if not short["deleting"]}
    assert {*found.attached} | {left.name for left in found.left} == alive
    assert not {*found.attached} & {left.name for left in found.left}
    assert all(left.why for left in found.left)


@settings(deadline=None)
@for_all(_backends)
def test_a_bad_backend_takes_nothing_from_its_siblings(shorts: list[dict[str, Any]]) -> None:
    """Without those that are at fault the same files come out."""
    faulty = {left.name for left in project_all(map(attached, shorts)).left if left.fault}
    rest = [short for short in shorts if short["name"] not in faulty]
    assert project_all(map(attached, shorts)).files == project_all(map(attached, rest)).files


@settings(deadline=None)
@for_all(_backends)
def test_no_two_backends_write_one_domain(shorts: list[dict[str, Any]]) -> None:
    """A domain that two claim, whatever the case of its letters, is projected for one of them at most; the others say whose it is."""
    found = project_all(map(attached, shorts))
    domains = {short["name"]: short["domain"].lower() for short in shorts}
    served = [domains[name] for name in found.attached]
    assert len(served) == len(set(served))
    for left in found.left:
        if "is claimed by backend" in left.why:
            assert list(domains.values()).count(domains[left.name]) > 1


@pytest.mark.case("C8")
def test_a_terminating_backend_holds_its_domain_while_its_file_is_there() -> None:
    """A replacement has the same file name. One that was never served does not push out who is."""
    served = {"name": "a", "domain": "corp", "conditions": ["ConfigProjected"]}
    old, new = attached({**served, "deleting": True}), attached({"name": "b", "domain": "Corp"})
    assert project_all([old, new]).attached == ()
    assert [left.why for left in project_all([old, new]).left] == [
        'domain "Corp" is claimed by backend a too, which is being deleted: change or delete one of the two'
    ]
    assert project_all([attached(served), attached({"name": "0", "domain": "corp", "deleting": True})]).attached == (
        "a",
    )


ROOT, OTHER, BROKEN = (
    Authority("one").pem,
    Authority("other").pem,
    b"-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n",
)
SECRETS = {"bind": _BIND, "one": {"ca.crt": ROOT}, "other": {"ca.crt": OTHER}, "broken": {"ca.crt": BROKEN}}


def directory(name: str, ca: str = "", **extra: str) -> Attached:
    """A backend that speaks TLS, with an authority of its own or the image's."""
    obj = given.backend({"name": name, "domain": name, **({"ca": ca} if ca else {})})
    obj["spec"]["ldap"]["url"] = f"ldaps://{name}.example.org"
    obj["spec"]["extraOptions"] = extra
    return Attached(BACKEND.parse(obj), Materials(SECRETS))


def test_one_authority_stands_where_its_domain_looks_for_it() -> None:
    """However many directories it signed: nothing is to be mixed."""
    found = project_all([directory("a", "one"), directory("b", "one")])
    assert (found.paths, found.files["a-ca.pem"]) == ({}, ROOT)


def test_the_authorities_of_all_directories_stand_wherever_one_is_looked_for() -> None:
    """F5: libldap makes its mind up once in a process; each file is by itself what every other one is. What cannot be read is left out."""
    found = project_all(
        [directory("a", "one"), directory("b", "other"), directory("c", "broken"), directory("d", "one")]
    )
    assert {path: key for path, key in found.paths.items() if path != key} == dict.fromkeys(
        ("a-ca.pem", "b-ca.pem", "c-ca.pem", "d-ca.pem"), AUTHORITIES
    )
    assert readable(found.files[AUTHORITIES]) == tuple(sorted((*readable(ROOT), *readable(OTHER))))
    assert (found.files["a-ca.pem"], found.trusts_the_system) == (ROOT, False)


def test_a_public_authority_beside_a_private_one_is_told_to_the_library_before_anybody_logs_in() -> None:
    """Each of the two is set by another domain, and the first one would count."""
    found = project_all([directory("a", "one"), directory("b")])
    assert b"tls_cacertdir = /etc/ssl/certs\n" in found.files["keystone.b.conf"]
    assert found.trusts_the_system
    assert found.paths["a-ca.pem"] == AUTHORITIES
    assert not project_all([directory("a"), directory("b")]).trusts_the_system
    assert project_all([directory("a", "one"), directory("b", tls_cacertdir="/etc/ssl/certs")]).trusts_the_system
    assert project_all([directory("a", "one"), directory("b", tls_cacertdir="")]).trusts_the_system


def test_a_directory_that_need_not_prove_itself_is_not_served_beside_one_that_must() -> None:
    """F5: the first one would switch the proof off for all in its worker."""
    careless = directory("a", "one", tls_req_cert="never")
    found = project_all([careless, directory("b", "one")])
    assert found.attached == ("b",)
    assert [(left.name, left.fault, "backend b" in left.why) for left in found.left] == [("a", True, True)]
    assert project_all([careless, directory("c", "nowhere")]).attached == ("a",)
    assert project_all([careless, directory("d", "one", tls_req_cert="never")]).attached == ("a", "d")


def test_what_does_not_fit_is_left_and_the_smaller_one_after_it_is_not() -> None:
    """The aggregate stays below the limit of a Secret; the rest goes on."""
    many = [attached({"name": f"b{i}", "ca": "big"}) for i in range(5)]
    found = project_all([*many, attached({"name": "c"})])
    assert found.attached == ("b0", "b1", "b2", "b3", "c")
    assert sum(map(len, found.files.values())) <= BUDGET
    assert [left.fault for left in found.left] == [True]


def test_the_bundle_of_all_counts_as_it_is_written() -> None:
    """Each authority once and in lines of its own making, however often and however long people wrote it."""
    authorities = [Authority(f"{number} {'x' * 60}").pem for number in range(40)]
    flat = [
        b"\n".join([found.splitlines()[0], b"".join(found.splitlines()[1:-1]), found.splitlines()[-1]])
        for found in authorities
    ]
    materials = {"bind": _BIND, **{f"ca{number}": {"ca.crt": pem * 30} for number, pem in enumerate(flat)}}
    items = []
    for number in range(40):
        obj = given.backend(
            {"name": f"b{number:02}", "domain": f"d{number:02}", "ca": f"ca{number}", "url": "ldaps://a.example.org"}
        )
        items.append(Attached(BACKEND.parse(obj), Materials(materials)))
    found = project_all(items)
    assert sum(map(len, found.files.values())) <= BUDGET
    assert found.files[AUTHORITIES].count(b"BEGIN") == len(found.attached) == 40


def test_ports_of_directories() -> None:
    """Default ports by scheme, several URLs, nonsense ignored."""
    assert ldap_ports("ldaps://a:1636, ldap://b ldaps://c") == {1636, 389, 636}
    assert ldap_ports("http://a:80,ldap://b:port") == set()
