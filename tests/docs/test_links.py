"""A link of a page to another page, or to a place in it, leads somewhere."""

from __future__ import annotations

import re

import pytest
from tests.docs.commands import ROOT

PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/README.md"))
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def _anchors(text: str) -> set[str]:
    """As a forge makes them: lower case, blanks to dashes, other signs left out."""
    heads = _HEADING.findall(text)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES)
def test_a_link_leads_somewhere(page: str) -> None:
    """Files exist, anchors are headings; addresses elsewhere are not asked for."""
    here = ROOT / page
    lost = []
    for target in _LINK.findall(_CODE.sub(lambda code: "x" * len(code[0]), here.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = here.parent / file if file else here
        line = re.fullmatch(r"L\d+", anchor)
        if not there.exists() or (anchor and not line and anchor not in _anchors(there.read_text())):
            lost.append(target)
    assert lost == []
