"""What a federated backend hands to the room that assembles the sidecar: paths, header names, file names.

Enters: names from a declaration. Leaves: frozen values and text. It writes no directive of httpd and reads no Secret.
Source: seed 000; spec/keystone.md 3.4 to 3.6, 7 (S2); cases B16, B20.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Final, Literal, NamedTuple
from urllib.parse import quote, urlsplit

from .types import KeystoneIdentityBackend
from .types_federation import Oidc, Saml

if TYPE_CHECKING:
    from moorage.keystone.key_pair import Pair  # brings cryptography, which `lint` does without

FOLDER: Final = "/etc/keystone-federation-proxy"
"""Where the sidecar finds all its files."""
METADATA_VOLUME: Final = "federation-metadata"
"""Volume with the documents of mod_auth_openidc."""
MELLON_VOLUME: Final = "federation-mellon"
"""Volume with the documents of mod_auth_mellon."""
REDIRECT_PATH: Final = "/v3/OS-FEDERATION/redirect_uri"
"""Path of the OIDC redirect URI: it belongs to no Keystone resource and is no prefix of a protected one (case B16)."""
FLOWS: Final = ("code", "code id_token", "code id_token token", "code token", "id_token", "id_token token")
"""Response types that mod_auth_openidc knows; for any other it takes the first."""
NOBODY: Final = "moorage-health-check"
"""Id of an identity provider that there never is: the sidecar's health check counts on Keystone's 404."""
PAIR_SUFFIX: Final = "-saml-sp"
"""What follows the Keystone's name in the name of the Secret with the generated key pair."""
METADATA_SUFFIX: Final = "-saml-sp-metadata"
"""The same of the Secret with the metadata that the provider is given."""
KEY_LIMIT: Final = 253
"""Characters of a data key of a Secret."""
RESERVED_KEYS: Final = frozenset({"proxy.conf", "httpd-base.conf"})
"""Data keys of the federation Secret that belong to all backends together."""
JOINTS: Final = 9
"""Dashes in a header name at most: a name with n of them is stripped in 2^n spellings."""
MOST_SPELLINGS: Final = 2048
"""Spellings of all headers of one backend at most."""
_DEAREST: Final = 3
ID: Final = re.compile(r"[A-Za-z0-9_-]+")
"""What an identity provider or a protocol may be called."""
SERVABLE: Final = "federation needs an http or https URL with a plain host name and no path but /v3"
"""What every public endpoint must be that federated backends are served behind."""
_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_ESSENTIAL: Final = re.compile(
    r"ACCEPT(-.*)?|AUTHORIZATION|CONNECTION|CONTENT-.*|COOKIE|EXPECT|HOST|KEEP-ALIVE|ORIGIN|REFERER|TE|TRAILER|TRANSFER-ENCODING|UPGRADE"
    r"|USER-AGENT|VIA|X-AUTH-TOKEN|X-SUBJECT-TOKEN|X-FORWARDED-.*|FORWARDED|OPENSTACK-.*"
)
"""Headers that every client sends or that the sidecar itself sets: no claim can travel in them."""


@dataclass(frozen=True, slots=True)
class Part:
    """What the sidecar needs to know of one federated backend besides its files.

    Args:
        provider: id of its identity provider in Keystone.
        remote_id: issuer or entityID.
        fragment: directives that protect its paths; complete, whatever its siblings are.
        alone: directives for the websso path of its protocol, for when no other backend uses it.
        documents: data keys and the names of their files in the folder of its module.
        authorities: PEM of the CA bundle for the provider, b"" when none is declared.
        shared: values that all backends of its type must agree on, by field.
        pair: key pair of the SAML service provider.
    """

    type: Literal["OIDC", "SAML"]
    provider: str
    protocol: str
    remote_id: str
    remote_id_attribute: str
    fragment: str = field(repr=False)
    alone: str = field(repr=False)
    documents: Mapping[str, str]
    authorities: bytes = b""
    shared: Mapping[str, str] = field(default_factory=dict)
    pair: Pair | None = None


