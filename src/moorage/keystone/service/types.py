"""The kind Keystone: its spec, its status, its CRD.

Enters: nothing. Leaves: `KIND` and the models. Bounds and CEL hold at the API server even when no webhook runs.
Source: spec/keystone.md 1.1.
"""

from __future__ import annotations

from typing import ClassVar, Final

from moorage.keystone import addresses
from moorage.schema.kind import Kind
from moorage.schema.model import Model, Resource, StoredCondition, conditions_field, field
from moorage.schema.rule import Column, Rule

from . import blocks, blocks_access

GROUP: Final = "keystone.openstack.c5c3.io"
VERSION: Final = "v1alpha1"

_ONE_REPLICA = (
    "!has(self.database.embedded) || !has(self.deployment) || !has(self.deployment.replicas)"
    " || self.deployment.replicas == 1"
)
_SAME_CLUSTER = (
    "has(self.targetClusterRef) == has(oldSelf.targetClusterRef)"
    " && (!has(self.targetClusterRef) || self.targetClusterRef.name == oldSelf.targetClusterRef.name)"
)


class KeystoneSpec(Model):
    """What is wanted."""

    image: blocks.Image = field(doc="Image of Keystone.")
    database: blocks.Database = field(doc="Where Keystone keeps its data.")
    cache: blocks.Cache | None = field(
        None, doc="The shared cache; without it nothing is kept from one request to the next."
    )
    deployment: blocks.Deployment | None = field(None, doc="How the API pods run.")
    fernet: blocks.KeyRepository = field(blocks.KeyRepository(), doc="Keys of the tokens.")
    credential_keys: blocks.KeyRepository = field(blocks.KeyRepository(), doc="Keys of stored credentials.")
    bootstrap: blocks.Bootstrap = field(doc="The first administrator, region and endpoints.")
    federation: blocks_access.Federation | None = field(None, doc="What federation backends need.")
    gateway: blocks_access.Gateway | None = field(None, doc="An HTTPRoute. Not supported by this release.")
    network_policy: blocks_access.NetworkPolicy | None = field(None, doc="A NetworkPolicy around the pods.")
    autoscaling: blocks_access.Autoscaling | None = field(None, doc="Not supported by this release.")
    uwsgi: blocks.Uwsgi = field(blocks.Uwsgi(), doc="The uWSGI server.")
    logging: blocks.Logging = field(blocks.Logging(), doc="What Keystone logs.")
    extra_config: dict[str, dict[str, str]] | None = field(
        None, doc="Options of keystone.conf by section; they win over everything the operator sets.", max_properties=64
    )
    plugins: tuple[blocks.Plugin, ...] | None = field(None, doc="Plugins of the image.", max_items=32)
    middleware: tuple[blocks.Middleware, ...] | None = field(None, doc="WSGI filters.", max_items=32)
    policy_overrides: blocks.PolicyOverrides | None = field(None, doc="Rules that override Keystone's policy.")
    password_rotation: blocks.PasswordRotation | None = field(None, doc="Not supported by this release.")
    trust_flush: blocks.TrustFlush | None = field(None, doc="Removal of expired trusts; the webhook fills it in.")
    secret_store_ref: blocks.SecretStoreRef | None = field(None, doc="Not supported by this release.")
    target_cluster_ref: blocks.NameRef | None = field(None, doc="Not supported by this release.")
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(_ONE_REPLICA, "an embedded database needs exactly one replica", field_path=".deployment"),
        Rule(
            "!has(self.database.embedded) || !has(self.autoscaling)",
            "an embedded database cannot be scaled",
            field_path=".autoscaling",
        ),
        Rule(_SAME_CLUSTER, "targetClusterRef is immutable"),
    )

    @property
    def pods(self) -> blocks.Deployment:
        """The deployment block, its defaults when absent."""
        return self.deployment or blocks.Deployment()

    @property
    def replicas(self) -> int:
        """API pods that are wanted."""
        return self.pods.replicas or (1 if self.database.embedded is not None else 3)


class KeystoneStatus(Model):
    """What is."""

    conditions: tuple[StoredCondition, ...] = conditions_field()
    observed_generation: int | None = field(None, doc="metadata.generation of the last pass.", format="int64")
    endpoint: str | None = field(None, doc="URL of the Identity API.")
    installed_release: str | None = field(None, doc="Release that serves.")
    target_release: str | None = field(None, doc="Release that is being rolled out.")
    upgrade_phase: str | None = field(None, doc="Phase of an upgrade; RollingUpdate while pods are replaced.")


class Keystone(Resource):
    """An OpenStack Identity service: database schema, keys, configuration, API pods, administrator."""

    spec: KeystoneSpec
    status: KeystoneStatus = field(KeystoneStatus(), doc="What is.", default_in_schema=False)

    @property
    def internal_endpoint(self) -> str:
        """URL of the Identity API inside the cluster."""
        return addresses.internal_endpoint(self.metadata.name, self.metadata.namespace)

    @property
    def public_endpoint(self) -> str:
        """URL of the Identity API for clients (decisions, Keystone 12)."""
        return self.spec.bootstrap.public_endpoint or self.internal_endpoint

    @property
    def public_base(self) -> str:
        """What redirect URI, entityID and endpoints for providers begin with: the public endpoint without `/v3`."""
        return self.public_endpoint.rstrip("/").removesuffix("/v3").rstrip("/")


KIND: Final = Kind(
    group=GROUP,
    version=VERSION,
    kind="Keystone",
    plural="keystones",
    model=Keystone,
    doc="An OpenStack Identity service: database schema, keys, configuration, API pods, administrator.",
    columns=(
        Column("Ready", "string", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Endpoint", "string", ".status.endpoint"),
        Column("Release", "string", ".status.installedRelease"),
        Column("Age", "date", ".metadata.creationTimestamp"),
    ),
    categories=("moorage",),
)
