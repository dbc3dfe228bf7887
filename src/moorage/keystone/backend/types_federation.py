"""The OIDC and SAML half of the declaration: provider blocks, mapping rules, groups.

Enters: nothing. Leaves: models that `types.py` puts into the kind: fields, bounds, CEL, and the sentences of CRD and reference.
Source: seed 000, OIDCBackendSpec to FederationRoleAssignmentSpec; spec/keystone.md 2.1.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from moorage.schema.model import Model, field
from moorage.schema.rule import Rule

from .types_secret import SecretRef

_HTTP: Final = r"^https?://"
_NAME: Final = r"^[A-Za-z0-9_-]+$"
_ATTRIBUTE: Final[Any] = field(doc="Name of an assertion attribute.", pattern=r"^[A-Za-z0-9_]+$", max_length=128)
DEFAULT_SCOPES: Final = ("openid", "email", "profile")


def _endpoint(doc: str, *, required: bool = False) -> Any:
    if required:
        return field(doc=doc, pattern=_HTTP, max_length=512)
    return field(None, doc=doc, pattern=_HTTP, max_length=512)


class OidcEndpoints(Model):
    """Endpoints of a provider whose discovery document the operator cannot fetch."""

    authorization_endpoint: str = _endpoint("OAuth2 authorization endpoint.", required=True)
    token_endpoint: str = _endpoint("OAuth2 token endpoint.", required=True)
    jwks_uri: str = field(alias="jwksURI", doc="JSON Web Key Set of the provider.", pattern=_HTTP, max_length=512)
    userinfo_endpoint: str | None = _endpoint("Userinfo endpoint.")
    end_session_endpoint: str | None = _endpoint("Logout endpoint.")
    introspection_endpoint: str | None = _endpoint(
        "Token introspection endpoint; required, and https, when oauth2Introspection is enabled."
    )


class OidcIntrospection(Model):
    """Bearer tokens of the provider, for command line clients."""

    enabled: bool = field(doc="Whether bearer tokens are introspected; one backend of a Keystone at most.")
    tls_verify: bool | None = field(
        None, doc="Whether the endpoint's certificate is verified, which is the default; false is for laboratories."
    )


class Oidc(Model):
    """An OpenID Connect provider and our client there."""

    rules = (
        Rule(
            "!(has(self.providerMetadataURL) && has(self.endpoints))",
            "providerMetadataURL and endpoints are mutually exclusive",
        ),
    )

    issuer: str = field(
        doc="Issuer exactly as the provider asserts it (the iss claim).",
        pattern=_HTTP,
        max_length=512,
        example="https://idp.example.org/realms/corp",
    )
    provider_metadata_url: str | None = field(
        None,
        alias="providerMetadataURL",
        doc="Discovery document; derived from the issuer when neither it nor endpoints is given.",
        pattern=_HTTP,
        max_length=512,
    )
    endpoints: OidcEndpoints | None = field(None, doc="Explicit endpoints in place of discovery.")
    ca_bundle_secret_ref: SecretRef | None = field(
        None,
        doc="Secret with the CA bundle of the provider under the fixed data key ca.crt: the only roots that the fetch of"
        " its discovery document trusts then. The sidecar has one bundle for the OIDC backends of a Keystone: it trusts this one beside its own roots.",
    )
    client_id: str = field(alias="clientID", doc="Our client at the provider.", min_length=1, max_length=256)
    client_secret_ref: SecretRef = field(doc="Secret with the client secret under the fixed data key clientSecret.")
    protocol_id: str = field(
        "openid", alias="protocolID", doc="Id of the Keystone federation protocol.", pattern=_NAME, max_length=64
    )
    identity_provider_name: str | None = field(
        None,
        doc="Id of the Keystone identity provider; the name of this resource when unset.",
        pattern=_NAME,
        max_length=64,
    )
    remote_id_attribute: str = field(
        "HTTP_OIDC_ISS",
        alias="remoteIDAttribute",
        doc="WSGI key of the asserted issuer; starts with HTTP_, the same in all OIDC backends of a Keystone.",
        max_length=128,
    )
    scopes: tuple[str, ...] = field(DEFAULT_SCOPES, doc="Scopes requested at login.", max_items=16, list_type="atomic")
    response_type: str = field("code", doc="OIDC response type.", max_length=64)
    oauth2_introspection: OidcIntrospection | None = field(
        None, alias="oauth2Introspection", doc="Accepts the provider's bearer tokens directly."
    )
    session_type: Literal["client-cookie", "client-cookie-persistent"] = field(
        "client-cookie", doc="Where the sidecar keeps browser sessions."
    )
    state_input_headers: Literal["none", "user-agent", "x-forwarded-for", "both"] = field(
        "none", doc="Request headers that go into the state cookie."
    )

    @property
    def remote_id(self) -> str:
        """What the provider asserts of itself."""
        return self.issuer

    @property
    def introspects(self) -> bool:
        """Whether bearer tokens of this provider are taken."""
        return self.oauth2_introspection is not None and self.oauth2_introspection.enabled


class SamlIdpMetadata(Model):
    """Where the EntityDescriptor of the identity provider comes from; exactly one source."""

    rules = (
        Rule(
            "[has(self.inline), has(self.secretRef), has(self.url)].filter(x, x).size() == 1",
            "exactly one of inline, secretRef, or url must be set",
        ),
    )

    inline: str | None = field(None, doc="The EntityDescriptor itself.", max_length=65536)
    secret_ref: SecretRef | None = field(None, doc="Secret with the document under the key idp-metadata.xml.")
    url: str | None = field(None, doc="Address of the document; https only.", pattern=r"^https://", max_length=512)
    ca_bundle_secret_ref: SecretRef | None = field(
        None,
        doc="Secret with the CA bundle for url under the fixed data key ca.crt: the only roots that its fetch trusts then.",
    )


class SamlSp(Model):
    """Key and certificate of the service provider."""

    certificate_secret_ref: SecretRef | None = field(
        None, doc="Secret with tls.crt and tls.key; without it a pair is made once and kept."
    )


class Saml(Model):
    """A SAML 2.0 identity provider; one a Keystone at most."""

    idp_entity_id: str = field(
        alias="idpEntityID", doc="entityID exactly as the provider asserts it.", min_length=1, max_length=512
    )
    idp_metadata: SamlIdpMetadata = field(doc="Metadata of the identity provider.")
    sp: SamlSp | None = field(None, doc="Key and certificate of the service provider.")
    protocol_id: str = field(
        "mapped", alias="protocolID", doc="Id of the Keystone federation protocol.", pattern=_NAME, max_length=64
    )
    identity_provider_name: str | None = field(
        None,
        doc="Id of the Keystone identity provider; the name of this resource when unset.",
        pattern=_NAME,
        max_length=64,
    )
    remote_id_attribute: str = field(
        "HTTP_MELLON_IDP",
        alias="remoteIDAttribute",
        doc="WSGI key of the asserted entityID; starts with HTTP_.",
        max_length=128,
    )
    forward_attributes: tuple[Annotated[str, _ATTRIBUTE], ...] | None = field(
        None,
        doc="Assertion attributes passed on to Keystone as MELLON-<attribute>. Several values of one are joined with ;,"
        " where Keystone splits them again: no value may hold a ; of its own.",
        max_items=32,
        list_type="atomic",
    )

    @property
    def remote_id(self) -> str:
        """What the provider asserts of itself."""
        return self.idp_entity_id


class MappingDomain(Model):
    """A domain, by id or by name."""

    id: str | None = field(None, doc="Id of the domain.", max_length=64)
    name: str | None = field(None, doc="Name of the domain.", max_length=64)


class MappingUser(Model):
    """The local user that a remote user becomes."""

    id: str | None = field(None, doc="Id of the user.", max_length=64)
    name: str | None = field(
        None, doc="Name of the user; {0} is the first value of the remote entries.", max_length=256
    )
    email: str | None = field(None, doc="Mail address of the user.", max_length=256)
    domain: MappingDomain | None = field(None, doc="Domain of the user.")
    type: Literal["ephemeral", "local"] | None = field(None, doc="Whether the user is shadowed or must exist.")


class MappingGroup(Model):
    """A local group, by id or by name and domain."""

    id: str | None = field(None, doc="Id of the group.", max_length=64)
    name: str | None = field(None, doc="Name of the group.", max_length=128)
    domain: MappingDomain | None = field(None, doc="Domain of the group.")


class MappingRole(Model):
    """A role in a mapped project."""

    name: str = field(doc="Name of the role.", min_length=1, max_length=64)


class MappingProject(Model):
    """A project that is made for the user at login."""

    name: str = field(doc="Name of the project.", min_length=1, max_length=64)
    roles: tuple[MappingRole, ...] | None = field(
        None, doc="Roles of the user there.", max_items=16, list_type="atomic"
    )


class MappingLocal(Model):
    """What a matched user maps to."""

    user: MappingUser | None = field(None, doc="The local user.")
    group: MappingGroup | None = field(None, doc="One local group.")
    group_ids: str | None = field(
        None, doc="Group ids from a remote value, which Keystone splits at ;.", max_length=256
    )
    groups: str | None = field(
        None,
        doc="Group names from a remote value; needs domain. Keystone splits the value at ;, so a group of the provider"
        " that is called x;ops makes its members members of ops.",
        max_length=256,
    )
    projects: tuple[MappingProject, ...] | None = field(
        None, doc="Projects of the user.", max_items=16, list_type="atomic"
    )
    domain: MappingDomain | None = field(None, doc="Domain of groups and projects.")


class MappingRemote(Model):
    """A condition on the assertion."""

    type: str = field(
        doc="WSGI key of the claim, such as HTTP_OIDC_ISS; starts with HTTP_.", min_length=1, max_length=256
    )
    regex: bool | None = field(None, doc="Whether the values are regular expressions.")
    any_one_of: tuple[str, ...] | None = field(
        None, doc="Matches when one of these is asserted.", max_items=32, list_type="atomic"
    )
    not_any_of: tuple[str, ...] | None = field(
        None, doc="Matches when none of these is asserted.", max_items=32, list_type="atomic"
    )
    blacklist: tuple[str, ...] | None = field(None, doc="Values that are taken out.", max_items=32, list_type="atomic")
    whitelist: tuple[str, ...] | None = field(None, doc="Values that alone are kept.", max_items=32, list_type="atomic")


class MappingRule(Model):
    """One mapping rule of Keystone."""

    local: tuple[MappingLocal, ...] = field(
        doc="What a matched user maps to.", min_items=1, max_items=16, list_type="atomic"
    )
    remote: tuple[MappingRemote, ...] = field(
        doc="Conditions, all of which must hold.", min_items=1, max_items=16, list_type="atomic"
    )


class ProjectScope(Model):
    """A project, in this backend's domain unless another is named."""

    name: str = field(doc="Name of the project.", min_length=1, max_length=64)
    domain_name: str | None = field(None, doc="Domain of the project.", max_length=64)


class RoleAssignment(Model):
    """A role for a group, on a project or on this backend's domain."""

    rules = (
        Rule("has(self.project) != (has(self.domain) && self.domain)", "exactly one of project or domain must be set"),
    )

    role: str = field(doc="Name of the role.", min_length=1, max_length=64)
    project: ProjectScope | None = field(None, doc="The project that the role is for.")
    domain: bool | None = field(None, doc="Whether the role is for this backend's domain.")


class FederationGroup(Model):
    """A local group in this backend's domain; created when missing, never changed."""

    name: str = field(doc="Name of the group.", min_length=1, max_length=128)
    description: str | None = field(None, doc="Description, set at creation.", max_length=1024)
    role_assignments: tuple[RoleAssignment, ...] | None = field(
        None, doc="Roles of the group's members.", max_items=32, list_type="atomic"
    )
