"""JSON patch, merge patch and strategic merge patch, pure.

Enters: an object and a patch. Leaves: a new object; neither input is changed. Must not know kinds, defaults or owners.
Where Kubernetes is more lenient than RFC 6902 (replacing a key that is not there, negative indices), this follows Kubernetes.
Source: RFC 6902, RFC 7396; answers recorded from kube-apiserver 1.36.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.apiserver.patcherror import PatchError
from moorage.apiserver.strategic import strategic_merge
from moorage.core.jsoncopy import copied

__all__ = ["PatchError", "json_patch", "merge_patch", "strategic_merge"]

_REFUSED = "the server rejected our request due to an error in our request"
_GO_KINDS = {
    bool: "bool",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


def merge_patch(obj: Any, patch: Any) -> Any:
    """RFC 7396: null removes, objects merge, everything else replaces.

    Raises:
        PatchError: 400, the patch of an object is no object.
    """
    if isinstance(obj, dict) and "apiVersion" in obj and not isinstance(patch, dict):
        kind = _GO_KINDS[type(patch)]
        text = f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        raise PatchError(400, "BadRequest", text)
    return _merged(copied(obj), patch)


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copied(patch)
    made = target if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = _merged(made.get(name), value)
    return made


class _Refused(Exception):
    """One operation does not apply."""


def json_patch(obj: Any, ops: Any) -> Any:
    """RFC 6902, all operations or none.

    Raises:
        PatchError: 400, the patch is no list of objects; 422, an operation does not apply.
    """
    _check_form(ops)
    document = copied(obj)
    for op in ops:
        try:
            document = _operate(document, op)
        except (_Refused, KeyError, IndexError, ValueError, TypeError) as error:
            raise PatchError(422, "Invalid", _REFUSED) from _Refused(_why(op, error))
    return document


def _why(op: dict[str, Any], error: Exception) -> str:
    """What is wrong with one operation, for those who do not see the patch."""
    kind, path = op.get("op"), op.get("path")
    if not isinstance(error, KeyError):
        return f"error in {kind} for path: '{path}': {error}"
    key = str(error.args[0]) if error.args else ""
    return f"error in {kind} for path: '{path}': Unable to {kind} nonexistent key: {key}: missing value"


def _check_form(ops: Any) -> None:
    wrong = [(ops, "[]handlers.jsonPatchOp")]
    if isinstance(ops, list):
        wrong = [(op, "handlers.jsonPatchOp") for op in ops if not isinstance(op, dict)]
    for value, type_ in wrong:
        text = f"error decoding patch: json: cannot unmarshal {_GO_KINDS[type(value)]} into Go value of type {type_}"
        raise PatchError(400, "BadRequest", text)


def _pointer(op: dict[str, Any], name: str = "path") -> list[str]:
    """Segments of a JSON pointer; what stands before the first slash is ignored, the whole document has none and is refused."""
    segments = str(op[name]).split("/")
    if len(segments) < 2:
        raise _Refused("the path names no member")
    return [segment.replace("~1", "/").replace("~0", "~") for segment in segments[1:]]


def _operate(document: Any, op: dict[str, Any]) -> Any:
    action = _ACTIONS.get(op.get("op", ""))
    if action is None:
        raise _Refused(f"unexpected kind: {op.get('op')}")
    return action(document, op)


def _parent(document: Any, segments: list[str]) -> tuple[Any, str]:
    here = document
    for segment in segments[:-1]:
        here = here[_index(here, segment)] if isinstance(here, list) else here[segment]
    if not isinstance(here, dict | list):
        raise _Refused("no container at the path")
    return here, segments[-1]


def _index(items: list[Any], segment: str, *, last: int = -1) -> int:
    """A list index; -1 is the last item."""
    index = int(segment)
    bound = len(items) + last
    index += len(items) + last + 1 if index < 0 else 0
    if not 0 <= index <= bound:
        raise _Refused(f"invalid index {segment}")
    return index


def _look(document: Any, segments: list[str]) -> Any:
    parent, name = _parent(document, segments)
    return parent[_index(parent, name)] if isinstance(parent, list) else parent[name]


def _put(document: Any, segments: list[str], value: Any) -> Any:
    parent, name = _parent(document, segments)
    if isinstance(parent, dict):
        parent[name] = value
    elif name == "-":
        parent.append(value)
    else:
        parent.insert(_index(parent, name, last=0), value)
    return document


def _drop(document: Any, segments: list[str]) -> Any:
    parent, name = _parent(document, segments)
    del parent[_index(parent, name) if isinstance(parent, list) else name]
    return document


def _add(document: Any, op: dict[str, Any]) -> Any:
    return _put(document, _pointer(op), copied(op.get("value")))


def _remove(document: Any, op: dict[str, Any]) -> Any:
    return _drop(document, _pointer(op))


def _replace(document: Any, op: dict[str, Any]) -> Any:
    segments, value = _pointer(op), copied(op.get("value"))
    parent, name = _parent(document, segments)
    parent[_index(parent, name) if isinstance(parent, list) else name] = value
    return document


def _move(document: Any, op: dict[str, Any]) -> Any:
    source, target = _pointer(op, "from"), _pointer(op)
    if target[: len(source)] == source and target != source:
        raise _Refused("a value cannot move into itself")
    value = _look(document, source)
    return _put(_drop(document, source), target, value)


def _copy(document: Any, op: dict[str, Any]) -> Any:
    return _put(document, _pointer(op), copied(_look(document, _pointer(op, "from"))))


def _test(document: Any, op: dict[str, Any]) -> Any:
    wanted = op.get("value")
    try:
        found = _look(document, _pointer(op))
    except KeyError:
        found = None
    if found != wanted or isinstance(found, bool) != isinstance(wanted, bool):
        raise _Refused("testing the value failed")
    return document


_ACTIONS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
