"""Where a Keystone is found: what both rooms and the client know of it.

Enters: names. Leaves: names and addresses. Pure. Source: spec/keystone.md 1.3; decisions, Keystone 12, 22.
"""

from __future__ import annotations

from typing import Final

PORT: Final = 5000
SAML_SUFFIX: Final = "-saml"
"""What follows the name of a Keystone in the names of the Deployment and Service that answer SAML for all replicas."""


def internal_endpoint(name: str, namespace: str) -> str:
    """URL of the Identity API inside the cluster."""
    return f"http://{name}.{namespace}.svc.cluster.local:{PORT}/v3"
