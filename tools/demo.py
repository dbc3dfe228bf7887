"""`make demo`: the main job on one machine, told step by step. KEEP=1 leaves it up and prints what to try.

It starts a directory (slapd) and one-machine mode, applies examples/keystone-ldap, and logs in as a user of the directory.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import aiohttp

from moorage.cli import manifests
from moorage.cli.server import kind_named
from moorage.core.meta import JsonObject, Key, ResourceType
from moorage.kube import resources
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/keystone-ldap"
PATIENCE = 170
"""Seconds without any change after which the demo gives up."""


def _port() -> int:
    """10389, as the example says, or a free port when somebody else listens there."""
    for wanted in (10389, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", wanted))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise SystemExit("no free port on 127.0.0.1")


PORT = _port()
SPACE = "openstack"
BACKEND = Key(SPACE, "planetexpress")
START = time.monotonic()


def say(text: str) -> None:
    """One line with the seconds since the start."""
    print(f"[{time.monotonic() - START:5.1f}s] {text}", flush=True)


class Directory:
    """A private slapd that serves examples/keystone-ldap/directory.ldif on loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Fill the database."""
        (self.folder / "db").mkdir(parents=True)
        schema = "\n".join(f"include /etc/ldap/schema/{name}.schema" for name in ("core", "cosine", "inetorgperson"))
        (self.folder / "slapd.conf").write_text(
            f"{schema}\nmodulepath /usr/lib/ldap\nmoduleload back_mdb\npidfile {self.folder}/slapd.pid\n"
            f'database mdb\nsuffix "dc=planetexpress,dc=com"\nrootdn "cn=root,dc=planetexpress,dc=com"\nrootpw root\n'
            f"directory {self.folder}/db\naccess to attrs=userPassword by anonymous auth by * none\naccess to * by * read\n"
        )
        tree = ["/usr/sbin/slapadd", "-q", "-f", f"{self.folder}/slapd.conf", "-l", str(EXAMPLE / "directory.ldif")]
        subprocess.run(tree, check=True)

    def start(self) -> None:
        """Serve; returns when the port is ours and answers."""
        command = ["/usr/sbin/slapd", "-f", f"{self.folder}/slapd.conf", "-h", f"ldap://127.0.0.1:{PORT}/", "-d", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        probe = ["ldapwhoami", "-x", "-H", f"ldap://127.0.0.1:{PORT}"]
        for _ in range(200):
            if self.process.poll() is not None:
                raise SystemExit(f"slapd ended at once; is port {PORT} taken?")
            if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
                return
            time.sleep(0.05)
        raise SystemExit("slapd does not answer")

    def stop(self) -> None:
        """End it and wait."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None

    def set_bind_password(self, password: str) -> None:
        """Change the password of the account that Keystone binds with."""
        bind = ["-x", "-H", f"ldap://127.0.0.1:{PORT}", "-D", "cn=root,dc=planetexpress,dc=com", "-w", "root"]
        subprocess.run(["ldappasswd", *bind, "-s", password, "cn=reader,dc=planetexpress,dc=com"], check=True)


