"""What DirectoryReachable says of a directory that does not serve: plain words, held against OpenSSL, ldap3 and a real slapd."""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from ldap3.core.exceptions import LDAPSocketReceiveError
from tests.real.certificates import Authority
from tests.real.directory import Directory, corp

from moorage.core.secret import SecretText
from moorage.keystone.backend.directory import probe
from moorage.keystone.backend.directory_words import sentence
from moorage.keystone.backend.seen import Directory as Found

from .test_directory import WHERE, target

PYTHON = re.compile(r"Error|_ssl|\[SSL|\('|Errno|cadata|wrapping")
"""What only a programmer would understand."""
NO_DIRECTORY = "does not answer as a directory; is it ldaps://?"
NO_TLS = "does not answer with TLS; is it ldap://?"
NO_CERTIFICATE = "key ca.crt of Secret corp-ca holds no certificate: "


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    """One directory for all tests of this file."""
    with corp(tmp_path_factory.mktemp("slapd")) as running:
        yield running


@contextmanager
def answering(answer: bytes, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a server that says this to whatever it is asked, and ends the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    taken, _ = listening.accept()
                    with suppress(OSError), context.wrap_socket(taken, server_side=True) if context else taken as peer:
                        if peer.recv(500):
                            peer.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(20)


def said(found: Found) -> str:
    """The message without the address in front of it, once it is no Python."""
    assert found.status == "False"
    assert not PYTHON.search(found.message), found.message
    return re.sub(r"^ldaps?://\S+: ", "", found.message)


@pytest.mark.parametrize("start_tls", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"SSH-2.0-x\r\n",
        b"\x30\x84\x7f\xff\xff\xff",
        b"\x30\x0c\x02\x01\x07\x61\x07\x0a\x01\x00\x04\x00\x04\x00",
        b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x63\x04\x00\x24\x00",
        b"\x30\x0c\x02\x01\x01\x61\x07\x30\x01\x00\x04\x00\x04\x00",
        b"",
    ],
    ids=["http", "alert", "ssh", "endless", "other message", "unknown code", "list", "nothing"],
)
def test_a_peer_that_is_no_directory_is_said_to_be_none(answer: bytes, start_tls: bool) -> None:
    """ldap3 raises plain exceptions for bytes that are no LDAP: the peer's fault, not one of the probe."""
    with answering(answer) as port:
        found = probe(replace(WHERE, urls=(f"ldap://127.0.0.1:{port}",), start_tls=start_tls))
    assert said(found) == NO_DIRECTORY


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""], ids=["http", "nothing"])
def test_a_peer_without_tls_is_said_to_speak_none(answer: bytes) -> None:
    with answering(answer) as port:
        assert said(probe(replace(WHERE, urls=(f"ldaps://127.0.0.1:{port}",)))) == NO_TLS


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # ldap3 drops that connection unclosed
def test_a_certificate_of_other_names_is_said_to_be_one(tmp_path: Path) -> None:
    """ldap3 puts the whole certificate into its message, as Python prints it."""
    authority, context = Authority(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue(tmp_path, "other", ("elsewhere.example",)))
    with answering(b"", context) as port:
        found = probe(replace(WHERE, urls=(f"ldaps://127.0.0.1:{port}",), ca=authority.pem))
    assert said(found) == (
        "its certificate is made for other names than 127.0.0.1: use a name that the certificate bears"
    )


@pytest.mark.e2e
def test_plain_and_tls_ports_that_are_taken_for_each_other_are_named(served: Directory) -> None:
    assert said(probe(target(served, urls=(f"ldap://127.0.0.1:{served.tls_port}",)))) == NO_DIRECTORY
    assert said(probe(target(served, urls=(f"ldaps://127.0.0.1:{served.port}",)))) == NO_TLS


@pytest.mark.e2e
@pytest.mark.parametrize("start_tls", [False, True])
def test_an_unknown_authority_is_named_with_the_secret_that_lacks_it(served: Directory, start_tls: bool) -> None:
    """Or, where none is declared, with the field that declares one."""
    url = served.url if start_tls else served.tls_url
    asked = target(served, urls=(url,), start_tls=start_tls, authority="corp-ca", ca=Authority().pem)
    assert said(probe(asked)) == ("its certificate is signed by an authority that is not in Secret corp-ca, key ca.crt")
    assert said(probe(replace(asked, ca=None))).endswith("name it in spec.ldap.tls.caBundleSecretRef")


@pytest.mark.e2e
@pytest.mark.parametrize(
    "ca", [b"\xff\xfe\x00", b"hello", b"-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n", b""]
)
def test_a_bundle_without_certificate_is_told_where_tls_is_spoken(served: Directory, ca: bytes) -> None:
    """A plain connection does not read it."""
    found = probe(target(served, urls=(served.tls_url,), ca=ca, authority="corp-ca"))
    assert found.reason == "TLSFailed"
    assert said(found).startswith(NO_CERTIFICATE)
    assert said(probe(target(served, start_tls=True, ca=ca, authority="corp-ca"))).startswith(NO_CERTIFICATE)
    assert probe(target(served, ca=ca)).status == "True"


@pytest.mark.e2e
def test_what_stands_around_a_certificate_does_no_harm(served: Directory) -> None:
    """Keystone reads past a comment in any alphabet."""
    ca = "# Prüfstelle\n".encode() + served.authority.pem + b"\xff"
    assert probe(target(served, urls=(served.tls_url,), ca=ca)).status == "True"


def test_a_password_is_blotted_out_of_what_others_say_only() -> None:
    """A gap in our own words would tell that it is one of them."""
    asked = replace(WHERE, password=SecretText("ldap"))
    assert sentence(LDAPSocketReceiveError("session terminated"), asked, "h", secure=False) == NO_DIRECTORY
    assert sentence(LDAPSocketReceiveError("no ldap today"), asked, "h", secure=False) == "no *** today"


@pytest.mark.e2e
def test_settings_that_the_directory_does_not_take_are_named(served: Directory) -> None:
    assert said(probe(target(served, base="nonsense"))).startswith("base DN nonsense is no DN: ")
    assert said(probe(target(served, query="(((broken"))).endswith("see spec.ldap.users.filter: (((broken")
    assert said(probe(target(served, user="no dn"))) == "answers invalidDNSyntax invalid DN"
