"""The SAML 2.0 half: metadata, single sign-on (Redirect in, POST out), single logout, and responses that are wrong on purpose.

Enters: a realm, its entityID, a request. Leaves: an answer. Sources: SAML 2.0 Core, Bindings, Profiles 4.1 and 4.4.
"""

from __future__ import annotations

import base64
import secrets
import zlib
from datetime import UTC, datetime, timedelta
from xml.sax.saxutils import escape, quoteattr

from lxml import etree
from tests.fakes.exchange import Answer, Request, login_page, posting_page, redirect
from tests.fakes.idp import forgery
from tests.fakes.idp.keys import SigningKey
from tests.fakes.idp.model import DS, MD, Realm, SamlFault, ServiceProvider, User
from tests.fakes.idp.signature import encrypted, sign

P = "urn:oasis:names:tc:SAML:2.0:protocol"
A = "urn:oasis:names:tc:SAML:2.0:assertion"
REDIRECT = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
WRAPPED = {
    SamlFault.WRAPPED_SIBLING: forgery.sibling,
    SamlFault.WRAPPED_INSIDE: forgery.inside,
    SamlFault.WRAPPED_EXTENSIONS: forgery.extensions,
}


def metadata(realm: Realm, entity: str, *, days: int = 30) -> bytes:
    """One EntityDescriptor with the signing certificate of now."""
    return (
        f'<md:EntityDescriptor xmlns:md="{MD}" xmlns:ds="{DS}" entityID={quoteattr(entity)}>'
        f'<md:IDPSSODescriptor WantAuthnRequestsSigned="false" protocolSupportEnumeration="{P}">'
        '<md:KeyDescriptor use="signing"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>'
        f"{realm.key.certificate(days)}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>"
        f'<md:SingleLogoutService Binding="{REDIRECT}" Location={quoteattr(entity + "/logout")}/>'
        "<md:NameIDFormat>urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified</md:NameIDFormat>"
        f'<md:SingleSignOnService Binding="{REDIRECT}" Location={quoteattr(entity + "/sso")}/>'
        "</md:IDPSSODescriptor></md:EntityDescriptor>"
    ).encode()


def _message(text: str) -> etree._Element:
    """A message of the Redirect binding."""
    return etree.fromstring(zlib.decompress(base64.b64decode(text), -15))


def sso(realm: Realm, entity: str, request: Request) -> Answer:
    """The login form, and the response that the browser posts on."""
    asked = {**request.query, **request.form}
    keep = {name: asked[name] for name in ("SAMLRequest", "RelayState") if name in asked}
    message = _message(keep["SAMLRequest"])
    issuer = message.findtext(f"{{{A}}}Issuer", "")
    provider = next((item for item in realm.providers if item.entity_id == issuer), None)
    if provider is None:
        return Answer(400, "no such service provider")
    if "username" not in request.form:
        return login_page(realm.name, keep)
    user = realm.user(request.form["username"], request.form.get("password", ""))
    if user is None:
        return login_page(realm.name, keep, "Invalid user name or password.")
    made = base64.b64encode(response(realm, entity, provider, user, message.get("ID", ""))).decode()
    relay = {"RelayState": keep["RelayState"]} if "RelayState" in keep else {}
    return posting_page(provider.acs, {"SAMLResponse": made, **relay})


