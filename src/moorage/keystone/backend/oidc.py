"""Variant OIDC: its admission rules that need no fetch, the documents of mod_auth_openidc and the directives that protect its paths.

Enters: a declared provider, its metadata, the data of its Secrets. Leaves: complaints, or files and its part of the sidecar. It must never
put a value of a Secret into a sentence. Source: seed 000, OIDC-specific webhook rules; spec/keystone.md 2.4, 3.4, 3.5, 7 (S3); decisions,
Keystone 6, 10, 13, 21 and Admission 2; cases B13, B16, B20, B24.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Final
from urllib.parse import quote

from moorage.core.urls import url_fault
from moorage.render import apache
from moorage.schema.fielderror import FieldError, forbidden, invalid, required

from . import federation
from .authorities import UnusableBundle, certificates
from .federated_checks import (
    check_called,
    check_fetched,
    check_protocol,
    check_provider_name,
    check_remote_id,
    check_url,
    embedded,
)
from .federation import Part
from .finding import Finding, fixed_keys
from .materials import Document, Materials
from .types import KeystoneIdentityBackend
from .types_federation import Oidc, OidcEndpoints
from .variant import Rendered, Skip, Variant, Wanted, checked, document, public

URL_LIMIT: Final = 512
_ENVIRON_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_EMBEDDED: Final = ("issuer", "provider_metadata_url", "client_id", "protocol_id", "identity_provider_name",
                    "remote_id_attribute", "response_type")  # fmt: skip


def metadata_url(issuer: str) -> str:
    """The discovery document that belongs to an issuer."""
    return f"{issuer.rstrip('/')}/.well-known/openid-configuration"


def check(backend: KeystoneIdentityBackend, *, creating: bool) -> Iterator[Finding]:
    """All complaints about spec.oidc."""
    oidc = backend.spec.oidc
    if oidc is None:
        return
    yield from _check_text(oidc)
    yield from _check_urls(oidc)
    yield from fixed_keys("spec.oidc.clientSecretRef", oidc.client_secret_ref, "clientSecret")
    yield from fixed_keys("spec.oidc.caBundleSecretRef", oidc.ca_bundle_secret_ref, "ca.crt")
    yield from check_remote_id("spec.oidc.issuer", oidc.issuer)
    yield from _check_discovery(oidc, creating=creating)
    yield from check_provider_name("spec.oidc", backend.metadata.name, oidc.identity_provider_name)
    yield from check_protocol("spec.oidc.protocolID", oidc.protocol_id, allowed="openid")
    yield from _check_remote_id(oidc.remote_id_attribute)
    if "openid" not in chain.from_iterable(map(str.split, oidc.scopes)):
        yield "spec.oidc.scopes: without the scope openid the provider gives no ID token, so nobody can log in"


def _check_remote_id(key: str) -> Iterator[Finding]:
    path = "spec.oidc.remoteIDAttribute"
    if not _ENVIRON_KEY.fullmatch(key):
        yield invalid(path, key, "must match ^[A-Za-z0-9_-]+$: it is the name of a request header")


def issuer_fault(issuer: str) -> str:
    """Why nobody could be sent to this issuer, or should not be; "" when they can.

    mod_auth_openidc takes an issuer with an @ for somebody's account and asks the host behind it (WebFinger), whatever the metadata say.
    """
    if "@" in issuer:
        return "must not contain @: write the issuer without a user, as the provider's discovery document has it"
    if "#" in issuer:
        return "must not have a fragment (#): write it as the provider's discovery document has it"
    return url_fault(issuer)


def _check_text(oidc: Oidc) -> Iterator[FieldError]:
    for name in _EMBEDDED:
        yield from embedded(f"spec.oidc.{_alias(oidc, name)}", getattr(oidc, name))
    for index, scope in enumerate(oidc.scopes):
        yield from embedded(f"spec.oidc.scopes[{index}]", scope)
    if why := issuer_fault(oidc.issuer):
        yield invalid("spec.oidc.issuer", oidc.issuer, why)
    for name in OidcEndpoints.model_fields if oidc.endpoints else ():
        yield from embedded(f"spec.oidc.endpoints.{_alias(oidc.endpoints, name)}", getattr(oidc.endpoints, name))


_CALLED: Final = ("token_endpoint", "jwks_uri", "userinfo_endpoint", "introspection_endpoint")
"""Endpoints that the sidecar itself calls; the others are for browsers."""


def _check_urls(oidc: Oidc) -> Iterator[Finding]:
    """URLs that no provider has, and such as lead into a network that is nobody's provider's."""
    derived = oidc.provider_metadata_url in (None, metadata_url(oidc.issuer))
    for path, url in _urls(oidc):
        if not (derived and path.endswith("providerMetadataURL")):
            yield from check_url(path, url)
    if oidc.response_type not in federation.FLOWS:
        known = ", ".join(federation.FLOWS)
        yield f"spec.oidc.responseType: the sidecar's module knows {known}; it takes code in place of {oidc.response_type!r}"
    if "?" in oidc.issuer:
        yield "spec.oidc.issuer: has a query (?), which no OpenID Connect issuer has; logins work only if the provider asserts just that"
    if oidc.endpoints is None:
        name = "issuer" if derived else "providerMetadataURL"
        yield from check_fetched(f"spec.oidc.{name}", oidc.provider_metadata_url or oidc.issuer)
    else:
        called = {_alias(oidc.endpoints, name): getattr(oidc.endpoints, name) for name in _CALLED}
        yield from check_called("spec.oidc.endpoints", called)


def _urls(oidc: Oidc) -> Iterator[tuple[str, str | None]]:
    yield "spec.oidc.providerMetadataURL", oidc.provider_metadata_url
    for name in OidcEndpoints.model_fields if oidc.endpoints else ():
        yield f"spec.oidc.endpoints.{_alias(oidc.endpoints, name)}", getattr(oidc.endpoints, name)


def _alias(model: Oidc | OidcEndpoints | None, name: str) -> str:
    return type(model).model_fields[name].alias if model else name


def _check_discovery(oidc: Oidc, *, creating: bool) -> Iterator[FieldError]:
    if oidc.provider_metadata_url and oidc.endpoints:
        yield forbidden("spec.oidc.endpoints", "providerMetadataURL and endpoints are mutually exclusive")
    too_long = len(metadata_url(oidc.issuer)) > URL_LIMIT
    if creating and too_long and not oidc.provider_metadata_url and not oidc.endpoints:
        detail = (
            f"the URL derived from issuer has more than {URL_LIMIT} characters: set providerMetadataURL or endpoints"
        )
        yield required("spec.oidc.providerMetadataURL", detail)
    if oidc.introspects and oidc.endpoints:
        yield from _check_introspection(oidc.endpoints.introspection_endpoint)


def _check_introspection(endpoint: str | None) -> Iterator[FieldError]:
    path = "spec.oidc.endpoints.introspectionEndpoint"
    if not endpoint:
        yield required(path, "introspectionEndpoint is required when oauth2Introspection is enabled with endpoints")
    elif not endpoint.startswith("https://"):
        yield invalid(path, endpoint, "introspectionEndpoint must use https://")


# --- rendering

_CLIENT: Final = "client Secret"
_FILE_NAME: Final = 255
"""Bytes of a file name."""


def secrets(backend: KeystoneIdentityBackend) -> tuple[str, ...]:
    """The client Secret, and that of the CA bundle."""
    oidc = backend.spec.oidc
    if oidc is None:
        return ()
    bundle = oidc.ca_bundle_secret_ref
    return tuple(dict.fromkeys([oidc.client_secret_ref.name, *([bundle.name] if bundle else [])]))


def render(backend: KeystoneIdentityBackend, materials: Materials) -> Rendered:
    """The three documents of mod_auth_openidc, and the directives of this provider."""
    oidc = backend.spec.oidc
    if oidc is None:
        raise Skip("UnsupportedType", "spec.oidc is missing")
    checked(backend, _check_text(oidc))
    base, found = public(backend, materials), document(materials)
    _check_issuer(oidc, found)
    secret = _client_secret(oidc, materials)
    authorities = _authorities(oidc, materials)
    files = _documents(backend, oidc, found, secret)
    fragment = "\n".join([*_introspection(oidc, found, secret), *_locations(backend, oidc, base.url)])
    alone = "\n".join(_location(federation.global_websso_path(oidc.protocol_id), _websso(backend, oidc, base.url)))
    return Rendered(
        files,
        Part(
            type="OIDC",
            provider=federation.provider_name(backend),
            protocol=oidc.protocol_id,
            remote_id=oidc.issuer,
            remote_id_attribute=oidc.remote_id_attribute,
            fragment=fragment,
            alone=alone,
            documents=_file_names(backend, oidc),
            authorities=authorities,
            shared={
                "remoteIDAttribute": oidc.remote_id_attribute,
                "sessionType": oidc.session_type,
                "stateInputHeaders": oidc.state_input_headers,
            },
        ),
        {federation.data_key(backend, what): f"spec.oidc.{field}" for what, field in _FIELDS.items()},
    )


_FIELDS: Final = {"provider": "providerMetadataURL", "client": "clientSecretRef", "conf": "scopes"}
"""Where the documents come from."""
VARIANT: Final = Variant(
    secrets,
    render,
    volume=federation.METADATA_VOLUME,
    sign=lambda backend: federation.data_key(backend, "client"),
    document="provider",
)


def _check_issuer(oidc: Oidc, found: Document) -> None:
    """The document's issuer, once more and byte for byte: nothing else ties it to this backend."""
    try:
        members = json.loads(found.content)
    except ValueError:
        members = None
    if not isinstance(members, dict) or members.get("issuer") != oidc.issuer:
        raise Skip("MetadataMismatch", f"the issuer of the discovery document is not {oidc.issuer!r}")


