"""The options that Keystone 30 knows in its `[ldap]` section, as data: name and what it can read there.

Keystone reads the files of all domains in one go, at the first question about identity: a single value that it cannot read refuses every login of
every domain, `admin` of Default included. So these forms are exact: they accept what Keystone accepts, blanks and all, and nothing else.

Source: `keystone.conf.ldap` of Keystone 30.0.0, oslo.config's types, the constructor of Keystone's LDAP driver; a test asks these. An option that is
not here is admitted with a warning (case B06): nobody reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from .ldap_syntax import is_dn

TRUE_WORDS: Final = frozenset({"true", "1", "on", "yes"})
_WORDS: Final = TRUE_WORDS | {"false", "0", "off", "no"}


@dataclass(frozen=True, slots=True)
class Form:
    """What an option holds.

    Args:
        what: for a sentence that begins with "it expects".
        reads: whether Keystone reads a value.
        is_number: a blank is read, and breaks this domain later, where Keystone counts with it.
    """

    what: str
    reads: Callable[[str], bool]
    is_number: bool = False


def _number(kind: Callable[[str], float], value: str, least: float | None = None) -> bool:
    """A blank is read as no number at all."""
    if not value.strip():
        return True
    try:
        found = kind(value)
    except ValueError:
        return False
    return least is None or found >= least


def _at_least(least: int) -> Form:
    return Form(f"an integer of at least {least}", partial(_number, int, least=least), is_number=True)


def _one_of(*words: str) -> Form:
    return Form("one of " + ", ".join(words), frozenset(words).__contains__)


_TEXT: Final = Form("text", lambda _value: True)
_TRUTH: Final = Form("true or false", lambda value: value.lower() in _WORDS)
_DN: Final = Form("a DN such as cn=enabled_users,ou=groups,dc=example,dc=org", lambda value: not value or is_dn(value))

_BY_FORM: Final[tuple[tuple[Form, str], ...]] = (
    (_TEXT, """url user password suffix user_tree_dn user_filter user_objectclass user_id_attribute user_name_attribute
        user_description_attribute user_mail_attribute user_pass_attribute user_enabled_attribute user_enabled_default
        user_attribute_ignore user_default_project_id_attribute
        user_additional_attribute_mapping group_tree_dn group_filter group_objectclass group_id_attribute
        group_name_attribute group_member_attribute group_desc_attribute group_attribute_ignore
        group_additional_attribute_mapping tls_cacertfile tls_cacertdir"""),
    (_at_least(-1), "debug_level connection_timeout pool_connection_timeout"),
    (_at_least(0), "page_size user_enabled_mask"),
    (_at_least(1), "pool_size pool_retry_max pool_connection_lifetime auth_pool_size auth_pool_connection_lifetime"),
    (Form("a number", partial(_number, float), is_number=True), "pool_retry_delay"),
    (_TRUTH, """randomize_urls chase_referrals user_enabled_invert user_enabled_emulation
        user_enabled_emulation_use_group_config group_members_are_ids group_ad_nesting use_tls use_pool use_auth_pool"""),
    (_one_of("one", "sub"), "query_scope"),
    (_one_of("never", "searching", "always", "finding", "default"), "alias_dereferencing"),
    (_one_of("demand", "never", "allow"), "tls_req_cert"),
    (_DN, "user_enabled_emulation_dn"),
)  # fmt: skip

KNOWN: Final[Mapping[str, Form]] = {name: form for form, names in _BY_FORM for name in names.split()}
"""Option name to what Keystone reads there."""

WRITABLE: Final = frozenset(
    f"{what}_allow_{verb}" for what in ("user", "group") for verb in ("create", "update", "delete")
)
"""Options of the seed that make a directory writable; today's Keystone no longer reads them."""


def unreadable(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The options of a section that Keystone could not read, sorted, each with what it expects; never with its value."""
    return ((name, form.what) for name in sorted(values) if (form := KNOWN.get(name)) and not form.reads(values[name]))
