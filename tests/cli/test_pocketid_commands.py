"""status, tree, wait, diff, lint, render and explain for the kinds of Pocket-ID, as a person uses them on one machine; the controllers' metrics there."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.cli.pocketid_site import NAMESPACE, SECRETS, Site, machine
from tests.fakes.pocketid import API_KEY, Fake, running
from tests.real.ports import free_port

EXAMPLES = Path(__file__).parents[2] / "examples"
USER = {
    "apiVersion": "pocketid.internal/v1alpha1",
    "kind": "PocketIDUser",
    "metadata": {"name": "ann", "namespace": NAMESPACE},
    "spec": {"email": {"value": "ann@example.org"}, "apiKeys": [{"name": "ci-key"}]},
}
KINDS = {
    "PocketIDInstance": "main",
    "PocketIDUser": "ann",
    "PocketIDUserGroup": "staff",
    "PocketIDAPI": "orders",
    "PocketIDOIDCClient": "my-app",
}
"""Kind -> one of it."""
WHERE = ("-n", NAMESPACE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Both examples and a user, applied, all Ready; `metrics` is a file with the address of the metrics."""
    folder, fake, port = tmp_path_factory.mktemp("commands"), Fake("2.17.0"), free_port()
    up = machine(folder, {"RESYNC_INTERVAL": "2s"}, "--metrics-bind", f"127.0.0.1:{port}")
    with running(fake) as url, up as kubeconfig:
        found = Site(fake, url, kubeconfig, folder)
        (folder / "metrics").write_text(f"http://127.0.0.1:{port}/metrics")
        for name in ("pocketid-client", "pocketid-api"):
            shutil.copytree(EXAMPLES / name, folder / name)
        for file in folder.glob("pocketid-*/*.yaml"):
            text = file.read_text().replace("https://id.example.org", url)
            file.write_text(text.replace("change-me-to-an-api-key-of-your-server", API_KEY))
        (folder / "user.yaml").write_text(yaml.safe_dump(USER))
        files = [*sorted(folder.glob("pocketid-*/*.yaml"), reverse=True), folder / "user.yaml"]
        documents = [item for file in files for item in yaml.safe_load_all(file.read_text())]
        documents.sort(
            key=lambda item: (
                ("Namespace", "Secret").index(item["kind"]) if item["kind"] in ("Namespace", "Secret") else 2
            )
        )
        found.apply(documents)
        found.ready(documents)
        yield found


def test_status_has_a_line_for_each_kind(site: Site) -> None:
    """Ready, exit 0."""
    done = site.moorage("status", *WHERE, "-o", "json")
    assert done.returncode == 0, done.stdout
    rows = json.loads(done.stdout)
    assert KINDS.items() <= {row["kind"]: row["name"] for row in rows if row["name"] != "importer"}.items()
    assert {row["reason"] for row in rows} == {"Ready", "Reconciled"}


@pytest.mark.parametrize(("kind", "name"), KINDS.items())
def test_wait_and_tree_know_each_kind(site: Site, kind: str, name: str) -> None:
    """By name and by short name; what was made stands below, and the first event."""
    assert site.moorage("wait", kind, name, *WHERE).returncode == 0
    done = site.moorage("tree", kind.upper(), name, *WHERE)
    assert done.returncode == 0, done.stderr
    assert f"{kind} {NAMESPACE}/{name}\n  + Ready: " in done.stdout
    assert "  Normal  " in done.stdout


def test_the_tree_of_an_instance_holds_what_is_bound_to_it(site: Site) -> None:
    """With their state; a client with its Secret."""
    tree = site.moorage("tree", "pidinstance", "main", *WHERE).stdout
    for kind, name in [*list(KINDS.items())[1:], ("PocketIDOIDCClient", "importer")]:
        assert f"── {kind} {name}  ready  " in tree
    assert "── Secret my-app-oidc-credentials  " in tree
    assert "── Secret ann-user-data  " in tree


def test_diff_shows_a_change_and_nothing_else(site: Site) -> None:
    """Exit 0 for what is applied, 1 with the lines that would change."""
    words = ("pocketid-client", "pocketid-api", "user.yaml")
    same = site.moorage("diff", *words)
    assert (same.returncode, same.stdout, same.stderr) == (0, "", "")
    changed = yaml.safe_dump({**USER, "spec": {**USER["spec"], "admin": True}})
    done = site.moorage("diff", "-", given=changed)
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if line[:1] in "+-" and line[1:2] == " "] == [
        "-  admin: false",
        "+  admin: true",
    ]


