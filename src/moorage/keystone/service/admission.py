"""Admission of a Keystone: defaults that no schema can give, and rules that no CEL can say.

Enters: one object. Leaves: the completed object, or all complaints at once, worded as kube-apiserver words them. An update that leaves
a stored value as it was never fails for that value, and a terminating object never fails (decisions, Keystone 17, Admission 5).
Source: spec/keystone.md 1.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Final

from moorage.core import cron
from moorage.core.jsoncopy import copied
from moorage.core.meta import JsonObject
from moorage.core.quantity import parse_quantity
from moorage.core.urls import url_fault, without_user
from moorage.schema.fielderror import FieldError, duplicate, forbidden, invalid, not_supported, required
from moorage.schema.review import Admission, Review, Verdict

from . import support
from .blocks import MEMORY_CACHE
from .catalogue import release_known, unknown_options
from .conf import Facts, overridden
from .pods import selector
from .types import KIND, Keystone

_CONTROL: Final = "must not contain newline, carriage-return or other control characters"
_MAX_DASHBOARD: Final = 512
TOKEN_LIFE: Final = 3600
"""Seconds that a token lives unless extraConfig says otherwise."""


def default(obj: JsonObject) -> JsonObject:
    """The object with the defaults of the webhook: replicas, port, credentials mode, TLS mode, trust flush."""
    whole = copied(obj)
    spec = whole.get("spec")
    if not isinstance(spec, dict):
        return whole
    database = spec.get("database")
    if isinstance(database, dict):
        _default_database(database)
    deployment = spec.get("deployment")
    if isinstance(deployment, dict) and isinstance(database, dict):
        deployment.setdefault("replicas", 1 if "embedded" in database else 3)
    spec.setdefault("trustFlush", {})
    return whole


def _default_database(database: JsonObject) -> None:
    if "host" in database:
        database.setdefault("port", 5432 if database.get("engine") == "PostgreSQL" else 3306)
    if "embedded" not in database:
        database.setdefault("credentialsMode", "Static")
    if isinstance(database.get("tls"), dict):
        database["tls"].setdefault("mode", "require")


def validate(review: Review) -> Verdict:
    """All complaints about a Keystone, and what is admitted with a warning."""
    keystone = KIND.parse(review.object)
    errors = (error for rule in RULES for error in rule(keystone))
    return Verdict(tuple(errors), (*_warnings(keystone, review.now), *_taken_away(keystone, review.old)))


def fixed_keys(keystone: Keystone) -> Iterator[FieldError]:
    """The data keys of referenced Secrets are fixed."""
    spec = keystone.spec
    refs = {
        "spec.database.secretRef.key": spec.database.secret_ref,
        "spec.bootstrap.adminPasswordSecretRef.key": spec.bootstrap.admin_password_secret_ref,
    }
    for path, ref in refs.items():
        if ref is not None and ref.key:
            keys = "username and password" if "database" in path else "password"
            yield invalid(path, ref.key, f"the data keys are fixed ({keys}); leave key out")


def replicas(keystone: Keystone) -> Iterator[FieldError]:
    """An embedded database serves one pod; the CEL rule says so too, for schemas with other defaults."""
    spec = keystone.spec
    if spec.database.embedded is not None and spec.replicas != 1:
        yield invalid("spec.deployment.replicas", spec.replicas, "an embedded database needs exactly one replica")


def quantities(keystone: Keystone) -> Iterator[FieldError]:
    """Quantities are quantities, and no request exceeds its limit."""
    resources = keystone.spec.pods.resources
    parsed: dict[tuple[str, str], Decimal] = {}
    for block in ("requests", "limits"):
        for name, value in sorted((getattr(resources, block, None) or {}).items()):
            try:
                parsed[block, name] = parse_quantity(value)
            except ValueError as error:
                yield invalid(f"spec.deployment.resources.{block}[{name}]", value, str(error))
    for (block, name), request in parsed.items():
        limit = parsed.get(("limits", name))
        if block == "requests" and limit is not None and request > limit and resources is not None:
            value = (resources.requests or {})[name]
            yield invalid(f"spec.deployment.resources.requests[{name}]", value, f"must not exceed the limit of {name}")
    if embedded := keystone.spec.database.embedded:
        yield from _storage(embedded.storage_size)


def _storage(size: str) -> Iterator[FieldError]:
    path = "spec.database.embedded.storageSize"
    try:
        if parse_quantity(size) <= 0:
            yield invalid(path, size, "must be greater than zero")
    except ValueError as error:
        yield invalid(path, size, str(error))


def strategy(keystone: Keystone) -> Iterator[FieldError]:
    """Recreate has no rolling parameters; another type does not exist."""
    wanted = keystone.spec.pods.strategy
    if wanted is None:
        return
    kind = wanted.get("type", "RollingUpdate")
    if kind not in ("Recreate", "RollingUpdate"):
        yield not_supported("spec.deployment.strategy.type", kind, ("Recreate", "RollingUpdate"))
    elif kind == "Recreate" and wanted.get("rollingUpdate") is not None:
        yield forbidden("spec.deployment.strategy.rollingUpdate", "may not be specified when strategy type is Recreate")


def spread(keystone: Keystone) -> Iterator[FieldError]:
    """A constraint that selects other pods than ours would spread nothing."""
    wanted = {"matchLabels": selector(keystone.metadata.name)}
    for i, item in enumerate(keystone.spec.pods.topology_spread_constraints or ()):
        path = f"spec.deployment.topologySpreadConstraints[{i}]"
        for name in ("maxSkew", "topologyKey", "whenUnsatisfiable"):
            if not item.get(name):
                yield required(f"{path}.{name}")
        if item.get("labelSelector") != wanted:
            labels = ", ".join(f"{name}={value}" for name, value in wanted["matchLabels"].items())
            yield invalid(
                f"{path}.labelSelector", item.get("labelSelector"), f"must have the matchLabels {labels}, no more"
            )


def stopping(keystone: Keystone) -> Iterator[FieldError]:
    """A request that may outlive the pod would be cut off."""
    harakiri, pods = keystone.spec.uwsgi.harakiri, keystone.spec.pods
    if harakiri is not None and harakiri >= pods.grace - pods.pre_stop:
        yield invalid(
            "spec.uwsgi.harakiri", harakiri, "must be less than terminationGracePeriodSeconds minus preStopSleepSeconds"
        )


def endpoint(keystone: Keystone) -> Iterator[FieldError]:
    """The public endpoint is a URL with a host."""
    url = keystone.spec.bootstrap.public_endpoint
    if url is not None and (why := url_fault(url)):
        yield invalid("spec.bootstrap.publicEndpoint", without_user(url), why)


def names(keystone: Keystone) -> Iterator[FieldError]:
    """Text that becomes arguments and configuration holds no control characters."""
    settings = keystone.spec.bootstrap
    for path, text in (("adminUser", settings.admin_user), ("region", settings.region)):
        if _controls(text):
            yield invalid(f"spec.bootstrap.{path}", text, _CONTROL)
    for i, server in enumerate((keystone.spec.cache and keystone.spec.cache.servers) or ()):
        if _controls(server) or not server or "," in server:
            yield invalid(f"spec.cache.servers[{i}]", server, "must be host:port, without line ends and commas")


def dashboards(keystone: Keystone) -> Iterator[FieldError]:
    """Trusted dashboards are URLs, each once, and not set twice."""
    federation = keystone.spec.federation
    trusted = (federation.trusted_dashboards if federation else None) or ()
    for i, url in enumerate(trusted):
        path = f"spec.federation.trustedDashboards[{i}]"
        if len(url) > _MAX_DASHBOARD:
            yield invalid(path, url, f"may not be more than {_MAX_DASHBOARD} bytes")
        if why := url_fault(url):
            yield invalid(path, without_user(url), why)
        if url in trusted[:i]:
            yield duplicate(path, url)
    if trusted and "trusted_dashboard" in (keystone.spec.extra_config or {}).get("federation", {}):
        yield forbidden(
            "spec.extraConfig[federation][trusted_dashboard]",
            "is set by spec.federation.trustedDashboards; use one of them",
        )


def extra_config(keystone: Keystone) -> Iterator[FieldError]:
    """Section and option names that the release knows, values of one line."""
    for section, keys in sorted((keystone.spec.extra_config or {}).items()):
        for key, value in sorted(keys.items()):
            if _controls(section + key + value):
                yield invalid(f"spec.extraConfig[{section}][{key}]", value, _CONTROL)
    if "connection" in (keystone.spec.extra_config or {}).get("database", {}):
        yield forbidden("spec.extraConfig[database][connection]", "is a secret and has no effect; use spec.database")
    for option in unknown_options(keystone):
        section, _, key = option[1:].partition("] ")
        yield invalid(
            f"spec.extraConfig[{section}]",
            key,
            f"Keystone {keystone.spec.image.tag} has no such option in this section",
        )


def plugins(keystone: Keystone) -> Iterator[FieldError]:
    """One plugin a section, one filter a name, values of one line."""
    sections: set[str] = set()
    for i, plugin in enumerate(keystone.spec.plugins or ()):
        if plugin.config_section in sections:
            yield duplicate(f"spec.plugins[{i}].configSection", plugin.config_section)
        sections.add(plugin.config_section)
        yield from _lines(f"spec.plugins[{i}].config", plugin.config)
    filters: set[str] = set()
    for i, item in enumerate(keystone.spec.middleware or ()):
        if item.name in filters:
            yield duplicate(f"spec.middleware[{i}].name", item.name)
        filters.add(item.name)
        yield from _lines(f"spec.middleware[{i}].config", item.config)


def _lines(path: str, config: dict[str, str] | None) -> Iterator[FieldError]:
    for key, value in sorted((config or {}).items()):
        if _controls(key + value):
            yield invalid(f"{path}[{key}]", value, _CONTROL)


def policy(keystone: Keystone) -> Iterator[FieldError]:
    """Policy rules have names and values."""
    overrides = keystone.spec.policy_overrides
    if overrides is None:
        return
    if not overrides.rules_ and overrides.config_map_ref is None:
        yield required("spec.policyOverrides.rules", "set rules, configMapRef or both")
    for name, rule in sorted((overrides.rules_ or {}).items()):
        path = f"spec.policyOverrides.rules[{name}]"
        if not name.strip():
            yield invalid("spec.policyOverrides.rules", name, "a rule needs a name")
        if not rule.strip():
            yield invalid(path, rule, 'a rule needs a value; "!" denies and "@" allows always')


def _support(keystone: Keystone) -> Iterator[FieldError]:
    yield from support.not_supported(keystone.spec)
    yield from support.bad_schedules(keystone.spec)


RULES: Final[tuple[Callable[[Keystone], Iterator[FieldError]], ...]] = (
    _support, fixed_keys, replicas, quantities, strategy, spread, stopping, endpoint, names, dashboards,
    extra_config, plugins, policy,
)  # fmt: skip


def _warnings(keystone: Keystone, now: datetime) -> Iterator[str]:
    spec = keystone.spec
    yield from _unserved(keystone)
    for url in (spec.federation.trusted_dashboards if spec.federation else None) or ():
        if url.startswith("http://"):
            yield f"spec.federation.trustedDashboards: {url} receives tokens over plain http"
        if "*" in url:
            yield f"spec.federation.trustedDashboards: {url} is compared as it stands, * is no wildcard: name each dashboard"
    if spec.extra_config and not release_known(keystone):
        yield "spec.extraConfig: the options of this release are not known, so their names were not checked"
    if found := overridden(keystone, Facts()):
        yield f"spec.extraConfig overrides what the operator sets: {', '.join(found)}"
    if spec.middleware:
        yield "spec.middleware: stock Keystone does not read api-paste.ini; the filters act only in an image that does"
    if (
        spec.cache is not None
        and spec.cache.backend == MEMORY_CACHE
        and (spec.replicas > 1 or spec.uwsgi.processes > 1)
    ):
        yield f"spec.cache.backend: {MEMORY_CACHE} is of each worker alone, a revoked token may be served until it expires there"
    yield from _short_rotation(keystone, now)


def _unserved(keystone: Keystone) -> Iterator[str]:
    """A public endpoint behind which no federated backend works, of a Keystone that is to have some."""
    url = keystone.spec.bootstrap.public_endpoint
    if keystone.spec.federation is None or url is None or url_fault(url):
        return
    from moorage.keystone.backend.federation import endpoint_doubt  # brings the types of backends

    if why := endpoint_doubt(url):
        yield f"spec.bootstrap.publicEndpoint: {why}: OIDC and SAML backends are not served, those that are attached get closed"


def _taken_away(keystone: Keystone, old: JsonObject | None) -> Iterator[str]:
    """What an update ends: without the sidecar's image nobody logs in through a federated backend any more."""
    had = (((old or {}).get("spec") or {}).get("federation") or {}).get("proxyImage")
    if had and (keystone.spec.federation is None or keystone.spec.federation.proxy_image is None):
        yield (
            "spec.federation.proxyImage: was taken away: OIDC and SAML backends that are attached to this Keystone are closed, their people cannot"
            " log in, and the sidecar goes once the last one is closed; set it again to open them"
        )


def _short_rotation(keystone: Keystone, now: datetime) -> Iterator[str]:
    """Tokens die early when their key is dropped before they expire."""
    spec = keystone.spec
    if spec.fernet.suspend or support.cron_fault(spec.fernet.rotation_schedule):
        return
    life = (spec.extra_config or {}).get("token", {}).get("expiration", "")
    seconds = int(life) if life.isdecimal() else TOKEN_LIFE
    times = list(islice(cron.read(spec.fernet.rotation_schedule).after(now), spec.fernet.max_active_keys))
    if len(times) < spec.fernet.max_active_keys or times[-2] - times[0] >= timedelta(seconds=seconds):
        return
    yield (
        f"spec.fernet: with {spec.fernet.max_active_keys} keys and this schedule a key is dropped before its tokens expire "
        f"({seconds} s); rotate less often or keep more keys"
    )


def _controls(text: str) -> bool:
    return any(ord(char) < 32 or ord(char) == 127 for char in text)


ADMISSION: Final = Admission(kind=KIND, default=default, validate=validate)
