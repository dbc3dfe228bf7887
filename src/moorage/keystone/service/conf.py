"""keystone.conf and the files beside it.

Enters: a declared Keystone, the ConfigMap of its policy, whether LDAP domains and federated backends are projected. Leaves: files by data key.
No secret enters: the database comes by environment. Source: spec/keystone.md 3.2; decisions, Keystone 7; cases B27, B28.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import yaml

from moorage.core.meta import JsonObject
from moorage.render.ini import UnsafeValue, render_ini

from .blocks import MEMORY_CACHE, Cache, Logging, Middleware
from .types import Keystone

CONFIG_DIR: Final = "/etc/keystone/keystone.conf.d/"
FERNET_KEYS: Final = "/etc/keystone/fernet-keys"
CREDENTIAL_KEYS: Final = "/etc/keystone/credential-keys"
DOMAINS: Final = "/etc/keystone/domains"
POLICY_FILE: Final = "policy.yaml"
PASTE_FILE: Final = "api-paste.ini"
LOGGING_FILE: Final = "logging.conf"
CALLBACK_FILE: Final = "sso_callback_template.html"
NO_DATABASE: Final = "mysql+pymysql://placeholder"
"""Stands in the file so that nobody reads a default; the real connection comes by OS_DATABASE__CONNECTION."""

REQUEST_CACHE: Final = "dogpile.cache.null"
"""Keeps nothing; but only with caching enabled does Keystone remember, for the length of one request, what it has looked up (ADR 0011)."""

_QUIET: Final = {
    "dogpile.core.dogpile": "INFO", "iso8601": "WARNING", "keystoneauth": "WARNING", "keystonemiddleware": "WARNING",
    "oslo.cache": "INFO", "oslo_messaging": "INFO", "oslo_policy": "INFO", "routes.middleware": "WARNING",
    "sqlalchemy": "WARNING", "stevedore": "WARNING", "urllib3.connectionpool": "WARNING",
    "urllib3.util.retry": "WARNING",
}  # fmt: skip
"""What oslo.log keeps quiet by itself; a list option replaces all of it, so it is said again under the user's levels."""


class ConfigFault(ValueError):
    """The configuration cannot be written: which field and why, never a value."""


@dataclass(frozen=True, slots=True)
class FederationFacts:
    """What federated backends want of keystone.conf: by section, the key of the environment that holds the asserted remote id."""

    remote_ids: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Facts:
    """What shapes the configuration besides the spec."""

    policy: JsonObject | None = None
    domains: bool = False
    federation: FederationFacts | None = None


def config_files(keystone: Keystone, facts: Facts) -> dict[str, bytes]:
    """All files of /etc/keystone/keystone.conf.d/ by name.

    Raises:
        ConfigFault: a value cannot be written, or the policy cannot be read.
    """
    spec = keystone.spec
    rules = policy_rules(keystone, facts.policy)
    try:
        files = {
            "keystone.conf": render_ini(sections(keystone, facts)),
            PASTE_FILE: _paste(spec.middleware or ()),
        }
        if _wants_logging_file(spec.logging):
            files[LOGGING_FILE] = render_ini(_logging_sections(spec.logging))
    except UnsafeValue as error:
        raise ConfigFault(f"[{error.section}] {error.key}: holds a control character or is no option name") from None
    if facts.federation is not None:
        files[CALLBACK_FILE] = _CALLBACK
    if rules:
        files[POLICY_FILE] = "".join(f"{json.dumps(name)}: {json.dumps(rules[name])}\n" for name in sorted(rules))
    return {name: text.encode() for name, text in files.items()}


def sections(keystone: Keystone, facts: Facts) -> dict[str, dict[str, str | tuple[str, ...]]]:
    """keystone.conf; later wins: plugins, our own, extraConfig, the policy file, the trusted dashboards."""
    spec = keystone.spec
    merged: dict[str, dict[str, str | tuple[str, ...]]] = {}
    for plugin in spec.plugins or ():
        merged.setdefault(plugin.config_section, {}).update(plugin.config or {})
    for section, keys in owned(keystone, facts).items():
        merged.setdefault(section, {}).update(keys)
    for section, keys in (spec.extra_config or {}).items():
        merged.setdefault(section, {}).update(keys)
    if spec.policy_overrides is not None:
        merged["oslo_policy"]["policy_file"] = CONFIG_DIR + POLICY_FILE
    if spec.federation is not None and spec.federation.trusted_dashboards:
        trusted = tuple(map(trusted_dashboard, spec.federation.trusted_dashboards))
        merged.setdefault("federation", {})["trusted_dashboard"] = trusted
    return merged


