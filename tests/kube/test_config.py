"""Kubeconfig files and in-cluster accounts."""

from __future__ import annotations

import base64
import json
import os
import stat
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.core.errors import InputError, WireError
from moorage.kube.config import in_cluster, load_kubeconfig
from moorage.kube.credentials import ExecPlugin, ExecSpec, TokenFile
from moorage.serving.certificates import issue, make_authority

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def write(path: Path, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **more: Any) -> Path:
    config = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        **more,
    }
    path.write_text(yaml.safe_dump(config))
    return path


async def header(connection: Any) -> str:
    return str((await connection.credentials.current()).authorization.reveal())


async def test_tokens_passwords_and_namespaces(tmp_path: Path) -> None:
    """What a user entry says becomes the Authorization header."""
    connection = load_kubeconfig(write(tmp_path / "k", {"token": "t0ken"}))
    assert (connection.server, connection.namespace) == ("https://api:6443", "team")
    assert await header(connection) == "Bearer t0ken"
    assert "t0ken" not in repr(connection)
    assert await header(load_kubeconfig(write(tmp_path / "k", {"username": "u", "password": "p"}))) == "Basic dTpw"
    assert await header(load_kubeconfig(write(tmp_path / "k"))) == ""


async def test_several_files_are_merged_and_the_first_that_sets_a_value_wins(tmp_path: Path) -> None:
    """KUBECONFIG is a list; files that do not exist are skipped."""
    write(tmp_path / "one", {"token": "first"}, **{"current-context": ""})
    write(tmp_path / "two", {"token": "second"}, contexts=[{"name": "b", "context": {"cluster": "c", "user": "u"}}])
    environ = {"KUBECONFIG": os.pathsep.join(str(tmp_path / name) for name in ("missing", "one", "two"))}
    assert await header(load_kubeconfig(environ=environ)) == "Bearer first"
    assert load_kubeconfig(context="b", environ=environ).namespace == "default"


async def test_relative_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    """Certificates, keys and token files."""
    authority = make_authority("test", datetime.now(UTC))
    pair = issue(authority, ["user"], datetime.now(UTC))
    folder = tmp_path / "deep"
    folder.mkdir()
    for name, text in (
        ("ca", authority.certificate),
        ("crt", pair.certificate),
        ("key", pair.key.reveal()),
        ("tok", "x"),
    ):
        (folder / name).write_text(text)
    user = {"client-certificate": "crt", "client-key": "key", "tokenFile": "tok"}
    connection = load_kubeconfig(write(folder / "k", user, {"certificate-authority": "ca", "tls-server-name": "other"}))
    assert connection.tls.server_name == "other"
    assert connection.tls.context().get_ca_certs()
    assert await header(connection) == "Bearer x"


