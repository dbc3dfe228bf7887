"""The deployed half of an instance's declaration: one line for each setting of the server, with the variable that it becomes.

Enters: nothing. Leaves: models that `types.py` puts into the kind. A field marked `Env` becomes that environment variable of the
server; the render walks over the marks. Source: spec/pocketid.md 2.1, 5.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from moorage.pocketid.references import SecretName, SecretSource
from moorage.schema.model import Model, field
from moorage.schema.rule import Rule


@dataclass(frozen=True, slots=True)
class Env:
    """Mark of a field that becomes this environment variable."""

    name: str


class Sensitive(Model):
    """A value, inline or in a Secret; exactly one of the two."""

    rules = (Rule("has(self.value) != has(self.valueFrom)", "exactly one of value and valueFrom must be set"),)

    value: str | None = field(None, doc="The value itself; a Secret keeps it better.", min_length=1, max_length=4096)
    value_from: SecretSource | None = field(None, doc="Where the value is kept.")


class EncryptionKey(Model):
    """The key that the server encrypts with: inline, in a Secret, or made once; exactly one of the three."""

    rules = (
        Rule(
            "(has(self.value) ? 1 : 0) + (has(self.valueFrom) ? 1 : 0) + (has(self.generate) && self.generate ? 1 : 0) == 1",
            "exactly one of value and valueFrom must be set, or generate in their place",
        ),
        Rule(
            "!has(self.value) || self.value.size() >= 16", "must have at least 16 characters", field_path=".value"
        ),  # no minLength: its complaint would print the key
    )

    value: str | None = field(
        None, doc="The key itself, at least 16 characters; a Secret keeps it better.", max_length=4096
    )
    value_from: SecretSource | None = field(None, doc="Where the key is kept.")
    generate: bool | None = field(
        None, doc="Whether a key is made, once, and kept in the Secret that the status names; back that Secret up."
    )


class Persistence(Model):
    """The volume with the server's data."""

    enabled: bool = field(True, doc="Whether data outlives the pod.")
    existing_claim: str | None = field(
        None, doc="A PersistentVolumeClaim that is there already.", min_length=1, max_length=253
    )
    storage_class: str | None = field(None, doc="Class of the volume.", max_length=253)
    size: str = field("1Gi", doc="Size of the volume.", min_length=1, max_length=64)
    access_modes: tuple[str, ...] = field(
        ("ReadWriteOnce",), doc="Access modes of the volume.", max_items=8, list_type="atomic"
    )
    path: str = field("/app/data", doc="Where the volume is mounted.", min_length=1, max_length=1024)
    sub_path: str | None = field(None, doc="Folder of the volume that is mounted.", max_length=1024)
    extra_volume_mounts: tuple[dict[str, Any], ...] | None = field(
        None, doc="Further mounts, as in a container.", max_items=64, list_type="atomic"
    )


class Metrics(Model):
    """The server's own metrics."""

    enabled: bool = field(False, doc="Whether they are served.")
    port: int = field(9464, doc="Port on which they are served.", minimum=1, maximum=65535, format="int32")


class Route(Model):
    """An HTTPRoute of the Gateway API."""

    enabled: bool = field(False, doc="Whether there is one.")
    parent_refs: tuple[dict[str, Any], ...] | None = field(None, doc="Gateways.", max_items=32, list_type="atomic")
    hostnames: tuple[str, ...] | None = field(
        None, doc="Names; default: that of appUrl.", max_items=16, list_type="atomic"
    )
    name: str | None = field(
        None, doc="Name of the route; default: that of the instance.", min_length=1, max_length=253
    )
    labels: dict[str, str] | None = field(None, doc="Labels of the route.", max_properties=64)
    annotations: dict[str, str] | None = field(None, doc="Annotations of the route.", max_properties=64)
    template: dict[str, Any] | None = field(None, doc="Further fields of the route, merged into it.")


class Tls(Model):
    """TLS of the server itself."""

    secret_ref: SecretName = field(doc="Secret with tls.crt and tls.key.")


class S3(Model):
    """Files in an object store."""

    bucket: Annotated[str, Env("S3_BUCKET")] = field(doc="Bucket.", min_length=1, max_length=255)
    region: Annotated[str | None, Env("S3_REGION")] = field(None, doc="Region.", max_length=255)
    endpoint: Annotated[str | None, Env("S3_ENDPOINT")] = field(None, doc="Address of the store.", max_length=2048)
    access_key_id: Annotated[Sensitive, Env("S3_ACCESS_KEY_ID")] = field(
        alias="accessKeyID", doc="Id of the access key."
    )
    secret_access_key: Annotated[Sensitive, Env("S3_SECRET_ACCESS_KEY")] = field(doc="The access key.")
    force_path_style: Annotated[bool, Env("S3_FORCE_PATH_STYLE")] = field(
        False, doc="Whether the bucket stands in the path rather than in the host name."
    )
    disable_default_integrity_checks: Annotated[bool, Env("S3_DISABLE_DEFAULT_INTEGRITY_CHECKS")] = field(
        False, doc="Whether checksums are left out, for stores that refuse them."
    )


