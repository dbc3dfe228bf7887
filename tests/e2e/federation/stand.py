"""A federated Keystone put together by hand: what the product renders, without the operator, the API server and the node.

Enters: a folder. Leaves: a served `Stand` for the time of a `with`: the fake provider, Keystone on a Unix socket, Apache from the rendered files, a TLS
gateway. Keystone's objects are made through its API. Attacks are tried here: a stand is up in seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.e2e.federation import manifests
from tests.e2e.federation.objects import administrator
from tests.e2e.federation.sidecar import CONFIG, Sidecar, sidecar
from tests.e2e.federation.site import CORP, PROTOCOLS, Site, realms, websso
from tests.fakes.dashboard import Dashboard, dashboard
from tests.fakes.idp import ServiceProvider, fake_idp
from tests.real.certificates import Authority
from tests.real.gateway import gateway
from tests.real.keystone import PASSWORD, Keystone, keystone
from tests.real.ports import free_address, free_port

from moorage.core.meta import JsonObject
from moorage.keystone import KINDS
from moorage.keystone.backend import metadata_oidc, metadata_saml
from moorage.keystone.backend.materials import Data, Document, Fault, Materials
from moorage.keystone.key_pair import make_pair
from moorage.keystone.service import conf
from moorage.keystone.service.federation import Federation, Ground, project_all
from moorage.keystone.service.seen import Attached
from moorage.render.ini import render_ini

GATEWAY = "127.0.0.40"
KIND = {kind.kind: kind for kind in KINDS}
CONF_SECTIONS = ("auth", "federation", "openid", "mapped", "oslo_middleware")


@dataclass
class Stand(Site):
    """A site, and what tests look into."""

    proxy: Sidecar = field(kw_only=True)
    server: Keystone = field(kw_only=True)
    dashboard: Dashboard = field(kw_only=True)
    hidden: bool = field(default=False, kw_only=True)
    """Whether Keystone has a provider, `hidden`, that the sidecar does not know: made by the first test that needs it."""


def attached(documents: Sequence[JsonObject], base: str) -> Attached:
    """A backend whose domain is ready, and what it is made from, as the operator would have read it."""
    manifest = copy.deepcopy(documents[-1])
    ready = {
        "type": "DomainReady",
        "status": "True",
        "reason": "DomainProvisioned",
        "message": "",
        "observedGeneration": 1,
    }
    manifest["status"] = {"conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    backend = KIND["KeystoneIdentityBackend"].parse(manifest)
    secrets: dict[str, Data | None] = {
        item["metadata"]["name"]: {key: value.encode() for key, value in item["stringData"].items()}
        for item in documents[:-1]
    }
    found: Document | Fault | None = None
    if (oidc := backend.spec.oidc) is not None and oidc.endpoints is not None:
        found = metadata_oidc.declared(oidc.issuer, oidc.endpoints)
    elif (saml := backend.spec.saml) is not None and saml.idp_metadata.secret_ref is not None:
        content = (secrets[saml.idp_metadata.secret_ref.name] or {})["idp-metadata.xml"]
        found = metadata_saml.parse(content, saml.idp_entity_id, now=datetime.now(UTC))
        pair = make_pair("keystone-saml-sp", datetime.now(UTC))
        secrets["keystone-saml-sp"] = {"tls.crt": pair.certificate, "tls.key": pair.key}
    return Attached(backend, Materials(secrets, base, found))


def projected(wanted: Mapping[str, Sequence[JsonObject]], base: str, origin: str) -> Federation:
    """The sidecar's files for these backends."""
    ground = Ground(base, image=True, dashboards=(origin,), passphrase="p" * 43)
    found = project_all([attached(documents, base) for documents in wanted.values()], ground)
    assert not found.left, found.left
    return found


def _keystone_conf(folder: Path, base: str, origin: str, found: Federation) -> str:
    """The sections that federation needs, and the file that they name, put where they say."""
    *_, manifest = manifests.site(base, origin)
    declared, facts = KIND["Keystone"].parse(manifest), conf.Facts(federation=found.facts)
    said = conf.sections(declared, facts)
    place = folder / "etc" / "keystone.conf.d"
    place.mkdir(parents=True)
    (place / conf.CALLBACK_FILE).write_bytes(conf.config_files(declared, facts)[conf.CALLBACK_FILE])
    return render_ini({name: said[name] for name in CONF_SECTIONS if name in said})


async def _objects(url: str, wanted: Mapping[str, Sequence[JsonObject]]) -> None:
    async with administrator(url, PASSWORD) as admin:
        for name, (*_, backend) in wanted.items():
            spec = backend["spec"]
            remote = spec["oidc"]["issuer"] if "oidc" in spec else spec["saml"]["idpEntityID"]
            domain = await admin.domain(name)
            await admin.group("eng", domain, "member")
            await admin.group("ops", domain, "reader")
            await admin.provider(
                name, domain, remote, PROTOCOLS[name], "HTTP_OIDC" if "oidc" in spec else "HTTP_MELLON"
            )


@dataclass(frozen=True)
class Parts:
    """What a stand is made of, whoever the provider is."""

    base: str
    server: Keystone
    proxy: Sidecar
    projection: Federation
    dashboard: Dashboard

    @property
    def service_provider(self) -> ServiceProvider:
        """What an administrator of the SAML provider is told."""
        assert self.projection.sp is not None
        return ServiceProvider.of(self.projection.sp.document)


@contextlib.contextmanager
def assembled(
    folder: Path, authority: Authority, port: int, wanted: Mapping[str, Sequence[JsonObject]], **more: bytes
) -> Iterator[Parts]:
    """Keystone, sidecar, gateway on `port` and a dashboard for these backends; `more` are further files of the sidecar's conf.d, by stem."""
    base = f"https://{GATEWAY}:{port}"
    with contextlib.ExitStack() as stack:
        shown = stack.enter_context(dashboard(folder / "dashboard", authority))
        shown.ways = {name: websso(base, name, shown.origin) for name in wanted}
        found = projected(wanted, base, shown.origin)
        text = _keystone_conf(folder / "keystone", base, shown.origin, found)
        server = stack.enter_context(keystone(folder / "keystone", conf=text))
        files = {f"{CONFIG}/{mount.path}": found.files[mount.key] for mount in found.mounts}
        files |= {f"{CONFIG}/conf.d/{stem}.conf": content for stem, content in more.items()}
        place, address = folder / "sidecar", free_address(5050)
        proxy = stack.enter_context(sidecar(place, files, server.socket, address=address, defines=("SAML_HERE",)))
        stack.enter_context(gateway(folder / "gateway", authority, [proxy.url], host=GATEWAY, port=port))
        asyncio.run(_objects(server.url, wanted))
        yield Parts(base, server, proxy, found, shown)


@contextlib.contextmanager
def stand(folder: Path) -> Iterator[Stand]:
    """Serve it with the fake provider."""
    authority, port = Authority(), free_port(GATEWAY)
    with (
        fake_idp(folder / "idp", realms(f"https://{GATEWAY}:{port}"), authority) as idp,
        assembled(folder, authority, port, manifests.backends(idp)) as parts,
    ):
        idp.realm(CORP).providers.append(parts.service_provider)
        trust = ssl.create_default_context(cadata=authority.pem.decode())
        shown = parts.dashboard
        yield Stand(
            parts.base, parts.server.url, idp, trust, PASSWORD, shown.origin,
            proxy=parts.proxy, server=parts.server, dashboard=shown,
        )  # fmt: skip
