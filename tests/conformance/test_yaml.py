"""Plain words of YAML: ours are what the real kubectl makes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.core.test_yamltext import SCALARS
from tests.real.kubectl import Kubectl, programs

from moorage.core.yamltext import load_all

pytestmark = [pytest.mark.conformance]


def test_plain_words_are_what_kubectl_makes_of_them(tmp_path: Path) -> None:
    """It changes an object of a file, without any server."""
    lines = "".join(f"  k{number}: {word}\n" for number, word in enumerate(SCALARS))
    text = f"apiVersion: x.io/v1\nkind: Thing\nmetadata: {{name: x}}\nspec:\n{lines}"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config"}))
    kubectl = Kubectl(kubeconfig, tmp_path, "default", programs()[-1])
    found = json.loads(kubectl("label", "--local", "-o", "json", "-f", "-", "a=b", given=text))["spec"]
    ours = next(load_all(text))["spec"]
    assert {key: (type(value), value) for key, value in ours.items()} == {
        key: (type(value), value) for key, value in found.items()
    }
