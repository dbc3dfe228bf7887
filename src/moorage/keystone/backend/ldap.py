"""Variant LDAP: the options table, what is denied beside it, and the `[ldap]` section.

Enters: a declared directory and its bind credentials. Leaves: option names and values, still unescaped. It must not read
Secrets and must not decide whether something is admitted. Source: seed 000, LDAPBackendSpec; spec/keystone.md 2.5, 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moorage.schema.model import Model

from .ldap_options import WRITABLE
from .types import Ldap, Option

MOUNT: Final = "/etc/keystone/domains"
"""Where the Keystone pods mount the projected files."""
ENABLED_PREFIX: Final = "user_enabled_"


@dataclass(frozen=True, slots=True)
class TypedOption:
    """A field of `spec.ldap` and the option it becomes."""

    attributes: tuple[str, ...]
    path: str
    name: str

    def value(self, ldap: Ldap) -> str | None:
        """The option's value, None when the field is unset or empty."""
        found: Any = ldap
        for attribute in self.attributes:
            found = getattr(found, attribute)
            if found is None:
                return None
        if isinstance(found, bool):
            return str(found).lower()
        return str(found) or None


def _options(model: type[Model], attributes: tuple[str, ...], path: str) -> Iterator[TypedOption]:
    for name, info in model.model_fields.items():
        here, where = (*attributes, name), f"{path}.{info.alias or name}"
        for mark in info.metadata:
            if isinstance(mark, Option):
                yield TypedOption(here, where, mark.name)
        if nested := _nested(info.annotation):
            yield from _options(nested, here, where)


def _nested(annotation: Any) -> type[Model] | None:
    candidates = (annotation, *getattr(annotation, "__args__", ()))
    return next((item for item in candidates if isinstance(item, type) and issubclass(item, Model)), None)


OPTIONS: Final = tuple(_options(Ldap, (), "spec.ldap"))
"""All options that typed fields render, read from the `Option` marks in types.py."""

OWNED: Final = frozenset(option.name for option in OPTIONS) | {
    "user", "password", "tls_cacertfile", "driver", "domain_config_dir",
}  # fmt: skip
"""Options that the projection owns; extraOptions may not name them."""


@dataclass(frozen=True, slots=True)
class BindCredentials:
    """Bind DN and password; the password is never printed."""

    username: str
    password: str = field(repr=False)


def denial(name: str, *, read_only: bool) -> str | None:
    """Why extraOptions may not hold this name, or None. Letter case does not matter (decisions, Keystone 8)."""
    plain = name.lower()
    as_written = "" if plain == name else " (option names are compared without regard to letter case)"
    if plain in OWNED:
        return f'option "{name}" is owned by the operator: use the typed field instead{as_written}'
    if read_only and plain in WRITABLE:
        return f'option "{name}" conflicts with readOnly: true; set readOnly to false to write to the directory{as_written}'
    return None


def section(ldap: Ldap, extra: Mapping[str, str], credentials: BindCredentials, ca_file: str | None) -> dict[str, str]:
    """The `[ldap]` section; extraOptions come last and are the caller's to have checked."""
    values = {option.name: value for option in OPTIONS if (value := option.value(ldap)) is not None}
    values |= {"user": credentials.username, "password": credentials.password}
    if ca_file:
        values["tls_cacertfile"] = f"{MOUNT}/{ca_file}"
    if ldap.read_only:
        values |= dict.fromkeys(WRITABLE, "false")
    if not any(name.lower().startswith(ENABLED_PREFIX) for name in extra):
        values |= {"user_enabled_invert": "true", "user_enabled_default": "false"}
    return {**values, **extra}
