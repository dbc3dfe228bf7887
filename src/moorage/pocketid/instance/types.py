"""Kind PocketIDInstance: a Pocket-ID that runs already (`external`) or that is deployed (`encryptionKey`).

Enters: nothing. Leaves: the models from which the CRD, the reference and the checks are made. Source: spec/pocketid.md 2.1; seed 004.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from moorage.pocketid.references import (
    AGE_COLUMN,
    CATEGORIES,
    DURATION,
    GROUP,
    NAMESPACE,
    READY_COLUMN,
    REASON_COLUMN,
    VERSION,
    SecretKey,
    namespaces,
    observed_generation_field,
)
from moorage.schema.kind import Kind
from moorage.schema.model import Model, Resource, StoredCondition, conditions_field, field
from moorage.schema.rule import Column, Rule

from . import types_deployment as deployed
from .types_deployment import Env

KEY_HASH: Final = f"{GROUP}/static-api-key-hash"
"""Annotation of the pod; it changes with the key."""
SETTINGS_HASH: Final = f"{GROUP}/settings-hash"
"""Annotation of the pod; it changes with what the Secrets hold that the server is set up from."""
FINALIZER: Final = f"{GROUP}/instance-finalizer"
KEY_FINALIZER: Final = f"{GROUP}/api-key-finalizer"
"""On the Secret that a person brings: it stays as long as objects at the server that are being deleted, too, need it."""
DOWNGRADE: Final = f"{GROUP}/allow-downgrade"
"""Annotation of the instance: `true` lets an older server take the place of a newer one."""
KEY_SUFFIX: Final = "-static-api-key"
KEY_TOKEN: Final = "token"  # noqa: S105 - name of a data key
PORT: Final = 1411
_URL: Final = r"^https?://"


class External(Model):
    """A server that runs already."""

    url: str = field(doc="Address of the server.", pattern=_URL, max_length=2048, example="https://id.example.org")
    api_key_secret_ref: SecretKey = field(doc="Key of a Secret in the namespace of the instance that holds an API key.")


class ClientRotation(Model):
    """How often clients of the instance rotate their secrets."""

    min_spacing: str | None = field(
        None,
        doc="Least time between two scheduled rotations of any clients; a duration in Go syntax.",
        max_length=64,
        example="4h",
        rules=(
            Rule(
                f"self.matches('{DURATION}') && duration(self) > duration('0s')",
                "must be a duration in Go syntax, such as 30m or 4h, greater than zero",
            ),
        ),
    )


class Spec(Model):
    """One server."""

    rules = (
        Rule(
            "has(self.external) != has(self.encryptionKey)",
            "exactly one of external (a server that runs already) and encryptionKey (a server to deploy) must be set",
        ),
        Rule(
            "has(self.external) == has(oldSelf.external)",
            "external cannot be added or removed: delete and recreate the instance instead",
            field_path=".external",
        ),
        Rule(
            "!has(self.s3) || !has(self.fileBackend) || self.fileBackend == 's3'",
            "fileBackend must be s3 or absent when s3 is set",
            field_path=".fileBackend",
        ),
        Rule(
            "!has(self.fileBackend) || self.fileBackend != 's3' || has(self.s3)",
            "fileBackend s3 needs s3",
            field_path=".s3",
        ),
    )

    external: External | None = field(None, doc="A server that runs already; it is used, never changed.")
    encryption_key: deployed.EncryptionKey | None = field(None, doc="Key of a server to deploy.")
    deletion_policy: Literal["Delete", "Retain"] = field(
        "Retain",
        doc="What becomes of a deployed server's volume and encryption key when this resource is deleted: Retain keeps them for an"
        " instance of the same name, Delete deletes them.",
    )
    allowed_namespaces: tuple[Annotated[str, NAMESPACE], ...] | None = namespaces(
        "Namespaces whose objects may belong to the instance, beside its own. Absent: all; []: its own only."
    )
    admin_namespaces: tuple[Annotated[str, NAMESPACE], ...] | None = namespaces(
        "Namespaces, beside the instance's own, whose PocketIDUsers may be administrators, whose objects may take over who and"
        " what exists already, and whose groups may let people into clients of other namespaces: whoever may write users there can do anything at"
        " this server. Absent: none."
    )
    client_rotation: ClientRotation | None = field(
        None, alias="OIDCClientRotation", doc="How often clients rotate their secrets."
    )
    app_url: Annotated[str | None, Env("APP_URL")] = field(
        None, doc="Address that browsers use; issuer of the tokens.", pattern=_URL, max_length=2048
    )
    internal_app_url: Annotated[str | None, Env("INTERNAL_APP_URL")] = field(
        None, doc="Address that applications use for tokens and keys.", pattern=_URL, max_length=2048
    )
    deployment_type: Literal["Deployment", "StatefulSet"] = field(
        "Deployment",
        doc="Workload of a deployed server. Immutable.",
        rules=(Rule("self == oldSelf", "deploymentType is immutable"),),
    )
    image: str | None = field(
        None, doc="Image of the server; default: the operator's POCKET_ID_IMAGE.", min_length=1, max_length=512
    )
    database_url: Annotated[deployed.Sensitive | None, Env("DB_CONNECTION_STRING")] = field(
        None, doc="Database; default: SQLite in the server's data."
    )
    file_backend: Annotated[Literal["filesystem", "s3", "database"] | None, Env("FILE_BACKEND")] = field(
        None, doc="Where files are kept; s3 when s3 is set, else filesystem."
    )
    s3: deployed.S3 | None = field(None, doc="Files in an object store.")
    env: tuple[dict[str, Any], ...] | None = field(
        None, doc="Further variables, as in a container; they win.", max_items=256, list_type="atomic"
    )
    persistence: deployed.Persistence | None = field(None, doc="The volume with the data; one of 1Gi by default.")
    resources: dict[str, Any] | None = field(None, doc="Requests and limits, as in a container.")
    pod_security_context: dict[str, Any] | None = field(None, doc="Security of the pod.")
    container_security_context: dict[str, Any] | None = field(None, doc="Security of the container.")
    host_users: bool = field(True, doc="Whether the pod shares the host's user namespace.")
    labels: dict[str, str] | None = field(None, doc="Labels of what is deployed.", max_properties=64)
    annotations: dict[str, str] | None = field(None, doc="Annotations of what is deployed.", max_properties=64)
    pod_template: dict[str, Any] | None = field(None, doc="Further fields of the pod template, merged into it.")
    service_template: dict[str, Any] | None = field(None, doc="Further fields of the Service, merged into it.")
    readiness_probe: dict[str, Any] | None = field(None, doc="Readiness probe in place of ours.")
    liveness_probe: dict[str, Any] | None = field(None, doc="Liveness probe in place of ours.")
    metrics: deployed.Metrics | None = field(None, doc="The server's own metrics.")
    route: deployed.Route | None = field(None, doc="An HTTPRoute.")
    tls: deployed.Tls | None = field(None, doc="TLS of the server itself.")
    smtp: deployed.Smtp | None = field(None, doc="The mail server.")
    email_notifications: deployed.EmailNotifications | None = field(None, doc="What users get mail about.")
    ldap: deployed.Ldap | None = field(None, doc="A directory.")
    logging: deployed.Logging | None = field(None, doc="What the server logs.")
    tracing: deployed.Tracing | None = field(None, doc="Traces.")
    ui: deployed.Ui | None = field(None, doc="How the server looks.")
    user_management: deployed.UserManagement | None = field(None, doc="What users may do.")
    webauthn: dict[str, str] | None = field(
        None, doc="Settings of passkeys: the variable WEBAUTHN_<KEY> for each key.", max_properties=32
    )
    geoip: deployed.Geoip | None = field(None, doc="Places of addresses in the audit log.")
    audit_log_retention_days: Annotated[int | None, Env("AUDIT_LOG_RETENTION_DAYS")] = field(
        None, doc="Days that the audit log is kept.", minimum=1, format="int64"
    )
    analytics_disabled: Annotated[bool, Env("ANALYTICS_DISABLED")] = field(
        False, doc="Whether the server does not report that it is used."
    )
    version_check_disabled: Annotated[bool, Env("VERSION_CHECK_DISABLED")] = field(
        False, doc="Whether the server does not look for new versions."
    )
    rate_limiting_disabled: Annotated[bool, Env("DISABLE_RATE_LIMITING")] = field(
        False, doc="Whether the server answers any number of requests."
    )
    local_ipv6_ranges: Annotated[str | None, Env("LOCAL_IPV6_RANGES")] = field(
        None, alias="localIPv6Ranges", doc="IPv6 networks that count as local, separated by commas.", max_length=1024
    )
    trusted_proxies: Annotated[str | None, Env("TRUST_PROXY")] = field(
        None, doc="Whether, or which, proxies in front are trusted.", max_length=1024
    )
    timezone: Annotated[str | None, Env("TZ")] = field(None, doc="Time zone of the server.", max_length=64)
    cimd_url_allowlist: Annotated[tuple[str, ...] | None, Env("CIMD_URL_ALLOWLIST")] = field(
        None,
        doc="URLs whose metadata documents make clients; wildcards are allowed.",
        max_items=256,
        list_type="atomic",
    )

    @property
    def volume(self) -> deployed.Persistence:
        """The volume that is wanted, the defaults when the block is absent."""
        return self.persistence or deployed.Persistence()


class Status(Model):
    """What the controller observed; it is its only writer."""

    conditions: tuple[StoredCondition, ...] = conditions_field()
    observed_generation: int | None = observed_generation_field()
    url: str | None = field(None, doc="Address at which the operator reaches the server.")
    version: str | None = field(None, doc="Version of the server.")
    static_api_key_secret_name: str | None = field(
        None, alias="staticApiKeySecretName", doc="Secret with the key that the operator uses."
    )
    encryption_key_secret_name: str | None = field(
        None, doc="Secret with the key that the data of a deployed server is encrypted with."
    )
    route_name: str | None = field(None, doc="The HTTPRoute of a deployed server.")
    last_rotated_client_secret: str | None = field(
        None, doc="When any client last rotated its secret on schedule.", format="date-time"
    )


class PocketIDInstance(Resource):
    """One Pocket-ID server."""

    spec: Spec = field(doc="What is wanted.")
    status: Status = field(Status(), doc="What was observed.", default_in_schema=False)


KIND: Final = Kind(
    group=GROUP,
    version=VERSION,
    kind="PocketIDInstance",
    plural="pocketidinstances",
    model=PocketIDInstance,
    doc="PocketIDInstance is a Pocket-ID server, one that runs already or one that is deployed.",
    short_names=("pidinstance",),
    categories=CATEGORIES,
    columns=(
        READY_COLUMN,
        Column("URL", "string", ".status.url"),
        Column("Version", "string", ".status.version"),
        REASON_COLUMN,
        AGE_COLUMN,
    ),
)
