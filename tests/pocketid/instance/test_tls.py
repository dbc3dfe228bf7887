"""A deployed server that speaks TLS itself: the operator trusts its own certificate and no other, whatever names it is for."""

from __future__ import annotations

import ssl
from pathlib import Path

from tests.real.certificates import Authority

from moorage.kube.resources import DEPLOYMENTS

from .scene import NAME, embedded, scene


def _texts(pair: tuple[Path, Path]) -> dict[str, str]:
    return {"tls_crt": pair[0].read_text(), "tls_key": pair[1].read_text()}


async def test_the_certificate_of_the_secret_is_the_one_that_is_trusted(tmp_path: Path) -> None:
    """It is for the public name; another of the same authority, for the very Service, is refused; a changed Secret restarts the pod."""
    authority = Authority()
    own = authority.issue(tmp_path, "own", ("id.example.org",))
    other = authority.issue(tmp_path, "other", (f"{NAME}.pocket-id.svc", "id.example.org"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*own)
    async with embedded(tmp_path) as client, scene(client, tmp_path, tls=context) as here:
        await here.make(tls={"secretRef": {"name": "id-tls"}})
        await here.drive()
        said, message = await here.ready()
        assert said == "False/SecretNotFound"
        assert 'spec.tls.secretRef: Secret "id-tls" does not exist; create it with key "tls.crt"' in message
        await here.secret("id-tls", **_texts(own))
        await here.drive()
        assert await here.ready() == ("True/Ready", f"Pocket-ID 2.14.0 runs at https://{NAME}.pocket-id.svc:1411")
        (container,) = (await here.workload(DEPLOYMENTS))["spec"]["template"]["spec"]["containers"]
        assert container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
        assert await here.writes() == 0
        starts = here.starts
        await here.secret("id-tls", **_texts(other))
        await here.drive()
        assert here.starts == starts + 1
        said, message = await here.ready()
        assert said == "False/Unreachable"
        assert "certificate" in message
