"""status, tree, wait, diff and support-bundle against a served API; no controller runs, statuses are written by the test."""

from __future__ import annotations

import asyncio
import json
import tarfile
from pathlib import Path

import pytest
import yaml
from tests.cli.conftest import EXAMPLE, Run
from tests.real.embedded import Embedded

from moorage.cli import manifests
from moorage.core.meta import JsonObject, Key
from moorage.keystone import KINDS
from moorage.kube import resources
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig

BACKEND = Key("openstack", "planetexpress")
BACKENDS = KINDS[1].resource
SECRET = "good-news-everyone"


def condition(type_: str, status: str, reason: str, message: str = "") -> JsonObject:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


NOT_READY = [
    condition("DomainReady", "False", "AdminSecretUnavailable", "admin Secret keystone-admin does not exist"),
    condition("Ready", "False", "NotAllReady", "DomainReady: AdminSecretUnavailable"),
]
READY = [condition("DomainReady", "True", "DomainProvisioned"), condition("Ready", "True", "AllReady")]


def declare(server: Embedded, conditions: list[JsonObject]) -> None:
    """The example on the server, the backend with these conditions."""

    async def work() -> None:
        async with Client(load_kubeconfig(server.kubeconfig)) as client:
            for kind in KINDS:
                await client.apply(resources.CRDS, kind.crd())
            ours = {kind.kind: kind.resource for kind in KINDS}
            known = {"Namespace": resources.NAMESPACES, "Secret": resources.SECRETS, **ours}
            for item in manifests.read([str(EXAMPLE)]):
                await client.apply(known[item.kind], item.object)
            status = {"status": {"observedGeneration": 1, "conditions": conditions}}
            await client.patch(BACKENDS, BACKEND, status, subresource="status")
            event = {
                "metadata": {"generateName": "e", "namespace": "openstack"},
                "involvedObject": {"uid": (await client.get(BACKENDS, BACKEND))["metadata"]["uid"]},
                "type": "Warning",
                "reason": "AdminSecretUnavailable",
                "message": f"password={SECRET}",
            }
            event["involvedObject"] |= {
                "namespace": "openstack",
                "name": BACKEND.name,
                "kind": "KeystoneIdentityBackend",
            }
            await client.create(resources.CORE_EVENTS, event)

    asyncio.run(work())


def test_status_gives_the_first_cause_and_exit_1(moorage: Run, served: Embedded) -> None:
    """Reason and message are those of the cause, not of the aggregate."""
    declare(served, NOT_READY)
    done = moorage("status", "-n", "openstack", "-o", "json", "--kubeconfig", served.kubeconfig)
    found = {item["name"]: item for item in json.loads(done.stdout)}
    assert done.returncode == 1
    assert found["planetexpress"]["reason"] == "AdminSecretUnavailable"
    assert found["planetexpress"]["message"] == "admin Secret keystone-admin does not exist"
    assert found["keystone"]["reason"] == "NotReconciled"
    line = moorage("status", "-A", "--kubeconfig", served.kubeconfig).stdout.splitlines()[-1]
    assert line.split()[:4] == ["KeystoneIdentityBackend", "openstack", "planetexpress", "no"]


def test_status_of_an_empty_namespace_says_where_to_look_and_of_none_that_there_is_none(
    moorage: Run, served: Embedded
) -> None:
    """S25: both said that nothing is declared here."""
    declare(served, READY)
    done = moorage("status", "-n", "default", "--kubeconfig", served.kubeconfig)
    assert (done.returncode, done.stdout) == (
        0,
        "nothing is declared in namespace default; other namespaces hold 2: -A shows all\n",
    )
    done = moorage("status", "-n", "nope", "--kubeconfig", served.kubeconfig)
    assert done.returncode == 2
    assert "error: namespace nope: does not exist." in done.stderr


def test_tree_shows_conditions_and_events(moorage: Run, served: Embedded) -> None:
    """And names the object that does not exist otherwise."""
    declare(served, NOT_READY)
    text = moorage(
        "tree", "KeystoneIdentityBackend", "planetexpress", "-n", "openstack", "--kubeconfig", served.kubeconfig
    )
    assert "- DomainReady: AdminSecretUnavailable" in text.stdout
    assert "Warning  AdminSecretUnavailable" in text.stdout
    gone = moorage("tree", "Keystone", "none", "-n", "openstack", "--kubeconfig", served.kubeconfig)
    assert gone.returncode == 1
    assert "Keystone openstack/none: does not exist. Name another namespace with -n" in gone.stderr


def test_wait_ends_at_once_when_it_holds_and_says_why_when_it_does_not(moorage: Run, served: Embedded) -> None:
    """Exit 0 and 1."""
    where = ("-n", "openstack", "--kubeconfig", served.kubeconfig)
    declare(served, READY)
    assert moorage("wait", "keystoneidentitybackends", "planetexpress", *where).returncode == 0
    declare(served, NOT_READY)
    done = moorage("wait", "KeystoneIdentityBackend", "planetexpress", "--timeout", "1s", *where)
    assert done.returncode == 1
    assert "waiting for Ready: AdminSecretUnavailable" in done.stderr
    assert moorage("wait", "Keystone", "x", "--timeout", "soon", *where).returncode == 2


