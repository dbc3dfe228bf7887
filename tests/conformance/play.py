"""Plays one case on one server.

Enters: a case and a `Target`. Leaves: one `Record` for each step, normalised. It must not judge.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.conformance.hooks import HookServer
from tests.conformance.normal import Normaliser
from tests.conformance.scenario import PLACES, Case, Place, Step, fill
from tests.conformance.wire import Access, Answer, Request, Stream, Wire

PATCHES = {
    "MERGE": "application/merge-patch+json",
    "JSON": "application/json-patch+json",
    "STRATEGIC": "application/strategic-merge-patch+json",
    "APPLY": "application/apply-patch+yaml",
}
PATIENCE = 25.0
KUBECTL = Path("/usr/bin/kubectl")


@dataclass(frozen=True)
class Target:
    """A server under test, with the webhook server that it may call."""

    name: str
    access: Access
    kubeconfig: Path
    hooks: HookServer


@dataclass(frozen=True)
class Record:
    """What one step came to, normalised: the facets that are compared."""

    step: str
    facets: Mapping[str, Any]


class Unplayable(Exception):
    """What a case needs before its first step was refused."""


class Player:
    """One case on one server."""

    def __init__(self, case: Case, target: Target) -> None:
        self.case, self.target, self.wire = case, target, Wire(target.access)
        self.places: dict[str, Place] = dict(PLACES)
        self.streams: dict[str, Stream] = {}
        hooks = target.hooks
        self.variables: dict[str, Any] = {
            "ns": case.namespace,
            "group": case.group,
            "hook": f"{hooks.url}/{case.namespace}",
            "foreignhook": f"{hooks.foreign_url}/{case.namespace}",
            "ca": hooks.authority.bundle,
        }
        self.normal = Normaliser(
            {hooks.url: "<hooks>", hooks.foreign_url: "<foreign hooks>", hooks.authority.bundle: "<ca>"}
            | {target.access.url: "<server>", target.access.url.removeprefix("https://"): "<server>"}
        )
        self._left: list[str] = []

    def play(self) -> Iterator[Record]:
        """All steps in order; the case's own namespace and kinds are made before, cluster-wide objects removed after."""
        try:
            self._prepare()
            for step in self.case.steps:
                yield Record(step.name, self._tried(Step(step.name, fill(dict(step.said), self.variables))))
        finally:
            for stream in self.streams.values():
                stream.close()
            for path in reversed(self._left):
                self.wire.ask(Request("DELETE", path, {}))
            self.wire.close()

    # -- before the steps -------------------------------------------------------------------------

    def _prepare(self) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.case.namespace}}
        self._must("POST", "/api/v1/namespaces", namespace)
        for path in ("configmaps/kube-root-ca.crt", "serviceaccounts/default"):
            self._until(Request("GET", f"/api/v1/namespaces/{self.case.namespace}/{path}", {}), {"status": 200})
        for name, hook in self.case.hooks.items():
            path = f"{self.case.namespace}/{name}"
            self.target.hooks.hooks[path] = fill(hook, self.variables)
            self.target.hooks.received.pop(path, None)
        for crd in self.case.crds:
            self._install(fill(dict(crd), self.variables))

    def _must(self, method: str, path: str, body: Any) -> None:
        answer = self.wire.ask(Request(method, path, {"Content-Type": "application/json"}, json.dumps(body).encode()))
        if answer.status >= 300:
            raise Unplayable(f"{self.target.name}: {self.case.id}: {method} {path}: {answer.status} {answer.text}")

    def _install(self, said: dict[str, Any]) -> None:
        manifest = definition(self.case.group, said)
        spec = manifest["spec"]
        self._must("POST", f"{PLACES['customresourcedefinitions'].prefix}/customresourcedefinitions", manifest)
        self._left.append(
            f"{PLACES['customresourcedefinitions'].prefix}/customresourcedefinitions/{manifest['metadata']['name']}"
        )
        version = spec["versions"][0]["name"]
        plural = spec["names"]["plural"]
        place = Place(f"/apis/{spec['group']}/{version}", spec["names"]["kind"], spec["scope"] == "Namespaced")
        self.places[plural] = place
        self._until(Request("GET", place.path(self.case.namespace, plural), {}), {"status": 200})

    def _until(self, request: Request, wanted: Mapping[str, Any]) -> Answer:
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.wire.ask(request)
            if all(_holds(answer, path, value) for path, value in wanted.items()) or time.monotonic() > deadline:
                return answer
            time.sleep(0.05)

    # -- one step ---------------------------------------------------------------------------------

    def _tried(self, step: Step) -> dict[str, Any]:
        """A server that breaks off or says nothing is an answer, too."""
        try:
            return self._step(step)
        except (http.client.HTTPException, OSError, subprocess.TimeoutExpired) as error:
            return {"status": 0, "message": f"no answer: {type(error).__name__}"}
        except KeyError as error:
            return {"status": 0, "message": f"cannot be played: {error}"}

    def _step(self, step: Step) -> dict[str, Any]:
        if "read" in step.said:
            wanted = step.get("events", 1)
            events = self.streams[step.said["read"]].events(None if wanted == "close" else int(wanted))
            return {"events": self.normal.tree(_pick(events, step))}
        if "hook" in step.said:
            received = self.target.hooks.received.pop(f"{self.case.namespace}/{step.said['hook']}", [])
            return {"object": self.normal.tree(_pick(received, step))}
        if "kubectl" in step.said:
            return self._kubectl(step)
        return self._ask(step)

    def _kubectl(self, step: Step) -> dict[str, Any]:
        arguments = step.said["kubectl"]
        words = arguments.split() if isinstance(arguments, str) else [str(word) for word in arguments]
        command = [str(KUBECTL), "--kubeconfig", str(self.target.kubeconfig), "-n", self.case.namespace, *words]
        home = self.target.kubeconfig.parent / "kubectl-home"
        done = subprocess.run(
            command,
            input=step.get("input", ""),
            capture_output=True,
            text=True,
            timeout=60,
            env=os.environ | {"HOME": str(home), "KUBECTL_EXPLAIN_OPENAPIV3": "true"},
        )
        return {
            "exit": done.returncode,
            "output": self.normal.terminal(done.stdout),
            "errors": self.normal.terminal(done.stderr),
        }

    def _ask(self, step: Step) -> dict[str, Any]:
        request = self._request(step)
        if "watch" in step.said:
            opened = self.wire.open(request)
            if isinstance(opened, Answer):
                return self._facets(opened, step)
            self.streams[step.said["watch"]] = opened
            return {"status": 200}
        answer = self._until(request, step.said["until"]) if "until" in step.said else self._settled(request)
        for name, path in (step.get("save") or {}).items():
            self.variables[name] = _at(answer.body, path)
        return self._facets(answer, step)

    def _settled(self, request: Request) -> Answer:
        """As a client does that honours Retry-After: a definition that was just changed is being set up again."""
        answer = self.wire.ask(request)
        return self._until(request, {"retried": True}) if answer.status == 429 else answer

    def _facets(self, answer: Answer, step: Step) -> dict[str, Any]:
        body = answer.body
        facets: dict[str, Any] = {"status": answer.status, "type": answer.content_type}
        if answer.warnings:
            facets["warnings"] = sorted(self.normal.text(warning) for warning in answer.warnings)
        for name in ("retry-after", "allow", "www-authenticate", "location"):
            if name in answer.headers:
                facets[name] = self.normal.text(answer.headers[name])
        if isinstance(body, list) and "watch=" in self._request(step).path:
            return facets | {"events": self.normal.tree(_pick(body, step))}
        if isinstance(body, dict) and body.get("kind") == "Status" and body.get("status") == "Failure":
            return facets | failure(self.normal.tree(body))
        return facets | {"object": self.normal.tree(_pick(body, step))}

    def _request(self, step: Step) -> Request:
        verb, where = step.said["do"].split(" ", 1)
        path, _, query = where.partition("?")
        body, headers = step.get("body"), {}
        plural, *rest = path.split("/")
        place = self.places.get(plural)
        if not path.startswith("/"):
            if place is None:
                raise KeyError(f"{self.case.id}: {step.name}: unknown plural {plural}")
            if isinstance(body, dict) and not step.get("exact") and verb in {"CREATE", "POST", "PUT", "APPLY"}:
                body = _complete(body, place, "" if verb == "POST" else (rest[0] if rest else ""))
            namespace = step.get("namespace", self.case.namespace)
            path = place.path(namespace, plural if verb == "CREATE" else path)
        if verb in {"CREATE", "POST"} and place and not place.namespaced and isinstance(body, dict):
            self._remember(place, plural, body)
        if verb == "APPLY":
            query = "&".join(filter(None, [query, self._manager(step)]))
        self.normal.expect(body, step.get("raw", ""))
        if body is not None or "raw" in step.said:
            headers["Content-Type"] = step.get("type", PATCHES.get(verb, "application/json"))
        headers |= self._identity(step) | step.get("headers", {})
        for target, size in (step.get("big") or {}).items():
            _set(body, target, "x" * size)
        raw = (
            step.said["raw"].encode()
            if "raw" in step.said
            else (json.dumps(body).encode() if body is not None else None)
        )
        method = "POST" if verb == "CREATE" else ("PATCH" if verb in PATCHES else verb)
        token = step.said.get("token", "")
        return Request(method, path + (f"?{query}" if query else ""), headers, raw, None if token == "none" else token)

    def _remember(self, place: Place, plural: str, body: dict[str, Any]) -> None:
        name = body.get("metadata", {}).get("name")
        if name and plural not in {"namespaces"} and isinstance(name, str) and "/" not in name and " " not in name:
            path = f"{place.prefix}/{plural}/{name}"
            if path not in self._left and name.isascii() and name.isprintable():
                self._left.append(path)
        if plural == "customresourcedefinitions":
            self._learn_kind(body)

    def _learn_kind(self, body: dict[str, Any]) -> None:
        spec = body.get("spec") or {}
        names, versions = spec.get("names") or {}, spec.get("versions") or [{}]
        if names.get("plural") and spec.get("group") and versions[0].get("name"):
            prefix = f"/apis/{spec['group']}/{versions[0]['name']}"
            self.places[names["plural"]] = Place(prefix, names.get("kind", ""), spec.get("scope") == "Namespaced")

    def _manager(self, step: Step) -> str:
        query: dict[str, str] = {}
        if (manager := step.get("manager", "one")) is not None:
            query["fieldManager"] = manager
        if "force" in step.said:
            query["force"] = str(step.said["force"]).lower()
        return urlencode(query)

    @staticmethod
    def _identity(step: Step) -> dict[str, Any]:
        headers: dict[str, Any] = {}
        if "as" in step.said:
            headers["Impersonate-User"] = step.said["as"]
        if "groups" in step.said:
            headers["Impersonate-Group"] = list(step.said["groups"])
        return headers


