"""What a stranger may read: objects and logs without secrets.

Enters: JSON values, texts. Leaves: the same without what is secret, or looks so. Pure. Of an object each value that somebody wrote out goes,
whatever it is: what stands in `value`, in a member with a telling name, behind an option with one. Deny by default: a helper misses a number
sooner than an operator a key.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

HIDDEN: Final = "***"
_NAMES: Final = (
    r"passw(?:or)?d|pwd|passphrase|secret|token|credentials?|authorization|cookie|otp|verifier"
    r"|(?:private|encryption|access|secret|signing|license|api|fernet)[_.-]?key"
)
_TELLING: Final = re.compile(rf"(?i)(?:{_NAMES})s?\d*$")
"""Names of members whose text is the secret itself; `secretName` or `tokenSecretRef` only say where one is."""
_WRITTEN_OUT: Final = "value"
"""The field beside `valueFrom`, in our kinds as in a container's environment."""
_OPTION: Final = rf"--?[\w.-]*(?:{_NAMES}|key)"
_ENDS_IN_OPTION: Final = re.compile(rf"(?i)(?:^|\s){_OPTION}$")
_ASSIGNED: Final = re.compile(
    rf"""(?ix)
    ( (?:^|(?<=[\s"'])) {_OPTION} ["']? [=\s,]\s*                                                 # --password x, "--password", "x"
    | [\w.-]*(?:{_NAMES}) (?!\w*(?:ref|name)s?\b) [\w.-]* ["']? \s*[=:]\s*                      # password = x, "password": "x"
    | \bOIDC\w*(?:secret|passphrase) \s+                                                        # a directive of Apache
    )
    ( "[^"]*"? | '[^']*'? | \{{[^}}]*\}}? | \[[^\]]*\]? | (?:(?:bearer|basic|digest|token)\s+)?\S+ )"""
)
_PEM: Final = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\w\s+/=\\-]*")
_URL_USER: Final = re.compile(r"(\w+://[^/\s:@]*:)[^/\s]*@")
_TOKEN: Final = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*|\bgAAAA[\w-]{60,}={0,2}")
_PARAMETER: Final = re.compile(
    r"(?i)([?&](?:code|state|session_state|id_token_hint|samlrequest|samlresponse)=)[^&\s\"']+"
)
_LONG: Final = re.compile(r"\S{400,}")
"""What nobody reads: it may be a key, and the patterns above take the square of its length."""
_SCHEME: Final = re.compile(r"(?i)\b(bearer|basic)\s+(?=[a-zA-Z._~+/=-]*\d)[\w.~+/=-]{8,}")


def redacted(text: str) -> str:
    """A text without named values, passwords in URLs, private keys, tokens; a line that is JSON is read as such."""
    return "\n".join(map(_line, _PEM.sub("<private key>", text).split("\n")))


def _line(line: str) -> str:
    if line.lstrip().startswith(("{", "[")):
        try:
            return json.dumps(without_secrets(json.loads(line)), ensure_ascii=False)
        except (ValueError, RecursionError):  # looks like JSON and is none, or none that anybody wrote
            return _plain(line)
    return _plain(line)


def _plain(text: str) -> str:
    text = _LONG.sub(lambda found: f"<{len(found[0])} characters>", text)
    text = _URL_USER.sub(rf"\1{HIDDEN}@", text)
    text = _TOKEN.sub("<token>", text)
    text = _PARAMETER.sub(rf"\1{HIDDEN}", text)
    text = _SCHEME.sub(rf"\1 {HIDDEN}", text)
    return _ASSIGNED.sub(rf"\1{HIDDEN}", text)


def without_secrets(node: Any, name: str = "") -> Any:
    """A JSON value, the member of this name, without secrets."""
    if isinstance(node, dict):
        return {key: without_secrets(item, key) for key, item in node.items()}
    if isinstance(node, list):
        return _list(node, name)
    if isinstance(node, str) and node and name == _WRITTEN_OUT:
        return HIDDEN
    if isinstance(node, str | int | float) and not isinstance(node, bool) and node != "" and _TELLING.search(name):
        return HIDDEN
    return redacted(node) if isinstance(node, str) else node


def _list(items: list[Any], name: str) -> list[Any]:
    """Its members; a text behind an option such as `--password` is that option's value."""
    found, hides = [], False
    for item in items:
        found.append(HIDDEN if hides and isinstance(item, str) else without_secrets(item, name))
        hides = isinstance(item, str) and _ENDS_IN_OPTION.search(item) is not None
    return found