def _at(minutes: float) -> str:
    return (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def assertion(realm: Realm, entity: str, provider: ServiceProvider, user: User, request_id: str) -> etree._Element:
    """An unsigned assertion about a person, with the realm's fault in it where it belongs there."""
    fault = realm.fault
    begin = 60 if fault is SamlFault.EARLY else -5
    end = -60 if fault is SamlFault.EXPIRED else 120 if fault is SamlFault.EARLY else 5
    issuer = "https://elsewhere.example" if fault is SamlFault.OTHER_ISSUER else entity
    audience = "https://elsewhere.example" if fault is SamlFault.OTHER_AUDIENCE else provider.entity_id
    recipient = "https://elsewhere.example/acs" if fault is SamlFault.OTHER_RECIPIENT else provider.acs
    answers = "" if fault is SamlFault.UNSOLICITED else f' InResponseTo="{request_id}"'
    name = escape(user.name)
    if fault is SamlFault.COMMENTED:
        name = f"{name[:2]}<!-- -->{name[2:]}"
    groups = "".join(f"<a:AttributeValue>{escape(group)}</a:AttributeValue>" for group in user.groups)
    return etree.fromstring(
        f'<a:Assertion xmlns:a="{A}" ID="_{secrets.token_hex(12)}" Version="2.0" IssueInstant="{_at(0)}">'
        f"<a:Issuer>{escape(issuer)}</a:Issuer><a:Subject><a:NameID>{name}</a:NameID>"
        '<a:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">'
        f'<a:SubjectConfirmationData{answers} NotOnOrAfter="{_at(end)}" Recipient={quoteattr(recipient)}/>'
        f'</a:SubjectConfirmation></a:Subject><a:Conditions NotBefore="{_at(begin)}" NotOnOrAfter="{_at(end)}">'
        f"<a:AudienceRestriction><a:Audience>{escape(audience)}</a:Audience></a:AudienceRestriction></a:Conditions>"
        f'<a:AuthnStatement AuthnInstant="{_at(0)}" SessionIndex="_{secrets.token_hex(8)}"><a:AuthnContext>'
        "<a:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</a:AuthnContextClassRef>"
        "</a:AuthnContext></a:AuthnStatement><a:AttributeStatement>"
        f'<a:Attribute Name="username"><a:AttributeValue>{name}</a:AttributeValue></a:Attribute>'
        f'<a:Attribute Name="groups">{groups}</a:Attribute></a:AttributeStatement></a:Assertion>'
    )


def response(realm: Realm, entity: str, provider: ServiceProvider, user: User, request_id: str) -> bytes:
    """A Response for a person; the assertion is signed, unless the realm's fault says otherwise."""
    fault = realm.fault
    answers = "" if fault is SamlFault.UNSOLICITED else f' InResponseTo="{request_id}"'
    made = etree.fromstring(
        f'<p:Response xmlns:p="{P}" xmlns:a="{A}" ID="_{secrets.token_hex(12)}" Version="2.0" IssueInstant="{_at(0)}"'
        f" Destination={quoteattr(provider.acs)}{answers}><a:Issuer>{escape(entity)}</a:Issuer><p:Status>"
        '<p:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></p:Status></p:Response>'
    )
    said = assertion(realm, entity, provider, user, request_id)
    made.append(said)
    if fault is not SamlFault.UNSIGNED:
        sign(said, SigningKey() if fault is SamlFault.FOREIGN_KEY else realm.key)
    if fault in (SamlFault.ENCRYPTED_OAEP11, SamlFault.ENCRYPTED_MGF1P):
        made.remove(said)
        holder = etree.SubElement(made, f"{{{A}}}EncryptedAssertion")
        holder.append(encrypted(said, provider.certificate, oaep11=fault is SamlFault.ENCRYPTED_OAEP11))
    if fault in WRAPPED:
        WRAPPED[fault](made, said)
    return etree.tostring(made)


def logout(realm: Realm, entity: str, request: Request) -> Answer:
    """Answer a LogoutRequest by a signed LogoutResponse, of the POST binding where the service provider has one."""
    message = _message(request.query["SAMLRequest"])
    issuer = message.findtext(f"{{{A}}}Issuer", "")
    provider = next(item for item in realm.providers if item.entity_id == issuer)
    text = (
        f'<p:LogoutResponse xmlns:p="{P}" xmlns:a="{A}" ID="_{secrets.token_hex(12)}" Version="2.0" IssueInstant="{_at(0)}"'
        f' Destination={quoteattr(provider.logout)} InResponseTo="{message.get("ID")}"><a:Issuer>{escape(entity)}</a:Issuer>'
        '<p:Status><p:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></p:Status></p:LogoutResponse>'
    )
    relay = {name: value for name, value in request.query.items() if name == "RelayState"}
    if not provider.logout_posts:
        return redirect(f"{provider.logout}?{forgery.signed_query(text, realm.key, relay.get('RelayState'))}")
    made = etree.fromstring(text)
    sign(made, realm.key)
    return posting_page(provider.logout, {"SAMLResponse": base64.b64encode(etree.tostring(made)).decode(), **relay})
