"""Who may use a client, and how it proves itself without a secret: groups, APIs, federated identities, SCIM, logo.

Enters: nothing. Leaves: models that `types.py` puts into the kind. Source: spec/pocketid.md 1.1, 1.3 to 1.5; seed 004.
"""

from __future__ import annotations

from typing import Annotated, Any

from moorage.pocketid.references import PERMISSION_KEY, SUBDOMAIN, ConfigMapKey, ObjectName, SecretKey, namespace_name
from moorage.schema.model import Model, field
from moorage.schema.rule import Rule

PERMISSION: Any = field(doc="Key of a permission.", min_length=1, max_length=255, pattern=PERMISSION_KEY)


class PublicKeySource(Model):
    """Where a JWK or a whole JWKS document is kept; exactly one of the two. It is read on every pass."""

    rules = (
        Rule(
            "has(self.configMapKeyRef) != has(self.secretKeyRef)",
            "exactly one of configMapKeyRef and secretKeyRef must be set",
        ),
    )

    config_map_key_ref: ConfigMapKey | None = field(None, doc="Key of a ConfigMap in the same namespace.")
    secret_key_ref: SecretKey | None = field(None, doc="Key of a Secret in the same namespace.")


class PublicKey(Model):
    """A public key, inline or kept elsewhere; private and symmetric keys are refused."""

    rules = (Rule("has(self.value) != has(self.valueFrom)", "exactly one of value and valueFrom must be set"),)

    value: dict[str, Any] | None = field(None, doc="One JWK.")
    value_from: PublicKeySource | None = field(None, doc="Where a JWK or a JWKS document is kept.")


class FederatedIdentity(Model):
    """A workload that authenticates as this client with a JWT of another issuer."""

    rules = (
        Rule(
            "!has(self.jwks) || !has(self.publicKeys) || self.publicKeys.size() == 0",
            "jwks and publicKeys are mutually exclusive",
        ),
    )

    issuer: str = field(
        doc="Issuer of the assertion.", min_length=1, max_length=2048, example="https://cluster.example.org"
    )
    subject: str | None = field(None, doc="Subject of the assertion; default: the client ID.", max_length=2048)
    audience: str | None = field(
        None, doc="Audience of the assertion; default: the issuer of Pocket-ID.", max_length=2048
    )
    jwks: str | None = field(
        None, doc="Address of the issuer's keys; default: `<issuer>/.well-known/jwks.json`.", max_length=2048
    )
    public_keys: tuple[PublicKey, ...] | None = field(
        None, doc="Keys of the issuer, in place of an address.", max_items=64, list_type="atomic"
    )
    replay_protection: bool = field(False, doc="Whether an assertion needs a `jti` and may be used once.")


class GroupRef(Model):
    """A group whose members may use the client; named in exactly one of three ways."""

    rules = (
        Rule(
            "[has(self.name), has(self.groupName), has(self.groupID)].filter(x, x).size() == 1",
            "exactly one of name, groupName and groupID must be set",
        ),
        Rule(
            "!has(self.__namespace__) || has(self.name)",
            "namespace may only be set together with name",
            field_path=".namespace",
        ),
    )

    name: str | None = field(None, doc="Name of a PocketIDUserGroup.", min_length=1, max_length=253, pattern=SUBDOMAIN)
    namespace: str | None = namespace_name("Namespace of the PocketIDUserGroup; default: that of the resource.")
    group_name: str | None = field(None, doc="Exact name of a group in Pocket-ID.", min_length=2, max_length=255)
    group_id: str | None = field(None, alias="groupID", doc="Id of a group in Pocket-ID.", min_length=1, max_length=64)


class ApiAccess(Model):
    """What the client may do with one API."""

    rules = (
        Rule(
            "!has(self.delegatedAccess) || self.delegatedAccess || !has(self.delegatedPermissions)"
            " || self.delegatedPermissions.size() == 0",
            "delegatedPermissions cannot be listed while delegatedAccess is false",
        ),
        Rule(
            "!has(self.clientAccess) || self.clientAccess || !has(self.clientPermissions) || self.clientPermissions.size() == 0",
            "clientPermissions cannot be listed while clientAccess is false",
        ),
    )

    api_ref: ObjectName = field(doc="The PocketIDAPI.")
    delegated_permissions: tuple[Annotated[str, PERMISSION], ...] | None = field(
        None, doc="Keys of permissions that the client may have for a user.", max_items=100, list_type="atomic"
    )
    client_permissions: tuple[Annotated[str, PERMISSION], ...] | None = field(
        None,
        doc="Keys of permissions that the client has of its own (client credentials). Confidential clients only.",
        max_items=100,
        list_type="atomic",
    )
    delegated_access: bool | None = field(
        None, doc="Whether users may delegate at all; default: whether delegatedPermissions lists any."
    )
    client_access: bool | None = field(
        None,
        doc="Whether the client may use the API of its own; default: whether clientPermissions lists any. Confidential clients only.",
    )

    @property
    def delegates(self) -> bool:
        """Whether the entry grants the delegated flow."""
        return bool(self.delegated_permissions) if self.delegated_access is None else self.delegated_access

    @property
    def acts_alone(self) -> bool:
        """Whether the entry grants the client-credentials flow."""
        return bool(self.client_permissions) if self.client_access is None else self.client_access


class Scim(Model):
    """A SCIM service that Pocket-ID tells of users and groups."""

    endpoint: str = field(doc="Address of the SCIM service.", min_length=1, max_length=2048)
    token_secret_ref: SecretKey | None = field(
        None, doc="Key of a Secret with the bearer token; without it no Authorization header is sent."
    )


class Logo(Model):
    """Logos of the client, by URL; `{{name}}` stands for the name of the icon."""

    auto_generate: bool | None = field(
        None, doc="Whether the operator's default templates are used; default: as the operator is set."
    )
    name_override: str | None = field(
        None, doc="What `{{name}}` stands for; default: the name of the resource.", min_length=1, max_length=253
    )
    logo_url: str | None = field(None, doc="Template of the light logo's URL.", max_length=2048)
    dark_logo_url: str | None = field(None, doc="Template of the dark logo's URL.", max_length=2048)
