"""The metadata of a SAML identity provider: one EntityDescriptor, read with everything dangerous turned off.

Enters: bytes or text from anywhere. Leaves: a Document in a settled form (what changes with every signing or download is left
out, so equal metadata has equal bytes), or the Fault that says what is wrong. Whatever it is given, it raises nothing, opens
nothing, resolves no entity, and never repeats foreign text. A signature of the document is not verified: there is no anchor for it, the
document comes by https, from a Secret or from the declaration. Source: SAML 2.0 Metadata, 2.3 and 2.4; spec/keystone.md 3.6, 4.8;
decisions, Keystone 16; case B41.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, MutableMapping
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, cast
from urllib.parse import urlsplit

from .materials import DOCUMENT_LIMIT, Document, Fault

_MD: Final = "{urn:oasis:names:tc:SAML:2.0:metadata}"
_DS: Final = "{http://www.w3.org/2000/09/xmldsig#}"
_XINCLUDE: Final = ("{http://www.w3.org/2001/XInclude}", "{http://www.w3.org/2003/XInclude}")
_PROTOCOL: Final = "urn:oasis:names:tc:SAML:2.0:protocol"
_BINDINGS: Final = frozenset(f"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-{name}" for name in ("Redirect", "POST"))

_VOLATILE: Final = ("ID", "validUntil", "cacheDuration")
_IDS: Final = ("ID", "Id", "{http://www.w3.org/XML/1998/namespace}id")
_ATTRIBUTES: Final = 64
_NAMESPACES: Final = 512
_ENCODINGS: Final = frozenset({"utf-8", "us-ascii", "iso-8859-1", "windows-1252"})
_DECLARATION: Final = re.compile(r"\A\s*<\?xml\s[^<>]{0,200}\?>")
_ENCODING: Final = re.compile(rb"""\s*<\?xml\s[^<>]{0,100}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_DOCTYPE: Final = re.compile(r"<!\s*(DOCTYPE|ENTITY)", re.IGNORECASE)
_DURATION: Final = re.compile(
    r"P(?:(\d{1,4})Y)?(?:(\d{1,5})M)?(?:(\d{1,6})D)?(?:T(?:(\d{1,7})H)?(?:(\d{1,8})M)?(?:(\d{1,10})(?:\.\d{1,9})?S)?)?"
)
_SECONDS: Final = (31536000, 2592000, 86400, 3600, 60, 1)
_AGGREGATE: Final = "must be one EntityDescriptor of SAML 2.0 metadata; aggregates are refused"


class _Element(Protocol):
    """The part of an lxml element that is used here."""

    tag: str
    text: str | None

    @property
    def attrib(self) -> MutableMapping[str, str]: ...
    def iter(self, *tags: str) -> Iterator[_Element]: ...
    def findall(self, path: str) -> list[_Element]: ...
    def get(self, name: str) -> str | None: ...
    def remove(self, child: _Element) -> None: ...


def _value(element: _Element, name: str) -> str:
    """An attribute; "" when it is not there."""
    return element.get(name) or ""


class _Refused(Exception):
    """Ends the look with the sentence of its fault."""


def parse(content: bytes | str, entity_id: str, *, now: datetime | None) -> Document | Fault:
    """One EntityDescriptor with an IDPSSODescriptor of SAML 2.0.

    Args:
        content: bytes, or text whose encoding is settled already.
        entity_id: of the declaration; the document's own must equal it exactly.
        now: aware; a document whose validUntil has passed is refused. None: nothing is refused for its age.
    """
    try:
        root = _root(content)
        if why := _other(root, entity_id):
            return Fault("MetadataMismatch", why)
        return _document(root, now)
    except _Refused as refused:
        return Fault("MetadataRefused", str(refused))


def identity_fault(content: bytes | str, entity_id: str) -> str:
    """Why a document is not one EntityDescriptor of this entityID; "" when it is. The rest of it is not looked at."""
    try:
        return _other(_root(content), entity_id)
    except _Refused as refused:
        return str(refused)


def _other(root: _Element, entity_id: str) -> str:
    found = _value(root, "entityID")
    return "" if found == entity_id else f"its entityID is not idpEntityID {entity_id!r}{_hint(found, entity_id)}"


def _hint(found: str, wanted: str) -> str:
    """What differs, as far as it can be said without repeating what a stranger wrote."""
    if found.strip() == wanted.strip():
        return "; only blanks at its ends differ"
    if found.rstrip("/") == wanted.rstrip("/"):
        return "; only the slash at its end differs"
    return "; only letter case differs" if found.casefold() == wanted.casefold() else ""


# --- from bytes to a tree


def _root(content: bytes | str) -> _Element:
    from lxml import etree

    text = _text(content)
    if _DOCTYPE.search(text):
        raise _Refused("a document type declaration is refused")
    if text.count("xmlns") > _NAMESPACES:
        raise _Refused("declares too many namespaces")
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, attribute_defaults=False, huge_tree=False,
        recover=False, remove_comments=True, remove_pis=True, remove_blank_text=True, collect_ids=False, decompress=False,
    )  # fmt: skip
    try:
        root = etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError as error:
        line, column = error.position
        raise _Refused(f"is not well-formed XML (line {line}, column {column})") from None
    found = cast("_Element", root)
    _check_shape(found)
    return found


def _text(content: bytes | str) -> str:
    """The document as text without byte order mark and XML declaration, so that no encoding can hide anything."""
    if len(content) > DOCUMENT_LIMIT:
        raise _Refused(f"has more than {DOCUMENT_LIMIT} bytes")
    try:
        text = content if isinstance(content, str) else content.decode(_encoding(content))
        text.encode()
    except UnicodeError:
        raise _Refused("is not text in the encoding that it declares") from None
    return _DECLARATION.sub("", text.removeprefix("\ufeff"), count=1).lstrip()


