"""A fake identity provider: OpenID Connect and SAML 2.0, several realms, a login form, a journal and faults on request.

It follows the documents (OpenID Connect Core 1.0, RFC 7662, SAML 2.0 bindings and profiles) as far as the two Apache modules look, and it can
do on purpose what a real provider never does: unsigned, wrapped, expired or encrypted assertions. The real one is Keycloak: tests/real/keycloak.py.
"""

from tests.fakes.idp.model import Client, Realm, SamlFault, ServiceProvider, User
from tests.fakes.idp.server import FakeIdp, fake_idp

__all__ = ["Client", "FakeIdp", "Realm", "SamlFault", "ServiceProvider", "User", "fake_idp"]
