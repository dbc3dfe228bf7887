"""The table of systems: every command sees all kinds, and none loads more than it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from moorage.cli import systems
from moorage.runtime.install import rules


def test_all_kinds_of_all_systems_are_known() -> None:
    """In the order of the table; each has an admission."""
    kinds = [kind.kind for kind in systems.KINDS]
    assert {"Keystone", "KeystoneIdentityBackend", "PocketIDInstance", "PocketIDOIDCClient"} <= set(kinds)
    assert [item.kind.kind for item in systems.ADMISSIONS] == kinds
    assert [name for system in systems.SYSTEMS for name in system.folders] == kinds


def test_a_kind_name_and_a_short_name_mean_one_kind() -> None:
    """`kubectl get NAME` and `moorage wait NAME` would be ambiguous otherwise."""
    names = [name for kind in systems.KINDS for name in (kind.kind.lower(), kind.plural, *kind.short_names)]
    assert len(names) == len(set(names))


def test_admissions_are_those_that_were_asked_for() -> None:
    """A name that is not ours brings all, so that `lint` can say which kinds there are."""
    assert [item.kind.kind for item in systems.admissions_of(["PocketIDAPI"])] == ["PocketIDAPI"]
    assert len(systems.admissions_of(["PocketIDApi"])) == len(systems.KINDS)


@pytest.mark.parametrize("module", ["moorage.cli.systems", "moorage.keystone", "moorage.pocketid"])
def test_another_name_is_no_attribute(module: str) -> None:
    """As any module says it."""
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'NOTHING'"):
        __import__(module, fromlist=["x"]).NOTHING  # noqa: B018


def test_what_two_systems_need_stands_once_in_the_role() -> None:
    """A person who reads the role reads each line once."""
    found = rules(systems.KINDS, systems.RULES)
    assert [rule for rule in found if found.count(rule) > 1] == []


def test_the_table_itself_loads_no_declaration() -> None:
    """Which systems there are is known before any of them is loaded."""
    code = "import sys, moorage.cli.systems; print([name for name in sys.modules if name.endswith('.types')][:9], 'pydantic_core' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "moorage." not in done.stdout
    assert done.stdout.strip().endswith("False")
