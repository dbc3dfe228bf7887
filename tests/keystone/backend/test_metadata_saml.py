"""Metadata of SAML identity providers: which is accepted, in which bytes, and what is said of the rest."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from moorage.keystone.backend.materials import DOCUMENT_LIMIT, Document, Fault
from moorage.keystone.backend.metadata_saml import identity_fault, parse

from .descriptors import (
    DS,
    ENTITY,
    MD,
    NOT_AFTER,
    certificate,
    descriptor,
    key_descriptor,
    provider,
    sign_on,
)

NOW = datetime(2030, 6, 1, 12, tzinfo=UTC)
PLAIN = "urn:oasis:names:tc:SAML:2.0:bindings"


def accepted(content: bytes | str, entity: str = ENTITY, now: datetime | None = NOW) -> Document:
    """The Document; it must be one."""
    found = parse(content, entity, now=now)
    assert isinstance(found, Document), found
    return found


def refused(content: bytes | str, entity: str = ENTITY, now: datetime | None = NOW) -> str:
    """The sentence of a refusal; it must be one."""
    found = parse(content, entity, now=now)
    assert isinstance(found, Fault), found
    assert found.reason == "MetadataRefused"
    return found.message


# --- the bytes


@pytest.mark.case("B30")
def test_what_changes_with_every_download_is_not_in_the_bytes() -> None:
    """Ids, ages, the signature, comments, blanks, the order of attributes, line breaks in certificates."""
    plain = accepted(descriptor()).content
    signature = f'<ds:Signature xmlns:ds="{DS}"><ds:SignedInfo>x</ds:SignedInfo></ds:Signature>'
    broken = "\n".join(certificate()[at : at + 64] for at in range(0, len(certificate()), 64))
    busy = descriptor(
        signature + "\n  <!-- generated at 12:00 -->\n  " + provider(key_descriptor(broken), "\n", sign_on(), more='validUntil="2031-01-01T00:00:00Z"'),
        more='ID="_1234" validUntil="2030-07-01T00:00:00Z" cacheDuration="PT1H"',
    )  # fmt: skip
    assert accepted(busy).content == plain
    swapped = descriptor().replace(f'xmlns:md="{MD}" entityID="{ENTITY}"', f'entityID="{ENTITY}" xmlns:md="{MD}"')
    assert accepted(swapped).content == plain
    assert accepted(plain).content == plain


def test_another_key_changes_the_bytes() -> None:
    """A rotation at the provider must reach the sidecar."""
    other = descriptor(provider(key_descriptor(certificate(2)), sign_on()))
    assert accepted(descriptor()).content != accepted(other).content


def test_the_bytes_mean_what_the_document_meant() -> None:
    """Elements, attributes and texts are all there; namespaces of prefixed values stay declared."""
    extension = '<md:Extensions><x:a xmlns:x="urn:x" xmlns:xsi="urn:i" b="1" a="2" xsi:type="x:t">t &lt; &amp; é</x:a></md:Extensions>'
    found = etree.fromstring(accepted(descriptor(extension + provider())).content)
    [element] = found.iter("{urn:x}a")
    assert dict(element.attrib) == {"a": "2", "b": "1", "{urn:i}type": "x:t"}
    assert (element.text, element.nsmap["x"]) == ("t < & é", "urn:x")


# --- encodings


@pytest.mark.case("B41")
@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + descriptor().encode(),
        b"\xef\xbb\xbf<?xml version='1.0' encoding='UTF-8'?>\n" + descriptor().encode(),
        b"<?xml version='1.0' standalone='yes'?>" + descriptor().encode(),
        b"\n\n  <?xml version='1.0'?>\n" + descriptor().encode(),
        b"<?xml version='1.0' encoding='iso-8859-1'?>" + descriptor().encode(),
        f"<?xml version='1.0' encoding='UTF-16'?>{descriptor()}".encode("utf-16"),
        f"\ufeff<?xml version='1.0' encoding='UTF-16'?>{descriptor()}",
        f"<!-- comment --><?xml-stylesheet href='x'?>{descriptor()}",
    ],
    ids=["bom", "bom and declaration", "declaration", "blanks", "latin 1", "utf-16", "text", "comments"],
)
def test_marks_and_declarations_are_tolerated(content: bytes | str) -> None:
    """The bytes are the same whatever the document was written in."""
    assert accepted(content).content == accepted(descriptor()).content


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"<?xml version='1.0' encoding='utf-7'?>+ADwAIQ-DOCTYPE x>", "not supported"),
        (b"<?xml version='1.0' encoding='ebcdic-cp-us'?><a/>", "not supported"),
        (descriptor().encode("utf-16-le"), "not well-formed"),
        (descriptor().encode() + b"\xff", "not text in the encoding"),
        (descriptor() + "\ud800", "not text in the encoding"),
        (b"\xff\xfe<", "not text in the encoding"),
    ],
)
def test_no_encoding_hides_a_document(content: bytes | str, says: str) -> None:
    """What cannot be read plainly is not read."""
    assert says in refused(content)


# --- whose it is


@pytest.mark.case("B41")
@pytest.mark.parametrize(
    ("found", "says"),
    [(f"{ENTITY}/", "the slash"), (ENTITY.upper(), "letter case"), (f" {ENTITY}", "blanks"), ("https://evil.example", ""), ("", "")],
)  # fmt: skip
def test_the_entity_id_must_be_equal_exactly(found: str, says: str) -> None:
    """The document's own is not repeated."""
    fault = parse(descriptor(entity=found), ENTITY, now=NOW)
    assert isinstance(fault, Fault)
    assert fault.reason == "MetadataMismatch"
    assert repr(ENTITY) in fault.message
    assert says in fault.message
    assert "evil" not in fault.message


