"""`moorage tree`: what belongs to a resource."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moorage.cli.options import ContextOption, KubeconfigOption, NamespaceOption, Output, OutputOption
from moorage.cli.server import Target, age, kind_named, print_json, state_of, with_client
from moorage.core.meta import JsonObject, Key, key_of, owners_of

if TYPE_CHECKING:
    from moorage.kube.client import Client


def command(
    kind: Annotated[str, typer.Argument(help="Kind, such as Keystone.")],
    name: Annotated[str, typer.Argument(help="Name of the resource.")],
    output: OutputOption = Output.text,
    namespace: NamespaceOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Show a resource with its conditions, everything it owns, and the last events.

    Example:  moorage tree Keystone keystone -n openstack
    """
    wanted = kind_named(kind)

    async def gather(client: Client, where: str) -> JsonObject:
        return await _gather(client, wanted.resource, Key(where, name))

    found = with_client(Target(kubeconfig, context, namespace), gather)
    if output is Output.json:
        print_json(found)
        return
    _print(found)


async def _gather(client: Client, resource: Any, key: Key) -> JsonObject:
    from moorage.kube import resources
    from moorage.kube.errors import Forbidden, NotFound

    owned = (
        resources.DEPLOYMENTS,
        resources.REPLICA_SETS,
        resources.PODS,
        resources.JOBS,
        resources.CRON_JOBS,
        resources.SERVICES,
        resources.CONFIG_MAPS,
        resources.SECRETS,
        resources.PVCS,
        resources.PDBS,
        resources.NETWORK_POLICIES,
    )

    root = await client.get(resource, key)
    candidates: list[JsonObject] = []
    for child_type in owned:
        try:
            candidates += (await client.list(child_type, key.namespace)).items
        except (NotFound, Forbidden):
            continue
    events = (await client.list(resources.CORE_EVENTS, key.namespace)).items
    return _node(root, candidates, events) | {"status": state_of(root).to_wire()}


def _node(obj: JsonObject, candidates: Sequence[JsonObject], events: Sequence[JsonObject]) -> JsonObject:
    uid = obj["metadata"]["uid"]
    children = [item for item in candidates if any(owner.get("uid") == uid for owner in owners_of(item))]
    children.sort(key=lambda item: (item["kind"], item["metadata"]["name"]))
    mine = [event for event in events if (event.get("involvedObject") or {}).get("uid") == uid]
    mine.sort(key=lambda event: event.get("lastTimestamp") or event["metadata"]["creationTimestamp"])
    status = obj.get("status") or {}
    return {
        "kind": obj["kind"],
        "namespace": key_of(obj).namespace,
        "name": obj["metadata"]["name"],
        "created": obj["metadata"].get("creationTimestamp", ""),
        "summary": _summary(obj),
        "conditions": status.get("conditions") or [],
        "events": [
            {
                "type": event["type"],
                "reason": event.get("reason", ""),
                "message": event.get("message", ""),
                "count": event.get("count") or 1,
                "last": event.get("lastTimestamp") or event["metadata"]["creationTimestamp"],
            }
            for event in mine[-5:]
        ],
        "children": [_node(item, candidates, events) for item in children],
    }


def _summary(obj: JsonObject) -> str:
    status = obj.get("status") or {}
    match obj["kind"]:
        case "Deployment" | "ReplicaSet":
            return f"{status.get('readyReplicas', 0)}/{(obj.get('spec') or {}).get('replicas', 1)} ready"
        case "Pod":
            return str(status.get("phase", "Pending"))
        case "Job":
            done = status.get("succeeded", 0)
            return "complete" if done else f"{status.get('active', 0)} active, {status.get('failed', 0)} failed"
        case _:
            return ""


def _print(root: JsonObject) -> None:
    typer.echo(f"{root['kind']} {root['namespace']}/{root['name']}")
    for item in root["conditions"]:
        mark = {"True": "+", "False": "-"}.get(item["status"], "?")
        typer.echo(f"  {mark} {item['type']}: {item['reason']}  {item.get('message', '')}".rstrip())
    _print_children(root["children"], "")
    if root["events"]:
        typer.echo("events:")
        for event in root["events"]:
            times = f" (x{event['count']})" if event["count"] > 1 else ""
            typer.echo(f"  {age(event['last'])} ago  {event['type']}  {event['reason']}: {event['message']}{times}")


def _print_children(children: list[JsonObject], indent: str) -> None:
    for position, child in enumerate(children):
        last = position == len(children) - 1
        summary = f"  {child['summary']}" if child["summary"] else ""
        typer.echo(
            f"{indent}{'└── ' if last else '├── '}{child['kind']} {child['name']}{summary}  {age(child['created'])}"
        )
        _print_children(child["children"], indent + ("    " if last else "│   "))
