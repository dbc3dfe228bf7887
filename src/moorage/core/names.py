"""Rules for names, labels and annotations, worded as kube-apiserver words them.

Each function returns the list of complaints about one value; empty means valid.
Source: apimachinery `validation` (RFC 1123, RFC 1035 forms).
"""

from __future__ import annotations

import re

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_RFC1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_RFC1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and "
    "end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_CONFIG_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def _check(value: str, form: re.Pattern[str], text: str, longest: int) -> list[str]:
    found = [] if len(value) <= longest else [f"must be no more than {longest} characters"]
    return found if form.fullmatch(value) else [*found, text]


def dns1123_label(value: str) -> list[str]:
    """Complaints about an RFC 1123 label (namespaces); of a valid subdomain it can only be the dots."""
    dotted = "." in value and _SUBDOMAIN.fullmatch(value)
    return _check(value, _LABEL, "must not contain dots" if dotted else _LABEL_TEXT, 63)


def dns1123_subdomain(value: str) -> list[str]:
    """Complaints about an RFC 1123 subdomain (most object names)."""
    return _check(value, _SUBDOMAIN, _SUBDOMAIN_TEXT, 253)


def dns1035_label(value: str) -> list[str]:
    """Complaints about an RFC 1035 label (Services)."""
    return _check(value, _RFC1035, _RFC1035_TEXT, 63)


def qualified_name(value: str) -> list[str]:
    """Complaints about a label or annotation key, finalizer or condition type: `[prefix/]name`."""
    prefix, slash, name = value.rpartition("/")
    found: list[str] = []
    if slash:
        if prefix.count("/"):
            return [
                _QUALIFIED_TEXT.replace("name part", "a valid label key")
                + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ]
        found += (
            ["prefix part must be non-empty"] if not prefix else [f"prefix part {c}" for c in dns1123_subdomain(prefix)]
        )
    if not name:
        return [*found, "name part must be non-empty", _QUALIFIED_TEXT]
    if len(name) > 63:
        found.append("name part must be no more than 63 characters")
    return found if _QUALIFIED.fullmatch(name) else [*found, _QUALIFIED_TEXT]


def label_value(value: str) -> list[str]:
    """Complaints about a label value."""
    found = [] if len(value) <= 63 else ["must be no more than 63 bytes"]
    return found if not value or _QUALIFIED.fullmatch(value) else [*found, _VALUE_TEXT]


def config_key(value: str) -> list[str]:
    """Complaints about a data key of a ConfigMap or Secret."""
    found = _check(value, _CONFIG_KEY, _CONFIG_KEY_TEXT, 253)
    if value == ".":
        found.append("must not be '.'")
    elif value.startswith(".."):
        found.append("must not be '..'" if value == ".." else "must not start with '..'")
    return found
