"""Kind PocketIDOIDCClient: every field of seed 004, with its bounds and rules.

Enters: nothing. Leaves: the models from which the CRD, the reference and the checks are made. It judges nothing itself.
Source: seed 004; spec/pocketid.md 1.1 to 1.10; decisions, Pocket-ID.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from moorage.pocketid.references import (
    AGE_COLUMN,
    CATEGORIES,
    GROUP,
    READY_COLUMN,
    REASON_COLUMN,
    VERSION,
    LabelSelector,
    SecretKey,
    policy_field,
    reads,
    selector_field,
    within,
)
from moorage.schema.kind import Kind
from moorage.schema.model import Model, Resource, field
from moorage.schema.rule import Column, Rule

from .types_access import ApiAccess, FederatedIdentity, GroupRef, Logo, Scim
from .types_secret import CredentialsSecret, Rotation
from .types_status import Status

FINALIZER: Final = f"{GROUP}/oidc-client-finalizer"
GROUP_FINALIZER: Final = f"{GROUP}/user-group-oidc-client-finalizer"
"""Held while a PocketIDUserGroup lists the client."""
REGENERATE: Final = f"{GROUP}/regenerate-client-secret"
"""Annotation; "true" asks for one new secret."""
REFRESH: Final = f"{GROUP}/refresh-client-metadata"
"""Annotation; "true" asks Pocket-ID to fetch the metadata document again."""
SECRET_SUFFIX: Final = "-oidc-credentials"  # noqa: S105 - part of a name

_URL: Final[Any] = field(doc="A URL, kept as it is; wildcards are allowed.", min_length=1, max_length=2048)
_DOCUMENT: Final = "(has(self.clientID) && self.clientID.startsWith('https://'))"
_ROTATES: Final = "(has(self.clientSecretRotation) && self.clientSecretRotation.enabled)"
_ACTS_ALONE: Final = (
    "(has(self.apiAccess) && self.apiAccess.exists(a, (has(a.clientPermissions) && a.clientPermissions.size() > 0)"
    " || (has(a.clientAccess) && a.clientAccess)))"
)


def _owned_by_document(name: str, present: str) -> Rule:
    return Rule(
        f"!{_DOCUMENT} || !({present})",
        f"{name} belongs to the metadata document of a client whose clientID is an https URL",
        field_path=f".{name}",
    )


def _full(name: str) -> str:
    return f"has(self.{name}) && self.{name}.size() > 0"


_DOCUMENT_RULES: Final = (
    _owned_by_document("name", "has(self.name)"),
    _owned_by_document("callbackUrls", _full("callbackUrls")),
    _owned_by_document("logoutCallbackUrls", _full("logoutCallbackUrls")),
    _owned_by_document("backchannelLogoutUrl", "has(self.backchannelLogoutUrl)"),
    _owned_by_document("federatedIdentities", _full("federatedIdentities")),
    _owned_by_document("isPublic", "self.isPublic"),
    _owned_by_document("pkceEnabled", "self.pkceEnabled"),
    Rule(
        f"!{_DOCUMENT} || !has(self.clientSecretRef)",
        "a client with a metadata document has no secret: clientSecretRef cannot be set",
        field_path=".clientSecretRef",
    ),
    Rule(
        f"!{_DOCUMENT} || !{_ROTATES}",
        "a client with a metadata document has no secret: clientSecretRotation cannot be enabled",
        field_path=".clientSecretRotation",
    ),
    Rule(
        f"!{_DOCUMENT} || !{_ACTS_ALONE}",
        "a client with a metadata document is public: clientPermissions and clientAccess need a confidential client",
        field_path=".apiAccess",
    ),
)
_SECRET_RULES: Final = (
    Rule(
        f"!{_ROTATES} || !has(self.secret) || self.secret.storeClientSecret",
        "clientSecretRotation cannot be enabled while secret.storeClientSecret is false",
        field_path=".clientSecretRotation",
    ),
    Rule(
        f"!self.isPublic || !{_ACTS_ALONE}",
        "clientPermissions and clientAccess need a confidential client (isPublic false)",
        field_path=".apiAccess",
    ),
    Rule(
        "!has(self.clientSecretRef) || !self.isPublic",
        "a public client has no secret: clientSecretRef and isPublic exclude each other",
        field_path=".clientSecretRef",
    ),
    Rule(
        f"!has(self.clientSecretRef) || !{_ROTATES}",
        "a declared secret is not rotated: clientSecretRef and an enabled clientSecretRotation exclude each other",
        field_path=".clientSecretRotation",
    ),
    Rule(
        "!has(self.clientSecretOverlap) || !self.isPublic",
        "a public client has no secret: clientSecretOverlap and isPublic exclude each other",
        field_path=".clientSecretOverlap",
    ),
    Rule(
        "!has(self.clientSecretOverlap) || !has(self.clientSecretRotation) || !has(self.clientSecretRotation.interval)"
        f" || !({reads('self.clientSecretOverlap', 'self.clientSecretRotation.interval')})"
        " || duration(self.clientSecretOverlap) <= duration(self.clientSecretRotation.interval)",
        "clientSecretOverlap must not exceed clientSecretRotation.interval",
        field_path=".clientSecretOverlap",
    ),
)


_CREDENTIALS: Final = CredentialsSecret()


class Spec(Model):
    """One OIDC client."""

    rules = (
        Rule(
            "has(self.clientID) == has(oldSelf.clientID) && (!has(self.clientID) || self.clientID == oldSelf.clientID)",
            "clientID is immutable: it cannot be added, removed or changed; delete and recreate the client instead",
            field_path=".clientID",
        ),
        *_SECRET_RULES,
        *_DOCUMENT_RULES,
    )

    name: str | None = field(
        None, doc="Name that Pocket-ID shows; default: the name of the resource.", min_length=1, max_length=255
    )
    description: str | None = field(None, doc="Description that Pocket-ID shows.", max_length=150)
    instance_selector: LabelSelector | None = selector_field()
    client_id: str | None = field(
        None,
        alias="clientID",
        doc="Client ID; Pocket-ID makes one when it is absent. The https URL of a metadata document makes the client one that the"
        " document defines. Immutable.",
        min_length=2,
        max_length=512,
        rules=(
            Rule(
                "self.size() <= 128 || self.startsWith('https://')",
                "may have at most 128 characters unless it is the https URL of a metadata document",
            ),
            Rule("self.matches('[^.]')", "must not be dots alone: in an address they are a way up"),
        ),
    )
    callback_urls: tuple[Annotated[str, _URL], ...] | None = field(
        None,
        doc="Redirect URIs, in this order. Absent leaves Pocket-ID's list alone, [] clears it. Together with logoutCallbackUrls and"
        " federatedIdentities at most 64 KiB of JSON.",
        max_items=256,
        list_type="atomic",
        example=["https://app.example.com/auth/callback"],
    )
    logout_callback_urls: tuple[Annotated[str, _URL], ...] | None = field(
        None,
        doc="Redirect URIs after a logout, in this order. Absent leaves Pocket-ID's list alone, [] clears it.",
        max_items=256,
        list_type="atomic",
    )
    backchannel_logout_url: str | None = field(
        None, doc="Where Pocket-ID tells of a logout; needs Pocket-ID 2.17.", min_length=1, max_length=2048
    )
    launch_url: str | None = field(None, doc="Where the application starts.", min_length=1, max_length=2048)
    logo_url: str | None = field(None, doc="Deprecated, used as it is before logo.logoUrl.", max_length=2048)
    dark_logo_url: str | None = field(None, doc="Deprecated, used as it is before logo.darkLogoUrl.", max_length=2048)
    logo: Logo | None = field(None, doc="Logos by URL.")
    is_public: bool = field(False, doc="Whether the client has no secret.")
    pkce_enabled: bool = field(False, doc="Whether PKCE is required; Pocket-ID requires it of a public client.")
    requires_reauthentication: bool = field(False, doc="Whether each login asks for the passkey again.")
    requires_pushed_authorization_requests: bool = field(
        False, doc="Whether authorization requests must be pushed (PAR)."
    )
    skip_consent: bool = field(False, doc="Whether users are not asked for consent.")
    access_token_duration_minutes: int = field(
        60, doc="Minutes that an access token lives.", minimum=1, maximum=525600, format="int64"
    )
    refresh_token_duration_minutes: int = field(
        43200, doc="Minutes that a refresh token lives.", minimum=1, maximum=525600, format="int64"
    )
    federated_identities: tuple[FederatedIdentity, ...] | None = field(
        None, doc="Workloads that authenticate as this client without a secret.", max_items=32, list_type="atomic"
    )
    allowed_user_groups: tuple[GroupRef, ...] | None = field(
        None, doc="The groups whose members alone may use the client.", max_items=256, list_type="atomic"
    )
    api_access: tuple[ApiAccess, ...] | None = field(
        None,
        doc="APIs that the client may use; a grant that is taken out, or made by hand, is revoked. Absent leaves alone what people granted by hand, [] revokes it.",
        max_items=64,
        list_type="atomic",
    )
    secret: CredentialsSecret | None = field(None, doc="The Secret with credentials and endpoints.")
    scim: Scim | None = field(None, doc="A SCIM service that is told of users and groups.")
    client_secret_rotation: Rotation | None = field(None, doc="Regeneration of the client secret on a schedule.")
    client_secret_ref: SecretKey | None = field(
        None,
        doc="Key of a Secret in the same namespace that holds the client secret: at least 16 printable ASCII characters. Nothing is"
        " generated or rotated then.",
    )
    client_secret_overlap: str | None = field(
        None,
        doc="How long a replaced secret stays valid; a duration in Go syntax, at most 168h and at most the interval of rotation."
        " Absent or 0: not at all.",
        max_length=64,
        example="24h",
        rules=within("0s", "168h"),
    )
    deletion_policy: Literal["Delete", "Retain"] = policy_field("Delete")

    @property
    def credentials(self) -> CredentialsSecret:
        """The Secret that is wanted, the defaults when the block is absent."""
        return self.secret or _CREDENTIALS

    @property
    def is_document(self) -> bool:
        """Whether a metadata document defines the client."""
        return (self.client_id or "").startswith("https://")

    @property
    def is_a_way_up(self) -> bool:
        """Whether the declared id would lead out of the clients in an address; an object that is older than its CRD may have one."""
        return self.client_id is not None and not self.client_id.strip(".")

    @property
    def is_confidential(self) -> bool:
        """Whether the client has a secret."""
        return not self.is_public and not self.is_document


class PocketIDOIDCClient(Resource):
    """One OIDC client in Pocket-ID."""

    spec: Spec = field(doc="What is wanted.")
    status: Status = field(Status(), doc="What was observed.", default_in_schema=False)

    @property
    def secret_name(self) -> str:
        """Name of the credentials Secret."""
        return self.spec.credentials.name or f"{self.metadata.name}{SECRET_SUFFIX}"

    @property
    def owns_access(self) -> bool:
        """Whether access to APIs is the resource's alone: it is declared, or the last that was is not taken back yet."""
        granted = self.status.managed_apis or self.status.managed_api_permission_ids
        return self.spec.api_access is not None or bool(granted)


KIND: Final = Kind(
    group=GROUP,
    version=VERSION,
    kind="PocketIDOIDCClient",
    plural="pocketidoidcclients",
    model=PocketIDOIDCClient,
    doc="PocketIDOIDCClient is an OIDC client in Pocket-ID and the Secret with its credentials.",
    short_names=("oidcclient",),
    categories=CATEGORIES,
    columns=(READY_COLUMN, Column("Client ID", "string", ".status.clientID"), REASON_COLUMN, AGE_COLUMN),
)