def transcript(case: Case, target: Target) -> list[Record]:
    """All steps of a case; one record that says so when it cannot even begin."""
    try:
        return list(Player(case, target).play())
    except Unplayable as error:
        return [Record("before the first step", {"status": 0, "message": str(error)})]


def definition(group: str, said: dict[str, Any]) -> dict[str, Any]:
    """A CustomResourceDefinition from the short form: kind, plural, schema, scope, status, scale, columns, selectable, short."""
    kind = said.get("kind", "Thing")
    plural = said.get("plural", kind.lower() + "s")
    subresources = {key: said[key] for key in ("status", "scale") if key in said}
    version: dict[str, Any] = {"name": said.get("version", "v1"), "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": said.get("schema", {"type": "object"})}
    if subresources:
        version["subresources"] = subresources
    for ours, theirs in (("columns", "additionalPrinterColumns"), ("selectable", "selectableFields")):
        if ours in said:
            version[theirs] = said[ours]
    names: dict[str, Any] = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    names |= {"shortNames": said["short"]} if "short" in said else {}
    names |= {"categories": said["categories"]} if "categories" in said else {}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": said.get("scope", "Namespaced"), "versions": [version]},
    }


_OBJECT = re.compile(r'"\{(?=\\"apiVersion\\").*\}"')
"""A whole object inside of a message: the server prints it with its version."""