def test_inline_data_wins_over_files_and_leaves_no_key_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-data` fields are base64 PEM; OpenSSL reads a key from a file that is gone afterwards."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    authority = make_authority("test", datetime.now(UTC))
    pair = issue(authority, ["user"], datetime.now(UTC))

    def encoded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    user = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key.reveal())}
    cluster = {"certificate-authority-data": encoded(authority.certificate), "certificate-authority": "/missing"}
    load_kubeconfig(write(tmp_path / "k", user, cluster)).tls.context()
    assert list((tmp_path / "temp").iterdir()) == []


def test_insecure_skips_the_check_and_proxies_are_ignored(tmp_path: Path) -> None:
    """insecure-skip-tls-verify is honoured; proxy-url is not."""
    path = write(tmp_path / "k", {}, {"insecure-skip-tls-verify": True, "proxy-url": "http://proxy:3128"})
    context = load_kubeconfig(path).tls.context()
    assert (context.check_hostname, context.verify_mode) == (False, 0)


def test_impersonation_becomes_headers(tmp_path: Path) -> None:
    """Each group is a header of its own."""
    user = {"as": "alice", "as-groups": ["g1", "g2"], "as-user-extra": {"scope": ["s"]}}
    assert load_kubeconfig(write(tmp_path / "k", user)).headers == (
        ("Impersonate-User", "alice"),
        ("Impersonate-Group", "g1"),
        ("Impersonate-Group", "g2"),
        ("Impersonate-Extra-scope", "s"),
    )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: folder / "missing", "no kubeconfig there"),
        (lambda folder: _text(folder, "a: [\n"), r"k:2:1: not YAML"),
        (lambda folder: _text(folder, "- a\n"), "not a kubeconfig"),
        (lambda folder: _text(folder, "users: {a: b}\n"), "users is not a list of named users"),
        (lambda folder: _text(folder, "clusters: [{name: a, cluster: text}]\n"), "clusters is not a list of named"),
        (lambda folder: write(folder / "k", **{"current-context": ""}), "no current-context is set"),
        (lambda folder: write(folder / "k", **{"current-context": "x"}), "context 'x' is not there; it has: a"),
        (lambda folder: write(folder / "k", users=[]), "user 'u' is not there"),
        (lambda folder: write(folder / "k", clusters=[{"name": "c", "cluster": {}}]), "has no server"),
        (lambda folder: write(folder / "k", {"auth-provider": {"name": "gcp"}}), "Use an exec plugin"),
        (lambda folder: write(folder / "k", {"exec": {"args": []}}), "has no command"),
        (lambda folder: write(folder / "k", {"client-key-data": "!"}), "is not base64"),
        (lambda folder: write(folder / "k", {"client-certificate": "gone"}), "cannot be read"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, make: Callable[[Path], Path], says: str) -> None:
    """File, place and fix."""
    with pytest.raises(InputError, match=says):
        load_kubeconfig(make(tmp_path))


def _text(folder: Path, text: str) -> Path:
    (folder / "k").write_text(text)
    return folder / "k"


async def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    """After its period, and at once after a 401; a file that vanished keeps the last token."""
    now = 0.0
    (tmp_path / "token").write_text("one\n")
    source = TokenFile(tmp_path / "token", clock=lambda: now)

    async def current() -> str:
        return (await source.current()).authorization.reveal()

    assert await current() == "Bearer one"
    (tmp_path / "token").write_text("two")
    assert await current() == "Bearer one"
    now = 60.0
    assert await current() == "Bearer two"
    (tmp_path / "token").write_text("three")
    assert source.refused()
    assert await current() == "Bearer three"
    (tmp_path / "token").unlink()
    now = 200.0
    assert await current() == "Bearer three"


async def test_in_cluster_reads_the_mounted_account(tmp_path: Path) -> None:
    """Address from the environment, IPv6 in brackets, namespace from its file."""
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("moorage-system\n")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    connection = in_cluster(tmp_path, environ)
    assert (connection.server, connection.namespace) == ("https://[fd00::1]:443", "moorage-system")
    with pytest.raises(InputError, match="no service account"):
        in_cluster(tmp_path, {})


def plugin(folder: Path, script: str, **spec: Any) -> ExecSpec:
    path = folder / "plugin"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return ExecSpec(str(path), **spec)


def answer(**status: str) -> str:
    found = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"echo run >> $(dirname $0)/runs; cat <<EOF\n{json.dumps(found)}\nEOF\n"


async def test_an_exec_plugin_is_asked_once_until_its_credential_expires(tmp_path: Path) -> None:
    """And again after a 401."""
    now = NOW
    expires = (NOW + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    source = ExecPlugin(plugin(tmp_path, answer(token="tok", expirationTimestamp=expires)), now=lambda: now)
    for _ in range(3):
        assert (await source.current()).authorization.reveal() == "Bearer tok"
    assert runs(tmp_path) == 1
    now += timedelta(minutes=4, seconds=55)
    await source.current()
    assert runs(tmp_path) == 2
    now = NOW
    source.refused()
    await source.current()
    assert runs(tmp_path) == 3


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines())


async def test_an_exec_plugin_hears_its_environment_and_cluster(tmp_path: Path) -> None:
    """KUBERNETES_EXEC_INFO names the cluster when asked for; `env` is added."""
    script = f'echo "$KUBERNETES_EXEC_INFO" > $(dirname $0)/info; echo "$WHO" > $(dirname $0)/who\n{answer(token="t")}'
    config = {
        "command": "./plugin", "apiVersion": "client.authentication.k8s.io/v1", "provideClusterInfo": True,
        "env": [{"name": "WHO", "value": "me"}], "interactiveMode": "Never",
    }  # fmt: skip
    plugin(tmp_path, script)
    await header(load_kubeconfig(write(tmp_path / "k", {"exec": config}, {"tls-server-name": "n"})))
    info = json.loads((tmp_path / "info").read_text())
    assert info["spec"] == {"interactive": False, "cluster": {"server": "https://api:6443/", "tls-server-name": "n"}}
    assert (tmp_path / "who").read_text() == "me\n"


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("exit 3\n", "failed with exit code 3"),
        ("echo nonsense\n", "printed no ExecCredential"),
        (answer(), "neither a token nor a certificate"),
        (answer(token="s3cret-t0ken", expirationTimestamp="soon"), "is no RFC 3339 time"),
        ("echo s3cret-t0ken; exec sleep 100\n", "gave no answer"),
    ],
)
async def test_a_failing_plugin_is_named_and_its_output_never_shown(tmp_path: Path, script: str, says: str) -> None:
    """The error holds the command, not what it printed."""
    source = ExecPlugin(plugin(tmp_path, script, timeout=5.0 if "exec sleep" not in script else 0.2))
    with pytest.raises(WireError, match=says) as caught:
        await source.current()
    assert "s3cret-t0ken" not in str(caught.value)


async def test_a_missing_plugin_shows_its_install_hint() -> None:
    """What kubectl would show."""
    source = ExecPlugin(ExecSpec("/no/such/plugin", install_hint="Install it from example.org."))
    with pytest.raises(WireError, match="Install it from example"):
        await source.current()
