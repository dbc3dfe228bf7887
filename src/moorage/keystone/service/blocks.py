"""The blocks of a Keystone's spec, one class a block: fields, bounds, defaults, CEL.

Enters: nothing. Leaves: the models that `types.py` puts together. It must not know how a block is rendered.
Source: spec/keystone.md 1.1; decisions, Keystone 19.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from moorage.schema.model import Model, field
from moorage.schema.rule import Rule

_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
MEMORY_CACHE = "dogpile.cache.memory"
DEFAULT_CACHE = "dogpile.cache.pymemcache"

Engine = Literal["MySQL", "PostgreSQL"]
Level = Literal["CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG"]


class NameRef(Model):
    """A reference to an object of the same namespace by name."""

    name: str = field(doc="Name of the object.", min_length=1, max_length=253, pattern=_NAME)


class SecretRef(Model):
    """A reference to a Secret of the same namespace; the data keys are fixed by the field that holds it."""

    name: str = field(doc="Name of the Secret.", min_length=1, max_length=253, pattern=_NAME)
    key: str | None = field(None, doc="Data key; the keys of this reference are fixed, so it stays empty.")


class Image(Model):
    """A container image by tag or by digest."""

    repository: str = field(
        doc="Image without tag.",
        min_length=1,
        max_length=512,
        pattern=r"^[a-z0-9]+([._:/-][a-z0-9]+)*$",
        example="moorage/keystone",
    )
    tag: str | None = field(
        None,
        doc="Tag; it is also the release that status.installedRelease shows.",
        pattern=r"^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$",
        example="30.0.0",
    )
    digest: str | None = field(None, doc="Digest; the release is then not tracked.", pattern=r"^sha256:[a-f0-9]{64}$")
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("has(self.tag) != has(self.digest)", "exactly one of tag or digest must be set"),
    )

    @property
    def reference(self) -> str:
        """The image as a container names it."""
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.tag}"


class Embedded(Model):
    """SQLite on a volume: one replica, for one machine, tests and small sites."""

    storage_size: str = field("1Gi", doc="Size of the volume claim.", max_length=32, example="1Gi")
    storage_class_name: str | None = field(None, doc="Storage class of the volume claim; default: the cluster's.")


class DatabaseTLS(Model):
    """TLS to the database. Not supported by this release."""

    mode: Literal["disabled", "prefer", "require", "verify-ca", "verify-full"] | None = field(
        None, doc="How strict the connection is."
    )
    ca_bundle_secret_ref: SecretRef | None = field(None, doc="Secret with the CA bundle.")
    client_cert_secret_ref: SecretRef | None = field(None, doc="Secret with the client certificate.")


_MODES = "[has(self.clusterRef), has(self.host), has(self.embedded)].filter(x, x).size() == 1"
_SAME_MODE = (
    "has(self.clusterRef) == has(oldSelf.clusterRef) && has(self.host) == has(oldSelf.host)"
    " && has(self.embedded) == has(oldSelf.embedded)"
)
_SAME_DATABASE = (
    "has(self.database) == has(oldSelf.database) && (!has(self.database) || self.database == oldSelf.database)"
)


class Database(Model):
    """Where Keystone keeps its data: a server by host, or SQLite on a volume."""

    cluster_ref: NameRef | None = field(None, doc="A MariaDB cluster object. Not supported by this release.")
    host: str | None = field(
        None, doc="Host name or address of the server.", min_length=1, max_length=253, pattern=r"^[a-zA-Z0-9._:-]+$"
    )
    embedded: Embedded | None = field(None, doc="SQLite on a volume; needs exactly one replica.")
    engine: Engine = field("MySQL", doc="Kind of server at host.")
    port: int | None = field(
        None, doc="TCP port; default 3306, or 5432 for PostgreSQL.", minimum=1, maximum=65535, format="int32"
    )
    database: str | None = field(
        None, doc="Name of the database; required with host.", min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_]+$"
    )
    secret_ref: SecretRef | None = field(
        None, doc="Secret with `username` and `password`; required with host. Its keys are fixed."
    )
    credentials_mode: Literal["Static", "Dynamic"] | None = field(
        None, doc="Static credentials, or short-lived ones of a cluster (not supported by this release)."
    )
    tls: DatabaseTLS | None = field(None, doc="TLS to the database. Not supported by this release.")
    replicas: int = field(3, doc="Used by an outer control plane only.", minimum=1, format="int32")
    storage_size: str = field("100Gi", doc="Used by an outer control plane only.", max_length=32)
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(_MODES, "exactly one of clusterRef, host or embedded must be set"),
        Rule(_SAME_MODE, "the database mode is immutable"),
        Rule(_SAME_DATABASE, "database is immutable", field_path=".database"),
        Rule("has(self.embedded) || has(self.database)", "database is required unless embedded is set"),
        Rule("has(self.embedded) || has(self.secretRef)", "secretRef is required unless embedded is set"),
        Rule(
            "!has(self.credentialsMode) || self.credentialsMode != 'Dynamic' || has(self.clusterRef)",
            "credentialsMode Dynamic requires clusterRef",
            field_path=".credentialsMode",
        ),
    )

    @property
    def effective_port(self) -> int:
        """The port that is used."""
        return self.port or (5432 if self.engine == "PostgreSQL" else 3306)


class Cache(Model):
    """The shared cache. Without this block nothing is kept from one request to the next."""

    cluster_ref: NameRef | None = field(None, doc="A memcached cluster object. Not supported by this release.")
    servers: tuple[str, ...] | None = field(
        None, doc="memcached servers as host:port.", min_items=1, max_items=32, example=("memcached:11211",)
    )
    backend: str = field(
        DEFAULT_CACHE,
        doc=f"oslo.cache backend. {MEMORY_CACHE} needs no server and lives in each worker alone.",
        min_length=1,
        max_length=128,
        pattern=r"^[A-Za-z0-9_.]+$",
    )
    replicas: int = field(3, doc="Used by an outer control plane only.", minimum=1, format="int32")
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"self.backend == '{MEMORY_CACHE}' ? !has(self.clusterRef) && !has(self.servers)"
            " : has(self.clusterRef) != has(self.servers)",
            f"exactly one of clusterRef or servers must be set (none with backend {MEMORY_CACHE})",
        ),
    )


class Resources(Model):
    """Compute resources of the API container."""

    requests: dict[str, Any] | None = field(None, doc="What is reserved; quantities by resource name.")
    limits: dict[str, Any] | None = field(None, doc="What is the most; quantities by resource name.")


class Deployment(Model):
    """How the API pods run."""

    replicas: int | None = field(
        None, doc="API pods; default 3, or 1 with an embedded database.", minimum=1, format="int32"
    )
    resources: Resources | None = field(None, doc="Default: requests 100m and 256Mi, limits 500m and 512Mi.")
    termination_grace_period_seconds: int | None = field(
        None, doc="Seconds that a pod may take to stop; default 30.", minimum=10, format="int64"
    )
    pre_stop_sleep_seconds: int | None = field(
        None,
        doc="Seconds that a stopping pod still serves while endpoints drain; default 5.",
        minimum=0,
        format="int64",
    )
    strategy: dict[str, Any] | None = field(
        None, doc="apps/v1 DeploymentStrategy; default RollingUpdate with maxUnavailable 0 and maxSurge 1."
    )
    topology_spread_constraints: tuple[dict[str, Any], ...] | None = field(
        None, doc="Default: over zones and hosts, maxSkew 1, ScheduleAnyway.", max_items=16
    )
    priority_class_name: str | None = field(None, doc="Priority class of the pods.", max_length=253, pattern=_NAME)
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "(has(self.preStopSleepSeconds) ? self.preStopSleepSeconds : 5) <"
            " (has(self.terminationGracePeriodSeconds) ? self.terminationGracePeriodSeconds : 30)",
            "preStopSleepSeconds must be less than terminationGracePeriodSeconds",
            field_path=".preStopSleepSeconds",
        ),
    )

    @property
    def grace(self) -> int:
        return self.termination_grace_period_seconds or 30

    @property
    def pre_stop(self) -> int:
        return 5 if self.pre_stop_sleep_seconds is None else self.pre_stop_sleep_seconds


class KeyRepository(Model):
    """One repository of keys and its rotation."""

    rotation_schedule: str = field("0 0 * * 0", doc="Cron schedule of the rotation, UTC.", min_length=1, max_length=128)
    max_active_keys: int = field(3, doc="Keys that are kept.", minimum=3, maximum=64, format="int32")
    suspend: bool = field(False, doc="No rotation while true.")


class Bootstrap(Model):
    """The first administrator, region and endpoints."""

    admin_user: str = field(
        "admin",
        doc="Name of the administrator.",
        min_length=1,
        max_length=64,
        rules=(Rule("self == oldSelf", "adminUser is immutable"),),
    )
    admin_password_secret_ref: SecretRef = field(doc="Secret with `password`. Its key is fixed.")
    region: str = field(
        "RegionOne",
        doc="Region of the endpoints.",
        min_length=1,
        max_length=255,
        rules=(Rule("self == oldSelf", "region is immutable"),),
    )
    public_endpoint: str | None = field(
        None,
        doc="URL under which clients reach Keystone; default: the internal one.",
        max_length=512,
        pattern="^https?://",
    )


class Uwsgi(Model):
    """The uWSGI server in front of Keystone."""

    processes: int = field(2, doc="Worker processes of a pod.", minimum=1, maximum=256, format="int32")
    threads: int = field(1, doc="Threads of a worker.", minimum=1, maximum=256, format="int32")
    http_keep_alive: bool = field(
        True, doc="Has no effect: a connection ends with its answer, since an idle one would hold a worker."
    )
    http_keep_alive_timeout: int | None = field(
        None,
        doc="Not supported by this release: a connection ends with its answer.",
        minimum=1,
        maximum=3600,
        format="int32",
    )
    harakiri: int | None = field(
        None,
        doc="Seconds after which a request that hangs ends with its worker; 60 where it is left out.",
        minimum=1,
        format="int32",
    )
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.httpKeepAliveTimeout) || self.httpKeepAlive",
            "httpKeepAliveTimeout requires httpKeepAlive",
            field_path=".httpKeepAliveTimeout",
        ),
    )


class Logging(Model):
    """What Keystone logs, to standard error."""

    format: Literal["text", "json"] = field("text", doc="Form of a line.")
    level: Level = field("INFO", doc="Least level that is logged.")
    debug: bool = field(False, doc="oslo.log debug mode; shows more of each request.")
    per_logger_levels: dict[str, Level] | None = field(None, doc="Levels by logger name.", max_properties=64)


class Plugin(Model):
    """A plugin of the image with its own section of keystone.conf."""

    name: str = field(doc="Name, for people.", min_length=1, max_length=64)
    config_section: str = field(
        doc="Section of keystone.conf.", min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+$"
    )
    config: dict[str, str] | None = field(None, doc="Options of that section.", max_properties=64)


class Middleware(Model):
    """A WSGI filter in api-paste.ini. Keystone 30 does not read that file."""

    name: str = field(doc="Name of the filter.", min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")
    filter_factory: str = field(
        doc="Python path of the factory, `module:function`.",
        min_length=1,
        max_length=256,
        pattern=r"^[A-Za-z0-9_.]+:[A-Za-z0-9_.]+$",
    )
    position: Literal["before", "after"] = field("before", doc="Before the built-in filters, or after them.")
    config: dict[str, str] | None = field(None, doc="Options of the filter.", max_properties=64)


class PolicyOverrides(Model):
    """Rules that override Keystone's own policy."""

    rules_: dict[str, str] | None = field(None, doc="Rules by name.", alias="rules", max_properties=512)
    config_map_ref: NameRef | None = field(
        None, doc="ConfigMap with `policy.yaml`; a rule given inline wins over one of the file."
    )


class PasswordRotation(Model):
    """Rotation of the administrator's password. Not supported by this release."""

    enabled: bool = field(False, doc="Rotate the password.")
    schedule: str = field("0 0 1 * *", doc="Cron schedule, UTC.", min_length=1, max_length=128)
    suspend: bool = field(False, doc="No rotation while true.")
    password_length: int = field(32, doc="Characters of a new password.", minimum=24, maximum=128, format="int32")


class TrustFlush(Model):
    """The CronJob that removes expired trusts."""

    schedule: str = field("0 * * * *", doc="Cron schedule, UTC.", min_length=1, max_length=128)
    suspend: bool = field(False, doc="No run while true.")
    args: tuple[str, ...] | None = field(None, doc="More arguments of `keystone-manage trust_flush`.", max_items=32)


class SecretStoreRef(Model):
    """An external secret store. Not supported by this release: bring Secrets by any means."""

    kind: Literal["ClusterSecretStore", "SecretStore"] = field("ClusterSecretStore", doc="Kind of the store.")
    name: str = field(doc="Name of the store.", min_length=1, max_length=253)