class Smtp(Model):
    """The mail server."""

    host: Annotated[str, Env("SMTP_HOST")] = field(doc="Host.", min_length=1, max_length=253)
    port: Annotated[int, Env("SMTP_PORT")] = field(587, doc="Port.", minimum=1, maximum=65535, format="int32")
    from_: Annotated[str, Env("SMTP_FROM")] = field(alias="from", doc="Sender.", min_length=1, max_length=320)
    user: Annotated[str | None, Env("SMTP_USER")] = field(None, doc="Name to log in with.", max_length=320)
    password: Annotated[Sensitive | None, Env("SMTP_PASSWORD")] = field(None, doc="Password to log in with.")
    tls: Annotated[Literal["none", "starttls", "tls"], Env("SMTP_TLS")] = field(
        "none", doc="How the connection is secured."
    )
    skip_cert_verify: Annotated[bool, Env("SMTP_SKIP_CERT_VERIFY")] = field(
        False, doc="Whether the certificate is not verified."
    )


class EmailNotifications(Model):
    """What users get mail about."""

    login_notification: Annotated[bool, Env("EMAIL_LOGIN_NOTIFICATION_ENABLED")] = field(
        False, doc="A login from a new device."
    )
    one_time_access_as_admin: Annotated[bool, Env("EMAIL_ONE_TIME_ACCESS_AS_ADMIN_ENABLED")] = field(
        False, doc="A login code that an administrator sends."
    )
    one_time_access_as_unauthenticated: Annotated[bool, Env("EMAIL_ONE_TIME_ACCESS_AS_UNAUTHENTICATED_ENABLED")] = (
        field(False, doc="A login code that users ask for themselves.")
    )
    api_key_expiration: Annotated[bool, Env("EMAIL_API_KEY_EXPIRATION_ENABLED")] = field(
        False, doc="A key for the API that ends soon."
    )
    verification: Annotated[bool, Env("EMAIL_VERIFICATION_ENABLED")] = field(
        False, doc="Verification of the mail address."
    )


class LdapAttributes(Model):
    """Attributes of the directory; what is unset keeps the server's own default."""

    user_unique_identifier: Annotated[str | None, Env("LDAP_ATTRIBUTE_USER_UNIQUE_IDENTIFIER")] = field(
        None, doc="Identifies a user.", max_length=256
    )
    user_username: Annotated[str | None, Env("LDAP_ATTRIBUTE_USER_USERNAME")] = field(
        None, doc="Login name.", max_length=256
    )
    user_email: Annotated[str | None, Env("LDAP_ATTRIBUTE_USER_EMAIL")] = field(
        None, doc="Mail address.", max_length=256
    )
    user_first_name: Annotated[str | None, Env("LDAP_ATTRIBUTE_USER_FIRST_NAME")] = field(
        None, doc="First name.", max_length=256
    )
    user_last_name: Annotated[str | None, Env("LDAP_ATTRIBUTE_USER_LAST_NAME")] = field(
        None, doc="Last name.", max_length=256
    )
    user_display_name: Annotated[str | None, Env("LDAP_ATTRIBUTE_USER_DISPLAY_NAME")] = field(
        None, doc="Name that people see.", max_length=256
    )
    user_profile_picture: Annotated[str | None, Env("LDAP_ATTRIBUTE_USER_PROFILE_PICTURE")] = field(
        None, doc="Picture.", max_length=256
    )
    group_member: Annotated[str | None, Env("LDAP_ATTRIBUTE_GROUP_MEMBER")] = field(
        None, doc="Members of a group.", max_length=256
    )
    group_unique_identifier: Annotated[str | None, Env("LDAP_ATTRIBUTE_GROUP_UNIQUE_IDENTIFIER")] = field(
        None, doc="Identifies a group.", max_length=256
    )
    group_name: Annotated[str | None, Env("LDAP_ATTRIBUTE_GROUP_NAME")] = field(
        None, doc="Name of a group.", max_length=256
    )