def _encoding(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if content.startswith(b"\xef\xbb\xbf"):
        return "utf-8-sig"
    declared = _ENCODING.match(content)
    name = declared[1].decode("ascii").lower() if declared else "utf-8"
    if name not in _ENCODINGS:
        raise _Refused("is in an encoding that is not supported: use UTF-8")
    return name


def _check_shape(root: _Element) -> None:
    """One descriptor and nothing that another reader may take for it, within bounds that keep every step quick."""
    if root.tag != f"{_MD}EntityDescriptor":
        raise _Refused(_AGGREGATE)
    seen: set[str] = set()
    for element in root.iter():
        if element is not root and element.tag in (f"{_MD}EntityDescriptor", f"{_MD}EntitiesDescriptor"):
            raise _Refused("holds another descriptor inside the first one")
        if not isinstance(element.tag, str) or element.tag.startswith(_XINCLUDE):
            raise _Refused("holds a reference to another document")
        if len(element.attrib) > _ATTRIBUTES:
            raise _Refused("has an element with too many attributes")
        ids = [id for name in _IDS if (id := _value(element, name))]
        if len(set(ids)) < len(ids) or not seen.isdisjoint(ids):
            raise _Refused("uses one ID for two elements")
        seen.update(ids)


# --- from a tree to a Document


def _document(root: _Element, now: datetime | None) -> Document:
    provider = _provider(root)
    expires = min(filter(None, (_moment(item) for item in (root, provider))), default=None)
    if now is not None and expires is not None and expires <= now:
        raise _Refused(f"its validUntil has passed ({expires:%Y-%m-%dT%H:%M:%SZ})")
    _check_sign_on(provider)
    last = max(_certificate_ends(provider), default=None)
    if last is None:
        raise _Refused("holds no signing certificate that can be read")
    max_age = min(filter(None, (_duration(item) for item in (root, provider))), default=None)
    return Document(
        content=_settled(root),
        valid_until=min(last, expires) if expires else last,
        expires=expires,
        max_age=max_age,
    )


def _provider(root: _Element) -> _Element:
    found = [
        item
        for item in root.findall(f"{_MD}IDPSSODescriptor")
        if _PROTOCOL in _value(item, "protocolSupportEnumeration").split()
    ]
    if len(found) != 1:
        raise _Refused(f"must hold one IDPSSODescriptor of SAML 2.0, it holds {len(found) or 'none'}")
    return found[0]


def _check_sign_on(provider: _Element) -> None:
    for service in provider.findall(f"{_MD}SingleSignOnService"):
        if _value(service, "Binding") in _BINDINGS and _is_url(_value(service, "Location")):
            return
    raise _Refused("names no SingleSignOnService with binding HTTP-Redirect or HTTP-POST at an http or https URL")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _moment(element: _Element) -> datetime | None:
    """validUntil of an element; without a zone it is UTC, as SAML demands."""
    if not (text := _value(element, "validUntil").strip()):
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise _Refused("its validUntil is not a date and time") from None


def _duration(element: _Element) -> timedelta | None:
    """cacheDuration of an element; None when there is none that can be read."""
    found = _DURATION.fullmatch(_value(element, "cacheDuration").strip())
    if found is None or not any(found.groups()):
        return None
    seconds = sum(int(part or 0) * unit for part, unit in zip(found.groups(), _SECONDS, strict=True))
    return timedelta(seconds=min(seconds, 10 * _SECONDS[0]))


def _certificate_ends(provider: _Element) -> Iterator[datetime]:
    """When each certificate by which the provider may sign ends.

    One that has ended is no reason to refuse: it is a container of a key here (SAML 2.0 Metadata Interoperability Profile, 2.6.1).
    """
    from cryptography import x509

    for item in _certificates(provider):
        try:
            found = x509.load_der_x509_certificate(base64.b64decode("".join((item.text or "").split()), validate=True))
            found.public_key()
        except Exception:  # noqa: BLE001, S112  whatever a library says about foreign bytes, they are no certificate for us
            continue
        yield found.not_valid_after_utc


def _certificates(provider: _Element) -> Iterator[_Element]:
    for key in provider.findall(f"{_MD}KeyDescriptor"):
        if _value(key, "use") in ("", "signing"):
            yield from key.findall(f"{_DS}KeyInfo/{_DS}X509Data/{_DS}X509Certificate")


def _settled(root: _Element) -> bytes:
    """The same bytes for the same metadata: without ids, ages, the signature over them, comments and blanks between elements.

    It changes the tree, so it comes last. It is not XML C14N, whose time in libxml2 grows with elements times the square of namespaces.
    """
    from lxml import etree

    for element in (root, *root.findall("*")):
        for name in _VOLATILE:
            element.attrib.pop(name, None)
    for signature in root.findall(f"{_DS}Signature"):
        root.remove(signature)
    for certificate in root.iter(f"{_DS}X509Certificate"):
        certificate.text = "".join((certificate.text or "").split())
    for element in root.iter():
        _sort_attributes(element.attrib)
    return cast("bytes", etree.tostring(root, encoding="UTF-8", xml_declaration=False)) + b"\n"


def _sort_attributes(attributes: MutableMapping[str, str]) -> None:
    names = attributes.keys()
    ordered = sorted(names)
    if list(names) != ordered:
        values = [(name, attributes[name]) for name in ordered]
        attributes.clear()
        attributes.update(values)
