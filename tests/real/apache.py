"""Apache with both modules, from rendered files: does it read them, and what does it hand on?

Enters: files of the sidecar, values to write. Leaves: what httpd said, and a backend on a Unix socket that answers with what reached it.
The sidecar itself is served by tests/e2e/federation/sidecar.py.
"""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.federation.sidecar import CONFIG, sandbox
from tests.real.unprivileged import program

HTTPD = Path("/usr/sbin/apache2")


@dataclass
class Echo:
    """A backend on a Unix socket; `seen` holds what reached it: the request line and the headers as they were sent."""

    path: Path
    seen: list[tuple[str, tuple[tuple[str, str], ...]]] = field(default_factory=list)

    def arrived(self, *starts: str) -> dict[str, str]:
        """Headers of the last request as a WSGI server names them, those that start with one of these."""
        _, headers = self.seen[-1]
        found = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers}
        return {name: value for name, value in found.items() if not starts or name.startswith(starts)}


@contextmanager
def echo(path: Path) -> Iterator[Echo]:
    """Serve it for the time of a `with`."""
    made = Echo(path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        path.chmod(0o666)
        server.listen(64)
        thread = threading.Thread(target=_serve, args=(server, made), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(server: socket.socket, made: Echo) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection, suppress(OSError):
            _answer(connection, made)


def _answer(connection: socket.socket, made: Echo) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return
        data += more
    line, *lines = data.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    headers = tuple((name, value) for name, _, value in (item.partition(": ") for item in lines))
    made.seen.append((line, headers))
    body = json.dumps({"line": line, "headers": headers}).encode()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    connection.sendall(head.encode() + body)


def written(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put files of the sidecar where the sandbox shows them; names are paths below its folder."""
    for name, content in files.items():
        path = folder / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def asked(folder: Path, *words: str, address: str = "127.0.0.1") -> subprocess.CompletedProcess[str]:
    """What the program says about the files of `folder` when it is run with these words."""
    run = folder / "run"
    run.mkdir(exist_ok=True)
    argv = [*sandbox(folder, run, address), program(HTTPD, "apache2-bin"), "-f", f"{CONFIG}/httpd-base.conf", *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def complaints(folder: Path, files: Mapping[str, bytes], defines: Sequence[str] = ()) -> list[str]:
    """Lines of `apache2 -t` besides "Syntax OK"; none when all is well."""
    written(folder, files)
    found = asked(folder, "-t", *(word for name in defines for word in ("-D", name)))
    said = [line for line in (found.stdout + found.stderr).splitlines() if line != "Syntax OK"]
    return said if said or found.returncode == 0 else ["it ended without a word"]


def directives(folder: Path, files: Mapping[str, bytes]) -> frozenset[str]:
    """Names of all directives that the loaded modules know."""
    written(folder, files)
    lines = asked(folder, "-L").stdout.splitlines()
    names = (line.split(" ")[0].strip("<>") for line in lines if line[:1].strip())
    return frozenset(name for name in names if name)


def placed(files: Mapping[str, bytes], mounts: Sequence[Any]) -> dict[str, bytes]:
    """Files by their path below the sidecar's folder."""
    return {mount.path: files[mount.key] for mount in mounts}
