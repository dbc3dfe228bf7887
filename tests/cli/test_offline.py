"""lint, render, explain and crds work on files alone and keep the contract of spec/cli.md."""

from __future__ import annotations

import json
import stat

import pytest
import yaml
from tests.cli.conftest import EXAMPLE, Run
from tests.real.ports import free_port

BACKEND = yaml.safe_load((EXAMPLE / "30-backend.yaml").read_text())


def changed(**spec: object) -> str:
    """The example's backend with other spec fields, as text."""
    return yaml.safe_dump({**BACKEND, "spec": {**BACKEND["spec"], **spec}})


def test_the_example_is_admitted(moorage: Run) -> None:
    """Exit 0, and the count of what was checked."""
    done = moorage("lint", EXAMPLE)
    assert (done.returncode, done.stdout) == (0, "2 objects checked: 0 errors, 0 warnings\n")


def test_a_finding_has_every_field_of_the_contract(moorage: Run) -> None:
    """JSON on standard output, exit 1."""
    bad = {**BACKEND["spec"]["ldap"], "url": "http://x"}
    done = moorage("lint", "-", "-o", "json", given=changed(ldap=bad))
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["valid"], answer["objects"]) == (1, False, 1)
    (finding,) = answer["findings"]
    assert finding == {
        "file": "-",
        "document": 1,
        "kind": "KeystoneIdentityBackend",
        "namespace": "openstack",
        "name": "planetexpress",
        "severity": "error",
        "path": "spec.ldap.url",
        "rule": "FieldValueInvalid",
        "message": finding["message"],
    }
    assert "should match '^ldaps?://'" in finding["message"]


def test_an_unknown_field_is_named_with_its_nearest_neighbour(moorage: Run) -> None:
    """A typo is an error, never dropped in silence."""
    bad = {**BACKEND["spec"]["ldap"], "sufix": "dc=x"}
    done = moorage("lint", "-", given=changed(ldap=bad))
    assert done.returncode == 1
    assert 'unknown field "spec.ldap.sufix"; did you mean suffix?' in done.stdout


@pytest.mark.case("A1")
def test_objects_of_one_call_are_siblings_and_the_later_one_is_blamed(moorage: Run) -> None:
    """Two backends with one domain: the second is refused."""
    other = {**BACKEND, "metadata": {**BACKEND["metadata"], "name": "second"}}
    done = moorage("lint", "-", "-o", "json", given=yaml.safe_dump_all([BACKEND, other]))
    findings = json.loads(done.stdout)["findings"]
    assert [item["name"] for item in findings] == ["second"]
    assert "domain name collides" in findings[0]["message"]


@pytest.mark.case("A1")
def test_a_stored_object_of_that_name_makes_it_an_update(moorage: Run, tmp_path) -> None:
    """Transition rules hold against --old."""
    (tmp_path / "old.yaml").write_text(yaml.safe_dump(BACKEND))
    done = moorage("lint", "-", "--old", "old.yaml", given=changed(domain={"name": "renamed"}))
    assert done.returncode == 1
    assert "domain.name is immutable" in done.stdout


def test_strict_makes_warnings_count(moorage: Run) -> None:
    """An option that Keystone does not know is a warning; --strict refuses it."""
    given = changed(extraOptions={"user_nickname_attribute": "x"})
    assert moorage("lint", "-", given=given).returncode == 0
    assert moorage("lint", "-", "--strict", given=given).returncode == 1


def test_foreign_kinds_are_ignored_and_unknown_kinds_of_ours_are_not(moorage: Run) -> None:
    """A Deployment is none of our business; a misspelt kind of ours is."""
    foreign = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}
    assert moorage("lint", "-", given=yaml.safe_dump(foreign)).stdout.startswith("0 objects")
    done = moorage("lint", "-", given=yaml.safe_dump({**BACKEND, "kind": "KeystoneIdentityBackends"}))
    assert done.returncode == 1
    assert "did you mean KeystoneIdentityBackend?" in done.stdout


