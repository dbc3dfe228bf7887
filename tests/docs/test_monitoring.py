"""Alert rules and dashboard ask for metrics and labels that exist, and say what to do; the guide names every alert."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.cli.systems import KINDS
from moorage.keystone.backend import metrics as backends
from moorage.keystone.service import metrics as keystones
from moorage.pocketid import metrics as pocketids
from moorage.pocketid.oidcclient import metrics as clients
from moorage.runtime.metrics import Metrics

ROOT = Path(__file__).parents[2]
RULES = yaml.safe_load((ROOT / "deploy/monitoring/alerts.yaml").read_text())["groups"]
ALERTS = {rule["alert"]: rule for group in RULES for rule in group["rules"]}
DASHBOARD = json.loads((ROOT / "deploy/monitoring/dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
GUIDE = (ROOT / "docs/guides/operations.md").read_text()
ROOMS = (backends, keystones, pocketids, clients, KINDS)
"""Imported, so that their metrics are registered."""

OF_PROMETHEUS = {"le", "instance"}
_WORDS = {"and", "or", "unless", "offset", "bool", "inf", "nan"}
_TEXT = re.compile(r'"[^"]*"')
_RANGE = re.compile(r"\[[^\]]*\]|\boffset\s+\w+")
_MATCHERS = re.compile(r"\{([^}]*)\}")
_LABELS = re.compile(r"\b(by|on|without|ignoring)\s*\(([^)]*)\)")
_NAME = re.compile(r"\b[a-z_][a-z0-9_]*\b(?!\s*\()", re.IGNORECASE)


def expressions() -> Iterator[tuple[str, str]]:
    """Who asks, and what."""
    yield from ((name, rule["expr"]) for name, rule in ALERTS.items())
    yield from ((panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"])


EXPRESSIONS = list(expressions())


def registered() -> dict[str, set[str]]:
    """Series as Prometheus names them -> their labels; by the exposition and the reference, which another test holds against it."""
    shown = Metrics().text().decode()
    types = dict(line.split()[2:4] for line in shown.splitlines() if line.startswith("# TYPE"))
    rows = re.findall(
        r"^\| `(\w+)` \| \w+ \| ([^|]*) \|", (ROOT / "docs/reference/metrics.md").read_text(), re.MULTILINE
    )
    labels = {name: set(re.findall(r"`(\w+)`", text)) for name, text in rows}
    found: dict[str, set[str]] = {}
    for name in labels.keys() & types.keys():
        suffixes = ("_bucket", "_sum", "_count") if types[name] == "histogram" else ("",)
        found |= {name + suffix: labels[name] for suffix in suffixes}
    return found


def parts(expression: str) -> tuple[set[str], set[str]]:
    """Metric names and label names of an expression."""
    bare = _RANGE.sub("", _TEXT.sub('""', expression))
    asked = {name for inner in _MATCHERS.findall(bare) for name in re.findall(r"(\w+)\s*[=!]", inner)}
    asked |= {name for _, inner in _LABELS.findall(bare) for name in re.findall(r"\w+", inner)}
    return set(_NAME.findall(_LABELS.sub("", _MATCHERS.sub("", bare)))) - _WORDS, asked


@pytest.mark.parametrize(("who", "expression"), EXPRESSIONS, ids=[who for who, _ in EXPRESSIONS])
def test_an_expression_asks_for_series_and_labels_that_exist(who: str, expression: str) -> None:
    """A renamed metric would make an alert that never fires."""
    known = registered()
    names, asked = parts(expression)
    assert names
    assert names <= known.keys(), names - known.keys()
    assert asked <= OF_PROMETHEUS.union(*(known[name] for name in names))


def test_every_number_of_ours_is_shown_or_watched() -> None:
    """What nobody looks at need not be measured."""
    ours = {name for name in registered() if name.startswith(("keystone_operator_", "moorage_", "pocketid_operator_"))}
    ours = {name for name in ours if not name.endswith(("_sum", "_count"))}
    assert ours <= {name for _, expression in EXPRESSIONS for name in parts(expression)[0]}


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_what_is_the_matter_and_what_to_do(name: str) -> None:
    """With labels that its expression leaves, a severity, and a line in the guide."""
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    texts = rule["annotations"]
    assert set(texts) == {"summary", "description"}
    assert all(text.endswith(".") for text in texts.values())
    used = set(re.findall(r"\$labels\.(\w+)", " ".join(texts.values())))
    grouped = [set(re.findall(r"\w+", inner)) for word, inner in _LABELS.findall(rule["expr"]) if word == "by"]
    known = registered()
    left = grouped or [known[metric] for metric in parts(rule["expr"])[0]]
    assert used <= set.union(*left)
    assert f"| {name} |" in GUIDE


def test_the_guide_names_no_alert_that_is_gone() -> None:
    """Both ways."""
    assert set(re.findall(r"^\| ((?:Moorage|Keystone|IdentityBackend|PocketID)\w+) \|", GUIDE, re.MULTILINE)) == set(
        ALERTS
    )


def test_panels_have_a_place_of_their_own_and_a_sentence() -> None:
    """Ids are unique, nothing overlaps, every datasource is the reader's choice."""
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    assert [one["title"] for one, other in combinations(DASHBOARD["panels"], 2) if _overlap(one, other)] == []
    for panel in PANELS:
        assert panel["description"], panel["title"]
        assert {panel["datasource"]["uid"], *(item["datasource"]["uid"] for item in panel["targets"])} == {
            "${datasource}"
        }


def _overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    a, b = one["gridPos"], other["gridPos"]
    return bool(
        a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]
    )