@pytest.mark.case("B41")
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (f'<md:EntitiesDescriptor xmlns:md="{MD}">{descriptor()}</md:EntitiesDescriptor>', "aggregates are refused"),
        ("<EntityDescriptor/>", "must be one EntityDescriptor"),
        (f'<EntityDescriptor xmlns="{MD}x" entityID="{ENTITY}"/>', "must be one EntityDescriptor"),
        (f'<a xmlns="{MD}"/>', "must be one EntityDescriptor"),
        (descriptor(f"<md:Extensions>{descriptor()}</md:Extensions>{provider()}"), "another descriptor inside"),
        (descriptor(f'<x xmlns="urn:x"><md:EntitiesDescriptor/></x>{provider()}'), "another descriptor inside"),
        (descriptor(""), "IDPSSODescriptor of SAML 2.0, it holds none"),
        (descriptor(provider() + provider()), "it holds 2"),
        (descriptor(provider(protocol="urn:oasis:names:tc:SAML:1.1:protocol")), "it holds none"),
        (descriptor(provider(key_descriptor(certificate()))), "no SingleSignOnService"),
        (descriptor(provider(key_descriptor(certificate()), sign_on(binding=f"{PLAIN}:SOAP"))), "no SingleSignOnService"),
        (descriptor(provider(key_descriptor(certificate()), sign_on("javascript:alert(1)"))), "no SingleSignOnService"),
        (descriptor(more='ID="a"') .replace("<md:IDPSSO", '<md:IDPSSO').replace("<md:KeyDescriptor ", '<md:KeyDescriptor ID="a" '), "one ID for two"),
        (descriptor(more='ID="a" Id="a"'), "one ID for two"),
        (descriptor(more='ID="a" xml:id="a"'), "one ID for two"),
        ("", "not well-formed"),
        ("<html><p></html>", "not well-formed"),
        ("{}", "not well-formed"),
        (descriptor()[:-3], "not well-formed"),
        (descriptor(f"<md:Extensions><a>{'a' * DOCUMENT_LIMIT}</a></md:Extensions>{provider()}"), f"more than {DOCUMENT_LIMIT} bytes"),
    ],
    ids=range(20),
)  # fmt: skip
def test_anything_but_one_descriptor_of_one_identity_provider_is_refused(content: str, says: str) -> None:
    """With the reason, and without a word of the document."""
    assert says in refused(content)


def test_other_roles_beside_the_identity_provider_do_no_harm() -> None:
    """ADFS and Shibboleth publish several."""
    roles = '<md:SPSSODescriptor protocolSupportEnumeration="x"/>' + provider(
        protocol="urn:oasis:names:tc:SAML:1.1:protocol"
    )
    assert accepted(descriptor(roles + provider()))


# --- certificates


@pytest.mark.parametrize(
    "keys",
    [
        "",
        key_descriptor(certificate(), 'use="encryption"'),
        key_descriptor("nonsense"),
        key_descriptor(""),
        key_descriptor("QUJD"),
        key_descriptor(certificate()[:-8]),
        key_descriptor(f"-----BEGIN CERTIFICATE-----{certificate()}-----END CERTIFICATE-----"),
        '<md:KeyDescriptor use="signing"/>',
    ],
)
def test_a_signing_certificate_that_can_be_read_is_required(keys: str) -> None:
    """Without it every login would be refused, or none."""
    assert "no signing certificate" in refused(descriptor(provider(keys, sign_on())))


