"""TLS towards an API server: whom we trust, and the certificate that we show.

Enters: PEM texts or file paths. Leaves: an SSLContext. Key material that must pass through a file (OpenSSL reads no
memory) stands there, mode 0600, only while it is read.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from moorage.core.errors import InputError
from moorage.core.secret import SecretText

NO_SECRET = SecretText("")


@dataclass(frozen=True, slots=True)
class Tls:
    """How to speak TLS to one server. Texts are PEM; empty means: the system's roots, no client certificate."""

    authorities: str = ""
    insecure: bool = False
    server_name: str = ""
    certificate: str = ""
    key: SecretText = NO_SECRET

    def context(self, certificate: str = "", key: SecretText | None = None) -> ssl.SSLContext:
        """A context; a certificate given here (exec plugins) wins over the configured one.

        Raises:
            InputError: a PEM text cannot be used.
        """
        try:
            context = ssl.create_default_context(cadata=self.authorities or None)
            if certificate or self.certificate:
                load_pair(context, certificate or self.certificate, (key or self.key) if certificate else self.key)
        except (ssl.SSLError, ValueError) as error:
            raise InputError("TLS", f"a certificate or key cannot be used: {error}") from error
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


SYSTEM_TLS = Tls()
"""Trust in the roots of this machine, and no client certificate."""


def load_pair(context: ssl.SSLContext, certificate: str, key: SecretText) -> None:
    """Put a PEM certificate chain and its key into a context; also replaces the pair of a context in use. Nobody is asked for a passphrase."""
    with _file(certificate) as chain, _file(key.reveal()) as private:
        context.load_cert_chain(chain, private, password="")


@contextmanager
def _file(text: str) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(prefix="moorage-", suffix=".pem")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        yield Path(name)
    finally:
        Path(name).unlink()
