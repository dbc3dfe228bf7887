"""API pods behind the federation sidecar: a second container, the socket between the two, and how both end.

Enters: the plain pod template and what the sidecar mounts. Leaves: the federated one. The sidecar alone is reachable; uWSGI listens on a
Unix socket in a folder of the pod, so nothing but the sidecar can reach it. No secret stands in a template.
Source: spec/keystone.md 1.3; decisions, Keystone 9, 18, 22; contract "Sidecar facts"; ADR 0012; C19.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moorage.core.meta import JsonObject
from moorage.keystone.backend.federation import FOLDER

from . import draining, pods
from .federation import MELLON_VOLUME, Mount
from .proxy import SOCKET
from .types import Keystone

PORT: Final = 5050
NAME: Final = "federation-proxy"
"""The sidecar's container."""
BASE: Final = f"{FOLDER}/httpd-base.conf"
SAML: Final = "saml"
"""Component label of the one pod that answers SAML when there are several replicas (ADR 0012)."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What federated pods run and mount besides the rest.

    Args:
        image: of the sidecar.
        secret: name of the Secret with every file of it.
        mounts: where these files are.
        elsewhere: SAML is answered by the Deployment `<keystone>-saml`, not by these pods.
    """

    image: str
    secret: str
    mounts: tuple[Mount, ...]
    elsewhere: bool = False

    @property
    def saml(self) -> bool:
        """Whether a SAML backend is served."""
        return any(mount.volume == MELLON_VOLUME for mount in self.mounts)


def image_of(deployment: JsonObject | None) -> str:
    """Image of the sidecar in a live Deployment's template, "" when it has none."""
    pods_spec = ((deployment or {}).get("spec") or {}).get("template", {}).get("spec") or {}
    return next((item["image"] for item in pods_spec.get("containers") or () if item["name"] == NAME), "")


def federated(keystone: Keystone, plain: JsonObject, sidecar: Sidecar, *, component: str = "api") -> JsonObject:
    """The template of API pods with the sidecar in front; `component` says which of the two Deployments they belong to."""
    pod = plain["spec"]
    api, *others = pod["containers"]
    here = sidecar.saml and (component == SAML or not sidecar.elsewhere)
    containers = [_behind(keystone, api), *others, _proxy(keystone, sidecar, here=here)]
    labels = {**plain["metadata"]["labels"], "app.kubernetes.io/component": component}
    return {
        "metadata": {**plain["metadata"], "labels": labels},
        "spec": {**pod, "containers": containers, "volumes": [*pod["volumes"], *_volumes(sidecar)]},
    }


def _behind(keystone: Keystone, api: JsonObject) -> JsonObject:
    """The container of Keystone, on the socket. Whether it is ready, the sidecar's probe says: it asks through both."""
    plain = {name: value for name, value in api.items() if name not in ("ports", "readinessProbe")}
    return {
        **plain,
        "command": pods.uwsgi(keystone.spec, socket=SOCKET),
        "volumeMounts": [*api["volumeMounts"], _RUN],
        "startupProbe": {**_exec(_ASKS), "periodSeconds": 2, "timeoutSeconds": 8, "failureThreshold": 150},
        "livenessProbe": {**_exec(_CONNECTS), "initialDelaySeconds": 15, "periodSeconds": 20, "timeoutSeconds": 8},
        "lifecycle": {"preStop": {"exec": {"command": draining.behind(keystone.spec, PORT)}}},
    }


_RUN: Final = {"name": "run", "mountPath": draining.SHARED}
_CONNECTS: Final = f"""\
import socket
link = socket.socket(socket.AF_UNIX)
link.settimeout(7)
try:
    link.connect("{SOCKET}")
except OSError as error:
    raise SystemExit(f"{SOCKET}: {{error.strerror or error}}")
"""
_ASKS: Final = (
    _CONNECTS
    + """\
try:
    link.sendall(b"GET /v3 HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n")
    said = link.makefile("rb").readline().decode(errors="replace").strip()
except OSError as error:
    raise SystemExit(f"no answer to GET /v3: {error.strerror or error}")
if " 200 " not in said:
    raise SystemExit(f"GET /v3: {said or 'the connection was closed'}")
"""
)


def _exec(script: str) -> JsonObject:
    return {"exec": {"command": ["python3", "-I", "-S", "-c", script]}}


def _proxy(keystone: Keystone, sidecar: Sidecar, *, here: bool) -> JsonObject:
    mounts = [
        *(
            _mount(volume, part)
            for volume, part in sorted({(m.volume, m.path.partition("/")[0]) for m in sidecar.mounts})
        ),
        {"name": "federation-proxy-tmp", "mountPath": "/tmp"},  # noqa: S108 - a volume of the pod's own
        _RUN,
    ]
    return {
        "name": NAME,
        "image": sidecar.image,
        "command": ["apache2", "-DFOREGROUND", "-f", BASE, *(["-D", "SAML_HERE"] if here else [])],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        # The name by which the Service finds a pod's port: plain pods carry it too, under their own number.
        "ports": [{"name": pods.PUBLIC, "containerPort": PORT, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "25m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        # Asks through both: Keystone's first answer is what the pod waits for, and the readiness probe would look again five seconds later only.
        "startupProbe": {
            "httpGet": {"path": "/v3", "port": PORT}, "periodSeconds": 2, "timeoutSeconds": 8, "failureThreshold": 150,
        },
        "readinessProbe": {
            "httpGet": {"path": "/v3", "port": PORT}, "periodSeconds": 5, "timeoutSeconds": 8, "failureThreshold": 3,
        },
        "livenessProbe": {"tcpSocket": {"port": PORT}, "initialDelaySeconds": 15, "periodSeconds": 20},
        "lifecycle": {"preStop": {"exec": {"command": draining.proxy(keystone.spec)}}},
        "volumeMounts": mounts,
        "securityContext": pods.CONFINED,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }  # fmt: skip


def _mount(volume: str, part: str) -> JsonObject:
    """A file, or a folder of regular files. Mounted whole, every file of a Secret is a link, and httpd is to see none (decision 9)."""
    return {"name": volume, "mountPath": f"{FOLDER}/{part}", "subPath": part, "readOnly": True}


def _volumes(sidecar: Sidecar) -> list[JsonObject]:
    names = sorted({mount.volume for mount in sidecar.mounts})
    return [
        *(_volume(name, sidecar) for name in names),
        {"name": "federation-proxy-tmp", "emptyDir": {}},
        {"name": "run", "emptyDir": {}},
    ]


def _volume(name: str, sidecar: Sidecar) -> JsonObject:
    items = sorted((mount.key, mount.path) for mount in sidecar.mounts if mount.volume == name)
    paths = [{"key": key, "path": path} for key, path in items]
    return {"name": name, "secret": {"secretName": sidecar.secret, "defaultMode": 0o400, "items": paths}}
