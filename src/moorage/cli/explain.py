"""`moorage explain`: one field, or a kind, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import click

from moorage.cli.options import Output, OutputOption
from moorage.cli.server import kind_named, print_json
from moorage.cli.signature import Argument
from moorage.core.errors import InputError
from moorage.core.meta import JsonObject

_BOUNDS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matches {}",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} entries",
    "maxProperties": "at most {} entries",
    "format": "format {}",
}


def command(
    path: Annotated[str, Argument(help="KIND or KIND.field.path, such as Keystone.spec.database.")],
    output: OutputOption = Output.text,
) -> None:
    """Explain a kind or a field: type, default, bounds, meaning, the rules that name it, an example.

    Example:  moorage explain KeystoneIdentityBackend.spec.ldap.url
    """
    name, *fields = path.split(".")
    kind = kind_named(name)
    schema = kind.schema()
    if output is Output.json:
        print_json({"path": path, "schema": find(kind.kind, schema, fields).node})
        return
    click.echo("\n".join(describe(kind.kind, schema, fields)))


@dataclass(frozen=True, slots=True)
class Found:
    """A field's schema, the CEL rules on the way to it, those of its own, whether it is required, and which fields on the way are lists."""

    node: JsonObject
    rules: list[JsonObject]
    own: list[JsonObject]
    required: bool
    lists: tuple[bool, ...]


def find(kind: str, schema: JsonObject, fields: list[str]) -> Found:
    """The field of a kind's schema.

    Raises:
        InputError: it does not exist; the message names the fields that do.
    """
    node, rules, own, required = schema, list[JsonObject](), _rules(schema), False
    lists: list[bool] = []
    for depth, field in enumerate(fields):
        node = node.get("items", node)
        known = node.get("properties") or {}
        if field not in known:
            where = ".".join([kind, *fields[:depth]])
            raise InputError(f"{where}.{field}", "no such field", f"Known here: {', '.join(known) or 'none'}")
        required = field in (node.get("required") or ())
        node = known[field]
        rules, own = [*rules, *own], [*_rules(node), *_rules(node.get("items") or {})]
        lists.append("items" in node)
    return Found(node, rules, own, required, tuple(lists))


def describe(kind: str, schema: JsonObject, fields: list[str]) -> list[str]:
    """The lines that explain `fields` of a kind's schema; raises as `find` does."""
    found = find(kind, schema, fields)
    node = found.node
    lines = [".".join([kind, *fields]), ""]
    lines += _meaning(node)
    lines += ["", f"type:     {_type(node)}", f"required: {'yes' if found.required else 'no'}"]
    lines += list(_facts(node))
    named = [*(rule for rule in found.rules if _names(rule, fields[-1])), *found.own]
    lines += ["rules:", *(f"  {rule.get('message') or rule['rule']}" for rule in named)] if named else []
    lines += ["example:", *_example(fields, found)] if fields else []
    lines += list(_fields(node))
    return lines


def _example(fields: list[str], found: Found) -> list[str]:
    """The field where it stands in a manifest, with a value that its bounds admit; the first field of a list's item is marked as such."""
    lines, indent, mark = [], "  ", ""
    for name, is_list in zip(fields[:-1], found.lists, strict=False):
        lines.append(f"{indent}{mark}{name}:")
        indent, mark = f"{indent}{' ' * len(mark)}  ", "- " if is_list else ""
    return [*lines, f"{indent}{mark}{fields[-1]}: {_value(found.node)}"]


def _value(node: JsonObject) -> str:
    if "example" in node:
        return node["example"] if isinstance(node["example"], str) else json.dumps(node["example"])
    if "default" in node:
        return json.dumps(node["default"])
    if "enum" in node:
        return str(node["enum"][0])
    match node.get("type"):
        case "boolean":
            return "true"
        case "integer":
            return str(node.get("minimum", 1))
        case "array":
            return "[...]"
        case "object":
            return "{...}"
        case _:
            return "..."


def _meaning(node: JsonObject) -> list[str]:
    return [str(node.get("description") or (node.get("items") or {}).get("description") or "")]


def _type(node: JsonObject) -> str:
    if node.get("type") == "array":
        return f"list of {_type(node['items'])}"
    extra = node.get("additionalProperties")
    return f"map of {_type(extra)}" if isinstance(extra, dict) else str(node.get("type", "any"))


def _facts(node: JsonObject) -> Iterator[str]:
    if "default" in node:
        yield f"default:  {node['default']!r}"
    if "enum" in node:
        yield f"one of:   {', '.join(map(str, node['enum']))}"
    bounds = [text.format(node[name]) for name, text in _BOUNDS.items() if name in node]
    if bounds:
        yield f"bounds:   {'; '.join(bounds)}"


def _rules(node: JsonObject) -> list[JsonObject]:
    return list(node.get("x-kubernetes-validations") or ())


def _names(rule: JsonObject, field: str) -> bool:
    return field in f"{rule['rule']} {rule.get('message', '')} {rule.get('fieldPath', '')}"


def _fields(node: JsonObject) -> Iterator[str]:
    inner = node.get("items", node).get("properties") or {}
    if not inner:
        return
    required = set(node.get("items", node).get("required") or ())
    yield "fields:"
    for name, child in inner.items():
        first = str(child.get("description") or "").split(". ")[0]
        yield f"  {name} <{_type(child)}>{' -required-' if name in required else ''}  {first}".rstrip()
