"""Variant LDAP: the options table, what is denied beside it, its admission rules, the domain's configuration file and CA bundle.

Enters: a declared directory and the data of its Secrets. Leaves: complaints, or files. It must never put a value of a Secret into a
sentence. Source: seed 000, LDAPBackendSpec; spec/keystone.md 2.4, 2.5, 3.1; decisions, Keystone 6, 7; cases B03, B05, B06.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from moorage.render.ini import UnsafeValue, render_ini
from moorage.schema.fielderror import invalid, required
from moorage.schema.model import Model

from .finding import Finding, control_characters, fixed_keys, shown
from .ldap_options import KNOWN, TRUE_WORDS, WRITABLE, unreadable
from .ldap_syntax import doubt
from .materials import Fault, Materials
from .types import KeystoneIdentityBackend, Ldap, Option, Spec
from .variant import Rendered, Skip, Variant, Wanted

MOUNT: Final = "/etc/keystone/domains"
"""Where the Keystone pods mount the projected files."""
SYSTEM_AUTHORITIES: Final = "/etc/ssl/certs"
"""The public authorities of the Keystone image, a file each."""
CA_SUFFIX: Final = "-ca.pem"
ENABLED_PREFIX: Final = "user_enabled_"
_NAME: Final = re.compile(r"[A-Za-z0-9_]+")
_COUNT: Final = re.compile(r"[0-9]+")


class TypedOption(NamedTuple):
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
        here, where = (*attributes, name), f"{path}.{info.alias}"
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


def is_secured(ldap: Ldap, extra: Mapping[str, str]) -> bool:
    """Whether Keystone speaks TLS to the directory."""
    return ldap.url.lower().startswith("ldaps") or extra.get("use_tls", "").lower() in TRUE_WORDS


def is_proven(extra: Mapping[str, str]) -> bool:
    """Whether a directory that speaks TLS must prove itself by its certificate."""
    return extra.get("tls_req_cert", "demand") == "demand"


def trusts_the_system(ldap: Ldap, extra: Mapping[str, str]) -> bool:
    """TLS with no authority declared: Keystone refuses every login then, unless a folder of authorities is named."""
    return is_secured(ldap, extra) and ldap.tls is None and extra.get("tls_cacertdir", "") in ("", SYSTEM_AUTHORITIES)


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
    public = {"tls_cacertdir": SYSTEM_AUTHORITIES} if trusts_the_system(ldap, extra) else {}
    return {**values, **extra, **public}


# --- rendering


def conf_key(domain: str) -> str:
    """Data key of a domain's configuration file."""
    return f"keystone.{domain}.conf"


def ca_key(domain: str) -> str:
    """Data key of a domain's CA bundle; it does not match the `keystone.*.conf` that Keystone scans for."""
    return f"{domain}{CA_SUFFIX}"


def secrets(backend: KeystoneIdentityBackend) -> tuple[str, ...]:
    """The bind Secret, and that of the CA bundle."""
    ldap = backend.spec.ldap
    if ldap is None:
        return ()
    names = [ldap.bind_credentials_secret_ref.name, *([ldap.tls.ca_bundle_secret_ref.name] if ldap.tls else [])]
    return tuple(dict.fromkeys(names))


def render(backend: KeystoneIdentityBackend, materials: Materials) -> Rendered:
    """The domain's configuration file and its CA bundle."""
    ldap, domain, extra = backend.spec.ldap, backend.spec.domain.name, backend.spec.extra_options or {}
    if ldap is None:
        raise Skip("UnsupportedType", "spec.ldap is missing")
    _refuse_denied(ldap, extra)
    files: dict[str, bytes] = {}
    if ldap.tls:
        bundle = Wanted("CA Secret", ldap.tls.ca_bundle_secret_ref.name, "CABundleUnavailable")
        files[ca_key(domain)] = bundle.content(materials, "ca.crt")
    values = section(ldap, extra, _credentials(ldap, materials), ca_key(domain) if ldap.tls else None)
    _refuse_unreadable(values)
    files[conf_key(domain)] = _encode({"identity": {"driver": "ldap"}, "ldap": values})
    named = "spec.ldap.bindCredentialsSecretRef with spec.extraOptions"
    return Rendered(files, fields={ca_key(domain): "spec.ldap.tls.caBundleSecretRef", conf_key(domain): named})


VARIANT: Final = Variant(secrets, render, volume="domains", sign=lambda backend: conf_key(backend.spec.domain.name))


def credentials(ldap: Ldap, materials: Materials) -> BindCredentials | Fault:
    """Bind DN and password as they are used; a line end at the end is the `--from-file` habit and is dropped."""
    try:
        return _credentials(ldap, materials)
    except Skip as skip:
        return skip.fault


def _credentials(ldap: Ldap, materials: Materials) -> BindCredentials:
    bind = Wanted("bind Secret", ldap.bind_credentials_secret_ref.name, "BindSecretUnavailable")
    why = ": anonymous binds are not supported"
    return BindCredentials(bind.line(materials, "username", empty=why), bind.line(materials, "password", empty=why))


