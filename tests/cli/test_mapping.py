"""`moorage mapping test` says before any user does what a mapping will do, and keeps the contract of spec/cli.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.conftest import EXAMPLE, Run

SEED = (
    Path(__file__).parents[1]
    / "cases"
    / "keystone-backend"
    / "admission"
    / "96-b31-the-seeds-own-example"
    / "given.yaml"
)
ISSUER = "https://idp.example.org/realms/corp"


@pytest.fixture
def seed(tmp_path: Path) -> Path:
    """The seed's OIDC example, as a manifest."""
    path = tmp_path / "backend.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(SEED.read_text())["object"]))
    return path


@pytest.fixture
def good(seed: Path) -> Path:
    """The same with the right index, and with groups from a claim."""
    path = seed.with_name("good.yaml")
    obj = yaml.safe_load(seed.read_text())
    obj["spec"]["mappings"][0]["remote"].append({"type": "HTTP_OIDC_GROUPS"})
    obj["spec"]["mappings"][0]["local"] = [{"user": {"name": "{0}"}}, {"groups": "{1}", "domain": {"name": "corp"}}]
    path.write_text(yaml.safe_dump(obj))
    return path


@pytest.mark.case("B31")
def test_the_seeds_own_example_is_explained(moorage: Run, seed: Path) -> None:
    """Exit 1; the sentence says that {1} is out of range, and why."""
    done = moorage("mapping", "test", seed, "--claim", "preferred_username=alice")
    assert done.returncode == 1
    assert "no login: 500: rule 0, local[0].user.name: '{1}' refers to a value that is not there" in done.stdout
    assert "anyOneOf and notAnyOf give none: remote[0] (HTTP_OIDC_ISS)" in done.stdout
    assert "warning: spec.mappings[0].local[0].user.name: {1} is out of range" in done.stderr


def test_a_token_is_tried_and_the_answer_has_every_field_of_the_contract(
    moorage: Run, good: Path, tmp_path: Path
) -> None:
    """Exit 0, the first five fields as Keystone's rule processor gives them."""
    token = {
        "header": {"alg": "ES256"},
        "payload": {"iss": ISSUER, "preferred_username": "älice", "groups": ["dev", "ops"]},
    }
    (tmp_path / "token.json").write_text(json.dumps(token))
    done = moorage("mapping", "test", good, "--claims", "token.json", "-o", "json")
    answer: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == 0
    in_corp = [{"name": name, "domain": {"name": "corp"}} for name in ("dev", "ops")]
    wanted = {
        "matched": [0],
        "user": {"name": "älice", "type": "ephemeral"},
        "group_ids": [],
        "group_names": in_corp,
        "projects": [],
    }
    assert {name: answer[name] for name in wanted} == wanted
    assert answer["error"] is None
    assert answer["rules"][0]["remote"][2] == {
        "index": 2,
        "type": "HTTP_OIDC_GROUPS",
        "matched": True,
        "why": "gives {1}",
        "value": ["dev", "ops"],
    }


def test_lines_and_words_are_claims_too(moorage: Run, good: Path) -> None:
    """Words take the place of lines of the same name; several words of one name are several values."""
    lines = f"# somebody\nHTTP_OIDC_ISS: {ISSUER}\npreferred_username: bob\n"
    words = ["--claim", "preferred_username=eve", "--claim", "groups=a", "--claim", "groups=b"]
    done = moorage("mapping", "test", good, "--claims", "-", *words, given=lines)
    assert done.returncode == 0, done.stderr
    assert "user: eve (ephemeral), domain corp" in done.stdout
    assert "groups: a in domain corp, b in domain corp" in done.stdout


def test_a_rule_that_does_not_match_says_which_entry_and_why(moorage: Run, good: Path) -> None:
    """Exit 1; the claim that is absent is named."""
    done = moorage("mapping", "test", good, "--claim", "preferred_username=bob")
    assert done.returncode == 1
    assert "rule 0: does not match" in done.stdout
    assert "  no  remote[2] HTTP_OIDC_GROUPS: the claim is absent" in done.stdout
    assert "no login: 401: no rule matches these claims" in done.stdout


@pytest.mark.parametrize("wrap", [lambda r: r, lambda r: {"rules": r}, lambda r: {"mapping": {"id": "m", "rules": r}}])
def test_rules_as_keystone_has_them_are_taken(moorage: Run, wrap: Any) -> None:
    """A list, the body of a request, the answer of Keystone's API."""
    rules = [{"remote": [{"type": "REMOTE_USER"}], "local": [{"user": {"name": "{0}"}}]}]
    done = moorage("mapping", "test", "-", "--claim", "REMOTE_USER=alice", given=json.dumps(wrap(rules)))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "given", "said"),
    [
        (["no-such-file"], "", "no such file"),
        (["-"], "[]", "rules is empty"),
        (["-"], '[{"remote": [], "local": []}]', "rules[0].remote is empty"),
        (["-"], '{"rules": [{"remote": [{"type": "A", "anyOneOf": []}], "local": []}]}', "has no field anyOneOf"),
        (["-", "--claims", "-"], "", "both come from standard input"),
        (["-", "--claim", "x"], "[]", "x has no value"),
        (["-"], "kind: Secret\napiVersion: v1\n", "holds no KeystoneIdentityBackend"),
    ],
)
def test_what_cannot_be_read_is_exit_2(moorage: Run, arguments: list[str], given: str, said: str) -> None:
    """One line on standard error, no traceback."""
    done = moorage("mapping", "test", *arguments, given=given)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("text", ["{", "[1]", "no colon", "{" * 5000])
