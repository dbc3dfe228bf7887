"""The commands of a page, as a reader would type them.

Enters: Markdown. Leaves: one text a command: fenced bash blocks whole, indented blocks line by line; comments dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "guides").glob("*.md")),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "examples").glob("*/README.md")),
)
FEDERATED = (
    "docs/guides/oidc.md",
    "examples/keystone-oidc/README.md",
    "docs/guides/cannot-log-in.md",
    "docs/guides/saml.md",
    "examples/keystone-saml/README.md",
)
"""Pages that need providers, in this order: each finds the machine as the one before left it."""
POCKETID = (
    "docs/guides/pocketid-adopt.md",
    "docs/guides/pocketid-client.md",
    "docs/guides/pocketid-not-ready.md",
    "docs/guides/pocketid-rotation.md",
    "docs/guides/pocketid-machine-tokens.md",
    "examples/pocketid-client/README.md",
    "examples/pocketid-api/README.md",
)
"""Pages that need a Pocket-ID, in this order: the first one begins on an empty machine."""
PEOPLE = ("docs/guides/pocketid-keystone.md", "examples/pocketid-keystone/README.md")
"""Pages that need a Pocket-ID and a Keystone behind a gateway."""
DEPLOYED = ("docs/guides/pocketid-instance.md", "examples/pocketid-deployed/README.md")
"""Pages that need an image of a Pocket-ID."""
PROGRAMS = ("moorage", "kubectl", "make", "export", "KEEP=1")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[str]:
    """All commands of a page in their order."""
    text = (ROOT / page).read_text()
    places = [(match.start(), list(_lines(match[2]))) for match in _FENCE.finditer(text) if match[1] in ("bash", "sh")]
    plain = _FENCE.sub(lambda match: " " * len(match[0]), text)
    for match in re.finditer(r"^    (\S.*)$", plain, re.MULTILINE):
        if match[1].split()[0] in PROGRAMS:
            places.append((match.start(), list(_lines(match[1]))))
    return [command for _, found in sorted(places) for command in found]


def _lines(block: str) -> Iterator[str]:
    """Logical lines: continued ones joined, comments and empty ones left out."""
    for line in block.replace("\\\n", " ").splitlines():
        bare = re.sub(r"\s+#\s.*$", "", line).strip()
        if bare and not bare.startswith("#"):
            yield re.sub(r"\s{2,}", " ", bare)