class Base(NamedTuple):
    """The public address, taken apart. `port` is None when it is the scheme's own."""

    url: str
    scheme: str
    host: str
    port: int | None

    @property
    def authority(self) -> str:
        """Host, and port unless it is the scheme's own, as a Host header has them."""
        return self.host if self.port is None else f"{self.host}:{self.port}"


def base_of(url: str) -> Base | None:
    """The public URL without `/v3`; None when federation cannot work behind it, and `base_fault` says why."""
    if base_fault(url):
        return None
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    own = port is None or port == {"http": 80, "https": 443}[parts.scheme]
    return Base(f"{parts.scheme}://{host}" + ("" if own else f":{port}"), parts.scheme, host, None if own else port)


def base_fault(url: str) -> str:
    """What of a public URL without `/v3` federation cannot work behind, "" when it can."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "names no host and port that can be read"
    path = parts.path.rstrip("/")
    faults = {
        "is no http or https URL": parts.scheme not in ("http", "https"),
        "holds a user or a password": parts.username or parts.password,
        f"has the path {path!r}": path.strip("/"),
        "has a query (?)": parts.query,
        "has a fragment (#)": parts.fragment,
        "names its host by something else than a plain name": not _HOST.fullmatch(parts.hostname or ""),
    }
    return next((why for why, found in faults.items() if found), "")


def endpoint_doubt(url: str) -> str:
    """What of a Keystone's declared public endpoint keeps every federated backend from being served, and what is needed; "" when nothing does."""
    why = base_fault(url.rstrip("/").removesuffix("/v3").rstrip("/"))
    return f"{why}, and {SERVABLE}" if why else ""


def federated(backend: KeystoneIdentityBackend) -> Oidc | Saml | None:
    """The provider block of a federated backend, None of any other."""
    return backend.spec.oidc or backend.spec.saml


def provider_name(backend: KeystoneIdentityBackend) -> str:
    """Id of the identity provider in Keystone: as declared, else the name of the resource."""
    block = federated(backend)
    return (block.identity_provider_name if block else None) or backend.metadata.name


def provider_key(provider: str) -> str:
    """Equal for names that one Keystone cannot have both of: MySQL has one row for every spelling."""
    return provider.lower()


def auth_path(provider: str, protocol: str) -> str:
    """Where command line clients log in."""
    return f"/v3/OS-FEDERATION/identity_providers/{provider}/protocols/{protocol}/auth"


def websso_path(provider: str, protocol: str) -> str:
    """Where browsers log in."""
    return f"/v3/auth/OS-FEDERATION/identity_providers/{provider}/protocols/{protocol}/websso"


def global_websso_path(protocol: str) -> str:
    """Where browsers log in that were told a protocol only."""
    return f"/v3/auth/OS-FEDERATION/websso/{protocol}"


def mellon_path(provider: str, protocol: str) -> str:
    """Endpoints of the SAML service provider."""
    return f"{auth_path(provider, protocol)}/mellon"


def issuer_basename(issuer: str) -> str:
    """Name of an issuer's documents in the metadata folder, as mod_auth_openidc looks them up."""
    _, _, rest = issuer.partition("://")
    return quote(rest.rstrip("/"), safe="~")


def data_key(backend: KeystoneIdentityBackend, what: str) -> str:
    """Data key of a document of this backend."""
    return f"{backend.metadata.name}.{what}"


def digest(contents: Mapping[str, bytes]) -> bytes:
    """A line that changes with any of these contents."""
    total = hashlib.sha256()
    for name in sorted(contents):
        total.update(b"%d:%s=%d:%s\n" % (len(name), name.encode(), len(contents[name]), contents[name]))
    return total.hexdigest().encode() + b"\n"


# --- headers


def claims(backend: KeystoneIdentityBackend) -> tuple[str, ...]:
    """WSGI keys that carry this backend's claims: its remote id, what its rules ask for, what it forwards; sorted."""
    block = federated(backend)
    if block is None:
        return ()
    found = {block.remote_id_attribute}
    found |= {remote.type for rule in backend.spec.mappings or () for remote in rule.remote}
    found |= {f"HTTP_MELLON_{name}" for name in _forwarded(block)}
    return tuple(sorted(found))