def _client_secret(oidc: Oidc, materials: Materials) -> str:
    """The client secret as it goes to the provider.

    A line end at the end is the `--from-file` habit and is dropped: decision Keystone 6 wins over case B24, which would skip the backend.
    """
    wanted = Wanted(_CLIENT, oidc.client_secret_ref.name, "ClientSecretUnavailable")
    secret = wanted.line(materials, "clientSecret")
    if oidc.introspects and secret.startswith("exec:"):
        raise Skip(
            "UnsafeValue", f"key clientSecret of {_CLIENT} {wanted.name} starts with exec:, which the module would run"
        )
    return secret


def _authorities(oidc: Oidc, materials: Materials) -> bytes:
    if oidc.ca_bundle_secret_ref is None:
        return b""
    wanted = Wanted("CA Secret", oidc.ca_bundle_secret_ref.name, "CABundleUnavailable")
    try:
        return b"".join(certificates(wanted.content(materials, "ca.crt")))
    except UnusableBundle as unusable:
        where = f"spec.oidc.caBundleSecretRef: key ca.crt of {wanted.what} {wanted.name}"
        raise Skip("CABundleUnusable", f"{where} {unusable}") from None


def _documents(backend: KeystoneIdentityBackend, oidc: Oidc, found: Document, secret: str) -> dict[str, bytes]:
    client = {"client_id": oidc.client_id, "client_secret": secret}
    conf = {"scope": " ".join(oidc.scopes), "response_type": oidc.response_type}
    return {
        federation.data_key(backend, "provider"): found.content,
        federation.data_key(backend, "client"): _json(client),
        federation.data_key(backend, "conf"): _json({name: value for name, value in conf.items() if value}),
    }


