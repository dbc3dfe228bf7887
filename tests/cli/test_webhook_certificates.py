"""`moorage run --webhook-certificates`: the files of somebody else, served as they are."""

from __future__ import annotations

import socket
import ssl
import sys
from datetime import UTC, datetime
from pathlib import Path

from tests.real.embedded import embedded
from tests.real.ports import free_port
from tests.real.process import Command, poll, running

from moorage.serving.certificates import issue, make_authority


def test_webhooks_are_served_with_the_certificate_of_the_folder(tmp_path: Path) -> None:
    """Whoever trusts the folder's authority, and no other, reaches them."""
    authority, folder, port = make_authority("cert-manager", datetime.now(UTC)), tmp_path / "tls", free_port()
    pair = issue(authority, ["localhost"], datetime.now(UTC))
    folder.mkdir()
    (folder / "tls.crt").write_text(pair.certificate)
    (folder / "tls.key").write_text(pair.key.reveal())
    with embedded(tmp_path) as api:
        binds = [f"--{name}-bind=127.0.0.1:{free_port()}" for name in ("metrics", "health")]
        argv = [
            sys.executable,
            "-m",
            "moorage.cli",
            "run",
            "--kubeconfig",
            str(api.kubeconfig),
            "--no-leader-elect",
            *binds,
        ]
        argv += [f"--webhook-bind=127.0.0.1:{port}", "--webhook-certificates", str(folder)]
        with running(Command("run", argv, tmp_path)):
            poll(
                lambda: _served(port, authority.certificate),
                what="webhooks that the authority of the folder vouches for",
            )


def _served(port: int, authority: str) -> bool:
    trusting = ssl.create_default_context(cadata=authority)
    try:
        with (
            socket.create_connection(("127.0.0.1", port)) as raw,
            trusting.wrap_socket(raw, server_hostname="localhost"),
        ):
            return True
    except ConnectionRefusedError:
        return False
