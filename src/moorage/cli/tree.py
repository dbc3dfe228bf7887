"""`moorage tree`: what belongs to a resource."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import click

from moorage.cli.options import ContextOption, KubeconfigOption, NamespaceOption, Output, OutputOption
from moorage.cli.server import Target, age, kind_named, print_json, state_of, with_client
from moorage.cli.signature import Argument
from moorage.core.errors import RefusedError
from moorage.core.meta import JsonObject, Key, key_of, owners_of

if TYPE_CHECKING:
    from moorage.kube.client import Client


def command(
    kind: Annotated[str, Argument(help="Kind, such as Keystone.")],
    name: Annotated[str, Argument(help="Name of the resource.")],
    output: OutputOption = Output.text,
    namespace: NamespaceOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Show a resource with its conditions, everything it owns, and the last events; of a PocketIDInstance what is bound to it.

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
        resources.STATEFUL_SETS,
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

    try:
        root = await client.get(resource, key)
    except NotFound as error:
        fix = "Name another namespace with -n; `moorage status -A` lists what there is"
        raise RefusedError(f"{resource.kind} {key}", "does not exist", fix) from error
    candidates = await _bound(client, resource)
    for child_type in owned:
        try:
            candidates += (await client.list(child_type, key.namespace)).items
        except (NotFound, Forbidden):
            continue
    events = (await client.list(resources.CORE_EVENTS, key.namespace)).items
    return _node(root, candidates, events) | {"status": state_of(root).to_wire()}


async def _bound(client: Client, resource: Any) -> list[JsonObject]:
    """What belongs to a PocketIDInstance, wherever it is: resources whose status names one. Other kinds have none."""
    from moorage.kube.errors import Forbidden

    if resource.kind != "PocketIDInstance":
        return []
    from moorage.cli.pocketid_owners import resources_of

    try:
        return list(await resources_of(client))
    except Forbidden:
        return []


def _belongs(item: JsonObject, obj: JsonObject) -> bool:
    """Whether `obj` owns the item, or is the instance that its status names."""
    bound = (item.get("status") or {}).get("instance")
    if bound and obj["kind"] == "PocketIDInstance":
        return Key(bound["namespace"], bound["name"]) == key_of(obj)
    return any(owner.get("uid") == obj["metadata"]["uid"] for owner in owners_of(item))


def _node(obj: JsonObject, candidates: Sequence[JsonObject], events: Sequence[JsonObject]) -> JsonObject:
    uid = obj["metadata"]["uid"]
    children = [item for item in candidates if _belongs(item, obj)]
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
        case "Deployment" | "StatefulSet" | "ReplicaSet":
            return f"{status.get('readyReplicas', 0)}/{(obj.get('spec') or {}).get('replicas', 1)} ready"
        case "Pod":
            return str(status.get("phase", "Pending"))
        case "Job":
            done = status.get("succeeded", 0)
            return "complete" if done else f"{status.get('active', 0)} active, {status.get('failed', 0)} failed"
        case kind if kind.startswith("PocketID"):
            return "ready" if state_of(obj).ready else state_of(obj).reason
        case _:
            return ""


def _print(root: JsonObject) -> None:
    click.echo(f"{root['kind']} {root['namespace']}/{root['name']}")
    for item in root["conditions"]:
        mark = {"True": "+", "False": "-"}.get(item["status"], "?")
        click.echo(f"  {mark} {item['type']}: {item['reason']}  {item.get('message', '')}".rstrip())
    _print_children(root["children"], "", root["namespace"])
    if root["events"]:
        click.echo("events:")
        for event in root["events"]:
            times = f" (x{event['count']})" if event["count"] > 1 else ""
            click.echo(f"  {age(event['last'])} ago  {event['type']}  {event['reason']}: {event['message']}{times}")


def _print_children(children: list[JsonObject], indent: str, namespace: str) -> None:
    for position, child in enumerate(children):
        last = position == len(children) - 1
        summary = f"  {child['summary']}" if child["summary"] else ""
        name = child["name"] if child["namespace"] == namespace else f"{child['namespace']}/{child['name']}"
        click.echo(f"{indent}{'└── ' if last else '├── '}{child['kind']} {name}{summary}  {age(child['created'])}")
        _print_children(child["children"], indent + ("    " if last else "│   "), child["namespace"])