def test_claims_that_cannot_be_read_are_exit_2_and_never_shown(
    moorage: Run, good: Path, tmp_path: Path, text: str
) -> None:
    """Claims may be somebody's token."""
    (tmp_path / "claims").write_text(f"{text} s3cret")
    done = moorage("mapping", "test", good, "--claims", "claims")
    assert done.returncode == 2
    assert "s3cret" not in done.stdout + done.stderr


def test_what_admission_refuses_is_the_answer_no(moorage: Run, seed: Path) -> None:
    """Such rules never reach Keystone: exit 1, with the admission's own words."""
    seed.write_text(seed.read_text().replace("{1}", "{name}"))
    done = moorage("mapping", "test", seed)
    assert done.returncode == 1
    assert "a placeholder is {<digits>}" in done.stderr


def test_one_of_several_backends_is_chosen_by_name(moorage: Run, good: Path) -> None:
    """Without a name they are listed; an LDAP backend has no mapping."""
    one = yaml.safe_load(good.read_text())
    two = {**one, "metadata": {**one["metadata"], "name": "other"}}
    good.write_text(yaml.safe_dump_all([one, two]))
    words = ["--claim", "preferred_username=a", "--claim", "groups=x"]
    assert "corp-oidc, other" in moorage("mapping", "test", good, *words).stderr
    assert moorage("mapping", "test", good, *words, "--name", "other").returncode == 0


def test_a_terminal_is_not_written_to_by_claims(moorage: Run, good: Path) -> None:
    """Control characters of a claim are shown as escapes."""
    done = moorage("mapping", "test", good, "--claim", "preferred_username=\x1b[2Jx", "--claim", "groups=\x1b]0;y")
    assert "\x1b" not in done.stdout


@pytest.mark.case("K14")
def test_an_expression_that_takes_for_ever_is_given_up_and_named(moorage: Run) -> None:
    """Keystone itself would search on; here rule, entry and expression are told, and the way out."""
    entry = {"type": "HTTP_OIDC_GROUPS", "regex": True, "any_one_of": ["^(a+)+$"]}
    rules = [{"remote": [{"type": "HTTP_OIDC_SUB"}, entry], "local": [{"user": {"name": "{0}"}}]}]
    words = ["--claim", "sub=x", "--claim", f"groups={'a' * 60}!"]
    done = moorage("mapping", "test", "-", *words, given=json.dumps(rules))
    assert done.returncode == 1
    assert "no login: 502: rule 0, remote[1] HTTP_OIDC_GROUPS: '^(a+)+$' against 'aaa" in done.stdout
    assert "write it without repetitions inside of repetitions" in done.stdout


@pytest.mark.case("K14")
def test_a_declared_one_is_refused_before_it_is_tried(moorage: Run, good: Path) -> None:
    """As `moorage lint` and the API server refuse it: field and value."""
    obj = yaml.safe_load(good.read_text())
    obj["spec"]["mappings"][0]["remote"].append({"type": "HTTP_OIDC_EMAIL", "regex": True, "anyOneOf": ["^([a-z]+)*$"]})
    good.write_text(yaml.safe_dump(obj))
    done = moorage("mapping", "test", good, "--claim", "preferred_username=bob")
    assert done.returncode != 0
    assert 'spec.mappings[0].remote[3].anyOneOf[0]: Invalid value: "^([a-z]+)*$": can take for ever' in done.stderr


def test_a_folder_is_taken_as_other_commands_take_it(moorage: Run, good: Path, tmp_path: Path) -> None:
    """The one federated backend in it; with several, --name chooses; with none, they are listed."""
    folder = tmp_path / "all"
    folder.mkdir()
    (folder / "backend.yaml").write_text(good.read_text())
    (folder / "secret.yaml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n")
    words = ["--claim", "preferred_username=bob", "--claim", "groups=a"]
    done = moorage("mapping", "test", folder, *words)
    assert (done.returncode, "user: bob (ephemeral)" in done.stdout) == (0, True), done.stderr
    (folder / "backend.yaml").unlink()
    done = moorage("mapping", "test", folder, *words)
    assert "holds no KeystoneIdentityBackend. Give a file with a backend of type OIDC or SAML" in done.stderr
    done = moorage("mapping", "test", EXAMPLE, *words)
    assert "holds LDAP backends only, and those have no mapping" in done.stderr
