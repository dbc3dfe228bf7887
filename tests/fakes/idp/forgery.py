"""Signature wrapping: a response in which somebody else's assertion rides on a signed one. And signed query strings.

Enters: a response and the signed assertion in it. Leaves: the response, changed in place, with a forged assertion for FORGED. Source: the
published classification of XML signature wrapping attacks on SAML.
"""

from __future__ import annotations

import base64
import copy
import zlib
from urllib.parse import urlencode

from lxml import etree
from tests.fakes.idp.keys import SigningKey
from tests.fakes.idp.model import DS

A = "urn:oasis:names:tc:SAML:2.0:assertion"
P = "urn:oasis:names:tc:SAML:2.0:protocol"
FORGED = "mallory"


def forged(said: etree._Element) -> etree._Element:
    """A copy without signature that names FORGED, with an ID of its own."""
    evil = copy.deepcopy(said)
    evil.set("ID", "_forged")
    evil.remove(next(evil.iter(f"{{{DS}}}Signature")))
    for element in (*evil.iter(f"{{{A}}}NameID"), next(evil.iter(f"{{{A}}}AttributeValue"))):
        element.text = FORGED
    return evil


def sibling(response: etree._Element, said: etree._Element) -> None:
    """The forged assertion first, the signed one after it."""
    response.insert(response.index(said), forged(said))


def inside(response: etree._Element, said: etree._Element) -> None:
    """The forged assertion carries the original signature, whose Object holds the signed assertion."""
    evil = forged(said)
    signature = next(said.iter(f"{{{DS}}}Signature"))
    carried = copy.deepcopy(signature)
    original = copy.deepcopy(said)
    etree.SubElement(carried, f"{{{DS}}}Object").append(original)
    evil.insert(1, carried)
    response.replace(said, evil)


def extensions(response: etree._Element, said: etree._Element) -> None:
    """The signed assertion in Extensions, the forged one, with the same ID, in its place."""
    evil = forged(said)
    evil.set("ID", said.get("ID", ""))
    evil.insert(1, copy.deepcopy(next(said.iter(f"{{{DS}}}Signature"))))
    response.replace(said, evil)
    holder = etree.Element(f"{{{P}}}Extensions")
    holder.append(said)
    response.insert(1, holder)


def signed_query(text: str, key: SigningKey, relay: str | None) -> str:
    """A SAMLResponse of the Redirect binding with its signature, as a query string."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(text.encode()) + packer.flush()
    fields = {"SAMLResponse": base64.b64encode(packed).decode()}
    if relay is not None:
        fields["RelayState"] = relay
    fields["SigAlg"] = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
    query = urlencode(fields)
    return f"{query}&{urlencode({'Signature': base64.b64encode(key.sign(query.encode())).decode()})}"