def _refuse_denied(ldap: Ldap, extra: Mapping[str, str]) -> None:
    for name in sorted(extra):
        if why := denial(name, read_only=ldap.read_only):
            raise Skip("OptionRefused", f"spec.extraOptions: {why}")


def _refuse_unreadable(values: Mapping[str, str]) -> None:
    """What Keystone cannot read would take every other domain along: such a backend is not projected, whatever admission knew."""
    if fault := next(unreadable(values), None):
        raise Skip("OptionRefused", f"option {_unreadable(*fault)}")


def _unreadable(name: str, expected: str) -> str:
    return f"{name} holds what Keystone cannot read, which would end the logins of every domain: it expects {expected}"


def _encode(sections: Mapping[str, Mapping[str, str]]) -> bytes:
    try:
        return render_ini(sections).encode()
    except UnsafeValue as error:
        what = f"option {error.key}" if error.key else "an option name"
        raise Skip("UnsafeValue", f"{what} of section [{error.section}] holds a control character") from None
    except UnicodeEncodeError:
        raise Skip("UnsafeValue", "a value of section [ldap] is not valid Unicode text") from None


# --- admission


def check(spec: Spec) -> Iterator[Finding]:
    """All complaints about the directory and its extraOptions."""
    if spec.ldap is None:
        return
    for option in OPTIONS:
        value = option.value(spec.ldap)
        yield from control_characters(option.path, value)
        if value is not None and (why := doubt(option.name, value)):
            yield f"{option.path}: {value!r} {why}"
    yield from _check_url(spec.ldap.url)
    yield from fixed_keys(
        "spec.ldap.bindCredentialsSecretRef", spec.ldap.bind_credentials_secret_ref, "username", "password"
    )
    if spec.ldap.tls:
        yield from fixed_keys("spec.ldap.tls.caBundleSecretRef", spec.ldap.tls.ca_bundle_secret_ref, "ca.crt")
    yield from _check_extra(spec.ldap, spec.extra_options or {})


def _check_url(url: str) -> Iterator[Finding]:
    """Every address of the list. The seed fixes only the scheme, so what cannot work is a warning, named without the address:
    it may hold a password."""
    addresses = [part.strip() for part in url.split(",")]
    if not all(part.startswith(("ldap://", "ldaps://")) for part in addresses):
        yield invalid("spec.ldap.url", url, "each address must start with ldap:// or ldaps://")
        return
    for number, address in enumerate(addresses, 1):
        if why := _doubt(address):
            yield f"spec.ldap.url: address {number} {why}"


def _doubt(address: str) -> str:
    """Why an address will hardly work, or nothing."""
    if any(char.isspace() for char in address):
        return "holds a blank: separate addresses by commas"
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "has no port between 0 and 65535, or a host that cannot be read"
    if "@" in parts.netloc:
        return (
            "holds user information: it is not used, and everybody who reads this resource sees it; use the bind Secret"
        )
    if not host:
        return "names no host"
    return "holds more than scheme, host and port: the rest is not used" if parts.path.strip("/") or parts.query else ""


def _check_extra(ldap: Ldap, extra: Mapping[str, str]) -> Iterator[Finding]:
    for name in sorted(extra):
        yield from _check_option(ldap, name, extra[name])
    unknown = [name for name in sorted(extra) if _NAME.fullmatch(name) and _is_unknown(ldap, name)]
    if unknown:
        yield f"spec.extraOptions: Keystone does not know these options of [ldap]: {', '.join(unknown)}"
    if "user_enabled_mask" in extra and "user_enabled_attribute" not in extra:
        yield "spec.extraOptions: user_enabled_mask has no effect without user_enabled_attribute"


def _is_unknown(ldap: Ldap, name: str) -> bool:
    return name not in KNOWN and denial(name, read_only=ldap.read_only) is None


def _check_option(ldap: Ldap, name: str, value: str) -> Iterator[Finding]:
    path = f"spec.extraOptions[{shown(name)}]"
    if not name:
        yield required("spec.extraOptions", "an option name must not be empty")
    elif not _NAME.fullmatch(name):
        yield invalid(path, name, "option name must match ^[A-Za-z0-9_]+$")
    elif why := denial(name, read_only=ldap.read_only):
        yield invalid(path, name, why)
    else:
        yield from _check_value(ldap, path, name, value)
    yield from control_characters(path, value)


def _check_value(ldap: Ldap, path: str, name: str, value: str) -> Iterator[Finding]:
    if name == "page_size" and not _COUNT.fullmatch(value):
        yield invalid(path, value, "page_size must be a non-negative integer")
    elif name == "use_tls" and value.lower() in TRUE_WORDS and "ldaps://" in ldap.url:
        yield invalid(
            path, value, "use_tls (STARTTLS) and an ldaps:// url exclude each other: use ldap:// or drop use_tls"
        )
    elif fault := next(unreadable({name: value}), None):
        yield invalid(path, value, _unreadable(*fault))
    elif name in KNOWN and KNOWN[name].is_number and not value.strip():
        yield f"{path}: is empty: leave the option out, or write {KNOWN[name].what}"
    elif why := doubt(name, value):
        yield f"{path}: {value!r} {why}"
