"""Which options a release of Keystone knows, for the check of extraConfig.

Enters: a declared Keystone. Leaves: the names that its release does not know; an unknown release is not judged. `catalogue.json` is
made from the option lists of keystone 30.0.0 and its oslo libraries. Source: spec/keystone.md 1.1, extraConfig.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Final

from .types import Keystone

RELEASES: Final = ("30",)
"""Major releases that the catalogue holds for."""
_ANY_SECTION: Final = frozenset({"remote_id_attribute"})
"""Options that stand in sections named by people: one for each federation protocol."""
_OURS: Final = {
    "DEFAULT": frozenset({"keystone_group", "keystone_user"}),
    "oslo_policy": frozenset({"enforce_scope"}),
    "memcache": frozenset({"servers"}),
    "paste_deploy": frozenset({"config_file"}),
    "credential": frozenset({"max_active_keys"}),
}
"""Written by the operator though this release does not read them."""


def release_known(keystone: Keystone) -> bool:
    """Whether the catalogue can judge this Keystone's image."""
    tag = keystone.spec.image.tag
    return tag is not None and tag.split(".")[0] in RELEASES


def unknown_options(keystone: Keystone) -> tuple[str, ...]:
    """Options of extraConfig that the release does not know, each as `[section] key`; () for an unknown release."""
    extra = keystone.spec.extra_config or {}
    if not extra or not release_known(keystone):
        return ()
    plugins = {plugin.config_section for plugin in keystone.spec.plugins or ()}
    return tuple(
        f"[{section}] {key}"
        for section in sorted(extra)
        if section not in plugins
        for key in sorted(extra[section])
        if not _known(section, key)
    )


def _known(section: str, key: str) -> bool:
    if key in _ANY_SECTION or key in _OURS.get(section, ()):
        return True
    return key.replace("-", "_") in _catalogue().get(section, ())


@lru_cache(maxsize=1)
def _catalogue() -> dict[str, frozenset[str]]:
    text = files("moorage.keystone.service").joinpath("catalogue.json").read_text(encoding="utf-8")
    return {section: frozenset(names) for section, names in json.loads(text).items()}