def test_unreadable_input_is_exit_2_with_file_line_and_column(moorage: Run, tmp_path) -> None:
    """One line on standard error, no traceback."""
    (tmp_path / "bad.yaml").write_text("a: b: c\n")
    done = moorage("lint", "bad.yaml")
    assert done.returncode == 2
    assert done.stderr.startswith("error: bad.yaml:1:5: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.case("P2")
def test_render_writes_private_files_and_the_same_bytes_twice(moorage: Run, tmp_path) -> None:
    """Files by base name without hash, mode 0600; a second run changes nothing."""
    assert moorage("render", EXAMPLE, "--out", "a").returncode == 0
    assert moorage("render", EXAMPLE, "--out", "b").returncode == 0
    first = {path.relative_to(tmp_path / "a"): path for path in (tmp_path / "a").rglob("*") if path.is_file()}
    second = {path.relative_to(tmp_path / "b"): path for path in (tmp_path / "b").rglob("*") if path.is_file()}
    assert {name: path.read_bytes() for name, path in first.items()} == {
        name: path.read_bytes() for name, path in second.items()
    }
    assert {stat.S_IMODE(path.stat().st_mode) for path in first.values()} == {0o600}
    conf = tmp_path / "a/openstack/files/keystone-domains/keystone.planetexpress.conf"
    assert "user_tree_dn = ou=people,dc=planetexpress,dc=com\n" in conf.read_text()


@pytest.mark.case("P4")
def test_render_names_what_it_skips_and_still_renders_the_rest(moorage: Run, tmp_path) -> None:
    """A backend without its Secret is skipped with the reason; exit 1; its sibling's file is there."""
    lonely = {**BACKEND, "metadata": {"name": "lonely", "namespace": "openstack"}}
    lonely["spec"] = {
        **BACKEND["spec"],
        "domain": {"name": "lonely"},
        "ldap": {**BACKEND["spec"]["ldap"], "bindCredentialsSecretRef": {"name": "nowhere"}},
    }
    done = moorage("render", EXAMPLE, "-", "--out", "out", given=yaml.safe_dump(lonely))
    assert done.returncode == 1
    assert "KeystoneIdentityBackend openstack/lonely: skipped: bind Secret nowhere does not exist" in done.stderr
    files = [path.name for path in (tmp_path / "out/openstack/files/keystone-domains").iterdir()]
    assert files == ["keystone.planetexpress.conf"]


def test_explain_tells_type_default_bounds_and_rules(moorage: Run) -> None:
    """And names the fields that exist when one does not."""
    text = moorage("explain", "KeystoneIdentityBackend.spec.domain.name").stdout
    assert "required: yes" in text
    assert "at most 64 characters" in text
    assert "domain.name is immutable" in text
    done = moorage("explain", "Keystone.spec.databse")
    assert done.returncode == 2
    assert "Known here: " in done.stderr


def test_crds_prints_what_a_cluster_needs_in_order(moorage: Run) -> None:
    """CRDs first, then RBAC, then webhook configurations."""
    kinds = [item["kind"] for item in yaml.safe_load_all(moorage("crds").stdout)]
    assert set(kinds[: kinds.index("Namespace")]) == {"CustomResourceDefinition"}
    assert kinds.index("Namespace") == kinds.count("CustomResourceDefinition") > 1
    assert kinds[-2:] == ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]


def test_every_command_has_help_with_an_example(moorage: Run) -> None:
    """Contract: spec/cli.md."""
    from moorage.cli import COMMANDS

    for name in COMMANDS:
        text = moorage(name, "--help").stdout
        assert "Example:" in text, name


def test_usage_errors_are_exit_2(moorage: Run) -> None:
    """An option or a command that does not exist, an argument that is missing, a value that does not fit: one line, as for any other error."""
    told = {
        ("lint", "--nonsense"): "error: moorage lint: no such option '--nonsense'. `moorage lint --help` shows how it is called\n",
        ("nonsense",): "error: moorage: no such command 'nonsense'. `moorage --help` shows how it is called\n",
        ("wait", "Keystone"): "error: moorage wait: missing argument 'NAME'. `moorage wait --help` shows how it is called\n",
        ("lint", "x", "-o", "xml"): "error: moorage lint: invalid value for '--output' / '-o': 'xml' is not one of 'text', 'json'. `moorage lint --help` shows how it is called\n",
    }  # fmt: skip
    for args, expected in told.items():
        done = moorage(*args)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)
    assert moorage().stderr.startswith("Usage: moorage")


def test_a_condition_that_a_kind_never_has_is_refused_at_once(moorage: Run) -> None:
    """S25: it waited the whole time. No server is asked; upper and lower case do not matter, as for kubectl."""
    done = moorage("wait", "Keystone", "x", "--for", "Banana", "--kubeconfig", "none.yaml")
    assert done.returncode == 2
    assert "error: --for Banana: a Keystone has no such condition. It has BootstrapReady, " in done.stderr
    done = moorage(
        "wait", "keystones.keystone.openstack.c5c3.io", "x", "--for", "databaseready", "--kubeconfig", "none.yaml"
    )
    assert "none.yaml" in done.stderr


