"""Embedded resources: objects inside objects that must look like Kubernetes objects.

Enters: a Node and a value. Leaves: complaints about apiVersion, kind and metadata of embedded resources.
Source: apiextensions `schema/objectmeta`, recorded from kube-apiserver 1.36.3.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from moorage.core.names import dns1035_label, label_value, qualified_name

from .fielderror import FieldError, invalid, required
from .fieldpath import MapKey, Path, path_text
from .node import Node, anywhere

_MIXED = "may have mixed case, but should otherwise match: "


has_embedded: Final = partial(anywhere, "embedded", lambda node: node.embedded)
"""Whether an embedded resource stands anywhere in the schema of a node."""


def check_embedded(node: Node, value: Any, path: Path, out: list[FieldError]) -> None:
    """Add complaints about all embedded resources below."""
    if type(value) is dict:
        if node.embedded:
            _check_resource(value, path, out)
        for key, item in value.items():
            child = node.child(key)
            if child is not None and type(item) in (dict, list):
                step = key if key in node.properties else MapKey(key)
                check_embedded(child, item, (path, step), out)
    elif type(value) is list and node.items is not None:
        for at, item in enumerate(value):
            check_embedded(node.items, item, (path, at), out)


def _check_resource(value: dict[str, Any], path: Path, out: list[FieldError]) -> None:
    version, kind = value.get("apiVersion"), value.get("kind")
    at_version, at_kind = path_text((path, "apiVersion")), path_text((path, "kind"))
    if not version:
        out.append(required(at_version))
    elif isinstance(version, str) and version.count("/") > 1:
        out.append(invalid(at_version, version, f"unexpected GroupVersion string: {version}"))
    if not kind:
        out.append(required(at_kind))
    elif isinstance(kind, str):
        out += (invalid(at_kind, kind, _MIXED + text) for text in dns1035_label(kind.lower()))
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        _check_metadata(metadata, (path, "metadata"), out)


def _check_metadata(metadata: dict[str, Any], path: Path, out: list[FieldError]) -> None:
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    if isinstance(labels, dict):
        where = path_text((path, "labels"))
        for key, value in labels.items():
            out += (invalid(where, key, text) for text in qualified_name(key))
            out += (invalid(where, value, text) for text in label_value(str(value)))
    if isinstance(annotations, dict):
        where = path_text((path, "annotations"))
        for key in annotations:
            out += (invalid(where, key, text) for text in qualified_name(key.lower()))
