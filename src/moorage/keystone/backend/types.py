"""Kind KeystoneIdentityBackend: every field of seed 000, with its bounds and rules.

Enters: nothing. Leaves: the models from which the CRD, the reference and the checks are made. An LDAP option is one line
here: the `Option` mark names the `[ldap]` option that a field becomes. It renders and judges nothing itself.
"""

from typing import Annotated, Final, Literal, NamedTuple

from moorage.schema.kind import Kind
from moorage.schema.model import Model, Resource, StoredCondition, conditions_field, field
from moorage.schema.rule import Column, Rule

from .types_federation import FederationGroup, MappingRule, Oidc, Saml
from .types_secret import SecretRef

GROUP: Final = "keystone.openstack.c5c3.io"
VERSION: Final = "v1alpha1"
FINALIZER: Final = f"{GROUP}/identitybackend"
READY: Final = "Ready"
DOMAIN_READY: Final = "DomainReady"
CONFIG_PROJECTED: Final = "ConfigProjected"
DIRECTORY_REACHABLE: Final = "DirectoryReachable"
FEDERATION_OBJECTS_READY: Final = "FederationObjectsReady"
MAPPINGS_READY: Final = "MappingsReady"
ADOPT: Final = "moorage.internal/adopt-federation-objects"
"""Annotation; "true" lets a backend take over an identity provider, mapping or protocol that it did not create."""
ROLLOVER: Final = "moorage.internal/saml-sp-rollover"
"""Annotation of a SAML backend. `stage`: the next pair exists and its certificate stands in the SP metadata beside the present one.
`switch`: the next pair takes the place of the present one. Absent: a staged pair is withdrawn."""
STAGE: Final = "stage"
SWITCH: Final = "switch"


class Option(NamedTuple):
    """Mark of a field that is rendered as this option of `[ldap]`."""

    name: str


class KeystoneRef(Model):
    """A Keystone in the same namespace."""

    rules = (Rule("self.name == oldSelf.name", "keystoneRef is immutable: delete and recreate the backend instead"),)

    name: str = field(doc="Name of the Keystone in the same namespace.", min_length=1, example="keystone")


class Domain(Model):
    """The Keystone domain that a backend provides."""

    name: str = field(
        doc="Name of the domain, unique per Keystone without regard to case. Immutable; never the Default domain.",
        min_length=1,
        max_length=64,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        example="corp",
        rules=(
            Rule("self == oldSelf", "domain.name is immutable"),
            Rule(
                "self.lowerAscii() != 'default'",
                "the Default domain hosts the service users and must never be backed by an external identity backend",
            ),
        ),
    )
    mode: Literal["Manage", "Adopt"] = field(
        "Manage",
        doc="Manage creates the domain and repairs its drift; Adopt attaches to an existing domain and never changes it."
        " Immutable.",
        rules=(Rule("self == oldSelf", "domain.mode is immutable"),),
    )
    deletion_policy: Literal["Retain", "Delete"] = field(
        "Retain",
        doc="What becomes of a managed domain when this resource is deleted: Retain leaves it, Delete disables and then"
        " deletes it. Adopted domains are always retained.",
    )
    description: str | None = field(None, doc="Description of the domain, set in Manage mode.", max_length=1024)


class LdapUsers(Model):
    """Where users are, and which attributes describe them. What is unset keeps Keystone's own default."""

    tree_dn: Annotated[str, Option("user_tree_dn")] = field(
        alias="treeDN", doc="Base DN of the users.", min_length=1, max_length=512, example="ou=people,dc=example,dc=org"
    )
    filter: Annotated[str | None, Option("user_filter")] = field(None, doc="LDAP filter for users.", max_length=1024)
    object_class: Annotated[str | None, Option("user_objectclass")] = field(
        None, doc="Object class of users; Keystone's default is inetOrgPerson.", max_length=256
    )
    id_attribute: Annotated[str | None, Option("user_id_attribute")] = field(
        None, doc="Attribute that identifies a user; Keystone's default is cn.", max_length=256
    )
    name_attribute: Annotated[str | None, Option("user_name_attribute")] = field(
        None, doc="Attribute with the login name; Keystone's default is sn.", max_length=256
    )
    mail_attribute: Annotated[str | None, Option("user_mail_attribute")] = field(
        None, doc="Attribute with the mail address; Keystone's default is mail.", max_length=256
    )


