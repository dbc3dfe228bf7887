"""Federated logins end to end: OpenID Connect and SAML, what attackers try, what breaks and heals."""