def owned(keystone: Keystone, facts: Facts) -> dict[str, dict[str, str]]:
    """What the operator sets by itself; extraConfig may override it and is then reported."""
    spec = keystone.spec
    return {
        "DEFAULT": {"keystone_user": "", "keystone_group": "", "use_stderr": "true", **_logging_options(spec.logging)},
        "token": {"provider": "fernet"},
        "fernet_tokens": {"key_repository": FERNET_KEYS, "max_active_keys": str(spec.fernet.max_active_keys)},
        # Receipts have a key repository of their own; unset, each worker dies at load (spec/keystone.md 3.2).
        "fernet_receipts": {"key_repository": FERNET_KEYS},
        "credential": {"key_repository": CREDENTIAL_KEYS, "max_active_keys": str(spec.credential_keys.max_active_keys)},
        **_cache(spec.cache),
        "paste_deploy": {"config_file": CONFIG_DIR + PASTE_FILE},
        "oslo_middleware": {"enable_proxy_headers_parsing": "true"},
        "oslo_policy": {"enforce_scope": "true", "enforce_new_defaults": "true"},
        "identity": {"default_domain_id": "default", **(_DOMAIN_OPTIONS if facts.domains else {})},
        "database": {"max_retries": "-1", "connection_recycle_time": "600", "connection": NO_DATABASE},
        **(_federation(facts.federation) if facts.federation else {}),
    }


def _federation(facts: FederationFacts) -> dict[str, dict[str, str]]:
    """A list option replaces all of Keystone's own, so the methods are said in full; a protocol that Keystone does not know stays out: it could
    not start with it, and who has a plugin for it says so in extraConfig."""
    further = sorted(_STOCK_METHODS & set(facts.remote_ids))
    return {
        "auth": {"methods": ",".join([*_METHODS, *further])},
        "federation": {"sso_callback_template": CONFIG_DIR + CALLBACK_FILE},
        **{section: {"remote_id_attribute": key} for section, key in facts.remote_ids.items()},
    }


_METHODS: Final = ("external", "password", "token", "oauth1", "mapped", "application_credential", "openid")
_STOCK_METHODS: Final = frozenset({"saml2", "x509"})
"""Methods of Keystone for federation that are not in _METHODS."""
_CALLBACK: Final = """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Signing in</title></head>
<body>
<form id="sso" action="$host" method="post">
<input type="hidden" name="token" value="$token">
<noscript><button type="submit">Go on</button></noscript>
</form>
<script>document.getElementById("sso").submit()</script>
</body>
</html>
"""
"""What a browser gets after its login: it hands the token to the dashboard. Keystone fills in host and token."""


def trusted_dashboard(url: str) -> str:
    """A dashboard as Keystone compares it: scheme and host in lower case, everything else as it was written (case B27)."""
    scheme, mark, rest = url.partition("://")
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    return f"{scheme.lower()}{mark}{host.lower()}{rest[len(host) :]}"


_DOMAIN_OPTIONS: Final = {"domain_specific_drivers_enabled": "true", "domain_config_dir": DOMAINS}


def overridden(keystone: Keystone, facts: Facts) -> tuple[str, ...]:
    """Options of ours that extraConfig overrides, each as `[section] key`, sorted."""
    ours = owned(keystone, facts)
    extra = keystone.spec.extra_config or {}
    return tuple(
        f"[{section}] {key}"
        for section in sorted(extra)
        for key in sorted(extra[section])
        if key in ours.get(section, {})
    )


def policy_rules(keystone: Keystone, config_map: JsonObject | None) -> dict[str, str]:
    """The policy rules: those of the ConfigMap, inline ones over them.

    Raises:
        ConfigFault: the ConfigMap is missing, or its policy.yaml is no mapping of names to rules.
    """
    overrides = keystone.spec.policy_overrides
    if overrides is None:
        return {}
    found: dict[str, str] = {}
    if overrides.config_map_ref is not None:
        found.update(_rules_of(overrides.config_map_ref.name, config_map))
    found.update(overrides.rules_ or {})
    return found


