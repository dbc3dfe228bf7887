"""What a backend projects into its Keystone: a domain's configuration file and its CA bundle.

Enters: a declared backend and the data of its Secrets. Leaves: files and their digest, or the one reason why nothing may
be projected. It must never put out a value that reads back as another one, nor a secret in a message. It is the last line
of defence: it runs for resources that bypassed admission too. Source: seed 000; spec/keystone.md 3.1; decisions 6, 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from moorage.core.digest import content_hash
from moorage.render.ini import UnsafeValue, render_ini

from .ldap import BindCredentials, denial, section
from .types import KeystoneIdentityBackend, Ldap

SIZE_LIMIT: Final = 262144
"""Bytes that one backend may project."""
UNSUPPORTED: Final = "this version attaches backends of type LDAP only"


@dataclass(frozen=True)
class Projected:
    """Files of one backend by data key, and a digest of names and contents."""

    files: Mapping[str, bytes] = field(repr=False)
    digest: str

    def stands_in(self, data: Mapping[str, bytes]) -> bool:
        """Whether `data` holds exactly these contents for this backend."""
        return all(data.get(name) == content for name, content in self.files.items())


@dataclass(frozen=True, slots=True)
class Fault:
    """Why this backend is skipped; its siblings are not."""

    reason: str
    message: str


Projection: TypeAlias = Projected | Fault


class _Skip(Exception):
    """Ends a rendering with its fault."""

    def __init__(self, reason: str, message: str) -> None:
        self.fault = Fault(reason, message)
        super().__init__(message)


def conf_key(domain: str) -> str:
    """Data key of a domain's configuration file."""
    return f"keystone.{domain}.conf"


def ca_key(domain: str) -> str:
    """Data key of a domain's CA bundle; it does not match the `keystone.*.conf` that Keystone scans for."""
    return f"{domain}-ca.pem"


def project(
    backend: KeystoneIdentityBackend, bind: Mapping[str, bytes] | None, ca: Mapping[str, bytes] | None
) -> Projection:
    """The files of one backend.

    Args:
        bind: data of the bind Secret (`username`, `password`), None when it does not exist.
        ca: data of the CA Secret (`ca.crt`), None when it does not exist or none is declared.
    """
    if backend.spec.ldap is None:
        return Fault("UnsupportedType", UNSUPPORTED)
    try:
        files = _files(backend, backend.spec.ldap, bind, ca)
    except _Skip as skip:
        return skip.fault
    return Projected(files, content_hash(files))


def credentials(ldap: Ldap, bind: Mapping[str, bytes] | None) -> BindCredentials | Fault:
    """Bind DN and password as they are used; a line end at the end is the `--from-file` habit and is dropped."""
    try:
        return _credentials(ldap, bind)
    except _Skip as skip:
        return skip.fault


def _files(
    backend: KeystoneIdentityBackend, ldap: Ldap, bind: Mapping[str, bytes] | None, ca: Mapping[str, bytes] | None
) -> dict[str, bytes]:
    domain, extra = backend.spec.domain.name, backend.spec.extra_options or {}
    _refuse_denied(ldap, extra)
    files: dict[str, bytes] = {}
    if ldap.tls:
        files[ca_key(domain)] = _ca_bundle(ldap.tls.ca_bundle_secret_ref.name, ca)
    values = section(ldap, extra, _credentials(ldap, bind), ca_key(domain) if ldap.tls else None)
    files[conf_key(domain)] = _encode({"identity": {"driver": "ldap"}, "ldap": values})
    size = sum(map(len, files.values()))
    if size > SIZE_LIMIT:
        raise _Skip("TooLarge", f"configuration and CA bundle have {size} bytes, at most {SIZE_LIMIT} are projected")
    return files


def _refuse_denied(ldap: Ldap, extra: Mapping[str, str]) -> None:
    for name in sorted(extra):
        if why := denial(name, read_only=ldap.read_only):
            raise _Skip("OptionRefused", f"spec.extraOptions: {why}")


def _encode(sections: Mapping[str, Mapping[str, str]]) -> bytes:
    try:
        return render_ini(sections).encode()
    except UnsafeValue as error:
        what = f"option {error.key}" if error.key else "an option name"
        raise _Skip("UnsafeValue", f"{what} of section [{error.section}] holds a control character") from None
    except UnicodeEncodeError:
        raise _Skip("UnsafeValue", "a value of section [ldap] is not valid Unicode text") from None


def _credentials(ldap: Ldap, bind: Mapping[str, bytes] | None) -> BindCredentials:
    name = ldap.bind_credentials_secret_ref.name
    if bind is None:
        raise _Skip("BindSecretUnavailable", f"bind Secret {name} does not exist")
    return BindCredentials(_text(name, bind, "username"), _text(name, bind, "password"))


def _text(secret: str, data: Mapping[str, bytes], key: str) -> str:
    where = f"key {key} of bind Secret {secret}"
    if key not in data:
        raise _Skip("BindSecretUnavailable", f"{where} is missing")
    try:
        text = data[key].decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise _Skip("UnsafeValue", f"{where} is not UTF-8 text") from None
    if not text:
        raise _Skip("BindSecretUnavailable", f"{where} is empty: anonymous binds are not supported")
    return text


def _ca_bundle(secret: str, data: Mapping[str, bytes] | None) -> bytes:
    if data is None:
        raise _Skip("CABundleUnavailable", f"CA Secret {secret} does not exist")
    if not data.get("ca.crt"):
        raise _Skip("CABundleUnavailable", f"key ca.crt of CA Secret {secret} is missing or empty")
    return data["ca.crt"]
