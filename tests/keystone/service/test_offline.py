"""`moorage render` and `moorage diff` of federated backends: both types, documents from files, the same bytes each time, no key of ours."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.keystone.service import federated, given

from moorage.cli.projected import concealed
from moorage.core.meta import JsonObject
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.offline import Rendered, render
from moorage.keystone.service.types import KIND

SPEC: JsonObject = {
    "federation": federated.FEDERATION,
    "bootstrap": {
        "adminPasswordSecretRef": {"name": "keystone-admin"},
        "publicEndpoint": "https://keystone.acme.test/v3",
    },
}
BASE = "keystone-federation"
ISSUER = "https://idp.acme.test/found"
DISCOVERED = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/auth",
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/keys",
    "response_types_supported": ["code"],
    "subject_types_supported": ["public"],
    "id_token_signing_alg_values_supported": ["RS256"],
}


def backend(**short: Any) -> JsonObject:
    made = given.backend(short)
    made.pop("status")
    BACKEND.structural.default(made)
    return made


def fetched() -> JsonObject:
    """A backend whose discovery document the operator would fetch."""
    made = backend(name="found", type="OIDC", issuer=ISSUER)
    del made["spec"]["oidc"]["endpoints"]
    return made


def rendered(*backends: JsonObject, documents: dict[str, bytes] | None = None) -> Rendered:
    keystone = KIND.to_wire(given.keystone(SPEC))
    secrets = [given.secret(item["name"], item["data"]) for item in given.BROUGHT]
    return render([keystone, *backends], secrets, documents)


def files(found: Rendered) -> dict[str, bytes]:
    return {key: data for (_, base, key), data in found.files.items() if base == BASE}


def test_both_types_are_rendered_with_the_same_bytes_each_time() -> None:
    backends = (backend(name="acme", type="OIDC"), backend(name="corp", type="SAML"))
    one, two = rendered(*backends), rendered(*backends)
    assert one == two
    assert one.skipped == ()
    assert {"acme.client", "corp.idp-metadata.xml", "proxy.conf", "httpd-base.conf", "sp-metadata.xml"} <= set(
        files(one)
    )
    kinds = [(child["kind"], child["metadata"]["name"]) for child in one.children]
    assert ("Secret", "keystone-saml-sp-metadata") in kinds


@pytest.mark.case("P2")
def test_what_the_operator_draws_at_random_is_a_placeholder_everywhere() -> None:
    """No file and no child looks as if it held a key, not even a key that anybody could compute."""
    found = rendered(backend(name="acme", type="OIDC"), backend(name="corp", type="SAML"))
    everything = json.dumps([child for child in found.children if child["kind"] != "Secret"]).encode()
    for child in found.children:
        if child["kind"] == "Secret":
            everything += b"".join(base64.b64decode(value) for value in child["data"].values())
    everything += b"".join(files(found).values())
    assert b"PRIVATE KEY" not in everything
    assert files(found)["sp-key.pem"] == b"made by the operator\n"
    assert b"<ds:X509Certificate>made by the operator</ds:X509Certificate>" in files(found)["sp-metadata.xml"]
    assert b"made-by-the-operator" in files(found)["proxy.conf"]


def test_a_key_pair_among_the_files_is_used() -> None:
    keystone = KIND.to_wire(given.keystone(SPEC))
    found = render(
        [keystone, backend(name="corp", type="SAML")], [given.secret(s["name"], s["data"]) for s in given.SECRETS]
    )
    assert files(found)["sp-key.pem"].decode() == federated.PRIVATE


def test_a_document_that_would_be_fetched_is_named_with_the_option_that_gives_it() -> None:
    url = f"{ISSUER}/.well-known/openid-configuration"
    (skipped,) = rendered(fetched()).skipped
    assert skipped.why == f"the operator would fetch {url}: give it by --document {url}=FILE"
    found = rendered(fetched(), documents={url: json.dumps(DISCOVERED).encode()})
    assert found.skipped == ()
    assert json.loads(files(found)["found.provider"])["token_endpoint"] == f"{ISSUER}/token"


def test_a_document_of_another_issuer_is_refused_as_the_operator_does() -> None:
    url = f"{ISSUER}/.well-known/openid-configuration"
    (skipped,) = rendered(
        fetched(), documents={url: json.dumps({**DISCOVERED, "issuer": "https://other"}).encode()}
    ).skipped
    assert "issuer" in skipped.why


@pytest.mark.case("P2")
def test_a_diff_shows_no_secret_of_the_sidecar() -> None:
    """Values of directives and whole files are digests; everything else is shown."""
    introspecting = backend(name="acme", type="OIDC")
    introspecting["spec"]["oidc"]["endpoints"]["introspectionEndpoint"] = "https://idp.acme.test/introspect"
    introspecting["spec"]["oidc"]["oauth2Introspection"] = {"enabled": True}
    found = files(rendered(introspecting, backend(name="corp", type="SAML")))
    shown = {name: concealed(data.decode(), name) for name, data in found.items()}
    assert b"s3cret-client" in found["proxy.conf"]
    assert not [name for name, text in shown.items() if "s3cret-client" in text or "made-by-the-operator" in text]
    assert "OIDCOAuthClientSecret <digest " in shown["proxy.conf"]
    assert "OIDCMetadataDir" in shown["proxy.conf"]
    assert shown["acme.digest"].startswith("<digest ")
