"""Logs hold no secrets and no variables of a traceback."""

from __future__ import annotations

import json

import pytest
import structlog

from moorage.runtime import logs


@pytest.mark.parametrize("machine", [True, False])
def test_secrets_are_hidden_by_name_and_by_form(capsys: pytest.CaptureFixture[str], machine: bool) -> None:
    """Under a secret name, or as the value of an Authorization header in any text."""
    logs.configure(json=machine)
    log = structlog.get_logger()
    log.info("m", password="hunter2-hunter2", text="Authorization: Bearer abcdefgh.12345678", bind_password="x1y2z3")
    try:
        local = "hunter2-hunter2"
        raise ZeroDivisionError(f"about {len(local)}")
    except ZeroDivisionError:
        log.exception("bug")
    shown = capsys.readouterr().err
    assert "hunter2" not in shown.replace('"hunter2-hunter2"\n', "")
    assert "abcdefgh" not in shown
    assert "x1y2z3" not in shown
    assert "ZeroDivisionError" in shown
    if machine:
        assert json.loads(shown.splitlines()[0])["password"] == "***"