def _rules_of(name: str, config_map: JsonObject | None) -> dict[str, str]:
    text = ((config_map or {}).get("data") or {}).get(POLICY_FILE)
    if text is None:
        what = "does not exist" if config_map is None else f'has no "{POLICY_FILE}"'
        raise ConfigFault(f'spec.policyOverrides.configMapRef: ConfigMap "{name}" {what}')
    try:
        rules = yaml.safe_load(text) or {}
    except yaml.YAMLError:
        rules = None
    if not isinstance(rules, dict) or not all(isinstance(k, str) and isinstance(v, str) for k, v in rules.items()):
        raise ConfigFault(f'ConfigMap "{name}": "{POLICY_FILE}" is no YAML mapping of rule names to rules')
    return rules


def _cache(cache: Cache | None) -> dict[str, dict[str, str]]:
    if cache is None:
        return {"cache": {"enabled": "true", "backend": REQUEST_CACHE}}
    if cache.backend == MEMORY_CACHE:
        return {"cache": {"enabled": "true", "backend": cache.backend}}
    servers = ",".join(cache.servers or ())
    return {
        "cache": {"enabled": "true", "backend": cache.backend, "memcache_servers": servers},
        "memcache": {"servers": servers},
    }


def _wants_logging_file(logging: Logging) -> bool:
    return logging.format == "json" or logging.level != "INFO"


def _logging_options(logging: Logging) -> dict[str, str]:
    options = {"debug": str(logging.debug).lower()}
    if _wants_logging_file(logging):
        options["log_config_append"] = CONFIG_DIR + LOGGING_FILE
    elif logging.per_logger_levels:
        levels = {**_QUIET, **logging.per_logger_levels}
        options["default_log_levels"] = ",".join(f"{name}={levels[name]}" for name in sorted(levels))
    return options


def _logging_sections(logging: Logging) -> dict[str, dict[str, str]]:
    """The file that `log_config_append` names, as logging.config.fileConfig reads it."""
    levels = {**_QUIET, **(logging.per_logger_levels or {})}
    names = sorted(levels)
    form = "JSONFormatter" if logging.format == "json" else "ContextFormatter"
    found = {
        "loggers": {"keys": ",".join(["root", *(f"l{i}" for i in range(len(names)))])},
        "handlers": {"keys": "stderr"},
        "formatters": {"keys": "chosen"},
        "handler_stderr": {"class": "StreamHandler", "args": "(sys.stderr,)", "formatter": "chosen"},
        "formatter_chosen": {"class": f"oslo_log.formatters.{form}"},
        "logger_root": {"level": "DEBUG" if logging.debug else logging.level, "handlers": "stderr"},
    }
    for i, name in enumerate(names):
        found[f"logger_l{i}"] = {"level": levels[name], "handlers": "", "qualname": name}
    return found


_FILTERS: Final = ("cors", "sizelimit", "http_proxy_to_wsgi", "url_normalize", "request_id")
_FACTORIES: Final = {
    "filter:cors": {"use": "egg:oslo.middleware#cors", "oslo_config_project": "keystone"},
    "filter:sizelimit": {"use": "egg:oslo.middleware#sizelimit"},
    "filter:http_proxy_to_wsgi": {"use": "egg:oslo.middleware#http_proxy_to_wsgi"},
    "filter:url_normalize": {"use": "egg:keystone#url_normalize"},
    "filter:request_id": {"use": "egg:oslo.middleware#request_id"},
    "app:admin_service": {"use": "egg:keystone#service_v3"},
    "composite:main": {"use": "egg:Paste#urlmap", "/v3": "public_api"},
}


def _paste(middleware: tuple[Middleware, ...]) -> str:
    """api-paste.ini. Stock Keystone has not read it since Stein; images that carry paste do."""
    before = [item.name for item in middleware if item.position == "before"]
    after = [item.name for item in middleware if item.position == "after"]
    pipeline = " ".join([*before, *_FILTERS, *after, "admin_service"])
    found: dict[str, dict[str, str]] = {**_FACTORIES, "pipeline:public_api": {"pipeline": pipeline}}
    for item in middleware:
        found[f"filter:{item.name}"] = {**(item.config or {}), "paste.filter_factory": item.filter_factory}
    return "\n".join(_plain_section(name, found[name]) for name in sorted(found))


def _plain_section(name: str, keys: Mapping[str, str]) -> str:
    """One section as configparser reads it: values stand as they are, so what cannot stand is refused."""
    for key, value in keys.items():
        if any(ord(char) < 32 or ord(char) == 127 for char in key + value):
            raise UnsafeValue(name, key.encode("unicode_escape").decode())
    return "".join([f"[{name}]\n", *(f"{key} = {keys[key]}\n" for key in sorted(keys))])
