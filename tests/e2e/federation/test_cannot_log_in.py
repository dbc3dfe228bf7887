"""docs/guides/cannot-log-in.md is true: each trouble is brought about on real servers, and what people and logs show is what its row says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.federation import troubles
from tests.e2e.federation.stand import Stand

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
PAGE = Path(__file__).parents[3] / "docs" / "guides" / "cannot-log-in.md"
OF_KEYSTONE = (
    troubles.disabled, troubles.other_issuer, troubles.foreign_dashboard, troubles.no_rule, troubles.no_local_user,
    troubles.no_domain_of_the_user, troubles.groups_without_domain, troubles.no_role, troubles.unknown_group, troubles.semicolon,
    troubles.out_of_range, troubles.group_by_id, troubles.no_protocol,
)  # fmt: skip
OF_SIDECAR = (
    troubles.unknown_path, troubles.shared_protocol, troubles.token_of_another, troubles.no_introspection, troubles.second_provider,
    troubles.script, troubles.provider_down, troubles.foreign_logout, troubles.late_answer, troubles.lost_cookie, troubles.bad_signature,
    troubles.used_answer, troubles.expired_answer, troubles.encrypted, troubles.too_many_claims,
)  # fmt: skip
"""In the order of the page's rows."""
PLACES = ("WWW-Authenticate",)
"""Quoted, and no text: where the text stands."""
ROWS = [("Keystone", at, trouble) for at, trouble in enumerate(OF_KEYSTONE)]
ROWS += [("the sidecar", at, trouble) for at, trouble in enumerate(OF_SIDECAR)]


def _rows(who: str) -> list[list[str]]:
    """The cells of the table of a section."""
    section = PAGE.read_text().partition(f"## What {who} answers\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines]


def _quoted(cell: str) -> Iterator[str]:
    """Texts in backticks; those with a placeholder or of an address are no quotes."""
    return (text for text in re.findall(r"`([^`]+)`", cell) if not text.startswith("/"))


@pytest.mark.parametrize(("who", "at", "trouble"), ROWS, ids=[f"{who}-{trouble.__name__}" for who, _, trouble in ROWS])
async def test_a_row_of_the_page_is_what_people_and_logs_show(
    site: Stand, who: str, at: int, trouble: troubles.Trouble
) -> None:
    """Status and text of the first column, the log's words of the third."""
    seen, _, said, _ = _rows(who)[at]
    log = (site.server if who == "Keystone" else site.proxy).process.log
    before = log.stat().st_size
    met = await trouble(site)
    assert seen.startswith(str(met.status)), (seen, met)
    words = seen.split(", ")[0] if met.status != 201 else ""
    shown = " ".join(met.text.split())
    assert [text for text in _quoted(words) if text not in PLACES and text not in shown] == [], shown[:500]
    written = log.read_bytes()[before:].decode(errors="replace")
    assert [text for text in _quoted(said) if text not in written] == [], written[-2000:]


def test_every_row_has_its_trouble() -> None:
    """So none stands there that nobody has seen."""
    assert (len(_rows("Keystone")), len(_rows("the sidecar"))) == (len(OF_KEYSTONE), len(OF_SIDECAR))
