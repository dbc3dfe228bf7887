"""Objects as Go structs would print them: what is empty and optional disappears, what is null and text becomes empty text.

Enters: a decoded built-in object. It is changed in place. Must not set defaults that mean something: those are each kind's own.
Source: field tags (`omitempty`) of the API types, seen through answers of kube-apiserver 1.36.3.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.core.meta import JsonObject


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TEXT_MAPS: Final = frozenset(
    {"labels", "annotations", "matchLabels", "data", "stringData", "nodeSelector", "parameters"}
)
_MAPS: Final = _TEXT_MAPS | {"binaryData", "limits", "requests", "capacity", "hard", "used", "overhead", "extra"}
_FLAGS: Final = _words("hostNetwork hostPID hostIPC stdin stdinOnce tty readOnly paused publishNotReadyAddresses")
_NUMBERS: Final = _words(
    "minReadySeconds hostPort initialDelaySeconds nodePort healthCheckNodePort count observedGeneration updatedReplicas "
    "readyReplicas availableReplicas unavailableReplicas fullyLabeledReplicas active succeeded failed"
)
_TEXTS: Final = _words(
    "value subPath subPathExpr serviceAccountName serviceAccount nodeName hostname subdomain workingDir medium hostIP podIP "
    "generateName priorityClassName clusterIP externalName loadBalancerIP image imagePullPolicy restartPolicy dnsPolicy type "
    "protocol sessionAffinity schedulerName terminationMessagePath terminationMessagePolicy selfLink phase"
)
_KEPT_LISTS: Final = frozenset({"verbs", "containers", "versions", "admissionReviewVersions"})
_KEPT_TEXT_PARENTS: Final = frozenset({"hostPath"})


def tidy(obj: JsonObject) -> None:
    """Drops nulls and empty optional values, in place; a null text in a map of texts becomes empty text.

    To be called on what was decoded, before schema defaults: those drop nulls themselves. CustomResourceDefinitions are left
    alone, because their schemas hold any JSON.
    """
    if obj.get("kind") == "CustomResourceDefinition":
        return
    for name, value in obj.items():
        if isinstance(value, dict | list):
            _tidy(value, name)
    _drop(obj, "/")


def _tidy(value: Any, name: str) -> None:
    if isinstance(value, list):
        for item in value:
            if isinstance(item, dict | list):
                _tidy(item, "")
        return
    if name in _TEXT_MAPS or (
        name == "selector" and all(item is None or isinstance(item, str) for item in value.values())
    ):
        value.update({key: "" for key, item in value.items() if item is None})
        return
    for key, below in value.items():
        if isinstance(below, dict | list):
            _tidy(below, key)
    _drop(value, name)


def _drop(value: JsonObject, name: str) -> None:
    for key in [key for key, below in value.items() if _is_empty(key, below, name)]:
        del value[key]


def _is_empty(key: str, value: Any, parent: str) -> bool:
    match value:
        case None:
            return True
        case False:
            return key in _FLAGS
        case 0:
            return key in _NUMBERS
        case "":
            return key in _TEXTS and parent not in _KEPT_TEXT_PARENTS
        case []:
            return key not in _KEPT_LISTS and (key, parent) != ("rules", "/")
        case dict():
            return not value and key in _MAPS
        case _:
            return False


def nulls(items: Any, *names: str) -> None:
    """Sets times that Go prints even when they are unset."""
    for item in items or ():
        for name in names:
            item.setdefault(name, None)
