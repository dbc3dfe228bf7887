"""A real Keystone 30 under uWSGI, out of the local image, in a bubblewrap sandbox of the test's own: no node, no API server.

Enters: a folder, domain configuration files. Leaves: a served `Keystone`. The image is built once when it is missing
(mmdebstrap, a minute); the same folder again is the same Keystone, started anew.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

from tests.real.ports import children, free_port
from tests.real.process import Command, Process, running

import moorage.keystone.service
from moorage.node.images.rootfs import RootFs
from moorage.node.images.store import ImageStore, Recipe, default_cache

PASSWORD = "admin-password"
URL = "http://keystone.example.test/v3"
"""In the database that others are copied from."""
RECIPE = Path(moorage.keystone.service.__file__).with_name("image")

CONF = """\
[DEFAULT]
use_stderr = true
[database]
connection = sqlite:////var/lib/keystone/keystone.db
[token]
provider = fernet
[cache]
enabled = true
backend = dogpile.cache.memory
[identity]
password_hash_rounds = 4
domain_specific_drivers_enabled = true
domain_config_dir = /etc/keystone/domains
[oslo_policy]
enforce_scope = true
enforce_new_defaults = true
"""


@dataclass(frozen=True)
class Keystone:
    """A served Keystone: `url` ends in /v3; administrator `admin` of domain `Default`, project `admin`, password PASSWORD."""

    url: str
    folder: Path
    process: Process

    @property
    def domains(self) -> Path:
        """Its domain_config_dir: `keystone.<domain>.conf` files, read by each worker at its first identity call."""
        return self.folder / "etc" / "domains"

    @property
    def socket(self) -> Path:
        """The Unix socket that it answers on as well, for a sidecar."""
        return self.folder / "run" / "keystone.sock"

    def reload(self) -> None:
        """Start the workers anew, so that they read the domain files again; returns when none of before is left and it answers."""
        master = children(self.process.pid)[0]
        before = set(children(master))
        os.kill(master, signal.SIGHUP)
        self.process.wait_until(lambda: not before & set(children(master)) and _answers(self.url), limit=120)


def image() -> RootFs:
    """The root filesystem of the local Keystone image, built now if need be."""
    store = ImageStore((Recipe(("moorage/keystone",), RECIPE),), default_cache(), say=print)
    with ThreadPoolExecutor(1) as aside:  # a test's own loop may be running here
        return aside.submit(asyncio.run, store.prepare("moorage/keystone")).result()


def _sandbox(root: RootFs, folder: Path) -> list[str]:
    binds = [
        *("--ro-bind", str(root.root), "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run"),
        *("--bind", str(folder / "etc"), "/etc/keystone", "--bind", str(folder / "state"), "/var/lib/keystone"),
        *("--dir", "/run/keystone", "--bind", str(folder / "run"), "/run/keystone"),
        *("--unshare-user", "--uid", str(root.uid), "--gid", str(root.gid)),
        *("--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session", "--as-pid-1", "--clearenv"),
    ]
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"} | dict(root.environment)
    for name, value in environment.items():
        binds += ["--setenv", name, value]
    return ["bwrap", *binds, "--chdir", "/var/lib/keystone"]


def _prepare(folder: Path, conf: str) -> None:
    """Folders, configuration and keys; a database only where there is one already."""
    for part in ("etc/domains", "etc/fernet-keys", "etc/credential-keys", "state", "run"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "etc" / "keystone.conf").write_text(CONF + conf)
    for repository in ("fernet-keys", "credential-keys"):
        for index in ("0", "1"):
            key = folder / "etc" / repository / index
            if not key.exists():
                key.write_bytes(base64.urlsafe_b64encode(os.urandom(32)))


def _database(root: RootFs, folder: Path, url: str) -> None:
    """A migrated and bootstrapped database for a Keystone of this URL, copied from the one of this image: both steps take seconds and come to the same."""
    state = folder / "state" / "keystone.db"
    if state.exists():
        return
    words = ["bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-public-url", URL]
    words += ["--bootstrap-region-id", "RegionOne"]
    digest = hashlib.sha256("\n".join([CONF, str(root.root), *words]).encode()).hexdigest()[:12]
    kept = default_cache().with_name(f"keystone-{digest}.db")
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".keystone-") as name:
                sandbox = _sandbox(root, Path(name))
                _prepare(Path(name), "")
                for command in (["db_sync"], words):
                    subprocess.run([*sandbox, "keystone-manage", *command], check=True, capture_output=True)
                (Path(name) / "state" / "keystone.db").rename(kept)
    shutil.copyfile(kept, state)
    with contextlib.closing(sqlite3.connect(state)) as database, database:
        database.execute("UPDATE endpoint SET url = ?", (url,))


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


@contextmanager
def keystone(
    folder: Path,
    *,
    workers: int = 1,
    conf: str = "",
    longest: int = 600,
    public: Path | None = None,
    **environment: str,
) -> Iterator[Keystone]:
    """Serve a Keystone from `folder`; put domain files into `<folder>/etc/domains` before, or use `reload`.

    A request lasts `longest` seconds at most. `public` is a folder of authorities that stands for the image's own. `conf` are further lines of keystone.conf, sections and all; files that they name belong into `<folder>/etc`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    root, port = image(), free_port()
    url = f"http://127.0.0.1:{port}/v3"
    sandbox = _sandbox(root, folder)
    _prepare(folder, conf)
    _database(root, folder, url)
    uwsgi = [
        *("uwsgi", "--http-socket", f"127.0.0.1:{port}", "--module", "keystone.wsgi.api:application"),
        *("--http-socket", "/run/keystone/keystone.sock", "--chmod-socket=660"),
        *("--master", "--processes", str(workers), "--enable-threads", "--lazy-apps", "--need-app"),
        *("--buffer-size", "65535", "--add-header", "Connection: close", "--die-on-term", "--disable-logging"),
        *("--harakiri", str(longest)),
    ]
    if public is not None:
        sandbox += ["--ro-bind", str(public), "/etc/ssl/certs"]
    for name, value in environment.items():
        sandbox += ["--setenv", name, value]
    command = Command("keystone", [*sandbox, *uwsgi], folder)
    with running(command, port=port, ready=lambda: _answers(url), limit=120) as process:
        yield Keystone(url, folder, process)


def manage(real: Keystone, *words: str) -> list[str]:
    """The command line of `keystone-manage` beside the server, on its files and database."""
    return [*_sandbox(image(), real.folder), "keystone-manage", *words]