@contextlib.asynccontextmanager
async def machine(data: Path) -> AsyncIterator[Path]:
    """`moorage up`; yields the path of its kubeconfig."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "moorage.cli", "up", "--data", str(data), stdout=asyncio.subprocess.PIPE, stderr=None
    )
    assert process.stdout is not None
    try:
        line = (await process.stdout.readline()).decode().strip()
        if not line.startswith("kubeconfig: "):
            raise SystemExit(f"moorage up did not start: {line}")
        pump = asyncio.create_task(_pump(process.stdout))
        yield Path(line.removeprefix("kubeconfig: "))
        pump.cancel()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            await process.wait()


async def _pump(stream: asyncio.StreamReader) -> None:
    async for line in stream:
        say(f"  moorage: {line.decode().rstrip()}")


class Cloud:
    """What the demo asks of the API server and of Keystone."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.backend = kind_named("KeystoneIdentityBackend").resource
        self.keystone = kind_named("Keystone").resource
        self.shown: dict[tuple[ResourceType, Key], dict[str, str]] = {}

    async def apply_example(self) -> None:
        """`kubectl apply -f examples/keystone-ldap`."""
        builtin = {"Namespace": resources.NAMESPACES, "Secret": resources.SECRETS}
        for manifest in manifests.read([str(EXAMPLE)]):
            resource = builtin.get(manifest.kind) or kind_named(manifest.kind).resource
            if manifest.kind == "KeystoneIdentityBackend":
                manifest.object["spec"]["ldap"]["url"] = f"ldap://127.0.0.1:{PORT}"
            await self.client.apply(resource, manifest.object)
            say(f"  applied {manifest.kind} {manifest.object['metadata']['name']}")

    async def follow(self, resource: ResourceType, key: Key, done: Callable[[JsonObject], bool]) -> None:
        """Print conditions as they change until `done` holds, or until an object that existed is gone.

        Ends the demo with a sentence when nothing has changed for `PATIENCE` seconds.
        """
        from moorage.cli.waiting import until

        known = (resource, key) in self.shown  # one that was followed before may be gone already
        last = "it does not exist"
        try:
            async with asyncio.timeout(PATIENCE) as limit:
                async for obj in until(self.client, resource, key):
                    if obj is None and known:
                        return
                    if obj is None:
                        continue
                    known = True
                    for line in self._changed(resource, key, obj):
                        say(f"  {line}")
                        last = line
                        limit.reschedule(asyncio.get_running_loop().time() + PATIENCE)
                    if done(obj):
                        return
        except TimeoutError:
            sys.exit(f"{resource.kind} {key.name}: nothing has changed for {PATIENCE} s; the last: {last}")

    def _changed(self, resource: ResourceType, key: Key, obj: JsonObject) -> Iterator[str]:
        """Conditions that were not printed like this yet."""
        shown = self.shown.setdefault((resource, key), {})
        for item in (obj.get("status") or {}).get("conditions") or ():
            line = f"{item['status']} {item['reason']}"
            if shown.get(item["type"]) != line:
                shown[item["type"]] = line
                note = f": {item['message']}" if item["status"] != "True" and item.get("message") else ""
                yield f"{resource.kind} {item['type']}={line}{note}"

    async def address(self) -> str:
        """Where Keystone answers on this machine."""
        service = await self.client.get(resources.SERVICES, Key(SPACE, "keystone"))
        return f"http://{service['spec']['clusterIP']}:5000/v3"

    async def secret(self, name: str, data: dict[str, str]) -> None:
        """Set values of a Secret."""
        values = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        await self.client.patch(resources.SECRETS, Key(SPACE, name), {"data": values})


def condition(obj: JsonObject, type_: str, status: str = "True") -> bool:
    """Whether a condition has this status at the current generation."""
    found = (obj.get("status") or {}).get("conditions") or ()
    current = (obj.get("status") or {}).get("observedGeneration", 0) >= obj["metadata"]["generation"]
    return current and any(item["type"] == type_ and item["status"] == status for item in found)


async def login(base: str, user: str, password: str, scope: JsonObject | None = None) -> tuple[int, JsonObject, str]:
    """Status, token body and token of a password login in the directory's domain."""
    domain = "Default" if user == "admin" else "planetexpress"
    identity = {
        "methods": ["password"],
        "password": {"user": {"name": user, "domain": {"name": domain}, "password": password}},
    }
    body: JsonObject = {"auth": {"identity": identity, **({"scope": scope} if scope else {})}}
    async with aiohttp.ClientSession() as session, session.post(f"{base}/auth/tokens", json=body) as answer:
        content: JsonObject = await answer.json()
        return answer.status, content.get("token", {}), answer.headers.get("X-Subject-Token", "")


async def show_login(base: str) -> None:
    """Grant a role to the directory's group, log in as one of its members, show the token."""
    status, _, token = await login(
        base, "admin", "change-me-please", {"project": {"name": "admin", "domain": {"id": "default"}}}
    )
    if status != 201:
        raise SystemExit(f"the administrator's login answered {status}")
    async with aiohttp.ClientSession(headers={"X-Auth-Token": token}) as session:

        async def get(path: str) -> Any:
            async with session.get(f"{base}{path}") as answer:
                return await answer.json()

        domain = (await get("/domains?name=planetexpress"))["domains"][0]["id"]
        group = next(g for g in (await get(f"/groups?domain_id={domain}"))["groups"] if g["name"] == "ship_crew")
        role = (await get("/roles?name=member"))["roles"][0]
        grant = f"{base}/domains/{domain}/groups/{group['id']}/roles/{role['id']}"
        async with session.put(grant) as answer:
            answer.raise_for_status()
        status, body, _ = await login(base, "fry", "fry", {"domain": {"id": domain}})
        if status != 201:
            raise SystemExit(f"fry's login answered {status}")
        groups = (await get(f"/users/{body['user']['id']}/groups"))["groups"]
    user = body["user"]
    say(f"  login 201: user {user['name']} of domain {user['domain']['name']}")
    say(
        f"  groups: {', '.join(item['name'] for item in groups)}; roles: {', '.join(item['name'] for item in body['roles'])}"
    )


