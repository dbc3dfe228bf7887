"""What leaves in a support bundle: objects and logs without a secret, and still of use."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cli.redaction import redacted, without_secrets
from moorage.cli.systems import KINDS

CANARY = "SECRET0123456789"


def _filled(schema: dict[str, Any], name: str = "") -> Any:
    """A value of this schema: each text a plain word, and the canary in each field that holds what `valueFrom` would name elsewhere."""
    if schema.get("type") == "array":
        return [_filled(schema["items"], name)]
    fields = schema.get("properties") or {}
    if not fields:
        return CANARY if name == "value" else "plain"
    return {key: _filled(item, key) for key, item in fields.items() if key != "value" or "valueFrom" in fields}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_no_field_that_may_hold_a_secret_is_in_a_bundle(kind: Any) -> None:
    """Of each kind, as its declaration has it."""
    spec = _filled(kind.crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])
    told = json.dumps(without_secrets({"kind": kind.kind, "spec": spec}))
    assert CANARY not in told
    assert "plain" in told


@pytest.mark.parametrize("text", [
    f'"token":"{CANARY}"', f'{{"token": "{CANARY}"}}', f'told "password": {{"value": "{CANARY}"}}', f'{{"password": {{"value": "{CANARY}"}}}}',
    f"X-API-Key: {CANARY}", f'"args":["--password","{CANARY}"]', f'{{"args": ["--password", "{CANARY}"]}}', f"--key={CANARY}",
    f"run --password {CANARY} now", f"Authorization: Bearer {CANARY}", f"postgres://u:p@{CANARY}@host/x", f"memcache_secret_key = {CANARY}",
    f"password='{CANARY} and more'", f"OIDCClientSecret {CANARY}", f"-----BEGIN RSA PRIVATE KEY-----\n{CANARY}\n-----END RSA PRIVATE KEY-----",
    f'{{"pem": "-----BEGIN PRIVATE KEY-----\\n{CANARY}\\n-----END PRIVATE KEY-----"}}', f"redis://:{CANARY}@host", f"Cookie: session={CANARY}", f"GET /cb?code={CANARY}&state={CANARY}", f"password=a,{CANARY}", f"pwd={CANARY}",
    f"Authorization: Digest {CANARY}", f"fernet_key: {CANARY}", f"eyJhbGciOiJub25lIn0.{CANARY}.x", f'{{"passwords": ["{CANARY}"]}}', f'{{"token": 1{"0" * 6}}} {CANARY * 40}',
])  # fmt: skip
def test_a_secret_in_a_log_is_hidden(text: str) -> None:
    """In the ways in which programs write them down."""
    assert CANARY not in redacted(f"before\n{text}\nafter")


@pytest.mark.parametrize("text", [
    "http://host:5000/v3/users/ada@example.org", "Secret corp-ldap-bind does not exist", "spec.oidc.clientSecretRef: Required value",
    "Basic authentication failed", "moorage-operator-7f9c8d.pocket-id-namespace.svc-cluster-local-x answered", "clientSecretRef.name: foo", "token expired for user ada", "secretName: tls-cert", "key=openstack/keystone took 3 ms", '{"secretName": "tls-cert"}',
])  # fmt: skip
def test_what_helps_and_is_no_secret_stays(text: str) -> None:
    """Names of Secrets, addresses, sentences."""
    assert redacted(text) == text


def test_an_option_hides_the_word_behind_it() -> None:
    """In the argument list of a container; names of Secrets stay."""
    container = {"args": ["serve", "--api-key", CANARY, "--port", "80"], "env": [{"name": "PORT", "value": "80"}]}
    reference = {"secretKeyRef": {"name": "keys", "key": "password"}}
    assert without_secrets([container, reference]) == [
        {"args": ["serve", "--api-key", "***", "--port", "80"], "env": [{"name": "PORT", "value": "***"}]},
        reference,
    ]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    """Logs are what they are."""
    assert redacted(text).count("\n") <= text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "-",
        "password",
        "OIDC",
        "a.",
        "A ",
        '"',
        'password=" ',
        "[",
        "{",
        "-----BEGIN ",
        "a://",
        "secret ",
        "gAAAA",
        "password=' ",
    ],
)
def test_no_line_takes_longer_than_its_length(text: str) -> None:
    """A page of base64 in a log, or somebody's joke, holds up nobody: twice the line takes about twice the time."""
    small, large = (_seconds(text * (size // len(text))) for size in (20_000, 80_000))
    assert large < 12 * small + 0.2


def _seconds(text: str) -> float:
    begun = time.process_time()
    redacted(text)
    return time.process_time() - begun