def test_one_readable_certificate_is_enough_and_a_key_without_use_signs() -> None:
    """As the standard has it."""
    assert accepted(descriptor(provider(key_descriptor("QUJD"), key_descriptor(certificate(), ""), sign_on())))


def test_valid_until_is_the_last_certificate_or_the_document_whichever_ends_first() -> None:
    """For the person who watches it; a certificate that ended is told by it and refuses nobody."""
    early, late = datetime(2029, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)
    keys = key_descriptor(certificate(3, early)), key_descriptor(certificate(4, late)), sign_on()
    assert accepted(descriptor(provider(*keys))).valid_until == late
    assert accepted(descriptor(provider(*keys), more='validUntil="2031-01-01T00:00:00Z"')).valid_until == datetime(
        2031, 1, 1, tzinfo=UTC
    )
    assert accepted(descriptor(provider(keys[0], keys[2]))).valid_until == early
    assert accepted(descriptor()).valid_until == NOT_AFTER


# --- ages


@pytest.mark.case("S6", "K16")
@pytest.mark.parametrize(
    "text",
    [
        "2030-06-01T12:00:00Z",
        "2030-06-01T11:59:59.999Z",
        "2030-06-01T13:00:00+01:00",
        "1999-01-01T00:00:00",
        "2030-06-01T12:00:00",
    ],
)
def test_metadata_whose_valid_until_has_passed_is_refused(text: str) -> None:
    """In any zone, on the descriptor or on the role; without a clock, as in admission, nobody can tell."""
    assert "validUntil has passed (" in refused(descriptor(more=f'validUntil="{text}"'))
    assert "validUntil has passed (" in refused(descriptor(provider(more=f'validUntil="{text}"')))
    assert accepted(descriptor(more=f'validUntil="{text}"'), now=None)


def test_metadata_that_is_still_valid_says_until_when() -> None:
    """The earlier of both."""
    later = descriptor(
        provider(more='validUntil="2032-01-01T00:00:00Z"'), more='validUntil="2031-01-01T02:00:00+02:00"'
    )
    assert accepted(later).expires == datetime(2031, 1, 1, tzinfo=UTC)
    assert accepted(descriptor()).expires is None


@pytest.mark.parametrize("text", ["tomorrow", "2030-13-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "20300601", "-1"])
def test_an_unreadable_valid_until_is_no_permission(text: str) -> None:
    """Either a moment or a refusal."""
    found = parse(descriptor(more=f'validUntil="{text}"'), ENTITY, now=NOW)
    assert isinstance(found, Fault)
    assert "validUntil" in found.message


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("PT1H", timedelta(hours=1)),
        ("P1DT30M", timedelta(days=1, minutes=30)),
        ("PT0.5S", None),
        ("PT604800.000S", timedelta(days=7)),
        ("P1M", timedelta(days=30)),
        ("P9999Y", timedelta(days=3650)),
        ("P", None),
        ("PT", None),
        ("-PT1H", None),
        ("nonsense", None),
        (f"PT{'9' * 40}S", None),
    ],
)
def test_cache_duration_is_read_when_it_can_be(text: str, span: timedelta | None) -> None:
    """A provider that writes nonsense there is fetched at our own pace."""
    assert accepted(descriptor(more=f'cacheDuration="{text}"')).max_age == span


# --- attacks


BOMB = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9)
)


@pytest.mark.case("S6", "B41")
@pytest.mark.parametrize(
    "content",
    [
        f"{BOMB}]>{descriptor('&j;' + provider())}",
        f'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>{descriptor("&x;" + provider())}',
        f'<!DOCTYPE a SYSTEM "http://127.0.0.1:1/x.dtd">{descriptor()}',
        f'<!DOCTYPE a [<!ENTITY % x SYSTEM "http://127.0.0.1:1/x"> %x;]>{descriptor()}',
        f"<!-- a --><!DOCTYPE a>{descriptor()}",
        f"\n<!  DOCTYPE a>{descriptor()}",
        f"<!doctype a>{descriptor()}",
    ],
    ids=range(7),
)
def test_a_document_type_is_refused_before_anything_is_parsed(content: str) -> None:
    """In every encoding that is read at all."""
    for form in (content, content.encode(), content.encode("utf-16"), b"\xef\xbb\xbf" + content.encode()):
        assert refused(form) == "a document type declaration is refused"
        assert identity_fault(form, ENTITY) == "a document type declaration is refused"