async def rollouts(cloud: Cloud) -> int:
    """Revision of the Keystone Deployment: each rollout raises it by one."""
    live = await cloud.client.get(resources.DEPLOYMENTS, Key(SPACE, "keystone"))
    return int(live["metadata"]["annotations"]["deployment.kubernetes.io/revision"])


async def story(client: Client, directory: Directory) -> None:
    """The whole demo after the machine is up."""
    cloud = Cloud(client)
    say("apply examples/keystone-ldap")
    await cloud.apply_example()
    say("conditions, as they turn True:")
    await cloud.follow(cloud.keystone, Key(SPACE, "keystone"), lambda o: condition(o, "KeystoneAPIReady"))
    await cloud.follow(cloud.backend, BACKEND, lambda o: condition(o, "Ready"))
    base = await cloud.address()
    say("log in as a user of the directory:")
    await show_login(base)

    say("rotate the bind password: in the directory, then in the Secret")
    before = await rollouts(cloud)
    directory.set_bind_password("better-news")
    await cloud.secret("planetexpress-bind", {"password": "better-news"})
    await cloud.follow(cloud.backend, BACKEND, lambda o: condition(o, "ConfigProjected", "False"))
    await cloud.follow(cloud.backend, BACKEND, lambda o: condition(o, "Ready") and condition(o, "DirectoryReachable"))
    status, _, _ = await login(base, "leela", "leela")
    say(f"  rollouts: {await rollouts(cloud) - before}; leela's login: {status}")

    say("a wrong password in the Secret, as the status shows it:")
    await cloud.secret("planetexpress-bind", {"password": "wrong"})
    await cloud.follow(cloud.backend, BACKEND, lambda o: condition(o, "DirectoryReachable", "False"))
    await cloud.secret("planetexpress-bind", {"password": "better-news"})
    await cloud.follow(cloud.backend, BACKEND, lambda o: condition(o, "Ready") and condition(o, "DirectoryReachable"))

    say("the directory dies, as the status shows it (nothing is undone):")
    directory.stop()
    await touch(cloud, "directory-died")
    await cloud.follow(cloud.backend, BACKEND, lambda o: condition(o, "DirectoryReachable", "False"))
    directory.start()
    await touch(cloud, "directory-back")
    await cloud.follow(cloud.backend, BACKEND, lambda o: condition(o, "DirectoryReachable"))

    if os.environ.get("KEEP"):
        return
    say("detach: delete the backend (deletionPolicy Delete)")
    await client.delete(cloud.backend, BACKEND)
    await cloud.follow(cloud.backend, BACKEND, lambda _: False)
    keystone = await client.get(resources.DEPLOYMENTS, Key(SPACE, "keystone"))
    volumes = [volume["name"] for volume in keystone["spec"]["template"]["spec"]["volumes"]]
    status, _, _ = await login(base, "fry", "fry")
    admin, _, _ = await login(base, "admin", "change-me-please")
    say(f"  volumes of Keystone: {', '.join(volumes)}; fry's login: {status}; the administrator's: {admin}")


async def touch(cloud: Cloud, note: str) -> None:
    """Wake the backend's controller at once instead of at its next look."""
    await cloud.client.patch(cloud.backend, BACKEND, {"metadata": {"annotations": {"moorage.internal/probe-at": note}}})


async def main() -> None:
    """Start everything, tell the story, end everything."""
    folder = Path(tempfile.mkdtemp(prefix="moorage-demo-"))
    directory = Directory(folder / "slapd")
    keep = bool(os.environ.get("KEEP"))
    try:
        say(f"start a directory on ldap://127.0.0.1:{PORT}")
        directory.prepare()
        directory.start()
        say("start one-machine mode: moorage up")
        async with machine(folder / "data") as kubeconfig, Client(load_kubeconfig(str(kubeconfig))) as client:
            await story(client, directory)
            if keep:
                say("left up; try in another terminal, and press Ctrl-C here to end it:")
                for line in (
                    "get keystones,keystoneidentitybackends",
                    "get pods,deploy,svc",
                    "events",
                    "logs deploy/keystone",
                ):
                    print(f"  kubectl --kubeconfig {kubeconfig} -n {SPACE} {line}")
                await asyncio.Event().wait()
            say("stop one-machine mode: Keystone finishes what it is doing, its workers get their grace")
    finally:
        directory.stop()
        shutil.rmtree(folder, ignore_errors=True)
        say("ended; nothing is left running")


def tell(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a demo. SIGINT and SIGTERM end it in order, also where a shell started it in the background with SIGINT ignored."""

    async def ended_in_order() -> None:
        task = asyncio.current_task()
        assert task is not None
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, lambda: task.cancelling() or task.cancel())
        await story()

    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(ended_in_order())


if __name__ == "__main__":
    tell(main)
