"""Defaulting and validation of KeystoneIdentityBackend: all violations at once, none for what was stored already.

Enters: an object, its stored form and its siblings. Leaves: the completed object, or a verdict. Pure; it must not fetch or
look anything up. Source: seed 000, Immutability and Validation Summary; spec/keystone.md 2.3, 2.4; decisions, Admission.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final, get_args
from urllib.parse import urlsplit

from pydantic_core import ValidationError

from moorage.core.jsoncopy import copied
from moorage.core.meta import JsonObject, ResourceType
from moorage.schema.fielderror import FieldError, forbidden, internal, invalid, required
from moorage.schema.review import Admission, Review, Verdict, verdict

from . import federation, ldap, mapping, oidc, saml, siblings
from .federated_checks import fits_idp_name
from .finding import Finding, control_characters
from .types import ADOPT, GROUP, KIND, ROLLOVER, STAGE, SWITCH, VERSION, KeystoneIdentityBackend, Spec

_KEYSTONES: Final = ResourceType(GROUP, VERSION, "Keystone", "keystones")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def default(obj: JsonObject) -> JsonObject:
    """A copy with the CRD's defaults and those that are derived: identityProviderName and the OIDC metadata URL.

    It takes objects that no schema has seen yet and leaves alone what it cannot read.
    """
    done = copied(obj)
    spec = done.get("spec")
    if not isinstance(spec, dict):
        return done
    KIND.structural.default(done)
    name = str(done.get("metadata", {}).get("name", ""))
    for block in (spec.get("oidc"), spec.get("saml")):
        if isinstance(block, dict) and not block.get("identityProviderName") and fits_idp_name(name):
            block["identityProviderName"] = name
    _derive_metadata_url(spec.get("oidc"))
    return done


def revise(obj: JsonObject, old: JsonObject) -> JsonObject:
    """The new object without a metadata URL that was derived from the stored issuer, when the issuer changes or endpoints come.

    A merge patch, or an apply by somebody who never wrote the URL, keeps it, though nobody wants it (spec/keystone.md 2.3).
    """
    new, stored = _oidc_block(obj), _oidc_block(old)
    url, issuer = stored.get("providerMetadataURL"), stored.get("issuer")
    is_derived = isinstance(issuer, str) and url == oidc.metadata_url(issuer)
    if (
        not is_derived
        or new.get("providerMetadataURL") != url
        or (new.get("issuer") == issuer and not new.get("endpoints"))
    ):
        return obj
    done = copied(obj)
    del done["spec"]["oidc"]["providerMetadataURL"]
    return done


def _oidc_block(obj: JsonObject) -> JsonObject:
    spec = obj.get("spec")
    block = spec.get("oidc") if isinstance(spec, dict) else None
    return block if isinstance(block, dict) else {}


def _derive_metadata_url(block: Any) -> None:
    if not isinstance(block, dict) or block.get("providerMetadataURL") or block.get("endpoints"):
        return
    issuer = block.get("issuer")
    if isinstance(issuer, str) and not oidc.issuer_fault(issuer) and len(oidc.metadata_url(issuer)) <= oidc.URL_LIMIT:
        block["providerMetadataURL"] = oidc.metadata_url(issuer)


def validate(review: Review) -> Verdict:
    """All complaints and warnings."""
    try:
        found = list(_findings(review.object, review))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(map(str, first["loc"]))
        return verdict([internal(path, f"this version cannot read the object: {first['msg']}")])
    errors = (item for item in found if isinstance(item, FieldError))
    return verdict(errors, (item for item in found if isinstance(item, str)))


def _findings(obj: JsonObject, review: Review) -> Iterator[Finding]:
    backend = KIND.parse(obj)
    return chain(
        _shape(backend.spec),
        ldap.check(backend.spec),
        oidc.check(backend, creating=review.operation == "CREATE"),
        saml.check(backend),
        _reach(backend.spec, review.parent),
        _conveyance(backend),
        _annotations(backend),
        mapping.check(backend.spec, mapping.patterns(KIND.parse(review.old).spec) if review.old is not None else ()),
        siblings.check(backend, siblings.others(obj, review.siblings)),
    )


def _shape(spec: Spec) -> Iterator[Finding]:
    """What the CRD's own rules say, for servers where they did not run."""
    if not spec.keystone_ref.name:
        yield required("spec.keystoneRef.name")
    if not spec.domain.name:
        yield required("spec.domain.name")
    if spec.domain.name.lower() == "default":
        detail = "the Default domain must never be backed by an external identity backend"
        yield invalid("spec.domain.name", spec.domain.name, detail)
    yield from control_characters("spec.domain.description", spec.domain.description)
    yield from _union(spec)
    if spec.type == "LDAP" and (spec.mappings or spec.groups):
        field = "mappings" if spec.mappings else "groups"
        yield forbidden(f"spec.{field}", f"{field} are only supported on federation backends")
    if spec.type != "LDAP" and spec.extra_options:
        yield forbidden("spec.extraOptions", "extraOptions are only supported on type LDAP")


