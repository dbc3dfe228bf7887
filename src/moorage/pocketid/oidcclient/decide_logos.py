"""The policy of logos, each side by itself: ours only while a URL resolves, deleted only where we put it.

Enters: a snapshot. Leaves: the next plan, or None. Pure. A logo is cosmetic: a URL that Pocket-ID refuses is remembered for a day and fails
nothing. Source: seed 004, Logos; spec/pocketid.md 3.7.
"""

from __future__ import annotations

from typing import Final

from moorage.pocketid.rest_types import Client

from .plans import DeleteLogo, Part, PushLogo, Side
from .rule import Answer, Rule, worked
from .seen import Seen
from .types_access import Logo

SIDES: Final[tuple[Side, ...]] = ("light", "dark")
_LOGO: Final = Logo()
_PLACE: Final = "{{name}}"


def resolved(seen: Seen, side: Side) -> str:
    """The URL of a side: deprecated field as it is, own template, the operator's template; "" when there is none."""
    spec, logo = seen.client.spec, seen.client.spec.logo or _LOGO
    as_is, own, default = {
        "light": (spec.logo_url, logo.logo_url, seen.settings.light_logo),
        "dark": (spec.dark_logo_url, logo.dark_logo_url, seen.settings.dark_logo),
    }[side]
    if as_is:
        return as_is
    generates = seen.settings.autogenerate_logos if logo.auto_generate is None else logo.auto_generate
    template = own or (default if generates else "")
    return template.replace(_PLACE, logo.name_override or seen.client.metadata.name)


def logos_are_current(seen: Seen) -> Answer:
    """The next side that is not as it should be."""
    client = seen.found
    if client is None:
        return None
    return next((plan for side in SIDES if (plan := _side(seen, client, side)) is not None), None)


def _side(seen: Seen, client: Client, side: Side) -> PushLogo | DeleteLogo | None:
    url, applied = resolved(seen, side), seen.applied(side) or ""
    has = client.has_logo if side == "light" else client.has_dark_logo
    if not url or (url in seen.refused_logos and applied != url):
        return DeleteLogo(side) if applied else None
    if url == applied and (has or url in seen.refused_logos):
        return None
    plan = PushLogo(side, url)
    return None if plan in seen.done else plan


LOGO_RULES: Final[tuple[Rule, ...]] = (worked(Part.LOGOS), logos_are_current)