class LdapGroups(Model):
    """Where groups are, and which attributes describe them. Without this block no group option is rendered."""

    tree_dn: Annotated[str, Option("group_tree_dn")] = field(
        alias="treeDN", doc="Base DN of the groups.", min_length=1, max_length=512
    )
    filter: Annotated[str | None, Option("group_filter")] = field(None, doc="LDAP filter for groups.", max_length=1024)
    object_class: Annotated[str | None, Option("group_objectclass")] = field(
        None, doc="Object class of groups; Keystone's default is groupOfNames.", max_length=256
    )
    id_attribute: Annotated[str | None, Option("group_id_attribute")] = field(
        None, doc="Attribute that identifies a group; Keystone's default is cn.", max_length=256
    )
    name_attribute: Annotated[str | None, Option("group_name_attribute")] = field(
        None, doc="Attribute with the group's name; Keystone's default is ou.", max_length=256
    )
    member_attribute: Annotated[str | None, Option("group_member_attribute")] = field(
        None, doc="Attribute that lists the members; Keystone's default is member.", max_length=256
    )


class LdapTls(Model):
    """Verification of the directory's certificate, for ldaps:// and STARTTLS."""

    ca_bundle_secret_ref: SecretRef = field(doc="Secret with the CA bundle under the fixed data key ca.crt.")


class LdapPool(Model):
    """Keystone's pool of connections to the directory."""

    enabled: Annotated[bool, Option("use_pool")] = field(
        False, doc="Whether connections are pooled.", default_in_schema=False
    )
    size: Annotated[int | None, Option("pool_size")] = field(
        None, doc="Connections kept; Keystone's default is 10.", minimum=1, format="int32"
    )


class Ldap(Model):
    """Connection to a directory, its layout and its attributes."""

    url: Annotated[str, Option("url")] = field(
        doc="Address of the directory, ldap:// or ldaps://; several may be separated by commas.",
        pattern=r"^ldaps?://",
        max_length=512,
        example="ldaps://ldap.example.org:636",
    )
    bind_credentials_secret_ref: SecretRef = field(
        doc="Secret with the bind DN and password under the fixed data keys username and password. Anonymous binds are"
        " not supported."
    )
    suffix: Annotated[str, Option("suffix")] = field(
        doc="Base DN of the directory.", min_length=1, max_length=512, example="dc=example,dc=org"
    )
    users: LdapUsers = field(doc="Layout and attributes of users.")
    groups: LdapGroups | None = field(None, doc="Layout and attributes of groups.")
    read_only: bool = field(True, doc="Forbids Keystone to create, change or delete users and groups in the directory.")
    tls: LdapTls | None = field(None, doc="Verification of the directory's certificate.")
    pool: LdapPool | None = field(None, doc="Keystone's pool of connections to the directory.")


class Spec(Model):
    """One external identity backend, attached to one Keystone."""

    rules = (
        Rule(
            "(self.type == 'LDAP') == has(self.ldap)",
            "exactly one backend block matching spec.type is required: type LDAP requires spec.ldap, other types forbid it",
        ),
        Rule("(self.type == 'OIDC') == has(self.oidc)", "type OIDC requires spec.oidc, other types forbid it"),
        Rule("(self.type == 'SAML') == has(self.saml)", "type SAML requires spec.saml, other types forbid it"),
        Rule(
            "self.type != 'LDAP' || !has(self.mappings)",
            "mappings are only supported on federation backends (type OIDC or SAML)",
        ),
        Rule(
            "self.type != 'LDAP' || !has(self.groups)",
            "groups are only supported on federation backends (type OIDC or SAML)",
        ),
        Rule("self.type == 'LDAP' || !has(self.extraOptions)", "extraOptions are only supported on type LDAP"),
    )

    keystone_ref: KeystoneRef = field(
        doc="The Keystone that this backend attaches to. Immutable; it need not exist yet."
    )
    domain: Domain = field(doc="The Keystone domain that this backend provides.")
    type: Literal["LDAP", "OIDC", "SAML"] = field(
        doc="Driver of the backend. Immutable.", rules=(Rule("self == oldSelf", "type is immutable"),)
    )
    ldap: Ldap | None = field(None, doc="Directory; required when type is LDAP, else forbidden.")
    oidc: Oidc | None = field(None, doc="OpenID Connect provider; required when type is OIDC, else forbidden.")
    saml: Saml | None = field(None, doc="SAML 2.0 identity provider; required when type is SAML, else forbidden.")
    mappings: tuple[MappingRule, ...] | None = field(
        None,
        doc="Keystone mapping rules of a federation backend. A rule can name any user and group: whoever may write this decides who gets in.",
        max_items=32,
        list_type="atomic",
    )
    groups: tuple[FederationGroup, ...] | None = field(
        None, doc="Local groups in this domain that mapping rules target, federation backends only.", max_items=32,
        list_type="atomic",
    )  # fmt: skip
    extra_options: dict[str, str] | None = field(
        None,
        doc="Further options of the [ldap] section by their bare name. Options that a typed field renders are refused.",
        max_properties=32,
        example={"page_size": "1000"},
        rules=(
            Rule(
                "self.all(k, k.size() <= 256 && self[k].size() <= 1024)",
                "an option name may have at most 256 characters, a value at most 1024",
            ),
        ),
    )