def _json(members: dict[str, str]) -> bytes:
    return f"{json.dumps(members)}\n".encode()


def _file_names(backend: KeystoneIdentityBackend, oidc: Oidc) -> dict[str, str]:
    stem = federation.issuer_basename(oidc.issuer)
    if not stem.strip(".") or len(stem) + len(".provider") > _FILE_NAME:
        raise Skip("UnsafeValue", "spec.oidc.issuer cannot be the name of a file: it has no host, or is too long")
    return {federation.data_key(backend, what): f"{stem}.{what}" for what in ("provider", "client", "conf")}


def _introspection(oidc: Oidc, found: Document, secret: str) -> Iterator[str]:
    """Directives of the whole server: one backend at most may have them."""
    if oidc.oauth2_introspection is None or not oidc.oauth2_introspection.enabled:
        return
    endpoint = found.introspection_endpoint
    if not endpoint.startswith("https://"):
        what = "is not https" if endpoint else "is missing"
        raise Skip(
            "IntrospectionEndpointUnusable", f"the provider's introspection endpoint {what}: bearer tokens need one"
        )
    yield apache.directive("OIDCOAuthIntrospectionEndpoint", endpoint)
    yield apache.directive("OIDCOAuthClientID", oidc.client_id)
    yield apache.exact("OIDCOAuthClientSecret", secret)
    if oidc.oauth2_introspection.tls_verify is False:
        yield apache.directive("OIDCOAuthSSLValidateServer", "Off")


