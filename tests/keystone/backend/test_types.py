"""The declaration: the CRD that comes out of it has every bound, default, rule and column of the seed and the spec."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.keystone.backend import KIND, ROOM
from moorage.keystone.backend.ldap import OPTIONS
from moorage.keystone.backend.types import FINALIZER
from moorage.schema import validate_crd_schema

SPEC: dict[str, Any] = KIND.schema()["properties"]["spec"]
NAME = "^[A-Za-z0-9_-]+$"


def at(path: str) -> dict[str, Any]:
    """The schema of a field; `[]` steps into the items of a list."""
    node = SPEC
    for part in path.split("."):
        node = node["properties"][part.removesuffix("[]")]
        node = node["items"] if part.endswith("[]") else node
    return node


BOUNDS: dict[str, dict[str, Any]] = {
    "keystoneRef.name": {"minLength": 1},
    "domain.name": {"minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$"},
    "domain.mode": {"enum": ["Manage", "Adopt"], "default": "Manage"},
    "domain.deletionPolicy": {"enum": ["Retain", "Delete"], "default": "Retain"},
    "domain.description": {"maxLength": 1024},
    "type": {"enum": ["LDAP", "OIDC", "SAML"]},
    "ldap.url": {"pattern": "^ldaps?://", "maxLength": 512},
    "ldap.bindCredentialsSecretRef.name": {"minLength": 1, "maxLength": 253},
    "ldap.suffix": {"minLength": 1, "maxLength": 512},
    "ldap.users.treeDN": {"minLength": 1, "maxLength": 512},
    "ldap.users.filter": {"maxLength": 1024},
    "ldap.users.objectClass": {"maxLength": 256},
    "ldap.groups.treeDN": {"minLength": 1, "maxLength": 512},
    "ldap.groups.memberAttribute": {"maxLength": 256},
    "ldap.readOnly": {"default": True},
    "ldap.pool.size": {"minimum": 1, "format": "int32"},
    "oidc.issuer": {"pattern": "^https?://", "maxLength": 512},
    "oidc.providerMetadataURL": {"pattern": "^https?://", "maxLength": 512},
    "oidc.endpoints.jwksURI": {"pattern": "^https?://", "maxLength": 512},
    "oidc.endpoints.introspectionEndpoint": {"pattern": "^https?://", "maxLength": 512},
    "oidc.clientID": {"minLength": 1, "maxLength": 256},
    "oidc.protocolID": {"pattern": NAME, "maxLength": 64, "default": "openid"},
    "oidc.identityProviderName": {"pattern": NAME, "maxLength": 64},
    "oidc.remoteIDAttribute": {"maxLength": 128, "default": "HTTP_OIDC_ISS"},
    "oidc.scopes": {"maxItems": 16, "default": ["openid", "email", "profile"]},
    "oidc.responseType": {"maxLength": 64, "default": "code"},
    "oidc.sessionType": {"enum": ["client-cookie", "client-cookie-persistent"], "default": "client-cookie"},
    "oidc.stateInputHeaders": {"enum": ["none", "user-agent", "x-forwarded-for", "both"], "default": "none"},
    "saml.idpEntityID": {"minLength": 1, "maxLength": 512},
    "saml.idpMetadata.inline": {"maxLength": 65536},
    "saml.idpMetadata.url": {"pattern": "^https://", "maxLength": 512},
    "saml.protocolID": {"pattern": NAME, "maxLength": 64, "default": "mapped"},
    "saml.remoteIDAttribute": {"maxLength": 128, "default": "HTTP_MELLON_IDP"},
    "saml.forwardAttributes": {"maxItems": 32},
    "saml.forwardAttributes[]": {"pattern": "^[A-Za-z0-9_]+$"},
    "mappings": {"maxItems": 32},
    "mappings[].local": {"minItems": 1, "maxItems": 16},
    "mappings[].remote": {"minItems": 1, "maxItems": 16},
    "mappings[].remote[].type": {"minLength": 1, "maxLength": 256},
    "mappings[].remote[].anyOneOf": {"maxItems": 32},
    "mappings[].local[].groupIds": {"maxLength": 256},
    "mappings[].local[].projects": {"maxItems": 16},
    "mappings[].local[].projects[].name": {"minLength": 1, "maxLength": 64},
    "mappings[].local[].projects[].roles": {"maxItems": 16},
    "mappings[].local[].group.name": {"maxLength": 128},
    "mappings[].local[].user.name": {"maxLength": 256},
    "mappings[].local[].user.type": {"enum": ["ephemeral", "local"]},
    "mappings[].local[].domain.id": {"maxLength": 64},
    "groups": {"maxItems": 32},
    "groups[].name": {"minLength": 1, "maxLength": 128},
    "groups[].description": {"maxLength": 1024},
    "groups[].roleAssignments": {"maxItems": 32},
    "groups[].roleAssignments[].role": {"minLength": 1, "maxLength": 64},
    "groups[].roleAssignments[].project.domainName": {"maxLength": 64},
    "extraOptions": {"maxProperties": 32},
}


@pytest.mark.parametrize("path", BOUNDS)
def test_a_field_has_the_bounds_of_the_spec(path: str) -> None:
    """Spec 2.1, row by row; every field also explains itself."""
    node = at(path)
    assert {name: node.get(name) for name in BOUNDS[path]} == BOUNDS[path]
    assert path.endswith("[]") or node["description"]


def test_the_schema_is_structural() -> None:
    """A server takes it."""
    assert validate_crd_schema(KIND.schema()) == []


def test_required_fields_are_the_seeds() -> None:
    """Nothing more is asked of a person than the seed asks."""
    required = {
        "": ["keystoneRef", "domain", "type"],
        "ldap": ["url", "bindCredentialsSecretRef", "suffix", "users"],
        "oidc": ["issuer", "clientID", "clientSecretRef"],
        "saml": ["idpEntityID", "idpMetadata"],
        "oidc.endpoints": ["authorizationEndpoint", "tokenEndpoint", "jwksURI"],
        "oidc.oauth2Introspection": ["enabled"],
    }
    assert {path: (at(path) if path else SPEC)["required"] for path in required} == required


def test_there_are_as_many_rules_as_the_spec_counts() -> None:
    """Fifteen expressions by spec 2.2, whose ninth is two rules and whose third to fifth are one each."""

    def count(node: Any) -> int:
        if isinstance(node, dict):
            return len(node.get("x-kubernetes-validations", ())) + sum(map(count, node.values()))
        return 0

    assert count(SPEC) == 15


def test_names_columns_and_finalizer() -> None:
    """What kubectl and other controllers see."""
    crd = KIND.crd()["spec"]
    assert crd["names"]["plural"] == "keystoneidentitybackends"
    assert "shortNames" not in crd["names"]
    columns = [column["name"] for column in crd["versions"][0]["additionalPrinterColumns"]]
    assert columns == ["Ready", "Domain", "Keystone", "Type", "Reason", "Age"]
    assert ROOM.finalizer == FINALIZER == "keystone.openstack.c5c3.io/identitybackend"


def test_an_ldap_option_is_one_line_in_the_declaration() -> None:
    """The options table is read from the marks, so a new option needs no second place."""
    assert ("spec.ldap.users.idAttribute", "user_id_attribute") in [(option.path, option.name) for option in OPTIONS]
    assert len(OPTIONS) == 16