def _reach(spec: Spec, keystone: JsonObject | None) -> Iterator[str]:
    """Keystone's public address: federation works behind some only, and browsers drop SAML's cookie without https (decisions, Keystone 21)."""
    if spec.type == "LDAP" or keystone is None:
        return
    name, bootstrap = keystone["metadata"]["name"], keystone["spec"].get("bootstrap") or {}
    url = bootstrap.get("publicEndpoint")
    if url and (why := federation.endpoint_doubt(url)):
        yield f"spec.keystoneRef: bootstrap.publicEndpoint of Keystone {name} {why}: the backend is not served, nobody can log in through it"
    base = urlsplit(url or "http://")
    if spec.type == "SAML" and base.scheme != "https" and base.hostname not in _LOOPBACK:
        yield f"spec.type: SAML logins need https: set bootstrap.publicEndpoint of Keystone {name} to its https:// address"


def _conveyance(backend: KeystoneIdentityBackend) -> Iterator[FieldError]:
    """What the sidecar could never serve: a name that its own files have, claims that anybody could forge (S2)."""
    block = federation.federated(backend)
    if block is None:
        return
    name = backend.metadata.name
    if federation.data_key(backend, "conf") in federation.RESERVED_KEYS:
        yield invalid(
            "metadata.name",
            name,
            "a federated backend may not be called so: its files would take the sidecar's own place",
        )
    if len(federation.data_key(backend, "idp-metadata.xml")) > federation.KEY_LIMIT:
        yield invalid("metadata.name", name, "is too long for the data keys of a Secret")
    keys = [
        (f"spec.mappings[{number}].remote[{index}].type", remote.type)
        for number, rule in enumerate(backend.spec.mappings or ())
        for index, remote in enumerate(rule.remote)
    ]
    if backend.spec.oidc or block.remote_id_attribute.startswith("HTTP_"):  # SAML has a rule of its own for that
        keys.append((f"spec.{backend.spec.type.lower()}.remoteIDAttribute", block.remote_id_attribute))
    spelled = [(path, key) for path, key in keys if federation.ID.fullmatch(key)]  # the others have their complaint
    faults = [(path, key, why) for path, key in spelled if (why := federation.claim_fault(key))]
    yield from (invalid(path, key, why) for path, key, why in faults)
    if not faults and (why := federation.crowd_fault(backend)):
        path = federation.crowded(backend)
        yield invalid(path, "<rules>" if path == "spec.mappings" else "<names>", why)


def _annotations(backend: KeystoneIdentityBackend) -> Iterator[str]:
    """Annotations that people write by hand and that say nothing as they stand."""
    spec, found = backend.spec, backend.metadata.annotations or {}
    adopt, rollover = found.get(ADOPT), found.get(ROLLOVER)
    if adopt is not None and spec.type == "LDAP":
        yield f"metadata.annotations[{ADOPT}]: has no effect on type LDAP, which has no federation objects"
    elif adopt not in (None, "true", "false"):
        yield f'metadata.annotations[{ADOPT}]: has no effect: write "true" to take over what is there'
    if rollover is None:
        return
    if spec.saml is None:
        yield f"metadata.annotations[{ROLLOVER}]: has no effect on type {spec.type}: only SAML has a key pair"
    elif spec.saml.sp and spec.saml.sp.certificate_secret_ref:
        yield f"metadata.annotations[{ROLLOVER}]: has no effect beside spec.saml.sp.certificateSecretRef: put the new pair into that Secret"
    elif rollover not in (STAGE, SWITCH):
        yield f"metadata.annotations[{ROLLOVER}]: is one of {STAGE}, {SWITCH}; any other value withdraws a staged pair, as if it were absent"


def _keystone_of(obj: JsonObject) -> tuple[ResourceType, str] | None:
    spec = obj.get("spec")
    reference = spec.get("keystoneRef") if isinstance(spec, dict) else None
    name = reference.get("name") if isinstance(reference, dict) else None
    return (_KEYSTONES, name) if isinstance(name, str) and name else None


def _union(spec: Spec) -> Iterator[FieldError]:
    for name in get_args(Spec.model_fields["type"].annotation):
        block = name.lower()
        if (spec.type == name) != (getattr(spec, block) is not None):
            detail = "exactly one backend block matching spec.type is required"
            yield invalid("spec", spec.type, f"{detail}: type {name} requires spec.{block}, other types forbid it")


ADMISSION: Final = Admission(KIND, default, validate, revise, _keystone_of, siblings.meets)
