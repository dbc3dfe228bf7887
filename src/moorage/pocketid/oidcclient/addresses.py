"""Rules about the addresses of a client: where browsers are sent with a code, and what Pocket-ID asks.

Enters: a parsed client. Leaves: findings. Pure. Callback URLs go to Pocket-ID as they are: wildcards and custom schemes pass, what no
redirect may be does not, and a wildcard that an attacker's host fits is told. Source: spec/pocketid.md 4.2; case B73.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from moorage.core.unseen import has_unseen
from moorage.pocketid.judgement import Finding
from moorage.pocketid.oidcclient.types import PocketIDOIDCClient, Spec
from moorage.schema.fielderror import FieldError, invalid
from moorage.schema.review import Review

_SCRIPT: Final = re.compile(r"(?i)^(javascript|data|vbscript):")
_PATTERN: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*|\*):(?://([^/?#]*))?(.*)", re.DOTALL)
"""Scheme, authority and the rest of a callback pattern."""
_ANY_PORT: Final = re.compile(r":[\d*]*$")
_OWN_DOMAIN: Final = re.compile(r"\.[^.]+\..*[^.]")
"""What stands behind the last wildcard of a host that nobody else can register: two labels at least."""


def addresses(client: PocketIDOIDCClient, _review: Review) -> Iterator[Finding]:
    """All addresses of a client."""
    spec = client.spec
    for field, urls in (("callbackUrls", spec.callback_urls), ("logoutCallbackUrls", spec.logout_callback_urls)):
        for index, url in enumerate(urls or ()):
            yield from _callback(f"spec.{field}[{index}]", url)
    for field, (text, remedy) in _asked(spec).items():
        if text is not None and _has_user(text):
            yield invalid(field, _concealed(text), f"must not contain a user name or a password{remedy}")
    for field, text in (("launchUrl", spec.launch_url), ("scim.endpoint", spec.scim.endpoint if spec.scim else None)):
        if text is not None and _SCRIPT.match(text):
            yield _no_script(f"spec.{field}", text)
    if spec.launch_url is not None and not _is_link(spec.launch_url):
        yield f"spec.launchUrl: {spec.launch_url!r} has no scheme, or nothing behind it: the server will refuse it; write one such as https://app.example.org"
    called = {
        "backchannelLogoutUrl": spec.backchannel_logout_url,
        "scim.endpoint": spec.scim.endpoint if spec.scim else None,
    }
    for field, text in called.items():
        if text is not None and not _SCRIPT.match(text) and not _is_url(text):
            yield f"spec.{field}: {text!r} is no URL with a scheme and a host: the server will refuse it"


def _asked(spec: Spec) -> dict[str, tuple[str | None, str]]:
    """Addresses that Pocket-ID, the operator or a browser asks by itself, and what takes the place of a password in them."""
    logo = spec.logo
    return {
        "spec.launchUrl": (spec.launch_url, ""),
        "spec.backchannelLogoutUrl": (spec.backchannel_logout_url, ""),
        "spec.scim.endpoint": (spec.scim.endpoint if spec.scim else None, "; name the token in spec.scim.tokenSecretRef"),
        "spec.logo.logoUrl": (logo.logo_url if logo else None, ""),
        "spec.logo.darkLogoUrl": (logo.dark_logo_url if logo else None, ""),
        "spec.logoUrl": (spec.logo_url, ""),
        "spec.darkLogoUrl": (spec.dark_logo_url, ""),
    }  # fmt: skip


def _callback(path: str, url: str) -> Iterator[Finding]:
    if has_unseen(url) or any(map(str.isspace, url)):
        yield invalid(path, url, "must not contain blanks or control characters")
    elif _SCRIPT.match(url):
        yield _no_script(path, url)
    elif url == "*":
        yield _anywhere(path, url)
    elif (found := _PATTERN.fullmatch(url)) is None:
        yield f"{path}: {url!r} has no scheme such as https: the server will refuse it"
    elif found[2] and "@" in found[2]:
        host = found[2].rpartition("@")[2]
        yield invalid(path, url, f"must not hold a user: browsers go to {host!r}, what stands before the @ is no host")
    elif found[1].lower() in ("http", "https", "*") and found[2]:
        yield from _breadth(path, url, found[1], found[2])


def _breadth(path: str, url: str, scheme: str, authority: str) -> Iterator[str]:
    """What a wildcard of scheme or host admits beside the application; in a host it spans labels."""
    host = _ANY_PORT.sub("", authority)
    before, star, behind = host.rpartition("*")
    if not host.strip("*.:"):
        yield _anywhere(path, url)
        return
    if star and not _OWN_DOMAIN.fullmatch(behind):
        foreign = f"{before.replace('*', '')}attacker{behind or '.example'}"
        yield f"{path}: {url!r} admits {foreign!r}, too; let the wildcard stand before a dot and your own domain, as in https://*.example.org/cb"
    if scheme == "*":
        yield f"{path}: {url!r} admits http, where others can read the code; write https"


def _anywhere(path: str, url: str) -> str:
    return f"{path}: {url!r} admits every address, an attacker's too; name the application's own host"


def _no_script(path: str, url: str) -> FieldError:
    return invalid(path, url, f"must not be a {url.partition(':')[0].lower()}: URL")


def _is_link(text: str) -> bool:
    found = _PATTERN.fullmatch(text)
    return found is not None and found[1] != "*" and bool((found[2] or found[3]).strip("/"))


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc) and not any(map(str.isspace, text))


def _has_user(text: str) -> bool:
    try:
        return "//" in text and "@" in urlsplit(text).netloc
    except ValueError:
        return False


def _concealed(text: str) -> str:
    return text[: text.index("//") + 2] + "***@..."
