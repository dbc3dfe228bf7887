"""The Apache sidecar alone, from rendered files, in a bubblewrap sandbox as a pod would have it: no node, no API server.

Enters: files by their absolute path in the pod, Keystone's socket. Leaves: a served sidecar for the time of a `with`. It changes no file: what is
tested is what was rendered.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.real.process import Command, Process, running
from tests.real.unprivileged import program

import moorage.keystone.service
from moorage.node.images.recipe import load

UID = "42424"
CONFIG = "/etc/keystone-federation-proxy"
RECIPE = Path(moorage.keystone.service.__file__).with_name("sidecar")
"""Of the image; its environment is the sandbox's."""


@dataclass(frozen=True)
class Sidecar:
    """A served sidecar: `url` is `http://ADDRESS:5050`, without a path."""

    url: str
    process: Process


def sandbox(folder: Path, run: Path, address: str) -> list[str]:
    return [
        *("bwrap", "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/etc"),
        *(word for name in ("bin", "lib", "lib64", "sbin") for word in ("--symlink", f"usr/{name}", f"/{name}")),
        *("--ro-bind", "/etc/ssl", "/etc/ssl", "--ro-bind", "/etc/mime.types", "/etc/mime.types")[
            : 6 if Path("/etc/mime.types").exists() else 3
        ],
        *("--dir", "/var", "--dir", "/var/www", "--dir", "/var/www/html", "--dir", "/run"),
        *("--ro-bind", str(folder / "files"), CONFIG, "--bind", str(run), "/run/keystone"),
        *("--unshare-user", "--uid", UID, "--gid", UID, "--unshare-pid", "--die-with-parent", "--as-pid-1"),
        *("--clearenv", "--setenv", "PATH", "/usr/bin:/usr/sbin", "--setenv", "POD_IP", address),
        *(word for name, value in load(RECIPE).file.environment.items() for word in ("--setenv", name, value)),
    ]


@contextmanager
def sidecar(
    folder: Path, files: Mapping[str, bytes], socket: Path, *, address: str, defines: Sequence[str] = ()
) -> Iterator[Sidecar]:
    """Serve on port 5050 of a loopback `address`; `files` by absolute path under CONFIG."""
    for name, content in files.items():
        path = folder / "files" / Path(name).relative_to(CONFIG)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    apache = [program(Path("/usr/sbin/apache2"), "apache2-bin"), "-DFOREGROUND", "-f", f"{CONFIG}/httpd-base.conf"]
    flags = [word for name in defines for word in ("-D", name)]
    argv = [*sandbox(folder, socket.parent, address), *apache, *flags]
    with running(Command("sidecar", argv, folder, stop_signal=signal.SIGTERM), port=5050) as process:
        yield Sidecar(f"http://{address}:5050", process)
