"""One admission webhook: what it is registered for, and one call to it.

Enters: a webhook of a configuration and an AdmissionReview. Leaves: the review's response, or CallFailed. In one-machine
mode the service moorage-system/moorage-webhook is a function of this process. Source: admission.k8s.io/v1.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from moorage.apiserver.hub import Hub
from moorage.apiserver.served import ServedType
from moorage.core.errors import EnvironmentError_
from moorage.core.meta import JsonObject
from moorage.core.selectors import LabelSelector, from_wire
from moorage.schema.cel import Bindings, CelError, Program

Handler = Callable[[JsonObject], Awaitable[JsonObject]]
OWN_SERVICE = ("moorage-system", "moorage-webhook")
_VARIABLES = ("object", "oldObject", "request")
_ANSWER_LIMIT = 3 * 1024 * 1024


class CallFailed(Exception):
    """The webhook could not be asked, or its answer made no sense."""


class ConditionFailed(Exception):
    """A match condition could not be evaluated."""


@dataclass(frozen=True, eq=False)
class Webhook:
    """A registered webhook."""

    wire: JsonObject

    @property
    def name(self) -> str:
        return str(self.wire["name"])

    @property
    def fails_closed(self) -> bool:
        return bool(self.wire.get("failurePolicy", "Fail") == "Fail")

    @property
    def reinvoked(self) -> bool:
        return bool(self.wire.get("reinvocationPolicy") == "IfNeeded")

    @property
    def seconds(self) -> float:
        return float(self.wire.get("timeoutSeconds") or 10)

    @property
    def allows_dry_run(self) -> bool:
        return self.wire.get("sideEffects") in ("None", "NoneOnDryRun")

    @cached_property
    def namespaces(self) -> LabelSelector:
        return from_wire(self.wire.get("namespaceSelector") or {})

    @cached_property
    def objects(self) -> LabelSelector:
        return from_wire(self.wire.get("objectSelector") or {})

    @cached_property
    def conditions(self) -> list[tuple[str, str]]:
        return [(item["name"], item["expression"]) for item in self.wire.get("matchConditions") or ()]

    def registered_for(self, operation: str, served: ServedType, subresource: str) -> bool:
        """Whether one of the rules covers the request."""
        return any(_covers(rule, operation, served, subresource) for rule in self.wire.get("rules") or ())

    def condition_holds(self, request: JsonObject) -> bool:
        """Whether all match conditions are true.

        Raises:
            ConditionFailed: one cannot be evaluated and none is false.
        """
        failed: list[str] = []
        values: dict[str, Any] = {
            "object": request.get("object"),
            "oldObject": request.get("oldObject"),
            "request": {name: value for name, value in request.items() if name not in ("object", "oldObject")},
        }
        bindings = Bindings(values)
        for name, expression in self.conditions:
            try:
                if Program.compile(expression, _VARIABLES).evaluate(bindings) is not True:
                    return False
            except CelError as error:
                failed.append(f"{name}: {error}")
        if failed:
            raise ConditionFailed("; ".join(failed))
        return True


def _covers(rule: Mapping[str, Any], operation: str, served: ServedType, subresource: str) -> bool:
    rt = served.resource
    scope = rule.get("scope") or "*"
    if scope != "*" and (scope == "Namespaced") is not rt.namespaced:
        return False
    return (
        _in(rule.get("operations"), operation)
        and _in(rule.get("apiGroups"), rt.group)
        and _in(rule.get("apiVersions"), rt.version)
        and any(_is_resource(item, rt.plural, subresource) for item in rule.get("resources") or ())
    )


def _in(allowed: Sequence[str] | None, value: str) -> bool:
    return "*" in (allowed or ()) or value in (allowed or ())


def _is_resource(pattern: str, plural: str, subresource: str) -> bool:
    resource, _, sub = pattern.partition("/")
    return resource in ("*", plural) and (sub == subresource or (sub == "*"))


class ServiceResolver(AbstractResolver):
    """Names of Services are their ClusterIPs; other names go to the system."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - the base's signature
    ) -> list[ResolveResult]:
        name, _, rest = host.partition(".")
        namespace, _, suffix = rest.partition(".")
        address = host
        if suffix == "svc":
            entry = self._hub.get("services", f"{namespace}/{name}")
            address = (entry.parse()["spec"].get("clusterIP") or "") if entry else ""
            if not address:
                raise OSError(f'service "{name}" not found')
        found = await asyncio.get_running_loop().getaddrinfo(address, port, type=socket.SOCK_STREAM)
        return [
            ResolveResult(
                hostname=host, host=str(item[4][0]), port=port, family=item[0], proto=0, flags=socket.AI_NUMERICHOST
            )
            for item in found
        ]

    async def close(self) -> None:
        """Nothing is held."""


