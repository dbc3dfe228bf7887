"""`moorage up` started by somebody who is not root: pods run as that user, with the same covers over the kernel's files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage.core.meta import Key
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.kube.resources import PODS, SECRETS

from .conftest import PYTHON, Machine, is_ready, phase, pod
from .test_isolation import PROBE, as_root
from .test_pods import FOREVER, state

pytestmark = [as_root, pytest.mark.timeout(120)]
_NOBODY_IN_PARTICULAR = 61_000


def _python() -> str:
    """An interpreter that another user may start and that finds this checkout and its packages."""
    minor = f"python3.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{minor}", f"/usr/local/bin/{minor}"):
        with contextlib.suppress(OSError):
            tried = subprocess.run(
                [candidate, "-c", "import moorage.cli, uvloop"], check=False, capture_output=True, **_plain()
            )
            if tried.returncode == 0:
                return candidate
    pytest.skip("no interpreter here that another user may start")


def _plain(home: str = "/nonexistent") -> dict[str, object]:
    environment = {"HOME": home, "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(filter(None, sys.path))}
    user = _NOBODY_IN_PARTICULAR
    return {"user": user, "group": user, "extra_groups": [], "env": {**environment, "PYTHONDONTWRITEBYTECODE": "1"}}


@pytest.fixture
async def plain() -> AsyncIterator[Machine]:
    """One-machine mode of a plain user, its folder below /tmp since ours is closed to others."""
    home = tempfile.mkdtemp(prefix="moorage-plain-")
    os.chown(home, _NOBODY_IN_PARTICULAR, _NOBODY_IN_PARTICULAR)
    data = Path(home) / "data"
    command = (_python(), "-m", "moorage.cli", "up", "--data", str(data))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, cwd="/", **_plain(home))  # type: ignore[arg-type]
    try:
        assert process.stdout is not None
        assert (await process.stdout.readline()).startswith(b"kubeconfig: ")
        async with Client(load_kubeconfig(str(data / "kubeconfig"))) as client:
            yield Machine(data, client)
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        shutil.rmtree(home)


async def test_a_plain_user_runs_pods_with_secrets_probes_and_covers(plain: Machine) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
    await plain.client.create(SECRETS, {**secret, "stringData": {"k": "v"}})
    asked = {"exec": {"command": ["/bin/grep", "-q", "v", "/s/k"]}, "periodSeconds": 1}
    container = {"readinessProbe": asked, "volumeMounts": [{"name": "s", "mountPath": "/s"}]}
    volumes = [{"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}}]
    await plain.client.create(PODS, pod("serves", *FOREVER, container=container, volumes=volumes))
    await plain.until(PODS, "serves", is_ready)
    await plain.client.create(PODS, pod("tries", PYTHON, "-c", PROBE, restartPolicy="Never"))
    found = await plain.until(PODS, "tries", phase("Succeeded"))
    assert state(found)["restartCount"] == 0
    (line,) = plain.log("tries")
    assert '"readonly": [true, true, true, true]' in line
    assert '"opened"' in line
    await plain.client.delete(PODS, Key("default", "serves"))
    await plain.gone(PODS, "serves")
