"""Generated mapping rules and claims, in Keystone's JSON form. Claims are drawn near the rules, so that rules match often enough."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TYPES = ("HTTP_OIDC_ISS", "HTTP_OIDC_GROUPS", "REMOTE_USER", "HTTP_MELLON_NAME_ID")
VALUES = (
    "a", "b", "ab", "A", "", " a ", "2024", "0", "España", "日本", "None", "True", "x'y", 'x"y', "['a', 'b']", '["c"]', "[1, [2]]",
    "[]", "('a',)", "{'a': 1}", "{[1]}", "1,2", "a\\b", "\x00", "a\nb", "{0}", "{", "..",
)  # fmt: skip
PATTERNS = ("a", "^a", "b$", "^ab?$", "", ".", "[", "(?i)A", r"\d+", "^$", "ñ", "a|b")
TEXTS = (
    "{0}", "{1}", "{2}", "{0}{1}", "x{0}", "{0}-{0}", "plain", "2024", "España", "", "{{0}}", "{{", "}}{0}", "['a', '{0}']",
    "a;b", "{00}", "['x']", "{5}",
)  # fmt: skip
ODD = (*TEXTS, "{", "}", "{x}", "{}", "{0[x]}", "{-1}", "{0!r}", "{0.x}", "{0:>4}")

COMMON = ("a", "b", "ab")
value = st.sampled_from(COMMON) | st.sampled_from(COMMON) | st.sampled_from(VALUES) | st.text(max_size=4)
claim = st.lists(value, min_size=1, max_size=4).map(";".join)
claims = st.fixed_dictionaries(dict.fromkeys(TYPES[:2], claim), optional=dict.fromkeys(TYPES[2:], claim))
SAFE = ("{0}", "x{0}", "plain", "2024", "España", "['x']", "a;b")
_text = st.sampled_from(SAFE) | st.sampled_from(SAFE) | st.sampled_from(SAFE) | st.sampled_from(TEXTS)
_domain = st.fixed_dictionaries({}, optional={"id": _text, "name": _text})


def _listed(name: str) -> st.SearchStrategy[dict[str, Any]]:
    plain = st.fixed_dictionaries({name: st.lists(value, max_size=3)}, optional={"regex": st.just(False)})
    regex = st.fixed_dictionaries({name: st.lists(st.sampled_from(PATTERNS), max_size=3), "regex": st.just(True)})
    return plain | regex


LISTS = ("any_one_of", "not_any_of", "blacklist", "whitelist")
_kind = st.sampled_from((*TYPES[:2], *TYPES[:2], *TYPES))
_plain: st.SearchStrategy[dict[str, Any]] = st.just({})
remote = st.builds(
    lambda kind, rest: {"type": kind, **rest}, _kind, st.one_of(_plain, _plain, _plain, _plain, *map(_listed, LISTS))
)
_user = st.fixed_dictionaries(
    {}, optional={"id": _text, "name": _text | _text | st.sampled_from(ODD), "email": _text, "domain": _domain, "type": st.sampled_from(("local", "ephemeral"))}
)  # fmt: skip
_group = st.fixed_dictionaries({"id": _text}) | st.fixed_dictionaries({"name": _text, "domain": _domain})
_role = st.fixed_dictionaries({"name": _text})
_project = st.fixed_dictionaries({"name": _text, "roles": st.lists(_role, max_size=2)})
local = st.fixed_dictionaries(
    {},
    optional={
        "user": _user, "group": _group, "groups": _text, "group_ids": _text, "domain": _domain,
        "projects": st.lists(_project, max_size=2),
    },
)  # fmt: skip
rule = st.fixed_dictionaries({"local": st.lists(local, max_size=3), "remote": st.lists(remote, min_size=1, max_size=3)})
rules = st.lists(rule, min_size=1, max_size=3)
"""Rules that Keystone's mapping schema accepts; they need not make sense."""
