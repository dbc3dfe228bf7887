"""examples/keystone-oidc and examples/keystone-saml, adapted to providers and addresses of a test.

Enters: issuers, documents, authorities. Leaves: manifests. It must not invent fields: what people copy is what is tested.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from tests.e2e.federation.site import ACME, BETA, CORP
from tests.fakes.idp import FakeIdp
from tests.fakes.idp.oidc import discovery

from moorage.core.meta import JsonObject

EXAMPLES = Path(__file__).parents[3] / "examples"
OIDC, SAML = EXAMPLES / "keystone-oidc", EXAMPLES / "keystone-saml"
ENDPOINTS = {
    "authorizationEndpoint": "authorization_endpoint",
    "tokenEndpoint": "token_endpoint",
    "jwksURI": "jwks_uri",
    "userinfoEndpoint": "userinfo_endpoint",
    "endSessionEndpoint": "end_session_endpoint",
    "introspectionEndpoint": "introspection_endpoint",
}


def read(folder: Path, file: str) -> list[JsonObject]:
    """The documents of one file of an example."""
    return list(yaml.safe_load_all((folder / file).read_text()))


def _renamed(document: JsonObject, old: str, new: str) -> JsonObject:
    """The document with a name in another's place, wherever it is a word of its own or begins a Secret's name."""
    text = json.dumps(document)
    return json.loads(text.replace(f'"{old}"', f'"{new}"').replace(f'"{old}-', f'"{new}-'))  # type: ignore[no-any-return]


def site(base: str, origin: str, *, replicas: int = 1) -> list[JsonObject]:
    """Namespace, administrator's Secret, Keystone."""
    namespace, admin, *_ = read(OIDC, "10-secrets.yaml")
    (keystone,) = read(OIDC, "20-keystone.yaml")
    keystone["spec"]["bootstrap"]["publicEndpoint"] = f"{base}/v3"
    keystone["spec"]["federation"]["trustedDashboards"] = [origin]
    keystone["spec"]["deployment"]["replicas"] = replicas
    return [namespace, admin, keystone]


def oidc(name: str, metadata: Mapping[str, Any], authority: str, *, bearer: bool) -> list[JsonObject]:
    """The client's Secret, the authority's Secret and the backend; `metadata` is the provider's discovery document."""
    _, _, client, trusted = read(OIDC, "10-secrets.yaml")
    (backend,) = read(OIDC, "30-backend.yaml")
    issuer = backend["spec"]["oidc"]["issuer"]
    backend = _renamed(json.loads(json.dumps(backend).replace(f'"{issuer}"', f'"{metadata["issuer"]}"')), "acme", name)
    backend["spec"]["oidc"]["endpoints"] = {ours: metadata[theirs] for ours, theirs in ENDPOINTS.items()}
    backend["spec"]["oidc"]["oauth2Introspection"]["enabled"] = bearer
    trusted["stringData"]["ca.crt"] = authority
    return [_renamed(client, "acme", name), _renamed(trusted, "acme", name), backend]


def fetched(documents: Sequence[JsonObject]) -> list[JsonObject]:
    """The same OIDC backend, its provider discovered by the operator."""
    *secrets, backend = json.loads(json.dumps(documents))
    del backend["spec"]["oidc"]["endpoints"]
    return [*secrets, backend]


def saml(name: str, entity: str, metadata: bytes) -> list[JsonObject]:
    """The metadata's Secret and the backend."""
    *_, document = read(SAML, "10-secrets.yaml")
    (backend,) = read(SAML, "30-backend.yaml")
    old = backend["spec"]["saml"]["idpEntityID"]
    backend = _renamed(json.loads(json.dumps(backend).replace(f'"{old}"', f'"{entity}"')), "corp", name)
    document = _renamed(document, "corp", name)
    document["stringData"]["idp-metadata.xml"] = metadata.decode()
    return [document, backend]


def by_url(documents: Sequence[JsonObject], url: str, authority: str) -> list[JsonObject]:
    """The same SAML backend, its provider's metadata fetched by the operator; `authority` vouches for the server there."""
    secret, backend = json.loads(json.dumps(documents))
    name = f"{backend['metadata']['name']}-ca"
    secret["metadata"]["name"], secret["stringData"] = name, {"ca.crt": authority}
    backend["spec"]["saml"]["idpMetadata"] = {"url": url, "caBundleSecretRef": {"name": name}}
    return [secret, backend]


def backends(idp: FakeIdp) -> dict[str, list[JsonObject]]:
    """The three backends of a stand, each with its Secrets, by name; the backend comes last."""
    authority = idp.authority.pem.decode()
    return {
        ACME: oidc(ACME, discovery(idp.issuer(ACME)), authority, bearer=True),
        BETA: oidc(BETA, discovery(idp.issuer(BETA)), authority, bearer=False),
        CORP: saml(CORP, idp.entity(CORP), idp.metadata(CORP)),
    }