def test_a_kubeconfig_that_is_not_there_is_unreadable_input(moorage: Run) -> None:
    """Exit 2, one line."""
    done = moorage("status", "--kubeconfig", "none.yaml")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_a_server_that_does_not_answer_is_exit_3(moorage: Run, tmp_path) -> None:
    """One line that names the address."""
    cluster = {"name": "c", "cluster": {"server": f"https://127.0.0.1:{free_port()}"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    config = {
        "clusters": [cluster],
        "users": [{"name": "u", "user": {}}],
        "contexts": [context],
        "current-context": "x",
    }
    (tmp_path / "kc").write_text(yaml.safe_dump(config))
    done = moorage("status", "--kubeconfig", "kc")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "127.0.0.1" in done.stderr


@pytest.mark.parametrize(
    "args", [("explain", "Keystone.spec"), ("crds",), ("version",), ("render", EXAMPLE, "--out", "o")]
)
def test_results_are_printed_for_programs_too(moorage: Run, args: tuple[object, ...]) -> None:
    """One JSON document on standard output."""
    done = moorage(*args, "--output", "json")
    assert done.returncode == 0
    assert isinstance(json.loads(done.stdout), dict)


def test_unreadable_input_is_json_too_when_asked(moorage: Run) -> None:
    """A program that reads standard output is not left with nothing."""
    done = moorage("lint", "-", "-o", "json", given="a: b: c")
    assert (done.returncode, json.loads(done.stdout)["valid"]) == (2, False)


@pytest.mark.parametrize("namespace", ["../../escaped", "UPPER", "a" * 64])
def test_a_namespace_that_is_no_name_is_refused(moorage: Run, namespace: str, tmp_path) -> None:
    """lint says what the API server says; render writes nothing outside its folder."""
    given = yaml.safe_dump({**BACKEND, "metadata": {"name": "x", "namespace": namespace}})
    done = moorage("lint", "-", given=given)
    assert done.returncode == 1
    assert "metadata.namespace: Invalid value" in done.stdout
    assert moorage("render", "-", "--out", "deep/er", given=given).returncode == 1
    assert not (tmp_path / "escaped").exists()


def test_render_follows_no_link_out_of_its_folder(moorage: Run, tmp_path) -> None:
    """A link planted in the folder is named, nothing is written through it."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/openstack").symlink_to(tmp_path / "elsewhere")
    done = moorage("render", EXAMPLE, "--out", "out")
    assert done.returncode == 2
    assert not list((tmp_path / "elsewhere").rglob("*.yaml"))


@pytest.mark.case("A2")
@pytest.mark.parametrize("text", ["a\u0007b", "a\nb", "a\u2028b"])
def test_a_description_holds_no_control_character(moorage: Run, text: str) -> None:
    """It goes to Keystone and to every page that shows the domain."""
    done = moorage("lint", "-", given=changed(domain={"name": "x", "description": text}))
    assert done.returncode == 1
    assert "spec.domain.description: Invalid value" in done.stdout


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ldap://", "names no host"),
        ("ldap://u:geheim@h", "user information"),
        ("ldap://h:99999", "no port between"),
        ("ldap://a ldap://b", "a blank"),
        ("ldap://h/dc=x", "more than scheme"),
    ],
)
def test_an_address_that_will_hardly_work_is_warned_about(moorage: Run, url: str, why: str) -> None:
    """The seed fixes the scheme only; the warning does not repeat the address, which may hold a password."""
    done = moorage("lint", "-", given=changed(ldap={**BACKEND["spec"]["ldap"], "url": url}))
    assert done.returncode == 0
    assert why in done.stdout
    assert "geheim" not in done.stdout


def test_a_placeholder_of_an_authority_is_told_before_anybody_waits_for_it(moorage: Run) -> None:
    """The OIDC example's own, named with backend, field and Secret; a Secret that is not among the files is nobody's fault."""
    oidc = EXAMPLE.parent / "keystone-oidc"
    done = moorage("lint", oidc, "-o", "json")
    (told,) = (item for item in json.loads(done.stdout)["findings"] if item["rule"] == "Secret")
    assert (done.returncode, told["severity"], told["name"], told["path"]) == (
        0,
        "warning",
        "acme",
        "spec.oidc.caBundleSecretRef",
    )
    assert told["message"].startswith("spec.oidc.caBundleSecretRef: key ca.crt of Secret acme-ca holds no certificate")
    alone = moorage("lint", oidc / "30-backend.yaml", "-o", "json")
    assert not [item for item in json.loads(alone.stdout)["findings"] if item["rule"] == "Secret"]


def test_metadata_that_are_none_are_told_as_the_controller_would(moorage: Run) -> None:
    """The SAML example's placeholder: key, Secret and what is wrong with it."""
    done = moorage("lint", EXAMPLE.parent / "keystone-saml", "-o", "json")
    (told,) = (item for item in json.loads(done.stdout)["findings"] if item["rule"] == "Secret")
    assert (told["severity"], told["name"], told["path"]) == ("warning", "corp", "spec.saml.idpMetadata.secretRef")
    assert "key idp-metadata.xml of Secret corp-metadata: is not well-formed XML" in told["message"]


def test_a_bundle_that_can_be_read_is_not_told(moorage: Run) -> None:
    """Neither is one of an LDAP backend; nonsense there is."""
    from tests.real.certificates import Authority

    backend = {
        **BACKEND,
        "spec": {**BACKEND["spec"], "ldap": {**BACKEND["spec"]["ldap"], "tls": {"caBundleSecretRef": {"name": "ca"}}}},
    }
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "ca", "namespace": BACKEND["metadata"]["namespace"]},
    }
    for content, told in ((Authority("a").pem.decode(), False), ("put it here", True), ("", True)):
        given = yaml.safe_dump_all([backend, {**secret, "stringData": {"ca.crt": content}}])
        done = moorage("lint", "-", given=given)
        assert ("key ca.crt of Secret ca holds no certificate" in done.stdout) == told, done.stdout
