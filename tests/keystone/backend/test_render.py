"""What a backend projects, golden; the values of an LDAP backend read back by the real oslo.config."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st
from oslo_config import cfg

from moorage.core.unseen import has_unseen
from moorage.keystone.backend.ldap import ca_key, conf_key
from moorage.keystone.backend.ldap_options import KNOWN
from moorage.keystone.backend.materials import Data, Document, Materials
from moorage.keystone.backend.render import Fault, Projected, project
from moorage.keystone.backend.types import KIND
from moorage.keystone.key_pair import make_pair

from . import folders
from .test_admission import bound, changed


def render(case: dict[str, Any]) -> Projected | Fault:
    """The projection of a case."""
    secrets: dict[str, Data | None] = {
        name: data and {key: value.encode() for key, value in data.items()} for name, data in secrets_of(case).items()
    }
    if "pair" in case:
        pair = make_pair("test", datetime(2026, 1, 1, tzinfo=UTC))
        secrets[case["pair"]] = {"tls.crt": pair.certificate, "tls.key": pair.key}
    return project(
        KIND.parse(case["object"]), Materials(secrets, case.get("base", ""), document_of(case.get("document")))
    )


def document_of(given: dict[str, Any] | None) -> Document | Fault | None:
    """The metadata of a case, taken as accepted; `contentBytes` stands for a large one."""
    if given is None or "fault" in given:
        return Fault(**given["fault"]) if given else None
    content = given.get("content") or json.dumps({"issuer": "https://kc.example.org:8443/realms/a"}).ljust(
        given["contentBytes"]
    )
    return Document(content.encode(), given.get("introspectionEndpoint", ""), frozenset(given.get("ports", ())))


def answer_of(got: Projected, *, random: bool) -> dict[str, str]:
    """Files and directives; a digest over a key pair that was just made is left out."""
    answer = {
        name: content.decode() for name, content in got.files.items() if not (random and name.endswith(".digest"))
    }
    if got.part is None:
        return answer
    part = got.part
    said = {
        "type": part.type, "provider": part.provider, "protocol": part.protocol, "remoteID": part.remote_id,
        "remoteIDAttribute": part.remote_id_attribute, "documents": dict(part.documents), "shared": dict(part.shared),
    }  # fmt: skip
    return {
        **answer,
        "part.yaml": folders.text(said),
        "fragment.conf": part.fragment + "\n",
        "alone.conf": part.alone + "\n",
    }


def secrets_of(case: dict[str, Any]) -> dict[str, dict[str, str] | None]:
    """Secrets by name; one of `caBytes` stands for a large CA bundle."""
    large = {"ca": {"ca.crt": "x" * case["caBytes"]}} if "caBytes" in case else {}
    return {**case["secrets"], **large}


@pytest.mark.parametrize("folder", folders.cases("render"))
def test_a_backend_projects_these_files_or_one_fault(folder: Path, update_cases: bool) -> None:
    """The files byte by byte, or the reason and the sentence, which never holds a value of a Secret."""
    case = folders.given(folder)
    got = render(case)
    if isinstance(got, Fault):
        assert not any(
            value in got.message
            for data in case["secrets"].values()
            for value in (data or {}).values()
            if len(value) > 3
        )
        answer = {"fault.yaml": folders.text({"reason": got.reason, "message": got.message})}
    else:
        answer = answer_of(got, random="pair" in case)
    folders.compare(folder, answer, update=update_cases)


def read_back(file: Path) -> Any:
    """The [ldap] and [identity] sections as the real oslo.config gives them to Keystone."""
    conf = cfg.ConfigOpts()
    conf.register_opts([cfg.StrOpt(name) for name in sorted(KNOWN)], "ldap")
    conf.register_opts([cfg.StrOpt("driver")], "identity")
    conf([], default_config_files=[str(file)], default_config_dirs=[])
    return conf


SEEN = st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")).filter(lambda char: not has_unseen(char))
ONE_LINE = st.text(SEEN, min_size=1, max_size=30)
"""What people do not see, such as a soft hyphen, is refused."""
TRICKY = st.text(st.sampled_from("\"'$%\\ #;=[]{}aé:"), min_size=1, max_size=12)


@pytest.mark.case("B02", "K7", "C12")
@settings(max_examples=150)
@examples(password=ONE_LINE | TRICKY, filter=ONE_LINE | TRICKY, extra=ONE_LINE | TRICKY)
def test_oslo_config_reads_back_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, password: str, filter: str, extra: str
) -> None:
    """Whatever stands in a password, a field or an extra option, Keystone gets exactly that."""
    obj = changed("ldap.users.filter", filter)
    obj["spec"]["extraOptions"] = {"group_desc_attribute": extra}
    got = project(KIND.parse(obj), bound(password.encode()))
    assert isinstance(got, Projected)
    file = tmp_path_factory.getbasetemp() / "keystone.corp.conf"
    file.write_bytes(got.files[conf_key("corp")])
    conf = read_back(file)
    assert (conf.ldap.password, conf.ldap.user_filter, conf.ldap.group_desc_attribute) == (password, filter, extra)
    assert conf.identity.driver == "ldap"


@pytest.mark.case("B09", "C4")
def test_the_digest_follows_content_and_nothing_else() -> None:
    """Key order changes nothing; one byte of a Secret changes it."""
    first = changed("extraOptions", {"page_size": "5", "chase_referrals": "false"})
    second = changed("extraOptions", {"chase_referrals": "false", "page_size": "5"})
    digests = [project(KIND.parse(item), bound()) for item in (first, second)]
    rotated = project(KIND.parse(first), bound(b"other"))
    assert isinstance(digests[0], Projected)
    assert digests[0] == digests[1] != rotated


@pytest.mark.case("P2")
def test_a_projection_never_prints_its_files() -> None:
    """A snapshot in a log line or a traceback shows no password."""
    assert "s3cret" not in repr(project(KIND.parse(changed("extraOptions", {})), bound()))


@pytest.mark.parametrize("domain", ["corp", "keystone.x", "a-ca.pem", "keystone.corp"])
def test_the_ca_file_is_never_taken_for_a_domain_file(domain: str) -> None:
    """Keystone scans its folder for keystone.*.conf."""
    name = ca_key(domain)
    assert not (name.startswith("keystone.") and name.endswith(".conf"))
    assert conf_key(domain) == f"keystone.{domain}.conf"


def test_bytes_that_are_no_text_are_a_fault_of_this_backend_only() -> None:
    """A binary password or a lone surrogate never ends the Keystone's own pass."""
    binary = project(KIND.parse(changed("extraOptions", {})), bound(b"\xff\xfe"))
    lone = project(KIND.parse(changed("ldap.users.filter", "\ud800")), bound())
    assert [fault.reason for fault in (binary, lone) if isinstance(fault, Fault)] == ["UnsafeValue", "UnsafeValue"]