def failure(status: Mapping[str, Any]) -> dict[str, Any]:
    """The facets of a Status that says no. Causes are sorted and left out of the message: Go's order of them is random."""
    details = dict(status.get("details") or {})
    causes = details.pop("causes", None) or []
    message = str(status.get("message", ""))
    for cause in causes:
        cause["message"] = _OBJECT.sub("<object>", str(cause.get("message")))
    message = _OBJECT.sub("<object>", message)
    shown = {f"{cause.get('field')}: {cause.get('message')}" for cause in causes}
    if len(causes) > 1 and "[" in message and all(text in message for text in shown):
        message = message[: message.index("[")] + "[<causes>]"
    return {
        "code": status.get("code"),
        "reason": status.get("reason", ""),
        "message": message,
        "details": details,
        "causes": sorted([cause.get("field", ""), cause.get("reason", "")] for cause in causes),
        "cause messages": sorted(str(cause.get("message")) for cause in causes),
    }


def _complete(body: dict[str, Any], place: Place, name: str) -> dict[str, Any]:
    head = {"apiVersion": place.api_version, "kind": place.kind}
    metadata = ({"name": name} if name else {}) | (body.get("metadata") or {})
    return head | body | {"metadata": metadata}


def _set(body: Any, path: str, value: str) -> None:
    *parents, last = path.split(".")
    for part in parents:
        body = body.setdefault(part, {})
    body[last] = value


def _at(body: Any, path: str) -> Any:
    for part in path.split(".") if path else []:
        if isinstance(body, list):
            body = body[int(part)] if part.isdigit() and int(part) < len(body) else None
        elif isinstance(body, dict):
            body = body.get(part.replace("~1", "."))
        else:
            return None
    return body


def _pick(body: Any, step: Step) -> Any:
    """The part that `at`, `only` and `drop` name."""
    if "at" in step.said:
        wanted = step.said["at"]
        body = {str(p): _at(body, str(p)) for p in wanted} if isinstance(wanted, list) else _at(body, wanted)
    if "only" in step.said:
        only = step.said["only"]
        members = [item for item in _at(body, only.get("path", "")) or [] if item.get(only["key"]) in only["values"]]
        body = sorted(members, key=lambda item: str(item[only["key"]]))
    if step.get("sorted"):
        body = sorted(body or [], key=lambda item: json.dumps(item, sort_keys=True))
    return body


def _holds(answer: Answer, path: str, value: Any) -> bool:
    if path == "retried":
        return answer.status != 429
    if path == "says":
        return str(value) in answer.text
    if path == "status":
        return answer.status in (value if isinstance(value, list) else [value])
    return bool(_at(answer.body, path) == value)
