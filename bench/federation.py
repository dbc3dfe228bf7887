"""Requests at a protected path with a warm session, against the same work of Keystone at an open path of the same sidecar.

The sidecar is Apache with both modules on the rendered files. At the protected path the module finds the session and Keystone makes a token of its claims;
the open path, added here, hands the same claims to the same Keystone without any module. So the ratio is what protection costs people. Both
sides send the same headers, the session's cookies among them, one connection a request; a session is warm after its first request. The same is told with
one fixed answer in Keystone's place (`bench/behind.py`): there nothing is measured but httpd. No setting of the OIDC module brings that ratio near the aim:
of 620 µs of CPU a request (220 at the open path) our header lines are 40 and `Require claim` is 40, a session kept in the cache instead of the cookie
costs 40 more, and stripped cookies change nothing (measured one by one, November 2026). Bearer tokens have no cache to warm: each asks the
provider (decisions, Keystone 21), so their rate is told as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.e2e.federation import manifests
from tests.e2e.federation.sidecar import CONFIG, Sidecar, sidecar
from tests.e2e.federation.site import ACME, CORP, DASHBOARD, PEOPLE, Site, protected, realms
from tests.e2e.federation.stand import assembled, projected
from tests.fakes.idp import FakeIdp, ServiceProvider, fake_idp
from tests.real.certificates import Authority
from tests.real.gateway import gateway
from tests.real.ports import children as children_of
from tests.real.ports import free_address, free_port

from bench import children
from bench.machine import cpu_seconds
from bench.plan import Plan
from bench.table import Row, paired, short, spread
from moorage.keystone.service.proxy import SOCKET
from moorage.render import apache

AT_ONCE = 8
AIM = 0.8
GATEWAY = "127.0.0.40"
KINDS = {ACME: "OIDC", CORP: "SAML"}


@dataclass(frozen=True)
class Stand:
    """The sidecar, the public address, and who may be asked for logins."""

    site: Site
    proxy: Sidecar

    def cpu(self) -> float:
        """CPU seconds of httpd so far."""
        members = [self.proxy.process.pid]
        for member in members:
            members += children_of(member)
        return sum(cpu_seconds(pid) for pid in members)

    def request(self, path: str, headers: Mapping[str, str]) -> str:
        """The request, as it goes over the wire."""
        lines = {"Host": urlsplit(self.site.base).netloc, "User-Agent": "bench", "Accept": "text/html", **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"GET {path} HTTP/1.1\r\n{head}\r\n"


@dataclass(frozen=True)
class Side:
    """A question, and where its two sides are asked."""

    question: str
    path: str
    beside: str
    headers: Mapping[str, str]
    aim: float | None = None


def measure(plan: Plan) -> list[Row]:
    """Sessions of both modules with Keystone behind; then httpd alone, and bearer tokens."""
    found = []
    with _with_keystone(plan) as stand:
        for name, kind in KINDS.items():
            cookies = _cookies(stand.site, name)
            question = f"token of a warm {kind} session, Keystone behind"
            found.append(_row(plan, stand, Side(question, protected(name), _open(name), cookies, AIM)))
    with _alone(plan) as stand:
        for name, kind in KINDS.items():
            cookies = _cookies(stand.site, name)
            found.append(_row(plan, stand, Side(f"warm {kind} session, httpd alone", protected(name), "/v3", cookies)))
        token = {"Authorization": f"Bearer {stand.site.idp.token(ACME, PEOPLE[ACME], 'cli')}"}
        asked = Side("bearer token, the provider asked each time, httpd alone", protected(ACME), "/v3", token)
        found.append(_row(plan, stand, asked))
    return found


def _cookies(site: Site, name: str) -> dict[str, str]:
    """Those of somebody who has just signed in, after one more request."""

    async def signed_in() -> str:
        person = site.visitor()
        page = await site.sign_in(person, name)
        if page.status != 200:
            raise RuntimeError(f"no login at {name}: {page.way}")
        await person.once(site.websso(name))
        where = urlsplit(site.base)
        return person.jar.sent(where.scheme, where.hostname or "", protected(name))

    return {"Cookie": asyncio.run(signed_in())}


def _row(plan: Plan, stand: Stand, side: Side) -> Row:
    sides = {"protected": stand.request(side.path, side.headers), "open": stand.request(side.beside, side.headers)}
    rates: dict[str, list[float]] = {name: [] for name in sides}
    costs: dict[str, list[float]] = {name: [] for name in sides}
    for round_ in range(-1, plan.repetitions):
        for name, request in sides.items():
            before = stand.cpu()
            run = _run(stand, request, plan.seconds if round_ >= 0 else 1.0)
            if round_ >= 0:
                rates[name].append(run["done"] / run["seconds"])
                costs[name].append((stand.cpu() - before) / run["done"] * 1e6)
    ratio = paired(rates["protected"], rates["open"])
    raw = {"ratio of the rates": ratio}
    raw |= {f"{name}, requests/s": spread(rates[name]) for name in sides}
    raw |= {f"{name}, CPU of httpd a request": spread(costs[name], "µs") for name in sides}
    return Row(
        f"{side.question}, {AT_ONCE} at once",
        f"{spread(rates['protected'])}/s",
        f"{spread(rates['open'])}/s (open path)",
        f"{short(ratio.median)} x",
        f">= {side.aim} x" if side.aim else "-",
        ratio.median >= side.aim if side.aim else None,
        raw,
    )


def _run(stand: Stand, request: str, seconds: float) -> dict[str, float]:
    where = urlsplit(stand.proxy.url)
    spec = {"host": where.hostname, "port": where.port, "request": request, "at_once": AT_ONCE, "seconds": seconds / 2}
    found: dict[str, float] = children.ask("knock", spec)
    if found["bad"]:
        raise RuntimeError(f"{found['bad']} of {found['done']} were not served: {found['example']}")
    return found


def _open(name: str) -> str:
    """A path where nobody is asked who they are."""
    return f"/bench/{name}"


def _claims(idp: FakeIdp) -> bytes:
    """The open paths: what each module would say of its person, said by httpd itself, to the address that the protected path leads to."""
    lines: list[str] = []
    for name, prefix, remote in (
        (ACME, "OIDC", ("ISS", idp.issuer(ACME))),
        (CORP, "MELLON", ("IDP", idp.entity(CORP))),
    ):
        user = "PREFERRED-USERNAME" if prefix == "OIDC" else "USERNAME"
        claims = {remote[0]: remote[1], user: PEOPLE[name], "GROUPS": "eng;ops"}
        target = f"unix:{SOCKET}|http://localhost{protected(name)}"
        said = [apache.directive("RequestHeader", "set", f"{prefix}-{claim}", value) for claim, value in claims.items()]
        lines += apache.section(
            "Location", _open(name), (*said, apache.directive("ProxyPass", target, "disablereuse=on"))
        )
    return ("\n".join(lines) + "\n").encode()


@contextlib.contextmanager
def _with_keystone(plan: Plan) -> Iterator[Stand]:
    """Provider, gateway for the logins, sidecar, a real Keystone."""
    folder, authority, port = plan.folder / "whole", Authority(), free_port(GATEWAY)
    folder.mkdir()
    base = f"https://{GATEWAY}:{port}"
    with contextlib.ExitStack() as stack:
        idp = stack.enter_context(fake_idp(folder / "idp", realms(base), authority))
        wanted = manifests.backends(idp)
        parts = stack.enter_context(assembled(folder, authority, port, wanted, bench=_claims(idp)))
        idp.realm(CORP).providers.append(parts.service_provider)
        trust = ssl.create_default_context(cadata=authority.pem.decode())
        yield Stand(Site(base, parts.server.url, idp, trust, "", parts.dashboard.origin), parts.proxy)


@contextlib.contextmanager
def _alone(plan: Plan) -> Iterator[Stand]:
    """Provider, gateway for the logins, sidecar, and what stands in Keystone's place."""
    folder, authority, port = plan.folder / "alone", Authority(), free_port(GATEWAY)
    base = f"https://{GATEWAY}:{port}"
    (folder / "run").mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        idp = stack.enter_context(fake_idp(folder / "idp", realms(base), authority))
        found = projected(manifests.backends(idp), base, DASHBOARD)
        assert found.sp is not None
        idp.realm(CORP).providers.append(ServiceProvider.of(found.sp.document))
        socket = folder / "run" / "keystone.sock"
        spec = {"socket": str(socket), "ready": str(folder / "ready")}
        stack.enter_context(children.serving("behind", spec, folder, ready=folder / "ready"))
        files = {f"{CONFIG}/{mount.path}": found.files[mount.key] for mount in found.mounts}
        proxy = stack.enter_context(
            sidecar(folder / "sidecar", files, socket, address=free_address(5050), defines=("SAML_HERE",))
        )
        stack.enter_context(gateway(folder / "gateway", authority, [proxy.url], host=GATEWAY, port=port))
        trust = ssl.create_default_context(cadata=authority.pem.decode())
        yield Stand(Site(base, "", idp, trust, ""), proxy)
