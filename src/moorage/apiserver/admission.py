"""Admission: mutating webhooks in order, then validating ones side by side.

Enters: an object on its way to the store. Leaves: the object as webhooks changed it, or the refusal with the webhook's name.
Source: Kubernetes, "Dynamic Admission Control".
"""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moorage.apiserver import strategy
from moorage.apiserver.errors import StatusError, bad_request, forbidden, internal
from moorage.apiserver.hub import Change, Hub
from moorage.apiserver.patch import PatchError, json_patch
from moorage.apiserver.registry import Registry
from moorage.apiserver.request import Request
from moorage.apiserver.reviews import user_wire
from moorage.apiserver.served import ServedType
from moorage.apiserver.views import ordered
from moorage.apiserver.webhook import Caller, CallFailed, ConditionFailed, Webhook
from moorage.core.meta import JsonObject

_GROUP = "admissionregistration.k8s.io"
_MUTATING, _VALIDATING = f"mutatingwebhookconfigurations.{_GROUP}", f"validatingwebhookconfigurations.{_GROUP}"
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


@dataclass(slots=True)
class Attributes:
    """What is being admitted."""

    request: Request
    served: ServedType
    obj: JsonObject | None
    old: JsonObject | None
    subresource: str

    @property
    def operation(self) -> str:
        return "DELETE" if self.obj is None else "UPDATE" if self.old is not None else "CREATE"

    @property
    def meta(self) -> JsonObject:
        found: JsonObject = (self.obj or self.old or {})["metadata"]
        return found

    def review(self) -> JsonObject:
        """The AdmissionReview to send."""
        rt = self.served.resource
        kind = {"group": rt.group, "version": rt.version, "kind": rt.kind}
        resource = {"group": rt.group, "version": rt.version, "resource": rt.plural}
        dry_run = bool(self.request.query.get("dryRun"))
        body: JsonObject = {
            "uid": str(uuid.uuid4()),
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": self.meta.get("name") or "",
            "operation": self.operation,
            "userInfo": user_wire(self.request.user),
            "object": self._shown(self.obj),
            "oldObject": self._shown(self.old),
            "dryRun": dry_run,
            "options": self._options(dry_run=dry_run),
        }
        if self.meta.get("namespace"):
            body["namespace"] = self.meta["namespace"]
        if self.subresource:
            body["subResource"] = body["requestSubResource"] = self.subresource
        return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": body}

    def _options(self, *, dry_run: bool) -> JsonObject:
        options: JsonObject = {"kind": _OPTIONS[self.operation], "apiVersion": "meta.k8s.io/v1"}
        if dry_run:
            options["dryRun"] = ["All"]
        if self.operation != "DELETE":
            known = ("fieldManager", "fieldValidation")
            options |= {name: self.request.query[name] for name in known if self.request.query.get(name)}
        return options

    def _shown(self, obj: JsonObject | None) -> JsonObject | None:
        return None if obj is None else ordered(self.served, obj)


