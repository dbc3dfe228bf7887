"""What a Keystone calls for: configuration, domain files, connection, and from these every child.

Enters: the inputs of a pass. Leaves: values and manifests. Nothing is written and nothing is compared with what lives.
Source: spec/keystone.md 1.2 to 1.5, 3.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from moorage.core.meta import JsonObject
from moorage.core.secret import SecretText
from moorage.keystone.backend.materials import Document, Fault
from moorage.keystone.key_pair import Pair, read_pair
from moorage.render.bundle import Bundle

from . import federated_pods, manifests, pods
from .conf import ConfigFault, Facts, config_files, overridden
from .domains import Domains, Left, data_of
from .domains import project_all as domains_of
from .federation import Federation, Ground
from .federation import project_all as federation_of
from .plan import Ensure, Project
from .seen import CONFIG_MAP, DEPLOYMENT, PDB, PVC, SECRET, SERVICE, Attached, Inputs, SecretFault, secret_text
from .types import Keystone

CONFIG_BASE = "config"
DOMAINS_BASE = "domains"
FEDERATION_BASE = "federation"
PASSPHRASE = "passphrase"  # noqa: S105 - a data key


@dataclass(frozen=True, slots=True)
class Wanted:
    """Everything a pass needs to know of its inputs; a fault stands where a value could not be made.

    Args:
        connection: URL of the database, or why there is none.
        password: of the administrator, or why there is none.
        config: files of keystone.conf.d, or why there are none.
        domains: what is projected of LDAP backends and what is left out.
        federation: the same of federated ones.
        overridden: our options that extraConfig overrides.
        sidecar: what federated pods run; None without one.
        stale: one sentence for each backend whose provider's metadata could not be fetched anew.
    """

    connection: SecretText | SecretFault
    password: SecretText | SecretFault
    config: Bundle | ConfigFault
    domains: Domains
    federation: Federation
    domain_files: Bundle | None = field(repr=False)
    federation_files: Bundle | None = field(repr=False)
    overridden: tuple[str, ...] = ()
    sidecar: federated_pods.Sidecar | None = None
    stale: tuple[str, ...] = ()

    @property
    def mounts(self) -> pods.Mounts:
        """Names that the pods mount; only asked for once the configuration could be made."""
        assert isinstance(self.config, Bundle)
        name = self.domain_files.name if self.domain_files else None
        return pods.Mounts(self.config.name, name, self.domains.paths, self.domains.trusts_the_system)

    @property
    def attached(self) -> tuple[str, ...]:
        """Names of all backends that are projected."""
        return tuple(sorted((*self.domains.attached, *self.federation.attached)))

    @property
    def left(self) -> tuple[Left, ...]:
        """All backends that are not, by name."""
        return tuple(sorted((*self.domains.left, *self.federation.left), key=lambda item: item.name))

    @property
    def total(self) -> int:
        """Backends that are not being deleted."""
        return self.domains.total + self.federation.total


def wanted(inputs: Inputs) -> Wanted:
    """What these inputs call for; faults are values, nothing is raised."""
    keystone = inputs.keystone
    name = keystone.metadata.name
    domains, federation = domains_of(inputs.backends), federation_of(inputs.backends, ground(inputs))
    facts = Facts(inputs.policy, bool(domains.files), federation.facts)
    files = Bundle(f"{name}-{FEDERATION_BASE}", federation.files) if federation.files else None
    return Wanted(
        connection=_connection(inputs),
        password=_password(inputs),
        config=_config(keystone, facts),
        domains=domains,
        federation=federation,
        domain_files=Bundle(f"{name}-{DOMAINS_BASE}", domains.files) if domains.files else None,
        federation_files=files,
        overridden=overridden(keystone, facts),
        sidecar=_sidecar(inputs, federation, files),
        stale=tuple(_stale(inputs.backends)),
    )


def ground(inputs: Inputs) -> Ground:
    """What the sidecar is built on besides the backends."""
    declared = inputs.keystone.spec.federation
    return Ground(
        base=inputs.keystone.public_base,
        image=declared is not None and declared.proxy_image is not None,
        dashboards=(declared.trusted_dashboards if declared else None) or (),
        passphrase=_passphrase(inputs),
        next_certificate=_staged(inputs),
        running=bool(inputs.running),
    )


def _staged(inputs: Inputs) -> bytes:
    """The certificate of the staged key pair; of one that cannot serve nothing is published."""
    found = read_pair(data_of(inputs.staged) or {})
    return found.certificate if isinstance(found, Pair) else b""


def _passphrase(inputs: Inputs) -> str | Fault | None:
    if inputs.passphrase is None:
        return None
    name = inputs.passphrase["metadata"]["name"]
    try:
        return secret_text(inputs.passphrase, name, PASSPHRASE)
    except SecretFault as fault:
        return Fault("PassphraseUnavailable", f"{fault}; delete the Secret to have a new one made")


def _sidecar(inputs: Inputs, federation: Federation, files: Bundle | None) -> federated_pods.Sidecar | None:
    """With the declared image; with the one that runs while a sidecar has to stay that is not declared any more."""
    keystone = inputs.keystone
    declared = keystone.spec.federation
    image = declared.proxy_image.reference if declared and declared.proxy_image else inputs.running
    if files is None or not image:
        return None
    elsewhere = federation.saml and keystone.spec.replicas > 1
    return federated_pods.Sidecar(image, files.name, federation.mounts, elsewhere)


def _stale(backends: Iterable[Attached]) -> Iterator[str]:
    for item in sorted(backends, key=lambda item: item.name):
        document = item.materials.document
        if isinstance(document, Document) and document.stale and not item.terminating:
            yield f"{item.name} runs on the last good metadata of its provider: {document.why}"


def _connection(inputs: Inputs) -> SecretText | SecretFault:
    ref = inputs.keystone.spec.database.secret_ref
    if ref is None:
        return SecretText(manifests.connection_url(inputs.keystone))
    try:
        user, password = (secret_text(inputs.database, ref.name, key) for key in ("username", "password"))
    except SecretFault as fault:
        return fault
    return SecretText(manifests.connection_url(inputs.keystone, user, password))


def _password(inputs: Inputs) -> SecretText | SecretFault:
    ref = inputs.keystone.spec.bootstrap.admin_password_secret_ref
    try:
        return SecretText(secret_text(inputs.admin, ref.name, "password"))
    except SecretFault as fault:
        return fault


def _config(keystone: Keystone, facts: Facts) -> Bundle | ConfigFault:
    try:
        files = config_files(keystone, facts)
    except ConfigFault as fault:
        return fault
    return Bundle(f"{keystone.metadata.name}-{CONFIG_BASE}", files)


def base_children(keystone: Keystone, found: Wanted) -> tuple[Ensure, ...]:
    """The Secrets that pods take their environment from, and the volume of an embedded database."""
    children = []
    if isinstance(found.connection, SecretText):
        data = {"connection": found.connection.reveal()}
        children.append(Ensure(SECRET, manifests.secret(keystone, "db-connection", data)))
    if isinstance(found.password, SecretText):
        data = {"password": found.password.reveal()}
        children.append(Ensure(SECRET, manifests.secret(keystone, "bootstrap", data)))
    if keystone.spec.database.embedded is not None:
        children.append(Ensure(PVC, manifests.volume_claim(keystone)))
    return tuple(children)


def bundles(keystone: Keystone, found: Wanted) -> tuple[Project, ...]:
    """The content-named children: the configuration, and the domain files when there are any."""
    assert isinstance(found.config, Bundle)
    projected = [Project(CONFIG_MAP, _bundle(keystone, found.config, secret=False))]
    files = (found.domain_files, found.federation_files)
    projected += [Project(SECRET, _bundle(keystone, item, secret=True)) for item in files if item is not None]
    return tuple(projected)


def _bundle(keystone: Keystone, bundle: Bundle, *, secret: bool) -> JsonObject:
    marks = {**pods.labels(keystone.metadata.name), manifests.BASE_LABEL: bundle.base}
    make = bundle.secret if secret else bundle.config_map
    return make(keystone.metadata.namespace, keystone.ref, marks)


def workload(keystone: Keystone, found: Wanted) -> tuple[Ensure, ...]:
    """Services, Deployments and disruption budget; what must be reachable comes before what reaches for it."""
    assert isinstance(found.connection, SecretText)
    plain, sidecar = pods.api_template(keystone, found.mounts, found.connection.reveal()), found.sidecar
    api = plain if sidecar is None else federated_pods.federated(keystone, plain, sidecar)
    return (
        Ensure(SERVICE, manifests.service(keystone, sticky=sidecar is not None and sidecar.saml)),
        *(() if sidecar is None or not sidecar.elsewhere else _saml(keystone, plain, sidecar)),
        Ensure(DEPLOYMENT, manifests.deployment(keystone, api)),
        Ensure(PDB, manifests.disruption_budget(keystone)),
    )


def _saml(keystone: Keystone, plain: JsonObject, sidecar: federated_pods.Sidecar) -> tuple[Ensure, ...]:
    template = federated_pods.federated(keystone, plain, sidecar, component=federated_pods.SAML)
    return (
        Ensure(SERVICE, manifests.saml_service(keystone)),
        Ensure(DEPLOYMENT, manifests.saml_deployment(keystone, template)),
    )
