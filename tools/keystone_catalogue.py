"""Write src/moorage/keystone/service/catalogue.json: the options that one release of Keystone knows.

Run it with the interpreter of an environment that holds that Keystone (`pip install keystone==30.0.0`), not with ours:

    python tools/keystone_catalogue.py > src/moorage/keystone/service/catalogue.json
"""

from __future__ import annotations

import json
import sys
from typing import Any

from oslo_config import generator  # of the foreign environment

NAMESPACES = [
    "keystone", "oslo.cache", "oslo.concurrency", "oslo.db", "oslo.log", "oslo.messaging", "oslo.middleware",
    "oslo.policy", "osprofiler",
]  # fmt: skip


def options() -> dict[str, list[str]]:
    """Option names by section, deprecated names of the same section included."""
    found: dict[str, set[str]] = {}
    for _, groups in generator._list_opts(NAMESPACES):
        for group, opts in groups:
            section = str(getattr(group, "name", group) or "DEFAULT")
            for opt in opts:
                found.setdefault(section, set()).update(_names(opt, section))
    return {section: sorted(found[section]) for section in sorted(found)}


def _names(opt: Any, section: str) -> set[str]:
    old = {
        item.name.replace("-", "_") for item in opt.deprecated_opts if item.name and (item.group or section) == section
    }
    return {opt.dest, *old}


if __name__ == "__main__":
    json.dump(options(), sys.stdout)