@pytest.mark.case("P2")
def test_diff_shows_what_would_change_and_no_secret(moorage: Run, served: Embedded, tmp_path: Path) -> None:
    """Nothing is written; a Secret and the projected file show digests."""
    declare(served, READY)
    same = moorage("diff", EXAMPLE, "--kubeconfig", served.kubeconfig)
    assert (same.returncode, same.stdout) == (0, "")
    objects = [item.object for item in manifests.read([str(EXAMPLE)])]
    objects[2]["stringData"]["password"] = "better-news"
    objects[4]["spec"]["ldap"]["suffix"] = "dc=other"
    (tmp_path / "new.yaml").write_text(yaml.safe_dump_all(objects))
    done = moorage("diff", "new.yaml", "--kubeconfig", served.kubeconfig)
    assert done.returncode == 1
    assert "+    suffix: dc=other" in done.stdout
    assert "+suffix = dc=other" in done.stdout
    assert "+  password: <digest " in done.stdout
    assert "+password = <digest " in done.stdout
    assert SECRET not in done.stdout
    assert "better-news" not in done.stdout
    assert moorage("diff", EXAMPLE, "--kubeconfig", served.kubeconfig).returncode == 0


def test_diff_names_the_refused_document_and_shows_the_others(moorage: Run, served: Embedded, tmp_path: Path) -> None:
    """A folder with one bad object still shows what the good ones would do; exit 3."""
    declare(served, READY)
    objects = [item.object for item in manifests.read([str(EXAMPLE)])]
    objects[2]["stringData"]["password"] = "better-news"
    objects[4]["spec"]["ldap"]["url"] = "gopher://nowhere"
    (tmp_path / "new.yaml").write_text(yaml.safe_dump_all(objects))
    done = moorage("diff", "new.yaml", "--kubeconfig", served.kubeconfig)
    assert done.returncode == 3
    assert done.stderr.startswith("error: new.yaml: document 5: ")
    assert "spec.ldap.url" in done.stderr
    assert "+  password: <digest " in done.stdout


def test_diff_of_a_dump_leaves_out_what_the_server_wrote(moorage: Run, served: Embedded, tmp_path: Path) -> None:
    """S25: `kubectl get -o yaml` carries resourceVersion and managedFields, and the server refused them."""
    declare(served, READY)
    dump = asyncio.run(_dump(served))
    dump["metadata"]["resourceVersion"] = "1"
    (tmp_path / "dump.yaml").write_text(yaml.safe_dump(dump))
    done = moorage("diff", "dump.yaml", "--kubeconfig", served.kubeconfig)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


async def _dump(served: Embedded) -> JsonObject:
    async with Client(load_kubeconfig(served.kubeconfig)) as client:
        return await client.get(BACKENDS, BACKEND)


@pytest.mark.case("P2")
def test_a_support_bundle_holds_statuses_and_events_but_no_secret(
    moorage: Run, served: Embedded, tmp_path: Path
) -> None:
    """No Secret is read; what looks like one is blotted out."""
    declare(served, NOT_READY)
    done = moorage("support-bundle", "-A", "--out", "b.tar.gz", "--kubeconfig", served.kubeconfig)
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / "b.tar.gz") as archive:
        files = {item.name: archive.extractfile(item).read().decode() for item in archive.getmembers()}  # type: ignore[union-attr]
    assert "moorage-support/versions.json" in files
    assert "AdminSecretUnavailable" in files["moorage-support/status.json"]
    assert "moorage-support/objects/secrets.json" not in files
    assert not [name for name, text in files.items() if SECRET in text or "change-me-please" in text]
    assert done.stderr == ""


def test_a_support_bundle_of_a_namespace_without_resources_says_so(moorage: Run, served: Embedded) -> None:
    """Nobody sends an empty one by mistake."""
    declare(served, NOT_READY)
    done = moorage("support-bundle", "-n", "default", "--out", "b.tar.gz", "--kubeconfig", served.kubeconfig)
    said = "warning: nothing is declared in namespace default; other namespaces hold 2: -A shows all\n"
    assert (done.returncode, done.stderr) == (0, said)


def test_a_support_bundle_for_a_folder_that_is_none_is_refused_at_once(moorage: Run, served: Embedded) -> None:
    """Before anything is read."""
    done = moorage("support-bundle", "--out", "nowhere/b.tar.gz", "--kubeconfig", served.kubeconfig)
    assert (done.returncode, done.stderr) == (
        2,
        "error: nowhere: is no folder. Name a file in one that exists with --out\n",
    )
