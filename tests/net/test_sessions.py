"""Sessions and the resolver of Services."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver
from aiohttp.resolver import ResolveResult

from moorage.net.resolver import ServiceResolver
from moorage.net.sessions import Sessions


class Nobody(AbstractResolver):
    """Stands for the system's resolver."""

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[ResolveResult]:
        raise OSError(f"asked the system for {host}")

    async def close(self) -> None:
        return


def lookup(namespace: str, service: str) -> str | None:
    return "127.0.0.1" if (namespace, service) == ("default", "keystone") else None


@pytest.mark.parametrize(
    "host", ["keystone.default.svc", "keystone.default.svc.cluster.local", "keystone.default.svc."]
)
async def test_a_service_resolves_to_its_cluster_ip(host: str) -> None:
    """In all forms of its name."""
    [found] = await ServiceResolver(lookup, Nobody()).resolve(host, 5000)
    assert (found["host"], found["port"]) == ("127.0.0.1", 5000)


async def test_other_names_go_to_the_system_and_unknown_services_are_named() -> None:
    """The error says what is missing where."""
    resolver = ServiceResolver(lookup, Nobody())
    with pytest.raises(OSError, match="asked the system for ldap"):
        await resolver.resolve("ldap.example.org")
    with pytest.raises(OSError, match="Service other does not exist in namespace default"):
        await resolver.resolve("other.default.svc")


async def test_a_session_reaches_a_service_by_name_keeps_no_cookies_and_is_fenced() -> None:
    """Reads pass, writes ask the fence, cookies of one answer do not come back."""
    cookies: list[dict[str, str]] = []

    async def handler(request: web.Request) -> web.Response:
        cookies.append(dict(request.cookies))
        response = web.Response(text="ok")
        response.set_cookie("session", "secret")
        return response

    app = web.Application()
    app.router.add_route("*", "/", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://keystone.default.svc:{runner.addresses[0][1]}/"
    asked: list[int] = []
    async with Sessions(resolver=ServiceResolver(lookup, Nobody()), fence=lambda: asked.append(1)) as http:
        assert http.get("keystone") is http.get("keystone")
        for method in ("GET", "HEAD", "POST", "DELETE"):
            async with http.get("keystone").request(method, url) as response:
                assert response.status == 200
    assert asked == [1, 1]
    assert cookies == [{}, {}, {}, {}]
    await runner.cleanup()
