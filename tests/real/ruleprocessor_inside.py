"""Runs inside the Keystone image: answers, line by line, what Keystone itself says of mapping rules and domain files. Uses Keystone, imports nothing of ours.

A line in is `{"process": [[rules, claims], ...]}`, `{"schema": [rules, ...]}` or `{"domains": [file, ...]}`, a line out the list of answers.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from typing import Any

import keystone.conf
from keystone.federation import utils
from oslo_config import cfg


def processed(rules: Any, claims: Any) -> Any:
    """What RuleProcessor returns, or the class and the text of what it raises."""
    try:
        return utils.RuleProcessor("oracle", rules).process(claims)
    except Exception as error:  # noqa: BLE001  (whatever Keystone raises is the answer)
        return {"raised": type(error).__name__, "text": str(error)}


def refused(rules: Any) -> str | None:
    """Why Keystone's mapping schema refuses the rules, None when it accepts them."""
    try:
        utils.validate_mapping_structure({"rules": rules})
    except Exception as error:  # noqa: BLE001  (whatever Keystone raises is the answer)
        return f"{type(error).__name__}: {error}"
    return None


def broken(content: str) -> str | None:
    """Why Keystone cannot load the file of a domain, None when it can; nothing is connected to."""
    from keystone.identity.backends.ldap.core import Identity

    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(content)
        file.flush()
        conf = cfg.ConfigOpts()
        try:
            keystone.conf.configure(conf=conf)
            conf(args=[], project="keystone", default_config_files=[file.name], default_config_dirs=[])
            Identity(conf)
        except Exception as error:  # noqa: BLE001  (whatever Keystone raises is the answer)
            return f"{type(error).__name__}: {error}"
    return None


class _Kind(type):
    def __instancecheck__(cls, item: object) -> bool:
        return isinstance(item, list)


class _SettledList(metaclass=_Kind):
    """`list` for Keystone's module: a set becomes a sorted list, where Keystone itself leaves the order to chance."""

    def __new__(cls, items: Any = ()) -> Any:
        return sorted(items) if isinstance(items, set) else list(items)


utils.list = _SettledList
keystone.conf.configure()
logging.disable(logging.CRITICAL)
for line in sys.stdin:
    asked = json.loads(line)
    if "process" in asked:
        answers = [processed(*case) for case in asked["process"]]
    elif "domains" in asked:
        answers = [broken(content) for content in asked["domains"]]
    else:
        answers = [refused(rules) for rules in asked["schema"]]
    print(json.dumps(answers, default=repr), flush=True)