def _locations(backend: KeystoneIdentityBackend, oidc: Oidc, base: str) -> apache.Lines:
    provider = federation.provider_name(backend)
    kind = "auth-openidc" if oidc.introspects else "openid-connect"
    auth = (apache.directive("AuthType", kind), *_fence(oidc), _discovery(oidc, base), *_hop(backend))
    return (
        *_location(federation.websso_path(provider, oidc.protocol_id), _websso(backend, oidc, base)),
        *_location(federation.auth_path(provider, oidc.protocol_id), auth),
    )


def _location(path: str, lines: apache.Lines) -> apache.Lines:
    return apache.section("Location", path, lines)


def _websso(backend: KeystoneIdentityBackend, oidc: Oidc, base: str) -> apache.Lines:
    """A browser with another provider's session logs in once more: a refusal would be a dead end."""
    again = apache.directive("OIDCUnAutzAction", "auth")
    kind = apache.directive("AuthType", "openid-connect")
    return (kind, *_fence(oidc), again, _discovery(oidc, base), *_hop(backend))


def _hop(backend: KeystoneIdentityBackend) -> apache.Lines:
    """How the claims that rules ask for reach Keystone; the access token stays here.

    Under names without underscores, which some servers drop (case B20), and without control characters: the module leaves a carriage return
    in, and with it a provider could write headers of its own.
    """
    lines = [apache.directive("RequestHeader", "unset", name) for name in _TOKENS]
    for header in sorted(federation.stripped(backend)):
        if not header.startswith(_PREFIX):
            continue
        sent = _PREFIX + header.removeprefix(_PREFIX).replace("-", "_")
        if sent != header:
            claim = f"expr=%{{req_novary:{sent}}}"
            lines.append(apache.directive("RequestHeader", "set", header, claim, f"expr=-n req_novary('{sent}')"))
            lines.append(apache.directive("RequestHeader", "unset", sent))
        lines.append(
            apache.directive("RequestHeader", "unset", header, f"expr=req_novary('{header}') =~ /[[:cntrl:]]/")
        )
    return tuple(lines)


_PREFIX: Final = "OIDC-"
"""What mod_auth_openidc puts before the name of a claim."""
_TOKENS: Final = ("OIDC_access_token", "OIDC_access_token_expires")


def _fence(oidc: Oidc) -> apache.Lines:
    """The session or token must be of this issuer and for this client: the module alone would take any provider's (S3, case B25)."""
    issuer = apache.directive("Require", "claim", f"iss:{oidc.issuer}")
    audience = apache.directive("Require", "claim", f"aud:{oidc.client_id}")
    return ("<RequireAll>", f"    {issuer}", f"    {audience}", "</RequireAll>")


def _discovery(oidc: Oidc, base: str) -> str:
    """Sends a browser to this provider without asking which."""
    issuer = quote(oidc.issuer, safe="")
    return apache.directive("OIDCDiscoverURL", f"{base}{federation.REDIRECT_PATH}?iss={issuer}")