def test_diff_shows_no_secret_that_stands_in_an_instance(site: Site) -> None:
    """Inline values are digests: a diff ends up in the log of a pipeline."""
    password = {"value": "SECRET-b"}
    smtp = {"host": "mail.example.org", "port": 25, "from": "a@example.org", "password": password}
    made = {
        "apiVersion": "pocketid.internal/v1alpha1",
        "kind": "PocketIDInstance",
        "metadata": {"name": "own", "namespace": NAMESPACE},
        "spec": {"encryptionKey": {"value": "SECRET-a-key-of-some-length"}, "smtp": smtp},
    }
    done = site.moorage("diff", "-", given=yaml.safe_dump(made))
    assert done.returncode == 1, done.stderr
    assert "encryptionKey:" in done.stdout
    assert done.stdout.count("<digest ") == 2
    assert "SECRET-" not in done.stdout + done.stderr


def test_lint_and_render_take_each_kind(site: Site) -> None:
    """Without a server; render says why it writes nothing."""
    words = ("pocketid-client", "pocketid-api", "user.yaml")
    done = site.moorage("lint", *words)
    assert (done.returncode, done.stdout) == (0, "6 objects checked: 0 errors, 0 warnings\n")
    done = site.moorage("render", *words, "--out", "rendered")
    assert (done.returncode, done.stdout) == (0, "rendered: 0 children, 0 files\n")
    told = f"PocketIDOIDCClient {NAMESPACE}/my-app: admitted; what it makes depends on its server's answers"
    assert told in done.stderr.splitlines()
    assert len(done.stderr.splitlines()) == 6


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("PocketIDInstance.spec.external.url", ("required: yes", "    external:", "      url: https://id.example.org")),
        ("PocketIDUser.spec.username", ("  exactly one of value and valueFrom must be set",)),
        ("PocketIDUserGroup.spec.allowedOIDCClients.name", ("    allowedOIDCClients:", "      - name: ...")),
        ("PocketIDAPI.spec.permissions.key", ("  is reserved by OpenID Connect: openid, profile, email, email_verified, groups, offline_access",)),
        ("PocketIDOIDCClient.spec.allowedUserGroups", ("  exactly one of name, groupName and groupID must be set",)),
        ("PocketIDOIDCClient.spec.federatedIdentities.publicKeys.value", ("    federatedIdentities:", "      - publicKeys:", "          - value: {...}")),
    ],
)  # fmt: skip
def test_explain_shows_rules_of_a_field_and_where_it_stands(site: Site, path: str, lines: tuple[str, ...]) -> None:
    """A rule that stands at the field or at the items of a list, and an example that is one."""
    done = site.moorage("explain", path)
    assert done.returncode == 0, done.stderr
    assert [line for line in lines if line not in done.stdout.splitlines()] == []


def test_the_controllers_show_their_metrics_where_they_are_told_to(site: Site) -> None:
    """As `moorage run` does; the numbers of Pocket-ID among them."""
    with urllib.request.urlopen((site.folder / "metrics").read_text(), timeout=30) as answer:
        shown = answer.read().decode()
    assert (
        f'pocketid_operator_resource_ready{{kind="PocketIDOIDCClient",name="my-app",namespace="{NAMESPACE}"}} 1.0'
        in shown
    )
    assert 'controller_runtime_reconcile_total{controller="pocketidoidcclient"' in shown
    where = f'name="main",namespace="{NAMESPACE}",version="2.17.0"'
    assert f'pocketid_operator_instance_info{{app_url="{site.url}",deployment_type="External",{where}}} 1.0' in shown
    assert f'pocketid_operator_usergroup_member_count{{name="staff",namespace="{NAMESPACE}"}} 0.0' in shown
    made = f'instance_name="main",instance_namespace="{NAMESPACE}",operation="created"'
    assert f"pocketid_operator_api_key_operations_total{{{made}}} 1.0" in shown


def test_nothing_that_was_printed_holds_a_secret(site: Site) -> None:
    """Of all commands above, and of a support bundle."""
    site.moorage("support-bundle", "-A", "--out", "bundle.tar.gz")
    secret = site.get("Secret", "my-app-oidc-credentials")["data"]["client_secret"]
    told = "\n".join(site.printed)
    assert [text for text in (*SECRETS, secret) if text in told] == []