class AppliedProvider(Model):
    """An identity provider with what stands beside it."""

    name: str = field(doc="Id of the identity provider.", max_length=64)
    mapping: str = field(doc="Id of its mapping.", max_length=128)
    protocols: tuple[str, ...] = field((), doc="Ids of its protocols.", list_type="atomic")


class AppliedGrant(Model):
    """A role assignment of a group, on a project or, without one, on this backend's domain."""

    role: str = field(doc="Name of the role.")
    role_id: str = field(alias="roleID", doc="Id of the role.")
    project: str | None = field(None, doc="Name of the project.")
    project_id: str | None = field(None, alias="projectID", doc="Id of the project.")


class AppliedGroup(Model):
    """A group that was declared."""

    name: str = field(doc="Name of the group in this backend's domain.")
    id: str | None = field(None, doc="Id of the group, once it exists.")
    grants: tuple[AppliedGrant, ...] = field((), doc="Role assignments of the group.", list_type="atomic")


class Applied(Model):
    """What this backend put into Keystone, or is about to; written before the object is, taken out once it is gone."""

    identity_providers: tuple[AppliedProvider, ...] = field(
        (), doc="Identity providers; more than one while a rename is under way.", list_type="atomic"
    )
    groups: tuple[AppliedGroup, ...] = field((), doc="Groups and their role assignments.", list_type="atomic")


class MetadataStatus(Model):
    """The provider's metadata document that is in use."""

    fetched_at: str | None = field(None, doc="When it was fetched; absent for a declared one.", format="date-time")
    valid_until: str | None = field(
        None, doc="When it, or its last signing certificate, ends; absent when it does not say.", format="date-time"
    )
    stale: bool = field(
        False, doc="Whether a newer fetch failed, so that the last good one is in use.", default_in_schema=False
    )


class ServiceProviderStatus(Model):
    """Our certificate at a SAML identity provider."""

    certificate_not_after: str = field(doc="When the certificate ends.", format="date-time")


class Status(Model):
    """What the controller observed; it is its only writer."""

    conditions: tuple[StoredCondition, ...] = conditions_field()
    observed_generation: int | None = field(None, doc="The generation last reconciled.", format="int64")
    domain_id: str | None = field(
        None, alias="domainID", doc="Id of the domain that was created (Manage) or found (Adopt)."
    )
    saml_sp_metadata_secret_name: str | None = field(
        None, alias="samlSPMetadataSecretName", doc="Secret with the service provider's SAML metadata."
    )
    applied: Applied | None = field(None, doc="What this backend put into Keystone: names and ids.")
    metadata: MetadataStatus | None = field(None, doc="The identity provider's metadata document.")
    service_provider: ServiceProviderStatus | None = field(None, doc="Our side of SAML.")


class KeystoneIdentityBackend(Resource):
    """One external identity backend of a Keystone."""

    spec: Spec = field(doc="What is wanted.")
    status: Status = field(Status(), doc="What was observed.", default_in_schema=False)


KIND: Final = Kind(
    group=GROUP,
    version=VERSION,
    kind="KeystoneIdentityBackend",
    plural="keystoneidentitybackends",
    model=KeystoneIdentityBackend,
    doc="KeystoneIdentityBackend attaches one external identity backend (LDAP, OIDC or SAML) to a Keystone.",
    categories=("moorage",),
    columns=(
        Column("Ready", "string", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Domain", "string", ".spec.domain.name"),
        Column("Keystone", "string", ".spec.keystoneRef.name"),
        Column("Type", "string", ".spec.type"),
        Column("Reason", "string", ".status.conditions[?(@.status=='False')].reason"),
        Column("Age", "date", ".metadata.creationTimestamp"),
    ),
)