class Caller:
    """Calls webhooks, over https or in process."""

    def __init__(self, hub: Hub, in_process: Mapping[str, Handler]) -> None:
        self._hub, self._in_process = hub, in_process

    async def call(self, webhook: Webhook, review: JsonObject) -> JsonObject:
        """The `response` of the webhook's answer.

        Raises:
            CallFailed: no answer in time, or one that makes no sense.
        """
        config = webhook.wire["clientConfig"]
        service = config.get("service") or {}
        path = service.get("path") or ""
        local = (service.get("namespace"), service.get("name")) == OWN_SERVICE and path in self._in_process
        try:
            async with asyncio.timeout(webhook.seconds):
                answer = await self._in_process[path](review) if local else await self._post(webhook, review)
        except EnvironmentError_ as error:
            raise CallFailed(f"failed to call webhook: {error}") from error
        except TimeoutError:
            raise CallFailed(f'failed to call webhook: Post "{address(webhook)}": context deadline exceeded') from None
        return _response(answer, review["request"]["uid"])

    async def _post(self, webhook: Webhook, review: JsonObject) -> Any:
        url = address(webhook)
        try:
            context = _trust(webhook.wire["clientConfig"].get("caBundle"))
            connector = aiohttp.TCPConnector(ssl=context, resolver=ServiceResolver(self._hub), force_close=True)
            async with (
                aiohttp.ClientSession(connector=connector) as session,
                session.post(url, json=review, allow_redirects=False) as answer,
            ):
                body = await answer.content.read(_ANSWER_LIMIT)
                if answer.status != 200:
                    raise CallFailed(f"failed to call webhook: {_refused(answer.status)}")
                return json.loads(body)
        except (aiohttp.ClientError, OSError) as error:
            raise CallFailed(f'failed to call webhook: Post "{url}": {error}') from error
        except ValueError as error:
            raise CallFailed(f"failed to call webhook: couldn't get version/kind; json parse error: {error}") from error


def address(webhook: Webhook) -> str:
    """The URL of a webhook, with its timeout as Kubernetes sends it."""
    config = webhook.wire["clientConfig"]
    if config.get("url"):
        base = str(config["url"])
    else:
        service = config["service"]
        port = service.get("port") or 443
        base = f"https://{service['name']}.{service['namespace']}.svc:{port}/{(service.get('path') or '').lstrip('/')}"
    return f"{base}{'&' if '?' in base else '?'}timeout={int(webhook.seconds)}s"


def _trust(bundle: str | None) -> ssl.SSLContext:
    if not bundle:
        return ssl.create_default_context()
    return ssl.create_default_context(cadata=base64.b64decode(bundle).decode())


def _refused(status: int) -> str:
    """An answer that is no 200, as Kubernetes tells of it; what it says is of no account."""
    if status >= 500:
        return 'an error on the server ("unknown") has prevented the request from succeeding'
    if status == 404:
        return "the server could not find the requested resource"
    return f"the server rejected our request for an unknown reason ({status})"


def _response(answer: Any, uid: str) -> JsonObject:
    if not isinstance(answer, dict) or answer.get("kind") != "AdmissionReview":
        raise CallFailed(
            "received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview"
        )
    if answer.get("apiVersion") != "admission.k8s.io/v1":
        raise CallFailed(
            "received invalid webhook response: expected webhook response of admission.k8s.io/v1, "
            f"Kind=AdmissionReview, got {answer.get('apiVersion')}, Kind=AdmissionReview"
        )
    response = answer.get("response")
    if not isinstance(response, dict):
        raise CallFailed("received invalid webhook response: webhook response was absent")
    if response.get("uid") != uid:
        raise CallFailed(
            f'received invalid webhook response: expected response.uid="{uid}", got "{response.get("uid", "")}"'
        )
    if response.get("patch") and not response.get("patchType"):
        raise CallFailed(
            "received invalid webhook response: webhook returned response.patch but not response.patchType"
        )
    return response