@pytest.mark.parametrize("year", ["2001", "2003"])
def test_xinclude_is_refused(year: str) -> None:
    """Another reader might follow it."""
    include = f'<xi:include xmlns:xi="http://www.w3.org/{year}/XInclude" href="file:///etc/passwd" parse="text"/>'
    assert "another document" in refused(descriptor(include + provider()))


def test_an_undefined_entity_is_not_well_formed() -> None:
    """There is no place left where one could be defined."""
    assert "not well-formed" in refused(descriptor("&x;" + provider()))


def _within(inner: str) -> str:
    return descriptor(f"<md:Extensions>{inner}</md:Extensions>{provider()}")


HEAVY = {
    "attributes": _within("<a " + " ".join(f'a{n}="1"' for n in range(20000)) + "/>"),
    "one long attribute": _within(f'<a b="{"x" * 200000}"/>'),
    "depth": _within("<a>" * 30000),
    "depth that is closed": _within("<a>" * 15000 + "</a>" * 15000),
    "breadth": _within("<a/>" * 60000),
    "namespaces": _within("<a " + " ".join(f'xmlns:n{n}="urn:{n}"' for n in range(500)) + ">" + "<b/>" * 40000 + "</a>"),
    "too many namespaces": _within("<a " + " ".join(f'xmlns:n{n}="urn:{n}"' for n in range(5000)) + ">" + "<b/>" * 20000 + "</a>"),
    "nested namespaces": _within("".join(f'<a xmlns:n{n}="urn:{n}">' for n in range(200)) + "<b/>" * 40000 + "</a>" * 200),
    "prefixed attributes": _within("<a " + " ".join(f'xmlns:n{n}="urn:{n}"' for n in range(500)) + ">" + '<b n499:z="1" n498:y="2"/>' * 6000 + "</a>"),
    "ids": _within("".join(f'<a ID="a{n}"/>' for n in range(14000))),
    "references": _within("&#65;" * 40000),
    "certificates": descriptor(provider(key_descriptor(certificate()) * 300, sign_on())),
    "bad certificates": descriptor(provider(key_descriptor("A" * 100) * 600, sign_on())),
    "blanks": _within(" \n" * 100000),
    "declaration": "<?xml " + " " * 200000,
    "spaces before": " " * 200000 + descriptor(),
    "comments": _within("<!---->" * 30000),
}  # fmt: skip


def _cpu(content: str) -> float:
    began = time.process_time()
    assert isinstance(parse(content, ENTITY, now=NOW), Document | Fault)
    return time.process_time() - began


@pytest.fixture(scope="module")
def plain() -> float:
    """What a plain document of that size takes."""
    return min(_cpu(HEAVY["breadth"]) for _ in range(3))


@pytest.mark.parametrize("name", HEAVY)
def test_a_document_within_the_limit_takes_no_more_than_its_size(name: str, plain: float) -> None:
    """It is parsed on the event loop. What this keeps out took minutes: thousands of times a plain document of that size."""
    assert _cpu(HEAVY[name]) < 100 * plain


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(st.binary(), st.text()))
def test_whatever_comes_in_a_document_or_a_fault_comes_out(content: bytes | str) -> None:
    """Never an exception."""
    assert isinstance(parse(content, ENTITY, now=NOW), Document | Fault)


FULL = descriptor(more='ID="_1" validUntil="2031-01-01T00:00:00Z" cacheDuration="PT1H"')
PIECES = st.sampled_from(
    ["<", ">", "&", "&#0;", "&x;", '"', "'", "]]>", "<![CDATA[", "<!--", "<?", "\0", "\ufeff", "ID='_1'", "xmlns='u'", "xmlns:md=''", "<md:a>", "</md:a>", "validUntil", "\ud800", " ", "md:"]
)  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(st.integers(0, len(FULL)), st.integers(0, 20), PIECES | st.text(max_size=4)), min_size=1, max_size=4
    )
)
def test_a_broken_document_is_a_document_or_a_fault(changes: list[tuple[int, int, str]]) -> None:
    """And what is accepted is accepted again with the same bytes, and says no word of the document when not."""
    content = FULL
    for at, length, instead in changes:
        content = content[:at] + instead + content[at + length :]
    match parse(content, ENTITY, now=NOW):
        case Document(content=settled):
            assert accepted(settled).content == settled
            assert identity_fault(settled, ENTITY) == ""
        case Fault(message=message):
            assert "\n" not in message