class Webhooks:
    """The registered webhooks of one server."""

    def __init__(self, hub: Hub, registry: Registry, caller: Caller) -> None:
        self._hub, self._registry, self._caller = hub, registry, caller
        self._hooks: dict[str, list[Webhook]] = {}
        hub.listeners.append(self._notice)
        self.load()

    def load(self) -> None:
        """Read what is registered."""
        self._hooks = {storage: self._read(storage) for storage in (_MUTATING, _VALIDATING)}

    def _notice(self, change: Change) -> None:
        if change.storage in (_MUTATING, _VALIDATING):
            self._hooks[change.storage] = self._read(change.storage)

    def _read(self, storage: str) -> list[Webhook]:
        stored = self._hub.collections[storage].select("")
        return [Webhook(wire) for entry in stored for wire in entry.parse().get("webhooks") or ()]

    def _matching(self, storage: str, about: Attributes) -> list[Webhook]:
        hooks = self._hooks[storage]
        if not hooks or about.served.resource.group == _GROUP:
            return []
        return [
            hook
            for hook in hooks
            if hook.registered_for(about.operation, about.served, about.subresource) and self._selected(hook, about)
        ]

    def _selected(self, hook: Webhook, about: Attributes) -> bool:
        if hook.namespaces.requirements and not hook.namespaces.matches(self._namespace_labels(about)):
            return False
        if not hook.objects.requirements:
            return True
        sides = [side for side in (about.obj, about.old) if side is not None]
        return any(hook.objects.matches(side["metadata"].get("labels")) for side in sides)

    def _namespace_labels(self, about: Attributes) -> dict[str, str] | None:
        """Labels of the namespace; a Namespace's own; a cluster-scoped object matches every selector, so none is asked."""
        if about.served.storage == "namespaces":
            found: dict[str, str] = about.meta.get("labels") or {}
            return found
        entry = self._hub.get("namespaces", about.meta.get("namespace", ""))
        return entry.labels if entry else {}

    async def mutate(
        self, request: Request, served: ServedType, obj: JsonObject, old: JsonObject | None, subresource: str
    ) -> JsonObject:
        """The object as the mutating webhooks leave it.

        Raises:
            StatusError: a webhook says no, or cannot be asked and must be.
        """
        about = Attributes(request, served, obj, old, subresource)
        hooks = self._matching(_MUTATING, about)
        if not hooks:
            return obj
        again: list[Webhook] = []
        called: list[Webhook] = []
        for hook in hooks:
            if await self._mutate_by(hook, about):
                again += [earlier for earlier in called if earlier.reinvoked and earlier not in again]
            called.append(hook)
        for hook in again:
            await self._mutate_by(hook, about)
        assert about.obj is not None
        return about.obj

    async def _mutate_by(self, hook: Webhook, about: Attributes) -> bool:
        """Ask one webhook; whether it changed the object."""
        response = await self._ask(hook, about)
        if response is None or not response.get("patch"):
            return False
        try:
            operations = json.loads(base64.b64decode(response["patch"]))
            if not operations:
                return False
            if response.get("patchType") != "JSONPatch":
                raise ValueError(f'unsupported patch type "{response["patchType"]}"')
            changed = json_patch(ordered(about.served, about.obj or {}), operations)
        except PatchError as error:
            if hook.fails_closed:
                raise internal(str(error.__cause__ or error)) from error
            return False
        except ValueError as error:
            if hook.fails_closed:
                raise internal(f'failed calling webhook "{hook.name}": {error}') from error
            return False
        strategy.prune(self._registry, about.served, changed)
        strategy.default(about.served, changed)
        different: bool = changed != about.obj
        about.obj = changed
        return different

    async def validate(
        self, request: Request, served: ServedType, obj: JsonObject | None, old: JsonObject | None, subresource: str
    ) -> None:
        """Ask the validating webhooks.

        Raises:
            StatusError: one says no, or cannot be asked and must be.
        """
        about = Attributes(request, served, obj, old, subresource)
        hooks = self._matching(_VALIDATING, about)
        if not hooks:
            return
        answers: Sequence[Any] = await asyncio.gather(
            *(self._ask(hook, about) for hook in hooks), return_exceptions=True
        )
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def _ask(self, hook: Webhook, about: Attributes) -> JsonObject | None:
        """The webhook's response, None when it is not asked or may be passed over.

        Raises:
            StatusError: it says no, or cannot be asked and must be.
        """
        review = about.review()
        try:
            if hook.conditions and not hook.condition_holds(review["request"]):
                return None
        except ConditionFailed as error:
            if hook.fails_closed:
                raise forbidden(about.served.resource, about.meta.get("name") or "", str(error)) from error
            return None
        if review["request"]["dryRun"] and not hook.allows_dry_run:
            raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
        try:
            response = await self._caller.call(hook, review)
        except CallFailed as error:
            if hook.fails_closed:
                raise internal(f'failed calling webhook "{hook.name}": {error}') from error
            return None
        about.request.warnings.extend(response.get("warnings") or ())
        if not response.get("allowed"):
            raise denied(hook.name, response.get("status") or {})
        return response


def denied(name: str, status: JsonObject) -> StatusError:
    """The refusal of a webhook, with its own code, reason and details."""
    head = f'admission webhook "{name}" denied the request'
    why = status.get("message") or status.get("reason")
    code = status.get("code") or 400
    message = f"{head}: {why}" if why else f"{head} without explanation"
    return StatusError(max(code, 400), status.get("reason") or "", message, status.get("details"))
