"""Pods of a Keystone: the API, and `keystone-manage` for Jobs and CronJobs.

Enters: a declared Keystone and the names of what is mounted. Leaves: pod templates. Every command is an argument vector, no shell
reads any text of the CR, and no secret stands in an argument. The same pods run on Kubernetes and on one machine.
Source: spec/keystone.md 1.3; spec/testbed.md, "Keystone as a pod"; design, "Pods bind $(POD_IP)"; cases B07, B81.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from moorage.core.digest import content_hash
from moorage.core.expansion import literal
from moorage.core.meta import JsonObject
from moorage.keystone.addresses import PORT
from moorage.keystone.backend.ldap import SYSTEM_AUTHORITIES

from . import database_check, draining
from .conf import CONFIG_DIR, CREDENTIAL_KEYS, DOMAINS, FERNET_KEYS
from .domains import AUTHORITIES
from .types import Keystone, KeystoneSpec

PUBLIC: Final = "public"
"""Name of the port that clients are served at. Plain and federated pods carry it under their own numbers, so a Service that asks for the
name fits every pod of a roll."""
UID: Final = 42424
CONNECTION_HASH: Final = "keystone.c5c3.io/db-connection-hash"
STATE: Final = "/var/lib/keystone"
MANAGE: Final = ("keystone-manage", f"--config-dir={CONFIG_DIR}")
_SECRET_MODE: Final = 0o400
_DEFAULT_RESOURCES: Final = {
    "requests": {"cpu": "100m", "memory": "256Mi"},
    "limits": {"cpu": "500m", "memory": "512Mi"},
}
_LOG_FORMAT: Final = '"%(method) %(uri) %(proto)" %(status) %(size) %(msecs)ms'


@dataclass(frozen=True, slots=True)
class Mounts:
    """Names of the objects that pods mount.

    Args:
        domains: None when no LDAP domain is projected.
        paths: of the files of domains, with the data key of each; empty: all, each where its key says.
        public: whether directories are proven by the authorities of the image, too, beside those of `paths`.
    """

    config: str
    domains: str | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    public: bool = False


def labels(name: str) -> dict[str, str]:
    """Labels of every child of the Keystone `name`."""
    return {**selector(name), "app.kubernetes.io/managed-by": "keystone-operator"}


def selector(name: str) -> dict[str, str]:
    """Labels by which all pods of the Keystone `name` are found, Jobs included."""
    return {"app.kubernetes.io/name": "keystone", "app.kubernetes.io/instance": name}


def api_selector(name: str) -> dict[str, str]:
    """Labels of the API pods alone."""
    return {**selector(name), "app.kubernetes.io/component": "api"}


def saml_selector(name: str) -> dict[str, str]:
    """Labels of the pod that answers SAML for all replicas."""
    return {**selector(name), "app.kubernetes.io/component": "saml"}


def api_template(keystone: Keystone, mounts: Mounts, connection: str) -> JsonObject:
    """The pod template of the Deployment. A new connection rolls it, a rotated key does not."""
    spec, name = keystone.spec, keystone.metadata.name
    block = spec.pods
    pod: JsonObject = {
        **_pod(keystone, mounts),
        **_checked(keystone),
        "containers": [_api(keystone, mounts)],
        "terminationGracePeriodSeconds": block.grace,
        "topologySpreadConstraints": list(block.topology_spread_constraints or _spread(name)),
    }
    if block.priority_class_name:
        pod["priorityClassName"] = block.priority_class_name
    annotations = {CONNECTION_HASH: content_hash({"connection": connection.encode()})}
    return {"metadata": {"labels": {**labels(name), **api_selector(name)}, "annotations": annotations}, "spec": pod}


def manage_template(keystone: Keystone, config: str, argv: Sequence[str], env: Sequence[JsonObject] = ()) -> JsonObject:
    """A pod that runs one `keystone-manage` command. Domain files are not mounted: attaching a backend must not rerun it."""
    mounts = Mounts(config)
    container = {
        **_container(keystone, mounts),
        "name": "keystone-manage",
        "command": [*MANAGE, *map(literal, argv)],
        "env": [_connection_env(keystone), *env],
    }
    pod = {**_pod(keystone, mounts), **_checked(keystone), "containers": [container], "restartPolicy": "Never"}
    return {"metadata": {"labels": labels(keystone.metadata.name)}, "spec": pod}


def _pod(keystone: Keystone, mounts: Mounts) -> JsonObject:
    name = keystone.metadata.name
    volumes: list[JsonObject] = [
        {"name": "config", "configMap": {"name": mounts.config}},
        _secret_volume("fernet-keys", f"{name}-fernet-keys"),
        _secret_volume("credential-keys", f"{name}-credential-keys"),
        {"name": "tmp", "emptyDir": {}},
    ]
    if mounts.domains:
        volumes.append(_secret_volume("domains", mounts.domains, mounts.paths))
    pod: JsonObject = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": UID,
            "runAsGroup": UID,
            "fsGroup": UID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    if keystone.spec.database.embedded is not None:
        volumes.append({"name": "state", "persistentVolumeClaim": {"claimName": f"{name}-data"}})
        pod["affinity"] = _one_node(name)
    return {**pod, "volumes": volumes}


def _secret_volume(name: str, secret: str, paths: Mapping[str, str] | None = None) -> JsonObject:
    items = [{"key": key, "path": path} for path, key in sorted((paths or {}).items())]
    source = {"secretName": secret, "defaultMode": _SECRET_MODE, **({"items": items} if items else {})}
    return {"name": name, "secret": source}


def _one_node(name: str) -> JsonObject:
    """The volume of an embedded database is on one node; old and new pod of a roll, and Jobs, meet there."""
    term = {"labelSelector": {"matchLabels": selector(name)}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _spread(name: str) -> list[JsonObject]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector(name)},
        }
        for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
    ]


def _container(keystone: Keystone, mounts: Mounts) -> JsonObject:
    found: list[JsonObject] = [
        {"name": "config", "mountPath": CONFIG_DIR, "readOnly": True},
        {"name": "fernet-keys", "mountPath": f"{FERNET_KEYS}/", "readOnly": True},
        {"name": "credential-keys", "mountPath": f"{CREDENTIAL_KEYS}/", "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a volume of the pod's own
    ]
    if mounts.domains:
        found.append({"name": "domains", "mountPath": DOMAINS, "readOnly": True})
    if keystone.spec.database.embedded is not None:
        found.append({"name": "state", "mountPath": STATE})
    return {
        "image": keystone.spec.image.reference,
        "volumeMounts": found,
        "securityContext": CONFINED,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


CONFINED: Final = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def _checked(keystone: Keystone) -> JsonObject:
    """The container that proves the account of a database server before anything else runs; nothing for an embedded database."""
    if keystone.spec.database.embedded is not None:
        return {}
    check: JsonObject = {
        "name": "database",
        "image": keystone.spec.image.reference,
        "command": list(database_check.COMMAND),
        "env": [_connection_env(keystone)],
        "resources": _resources(keystone),
        "securityContext": CONFINED,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    return {"initContainers": [check]}


def _resources(keystone: Keystone) -> JsonObject:
    wanted = keystone.spec.pods.resources
    return wanted.to_wire() if wanted is not None else _DEFAULT_RESOURCES


def _connection_env(keystone: Keystone) -> JsonObject:
    ref = {"name": f"{keystone.metadata.name}-db-connection", "key": "connection"}
    return {"name": "OS_DATABASE__CONNECTION", "valueFrom": {"secretKeyRef": ref}}


def _api(keystone: Keystone, mounts: Mounts) -> JsonObject:
    spec = keystone.spec
    return {
        **_container(keystone, mounts),
        "name": "keystone",
        "command": uwsgi(spec),
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            _connection_env(keystone),
            *_authorities(mounts),
        ],
        "ports": [{"name": PUBLIC, "containerPort": PORT, "protocol": "TCP"}],
        "resources": _resources(keystone),
        # A TCP connect succeeds before the application is loaded, so only GET /v3 counts (spec/testbed.md).
        "startupProbe": {"httpGet": _V3, "periodSeconds": 2, "timeoutSeconds": 8, "failureThreshold": 150},
        "readinessProbe": {"httpGet": _V3, "periodSeconds": 5, "timeoutSeconds": 8, "failureThreshold": 3},
        "livenessProbe": {"tcpSocket": {"port": PORT}, "initialDelaySeconds": 15, "periodSeconds": 20},
        "lifecycle": {"preStop": {"exec": {"command": draining.alone(spec, PORT)}}},
    }


def _authorities(mounts: Mounts) -> list[JsonObject]:
    """What libldap trusts before Keystone has named anything: of some domains the one, of others the other, and what comes first counts for all."""
    if not mounts.public:
        return []
    found = {"LDAPTLS_CACERT": f"{DOMAINS}/{AUTHORITIES}", "LDAPTLS_CACERTDIR": SYSTEM_AUTHORITIES}
    return [{"name": name, "value": value} for name, value in found.items()]


LONGEST: Final = 60
"""Seconds of a request. A directory that takes a connection and never answers would hold its worker for ever, and two such logins all of Keystone: neither
Keystone nor libldap ends the handshake of ldaps."""
_V3: Final = {"path": "/v3", "port": PORT}


def uwsgi(spec: KeystoneSpec, *, socket: str = "") -> list[str]:
    """The argument vector of the API server, at the pod's address or, behind the sidecar, at a Unix socket.

    SIGTERM finishes the requests in flight: `die-on-term` would drop them (spec/testbed.md).
    """
    server = spec.uwsgi
    where = [socket, "--chmod-socket=660"] if socket else [f"$(POD_IP):{PORT}"]
    # Behind the sidecar every connection comes from it; the last address of the header is the one that it saw.
    client = "%(var.HTTP_X_FORWARDED_FOR)" if socket else "%(addr)"
    argv = ["uwsgi", "--http-socket", *where, "--module", "keystone.wsgi.api:application"]
    argv += ["--master", "--lazy-apps", "--need-app", "--enable-threads", "--buffer-size", "65535"]
    argv += ["--processes", str(server.processes), "--threads", str(server.threads)]
    if server.processes > 1:  # Keystone's code is read once for all workers; each makes the application for itself
        argv += ["--shared-import", "keystone.server.wsgi"]
    argv += ["--hook-master-start", "unix_signal:15 gracefully_kill_them_all"]
    argv += ["--skip-atexit-teardown"]  # Python's own end hangs in a worker until it is killed, three seconds later
    argv += ["--worker-reload-mercy", str(min(draining.MERCY, max(1, spec.pods.grace - spec.pods.pre_stop)))]
    argv += ["--log-master", "--log-format", f"{client} {_LOG_FORMAT}", "--add-header", "Connection: close"]
    argv += ["--harakiri", str(server.harakiri or LONGEST)]
    return [*argv, f"--pyargv=--config-dir={CONFIG_DIR}"]
