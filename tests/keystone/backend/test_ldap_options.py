"""What the options of a directory may hold, asked of Keystone's own LDAP driver: one that it cannot read ends the logins of every domain."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.real.ruleprocessor import RuleProcessor, rule_processor

from moorage.keystone.backend.ldap_options import KNOWN, WRITABLE, unreadable
from moorage.keystone.backend.ldap_syntax import is_dn
from moorage.render.ini import render_ini

VALUES = (
    "", " ", "x", "abc", "0", "1", "-1", "-2", "+5", " 7 ", "1_0", "1__0", "٣", "1.5", "1e3", "nan", "-inf", "0x10", "9" * 5000, "true", "True", "YES", "on",
    "Off", "no ", "t", "y", "none", "None", "null", "yeſ", "$x", "'1'", '"1"', "one", "ONE", "sub", "base", "never", "always", "default", "demand",
    "Demand", "hard", "allow", "a,b", "a:b,c:d", "cn=x,dc=y", "cn=ä", "ä", "%s", "#1", "1 # one", "[x]", "1,2",
)  # fmt: skip
"""As people write them, and as nobody should."""


@pytest.fixture(scope="module")
def keystone() -> Iterator[RuleProcessor]:
    """Keystone's LDAP driver, which connects to nothing here."""
    with rule_processor() as found:
        yield found


def file(name: str, value: str) -> str:
    """The file of a domain with one option; what Keystone reads only beside another one, with that one."""
    beside = {"user_enabled_emulation_use_group_config": "true"} if name == "group_members_are_ids" else {}
    return render_ini({"identity": {"driver": "ldap"}, "ldap": {"suffix": "dc=corp", **beside, name: value}})


@pytest.mark.parametrize("name", sorted({*KNOWN, *WRITABLE}))
def test_what_an_option_may_hold_is_what_keystone_loads(keystone: RuleProcessor, name: str) -> None:
    """Neither more, which is an outage, nor less, which would detach a directory that works."""
    faults = keystone.load_faults([file(name, value) for value in VALUES])
    ours = [not any(unreadable({name: value})) for value in VALUES]
    assert dict(zip(VALUES, ours, strict=True)) == dict(zip(VALUES, (not fault for fault in faults), strict=True)), (
        faults
    )


DNS = st.lists(
    st.sampled_from((*"cn=a,;+\\\"# <>.1-ä'", "cn=", ",dc=", "\\2C", "\\C3\\A4", "\\FF", "#04", '"a,b"', "1.2")), max_size=12
).map("".join)  # fmt: skip


@settings(max_examples=100)
@given(DNS)
def test_a_dn_is_what_the_ldap_library_takes_for_one(keystone: RuleProcessor, value: str) -> None:
    """Keystone takes the DN of emulated enabling apart when it loads the domain."""
    (fault,) = keystone.load_faults([file("user_enabled_emulation_dn", value)])
    assert (is_dn(value) or not value) == (fault is None), fault


def test_an_option_that_nobody_knows_harms_nobody(keystone: RuleProcessor) -> None:
    """Keystone passes over it, whatever it holds: admission warns and no more."""
    assert keystone.load_faults([file("frobnicate", "\u2603")]) == [None]
