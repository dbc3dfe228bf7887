"""Advice that a write of a built-in kind gives: what is accepted and likely wrong.

Enters: a defaulted object. Leaves: sentences. Must not change it. Source: warnings of kube-apiserver 1.36.3.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from moorage.core.meta import JsonObject, ResourceType
from moorage.core.quantity import parse_quantity

_TEMPLATES = {
    ("", "Pod"): "spec",
    ("apps", "Deployment"): "spec.template.spec",
    ("apps", "ReplicaSet"): "spec.template.spec",
    ("batch", "Job"): "spec.template.spec",
    ("batch", "CronJob"): "spec.jobTemplate.spec.template.spec",
}
_BYTES = frozenset({"memory", "ephemeral-storage", "storage"})
_LONG = 18
"""Digits beyond which Kubernetes keeps a number in another form."""
_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----")


def warn_builtin(rt: ResourceType, obj: JsonObject) -> tuple[str, ...]:
    """Advice about a built-in object."""
    if rt.kind == "Secret" and rt.group == "" and obj.get("type") == "kubernetes.io/tls":
        return _pair(obj.get("data") or {})
    if rt.kind == "PersistentVolumeClaim":
        return tuple(_fractions("spec.resources.requests", (obj["spec"].get("resources") or {}).get("requests")))
    path = _TEMPLATES.get((rt.group, rt.kind))
    return _pod(path, obj) if path else ()


def _pod(path: str, obj: Any) -> tuple[str, ...]:
    for step in path.split("."):
        obj = obj.get(step) or {}
    grace = obj.get("terminationGracePeriodSeconds")
    found = []
    for name in ("initContainers", "containers"):
        for index, container in enumerate(obj.get(name) or ()):
            for part in ("limits", "requests"):
                asked = (container.get("resources") or {}).get(part)
                found += _fractions(f"{path}.{name}[{index}].resources.{part}", asked)
    if isinstance(grace, int) and grace < 0:
        why = "must be >= 0; negative values are invalid and will be treated as 1"
        found.append(f"{path}.terminationGracePeriodSeconds: {why}")
    return tuple(found)


def _fractions(path: str, amounts: JsonObject | None) -> list[str]:
    """Amounts of bytes that are not whole."""
    found = []
    for name in _BYTES & (amounts or {}).keys():
        text = str((amounts or {})[name])
        if _thousandths(text) % 1000:
            found.append(f'{path}[{name}]: fractional byte value "{text}" is invalid, must be an integer')
    return sorted(found)


def _thousandths(text: str) -> int:
    """The amount in thousandths; of one that does not fit, what Kubernetes has in its 64 bits: nothing, or the rest of a long or binary number."""
    try:
        whole = int(parse_quantity(text) * 1000)
    except ValueError:
        return 0
    if abs(whole) < 1 << 63:
        return whole
    if not text.endswith("i") and sum(sign.isdecimal() for sign in text) <= _LONG:
        return 0
    rest = whole & ((1 << 64) - 1)
    return rest - (1 << 64) if rest >> 63 else rest


def _pair(data: JsonObject) -> tuple[str, ...]:
    """Whether certificate and key of a TLS Secret are PEM at all."""
    for name, what in (("tls.crt", "certificate"), ("tls.key", "key")):
        try:
            text = base64.b64decode(data.get(name) or "").decode("latin-1")
        except binascii.Error:
            return ()
        found = _PEM.findall(text)
        if not found:
            return (f"tls: failed to find any PEM data in {what} input",)
        wanted = [
            kind for kind in found if (kind == "CERTIFICATE" if what == "certificate" else kind.endswith("PRIVATE KEY"))
        ]
        if not wanted and what == "certificate":
            skipped = "after skipping PEM blocks of the following types: "
            return (f'tls: failed to find "CERTIFICATE" PEM block in certificate input {skipped}[{" ".join(found)}]',)
    return ()
