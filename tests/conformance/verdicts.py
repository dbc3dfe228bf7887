"""Sends the admission corpus to a server on which our kinds and our webhooks are installed.

Enters: a Target, `tests/cases/*/admission/<case>/given.yaml`. Leaves: a `Verdict` a case: admitted or refused, and the field paths.
The webhooks are the product's own (moorage.runtime.admission), served by the suite's https server, for both servers alike.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.conformance.play import Target, failure
from tests.conformance.wire import Answer, Request, Wire
from tests.keystone.folders import plain
from tests.real.process import poll

from moorage.cli.systems import ADMISSIONS, KINDS
from moorage.core.meta import JsonObject, ResourceType
from moorage.runtime.admission import Webhooks
from moorage.runtime.install import webhook_configurations

ROOT = Path(__file__).parents[1] / "cases"
FOLDERS = sorted(path.parent for path in ROOT.glob("*/admission/*/given.yaml"))
RECORDED = Path(__file__).parent / "recorded" / "verdicts.json"
UNCHECKED = "conformance.example.test/unchecked"
HOLD = "conformance.example.test/hold"
PLACES = {
    "keystone-backend": "KeystoneIdentityBackend",
    "keystone-service": "Keystone",
    "pocketid-api": "PocketIDAPI",
    "pocketid-client": "PocketIDOIDCClient",
    "pocketid-instance": "PocketIDInstance",
    "pocketid-user": "PocketIDUser",
    "pocketid-usergroup": "PocketIDUserGroup",
}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOOKS = "/apis/admissionregistration.k8s.io/v1"


@dataclass(frozen=True)
class Verdict:
    """What a server said of one object."""

    status: int
    fields: tuple[str, ...]
    message: str


def name_of(folder: Path) -> str:
    """`<kind>/<case>`."""
    return f"{folder.parent.parent.name}/{folder.name}"


class Court:
    """One server with our kinds and webhooks on it."""

    def __init__(self, target: Target) -> None:
        self.target, self.wire = target, Wire(target.access)
        self._resources = {kind.kind: kind.resource for kind in KINDS}

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """One request as the administrator."""
        data = None if body is None else json.dumps(body).encode()
        return self.wire.ask(Request(method, path, {"Content-Type": "application/json"}, data))

    def must(self, method: str, path: str, body: Any = None) -> Answer:
        """As `ask`; AssertionError when it is refused."""
        answer = self.ask(method, path, body)
        assert answer.status < 300, f"{self.target.name}: {method} {path}: {answer.status} {answer.text}"
        return answer

    def siblings(
        self, resource: ResourceType, namespace: str, _shared: Collection[str] | None = None
    ) -> Sequence[JsonObject]:
        """What the webhook knows of other objects: all of the namespace, asked of the same server, by a connection of its own."""
        wire = Wire(self.target.access)
        try:
            return list(wire.ask(Request("GET", resource.path(namespace), {})).body["items"])
        finally:
            wire.close()

    def _established(self, name: str) -> bool:
        conditions = self.must("GET", f"{CRDS}/{name}").body.get("status", {}).get("conditions")
        return any(item["type"] == "Established" and item["status"] == "True" for item in conditions or [])

    def install(self) -> None:
        """CRDs, then webhooks; returns when both are at work."""
        for kind in KINDS:
            crd = kind.crd()
            self.must("POST", CRDS, crd)
            poll(lambda name=crd["metadata"]["name"]: self._established(name), what="CRD established")  # type: ignore[misc]
        self.target.hooks.programs.update(Webhooks(ADMISSIONS, self.siblings).answers())
        client = {"url": self.target.hooks.url, "caBundle": self.target.hooks.authority.bundle}
        for configuration in webhook_configurations(ADMISSIONS, client):
            for hook in configuration["webhooks"]:
                hook["objectSelector"] = {"matchExpressions": [{"key": UNCHECKED, "operator": "DoesNotExist"}]}
            self.must("POST", f"{HOOKS}/{configuration['kind'].lower()}s", configuration)
        poll(self._at_work, what="webhooks at work")

    def _at_work(self) -> bool:
        """A refusal that only the webhook can give has come."""
        probe = copy.deepcopy(_refused_by_webhook())
        probe["metadata"] = {"name": "probe", "namespace": "default"}
        path = self._resources[probe["kind"]].path("default") + "?dryRun=All"
        return self.ask("POST", path, probe).status >= 400

    def remove(self) -> None:
        """Take webhooks and CRDs away."""
        for configuration in webhook_configurations(ADMISSIONS):
            self.ask("DELETE", f"{HOOKS}/{configuration['kind'].lower()}s/{configuration['metadata']['name']}")
        for kind in KINDS:
            self.ask("DELETE", f"{CRDS}/{kind.crd()['metadata']['name']}")
        self.target.hooks.programs.clear()
        self.wire.close()

    def judge(self, folder: Path) -> Verdict:
        """Put siblings and the stored object there unchecked, then send the object; everything is removed after."""
        given = plain(folder / "given.yaml")
        resource = self._resources[PLACES[folder.parent.parent.name]]
        stored = [*given.get("siblings", []), *([given["old"]] if "old" in given else [])]
        if "old" in given and "deletionTimestamp" in given["object"].get("metadata", {}):
            given["old"]["metadata"]["deletionTimestamp"] = given["object"]["metadata"]["deletionTimestamp"]
        spaces = set()
        try:
            for item in [_whole(item, resource) for item in stored]:
                spaces.add(self._space(item))
                self._place(item, resource)
            item = _whole(given["object"], resource)
            spaces.add(self._space(item))
            return _verdict(self._send(item, resource, replaces="old" in given))
        finally:
            for namespace in spaces:
                self._empty(namespace, resource)

    def _empty(self, namespace: str, resource: ResourceType) -> None:
        self.must("DELETE", resource.path(namespace))
        for item in self.must("GET", resource.path(namespace)).body["items"]:
            patch = {"metadata": {"finalizers": None}}
            headers = {"Content-Type": "application/merge-patch+json"}
            path = resource.path(namespace, item["metadata"]["name"])
            self.wire.ask(Request("PATCH", path, headers, json.dumps(patch).encode()))

    def _space(self, item: JsonObject) -> str:
        namespace = str(item["metadata"]["namespace"])
        self.ask(
            "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        )
        return namespace

    def _place(self, item: JsonObject, resource: ResourceType) -> None:
        item["metadata"].setdefault("labels", {})[UNCHECKED] = ""
        if deleted := item["metadata"].pop("deletionTimestamp", None):
            item["metadata"].setdefault("finalizers", []).append(HOLD)
        path = resource.path(item["metadata"]["namespace"])
        self.must("POST", path, item)
        if deleted:  # a real server lets nobody write that time, so the object is deleted and held
            self.must("DELETE", f"{path}/{item['metadata']['name']}")

    def _send(self, item: JsonObject, resource: ResourceType, *, replaces: bool) -> Answer:
        path = resource.path(item["metadata"]["namespace"])
        if not replaces:
            return self.ask("POST", path, item)
        path = f"{path}/{item['metadata']['name']}"
        stored = self.must("GET", path).body["metadata"]
        item["metadata"]["resourceVersion"] = stored["resourceVersion"]
        if "deletionTimestamp" in stored:
            item["metadata"] |= {name: stored[name] for name in ("deletionTimestamp", "finalizers")}
        return self.ask("PUT", path, item)


def _whole(item: JsonObject, resource: ResourceType) -> JsonObject:
    """A copy with the kind and namespace that short cases leave out."""
    item = dict[str, Any](apiVersion=resource.api_version, kind=resource.kind) | copy.deepcopy(item)
    item["metadata"] = {"name": "judged", "namespace": "judged"} | item.get("metadata", {})
    return item


def _refused_by_webhook() -> JsonObject:
    """An object of the corpus that structure and rules admit and only the webhook refuses."""
    for folder in FOLDERS:
        given = plain(folder / "given.yaml")
        want = plain(folder / "want" / "verdict.yaml")
        if want["refusedBy"] == "webhook" and not {"siblings", "old"} & given.keys():
            return dict(given["object"])
    raise AssertionError("the corpus has no such object")


def _verdict(answer: Answer) -> Verdict:
    body = answer.body if isinstance(answer.body, dict) else {}
    if answer.status < 300:
        return Verdict(answer.status, (), "")
    facets = failure(body)
    return Verdict(answer.status, tuple(sorted({field for field, _ in facets["causes"]})), facets["message"])


@contextmanager
def court(target: Target) -> Iterator[Court]:
    """Our kinds and webhooks on a server for the time of a `with`."""
    session = Court(target)
    try:
        session.install()
        yield session
    finally:
        session.remove()


@cache
def recorded() -> dict[str, Verdict]:
    """What the real server said when it was last asked; a thousand tests ask."""
    found = json.loads(RECORDED.read_text())
    return {name: Verdict(item["status"], tuple(item["fields"]), item["message"]) for name, item in found.items()}


def record(verdicts: dict[str, Verdict]) -> None:
    """Write down what the real server said."""
    shown = {name: {"status": v.status, "fields": list(v.fields), "message": v.message} for name, v in verdicts.items()}
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text(json.dumps(shown, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    recorded.cache_clear()
