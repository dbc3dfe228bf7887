"""What went wrong between us and a directory, as one sentence for the person who reads DirectoryReachable.

Enters: an exception of ldap3, of OpenSSL or of the system. Leaves: plain words and, where one is known, the way out; never the name of a class, a tuple or
a password. ldap3 keeps most reasons as text only, so they are known by the words of OpenSSL and of ldap3, which the tests hold against both.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ldap3.core.exceptions import (
    LDAPCertificateError,
    LDAPException,
    LDAPInvalidDnError,
    LDAPInvalidFilterError,
    LDAPOperationResult,
)

from moorage.keystone.identity_errors import clean

from .authorities import UnusableBundle, blocks, certificates

if TYPE_CHECKING:
    from .directory import Target

NO_LDAP: Final = (LookupError, TypeError, AttributeError)
"""What the decoder of ldap3 raises for bytes that are no LDAP."""
_UNTRUSTED: Final = (
    "self-signed certificate",
    "unable to get local issuer",
    "unable to get issuer",
    "unable to verify",
)
_NO_TLS: Final = (
    "WRONG_VERSION_NUMBER",
    "UNEXPECTED_EOF",
    "RECORD_LAYER",
    "PACKET_LENGTH",
    "Connection reset",
    "closed",
)
_STRANGE: Final = (
    "session terminated",
    "messageId",
    "Unable to convert",
    "unknown response",
    "multiple extended",
    "reset",
)
_VERIFY: Final = re.compile(r"certificate verify failed: (.*?)\.?\s*(?:\(_ssl|$)")
_NOISE: Final = re.compile(
    r"socket ssl wrapping error:|wrap socket error:|\[SSL[^\]]*\]|\[Errno -?\d+\]|\(?_ssl\.c:\d+[):]*|[()\"']{2,}|,\)"
)


def roots(target: Target) -> str | None:
    """The certificates of the declared authority, without what stands around them; None: none is declared.

    Raises:
        UnusableBundle: Keystone could not read them either; says where to put what.
    """
    if target.ca is None:
        return None
    try:
        return b"".join(certificates(blocks(target.ca))).decode()
    except UnusableBundle as unusable:
        raise UnusableBundle(f"key ca.crt of Secret {target.authority} {unusable}") from None


def sentence(error: Exception, target: Target, host: str, *, secure: bool) -> str:
    """Why it failed.

    Args:
        host: the name that the certificate must bear.
        secure: whether TLS is spoken from the first byte.
    """
    return clean(_words(error, target, host, secure=secure))


def _words(error: Exception, target: Target, host: str, *, secure: bool) -> str:
    if isinstance(error, LDAPOperationResult):
        return _answered(error, target)
    if isinstance(error, LDAPInvalidFilterError):
        return f"the search for users is no LDAP filter, see spec.ldap.users.filter: {target.query}"
    if isinstance(error, LDAPInvalidDnError):
        return f"base DN {target.base} is no DN: {_foreign(error, target)}"
    text = getattr(error, "strerror", "") or str(error)
    if isinstance(error, LDAPCertificateError) or "doesn't match" in text or "mismatch" in text:
        return f"its certificate is made for other names than {host}: use a name that the certificate bears"
    if found := _VERIFY.search(text):
        return _distrusted(found[1], target)
    if "timed out" in text and isinstance(error, LDAPException):
        return "takes the connection and does not answer"
    if secure and any(mark in text for mark in _NO_TLS):
        return "does not answer with TLS; is it ldap://?"
    if isinstance(error, NO_LDAP) or not text or any(mark in text for mark in _STRANGE):
        return f"does not answer as a directory; is it {'another port' if secure else 'ldaps://'}?"
    return _foreign(_NOISE.sub(" ", text), target)


def _foreign(text: object, target: Target) -> str:
    """What others worded, without the password. Our own words stay whole: a gap in them would tell it."""
    return clean(str(text), (target.password.reveal(),))


def _answered(error: LDAPOperationResult, target: Target) -> str:
    said = _foreign(f"{error.description} {error.message or ''}", target)
    if error.description == "invalidCredentials":
        return f"refuses the name or the password of the bind Secret: {said}"
    return f"answers {said}"


def _distrusted(why: str, target: Target) -> str:
    """`why` is OpenSSL's."""
    if not any(mark in why for mark in _UNTRUSTED):
        return f"its certificate is not accepted: {_foreign(why, target)}"
    if target.ca is None:
        return "its certificate is signed by an authority that is not known: name it in spec.ldap.tls.caBundleSecretRef"
    return f"its certificate is signed by an authority that is not in Secret {target.authority}, key ca.crt"
