"""The Helm chart: what people get of it, on a real API server; and that the image's locked environment runs the command.

The chart is the folder `deploy`: CRDs, RBAC and webhooks are the files that `moorage crds` prints, so they cannot differ.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.real.kubectl import Kubectl, programs
from tests.real.kubernetes import BIN, Kubernetes, built, kubernetes

from moorage import __version__
from moorage.cli.systems import KINDS

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy"
HELM = BIN.parents[1] / "helm-3.22.0" / "bin" / "helm"
SPACE = "moorage-system"
EVERYTHING = (
    "webhooks.certManagerIssuer=ca",
    "kinds={Keystone,PocketIDInstance}",
    "watchNamespace=openstack",
    "federationMetadataAllowCIDRs={10.0.0.0/8,fd00::/8}",
    "monitoring.podMonitor=true",
    "monitoring.alertRules=true",
    "podLabels.team=cloud",
    "podAnnotations.note=hello",
    "imagePullSecrets[0].name=pull",
    "priorityClassName=system-cluster-critical",
    "image.digest=sha256:" + "a" * 64,
    "env[0].name=HTTPS_PROXY",
    "env[0].value=http://proxy.example:3128",
)
FOREIGN = ("Certificate", "PodMonitor", "PrometheusRule")


def helm(*words: str, settings: tuple[str, ...] = (), space: str = SPACE) -> subprocess.CompletedProcess[str]:
    """One call; the Kubernetes that it renders for is the one that the tests run."""
    chosen = [word for setting in settings for word in ("--set", setting)]
    version = BIN.parent.name.rpartition("-")[2]
    argv = [str(built(HELM)), *words, str(CHART), "--namespace", space, "--kube-version", version, *chosen]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def rendered(*settings: str) -> list[Any]:
    """The documents of one release."""
    done = helm("template", "moorage", "--include-crds", settings=settings)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def container(documents: list[Any]) -> Any:
    """The operator's container."""
    (deployment,) = (item for item in documents if item["kind"] == "Deployment")
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    return found


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubernetes]:
    with kubernetes(tmp_path_factory.mktemp("chart"), controllers="") as found:
        yield found


@pytest.mark.parametrize(
    "settings", [(), EVERYTHING, ("webhooks.enabled=false", "replicas=1")], ids=["defaults", "everything", "least"]
)
def test_a_real_api_server_takes_all_that_the_chart_renders(
    api: Kubernetes, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    """Strictly: a field that the server does not know is an error."""
    documents = [item for item in rendered(*settings) if item["kind"] not in FOREIGN]
    kubectl = Kubectl(api.kubeconfig, tmp_path, SPACE, programs()[-1])
    kubectl(
        "apply", "-f", "-", given=yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
    )
    kubectl(
        "apply",
        "--server-side",
        "--force-conflicts",
        "--validate=strict",
        "-f",
        "-",
        given=yaml.safe_dump_all(documents),
    )


def test_the_chart_holds_what_moorage_crds_prints() -> None:
    """Every object of it but the Namespace, byte for byte in meaning; beside it only what runs the operator."""
    printed = subprocess.run(
        [sys.executable, "-m", "moorage.cli", "crds"], capture_output=True, text=True, check=True
    ).stdout
    wanted = [item for item in yaml.safe_load_all(printed) if item["kind"] != "Namespace"]
    found = rendered()
    assert [item for item in wanted if item not in found] == []
    assert sorted(item["kind"] for item in found if item not in wanted) == [
        "Deployment",
        "PodDisruptionBudget",
        "Service",
    ]


def test_the_chart_is_of_the_version_of_the_package() -> None:
    """Its image is tagged so, too."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    assert container(rendered())["image"] == f"moorage:{__version__}"


def test_the_options_in_the_chart_are_options_of_moorage_run() -> None:
    """All that values can bring about."""
    known = subprocess.run(
        [sys.executable, "-m", "moorage.cli", "run", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "200"},
    ).stdout
    arguments = [*container(rendered(*EVERYTHING))["args"], *container(rendered("webhooks.enabled=false"))["args"]]
    assert [word for word in arguments if word.startswith("--") and word.partition("=")[0] not in known] == []


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("replica=3", "'replica' not allowed"), ("replicas=0", "/replicas"), ("kinds={Foo}", "/kinds/0"), ("resync=banana", "/resync"),
        ("image=null", "'image'"), ("webhooks=null", "'webhooks'"), ("image.repository=null", "'repository'"),
        ("podLabels.app\\.kubernetes\\.io/name=x", "'app.kubernetes.io/name'"), ("priorityClassName=a: b", "/priorityClassName"),
    ],
)  # fmt: skip
def test_values_that_cannot_work_are_refused_by_name(setting: str, named: str) -> None:
    """Before anything is installed."""
    done = helm("template", "moorage", settings=(setting,))
    assert done.returncode != 0
    assert named in done.stderr


def test_the_chart_knows_the_kinds() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(schema["properties"]["kinds"]["items"]["enum"]) == {kind.kind for kind in KINDS}


def test_other_namespaces_are_refused() -> None:
    """With the way out."""
    assert "--namespace moorage-system" in helm("template", "moorage", space="elsewhere").stderr


def test_the_environment_of_the_image_runs_the_operator(tmp_path: Path) -> None:
    """As the Containerfile installs it: what is locked for it, nothing else, is all that the operator imports."""
    uv, python = ROOT / ".tools" / "bin" / "uv", tmp_path / "venv" / "bin" / "python"
    install = [str(uv), "pip", "install", "-q", "--python", str(python)]
    for argv in (
        [str(uv), "venv", "-q", "--python", sys.executable, str(tmp_path / "venv")],
        [*install, "--only-binary", ":all:", "--require-hashes", "-r", str(ROOT / "locks" / "image.txt")],
        [*install, "--no-deps", "--no-build-isolation", str(ROOT)],
    ):
        subprocess.run(argv, check=True, cwd=tmp_path)
    for words in (["version"], ["crds"], ["lint", str(ROOT / "examples")]):
        subprocess.run([str(python.with_name("moorage")), *words], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
    done = subprocess.run(
        [str(python.with_name("moorage")), "run", "--kubeconfig", "/nowhere"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.startswith("error: /nowhere")) == (2, True), done.stderr