class Ldap(Model):
    """A directory from which users and groups are synchronised."""

    enabled: Annotated[bool, Env("LDAP_ENABLED")] = field(True, doc="Whether it is.")
    url: Annotated[str, Env("LDAP_URL")] = field(doc="Address of the directory.", pattern=r"^ldaps?://", max_length=512)
    bind_dn: Annotated[str, Env("LDAP_BIND_DN")] = field(
        alias="bindDN", doc="DN to bind with.", min_length=1, max_length=512
    )
    bind_password: Annotated[Sensitive, Env("LDAP_BIND_PASSWORD")] = field(doc="Password to bind with.")
    base: Annotated[str, Env("LDAP_BASE")] = field(doc="Base DN.", min_length=1, max_length=512)
    user_search_filter: Annotated[str | None, Env("LDAP_USER_SEARCH_FILTER")] = field(
        None, doc="Filter of users.", max_length=1024
    )
    user_group_search_filter: Annotated[str | None, Env("LDAP_USER_GROUP_SEARCH_FILTER")] = field(
        None, doc="Filter of groups.", max_length=1024
    )
    admin_group_name: Annotated[str | None, Env("LDAP_ADMIN_GROUP_NAME")] = field(
        None, doc="Group whose members administer Pocket-ID.", max_length=256
    )
    skip_cert_verify: Annotated[bool, Env("LDAP_SKIP_CERT_VERIFY")] = field(
        False, doc="Whether the certificate is not verified."
    )
    soft_delete_users: Annotated[bool, Env("LDAP_SOFT_DELETE_USERS")] = field(
        True, doc="Whether users that left the directory are disabled rather than deleted."
    )
    attributes: LdapAttributes | None = field(None, doc="Attributes of the directory.")


class Logging(Model):
    """What the server logs."""

    level: Annotated[Literal["debug", "info", "warn", "error"], Env("LOG_LEVEL")] = field(
        "info", doc="Least severe level."
    )
    json_: Annotated[bool, Env("LOG_JSON")] = field(False, alias="json", doc="Whether lines are JSON.")
    query_args: Annotated[bool, Env("LOG_QUERY_ARGS")] = field(
        False, doc="Whether the query of a request is logged; it may hold codes."
    )


class Tracing(Model):
    """Traces."""

    endpoint: Annotated[str, Env("OTEL_EXPORTER_OTLP_ENDPOINT")] = field(
        doc="Address of an OTLP collector.", min_length=1, max_length=2048
    )


class Ui(Model):
    """How the server looks."""

    app_name: Annotated[str | None, Env("APP_NAME")] = field(None, doc="Name of the application.", max_length=50)
    accent_color: Annotated[str | None, Env("ACCENT_COLOR")] = field(None, doc="Colour of buttons.", max_length=64)
    home_page_url: Annotated[str | None, Env("HOME_PAGE_URL")] = field(
        None, doc="Where users land after a login.", max_length=2048
    )
    disable_animations: Annotated[bool, Env("DISABLE_ANIMATIONS")] = field(False, doc="Whether nothing moves.")
    config_disabled: Annotated[bool, Env("UI_CONFIG_DISABLED")] = field(
        True, doc="Whether settings come from here only, and the page for them is closed."
    )


class UserManagement(Model):
    """What users may do with their accounts."""

    emails_verified: Annotated[bool, Env("EMAILS_VERIFIED")] = field(
        False, doc="Whether mail addresses count as verified."
    )
    require_user_email: Annotated[bool, Env("REQUIRE_USER_EMAIL")] = field(
        True, doc="Whether every user needs a mail address."
    )
    allow_own_account_edit: Annotated[bool, Env("ALLOW_OWN_ACCOUNT_EDIT")] = field(
        True, doc="Whether users may change their own data."
    )
    allow_user_signups: Annotated[Literal["disabled", "withToken", "open"], Env("ALLOW_USER_SIGNUPS")] = field(
        "disabled", doc="Who may sign up."
    )
    session_duration: Annotated[int | None, Env("SESSION_DURATION")] = field(
        None, doc="Minutes that a session lasts.", minimum=1, maximum=43200, format="int64"
    )


class Geoip(Model):
    """Places of addresses in the audit log."""

    maxmind_license_key: Annotated[Sensitive | None, Env("MAXMIND_LICENSE_KEY")] = field(
        None, doc="Licence of MaxMind."
    )
    db_path: Annotated[str | None, Env("GEOLITE_DB_PATH")] = field(None, doc="File of the database.", max_length=1024)
    db_url: Annotated[str | None, Env("GEOLITE_DB_URL")] = field(None, doc="Address of the database.", max_length=2048)