def _forwarded(block: Oidc | Saml) -> tuple[str, ...]:
    return (block.forward_attributes or ()) if isinstance(block, Saml) else ()


def claim_fault(key: str) -> str:
    """Why a WSGI key cannot carry a claim, "" when it can.

    Keystone takes its whole environ as the assertion, and what does not start with HTTP_ there is made of the client's own request line
    (QUERY_STRING, REQUEST_URI, SERVER_PROTOCOL, ...) or of the server's internals: no sidecar stands in front of those.
    """
    if not key.startswith("HTTP_"):
        return "must start with HTTP_: other keys of Keystone's environ are no claims, anybody writes them with the address of a request"
    name = header_of(key)
    if name is None:
        return "must be HTTP_ and the name of a request header"
    if _ESSENTIAL.fullmatch(name):
        return "is a header that every client sends: anybody could forge it"
    if name.count("-") > JOINTS:
        return f"has more than {JOINTS} underscores: it cannot be kept free of forged spellings"
    return ""


def header_of(key: str) -> str | None:
    """The header that a WSGI key stands for, its words joined by dashes; None when it is no header."""
    name = key[5:] if key.startswith("HTTP_") else ""
    return name.replace("_", "-").upper() if ID.fullmatch(name) else None


def spellings(header: str) -> Iterator[str]:
    """Every name that a WSGI server reads as this header: each dash may be an underscore."""
    first, *others = header.split("-")
    for joints in product("-_", repeat=len(others)):
        yield first + "".join(joint + word for joint, word in zip(joints, others, strict=True))


def spelled(header: str) -> int:
    """How many spellings a header has."""
    return 1 << header.count("-")


def claims_fault(backend: KeystoneIdentityBackend) -> str:
    """Why the claims of this backend cannot be kept free of forged ones; "" when they can."""
    for key in claims(backend):
        if why := claim_fault(key):
            return f"{key} {why}; name another key in mappings or remoteIDAttribute"
    return crowd_fault(backend)


def crowd_fault(backend: KeystoneIdentityBackend) -> str:
    """Why the claims of this backend are too many together, "" when they are not."""
    headers = _headers(backend)
    many = sum(map(spelled, headers))
    if many <= MOST_SPELLINGS:
        return ""
    dearest = sorted(headers, key=lambda name: (-spelled(name), name))[:_DEAREST]
    named = ", ".join(f"HTTP_{name.replace('-', '_')} ({spelled(name)})" for name in dearest)
    return (
        f"its claims have {many} spellings, at most {MOST_SPELLINGS} are kept free of forged ones, and each underscore in a name doubles them:"
        f" use fewer claims or shorter names; the longest: {named}"
    )


def crowded(backend: KeystoneIdentityBackend) -> str:
    """The field that most spellings come from."""
    block = federated(backend)
    headers = _headers(backend)
    forwarded = {header_of(f"HTTP_MELLON_{name}") for name in _forwarded(block)} if block else set()
    share = sum(spelled(name) for name in headers if name in forwarded)
    return "spec.saml.forwardAttributes" if 2 * share > sum(map(spelled, headers)) else "spec.mappings"


def stripped(backend: KeystoneIdentityBackend) -> frozenset[str]:
    """Headers, spelled with dashes, that no client may bring while this backend is attached.

    A backend with more of them than can be is never served: of its headers only the first are stripped.
    """
    found: set[str] = set()
    left = MOST_SPELLINGS
    for name in sorted(_headers(backend), key=lambda item: (spelled(item), item)):
        left -= spelled(name)
        if left < 0:
            break
        found.add(name)
    return frozenset(found)


def _headers(backend: KeystoneIdentityBackend) -> frozenset[str]:
    names = (header_of(key) for key in claims(backend) if not claim_fault(key))
    return frozenset(name for name in names if name)
