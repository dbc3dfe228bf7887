"""The listening socket of the API server: TLS, and who a client is by its certificate.

Enters: an application and a TLS context. Leaves: a port.
"""

from __future__ import annotations

import json
import ssl

from moorage.apiserver.auth import certificate_user
from moorage.apiserver.errors import method_not_allowed
from moorage.serving.connection import Application, Shared
from moorage.serving.listener import Listener as _Listener


class Listener(_Listener):
    """A listener of the API server."""

    def __init__(self, app: Application, context: ssl.SSLContext) -> None:
        refusal = (json.dumps(method_not_allowed().to_wire()), "application/json")
        super().__init__(Shared(app, identify=certificate_user, no_such_method=refusal), context)
