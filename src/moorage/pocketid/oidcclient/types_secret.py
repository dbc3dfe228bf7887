"""The credentials half of a client's declaration: the Secret, its keys, the rotation.

Enters: nothing. Leaves: models that `types.py` puts into the kind. Source: spec/pocketid.md 1.6, 1.7.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.pocketid.references import DATA_KEY, SUBDOMAIN, reads, within
from moorage.schema.model import Model, field
from moorage.schema.rule import Rule


def _key(default: str, what: str, alias: str | None = None) -> Any:
    return field(
        default, alias=alias, doc=f"Key that holds {what}.", min_length=1, max_length=253, pattern=DATA_KEY
    )  # fmt: skip


class SecretKeys(Model):
    """Names of the keys in the credentials Secret; no two may be equal."""

    client_id: str = _key("client_id", "the client ID", "clientID")
    client_secret: str = _key("client_secret", "the client secret of a confidential client")
    issuer_url: str = _key("issuer_url", "the issuer")
    callback_urls: str = _key("callback_urls", "the callback URLs, a JSON array; present when the spec has them")
    logout_callback_urls: str = _key(
        "logout_callback_urls", "the logout callback URLs, a JSON array; present when the spec has them"
    )
    discovery_url: str = _key("discovery_url", "the address of the discovery document")
    authorization_url: str = _key("authorization_url", "the authorization endpoint")
    token_url: str = _key("token_url", "the token endpoint")
    userinfo_url: str = _key("userinfo_url", "the userinfo endpoint")
    jwks_url: str = _key("jwks_url", "the address of the signing keys")
    end_session_url: str = _key("end_session_url", "the logout endpoint")
    resource: str = _key(
        "resource", "the audience of the only API; with `_<apiRef.name>` appended it holds the audience of each API"
    )
    scopes: str = _key(
        "scopes",
        "the client permissions for the only API, separated by blanks; with `_<apiRef.name>` appended those for each API",
    )


_KEYS: Final = SecretKeys()


class CredentialsSecret(Model):
    """The Secret with the client's credentials and the instance's endpoints."""

    enabled: bool = field(True, doc="Whether the Secret is written.")
    name: str | None = field(
        None,
        doc="Name of the Secret; default: `<name of the resource>-oidc-credentials`.",
        min_length=1,
        max_length=253,
        pattern=SUBDOMAIN,
    )
    store_client_secret: bool = field(
        True,
        doc="Whether the client secret is stored. With false an existing secret is never replaced, and that of a client which already"
        " existed is left alone.",
    )
    keys: SecretKeys | None = field(None, doc="Names of the keys.")
    additional_labels: dict[str, str] | None = field(
        None, doc="Further labels of the Secret; `managed-by` stays ours.", max_properties=64
    )
    additional_annotations: dict[str, str] | None = field(
        None, doc="Further annotations of the Secret; the operator's own win.", max_properties=64
    )

    @property
    def key_names(self) -> SecretKeys:
        """The names of the keys, the defaults when none is given."""
        return self.keys or _KEYS


class RotationWindow(Model):
    """When a scheduled rotation may happen."""

    opens: str = field(
        doc="Cron expression with five fields, a descriptor such as @daily, or either after `CRON_TZ=<zone>`; the time zone is that of"
        " the operator otherwise.",
        min_length=1,
        max_length=256,
        example="0 3 * * 6",
    )
    closes_after: str = field(
        doc="How long the window stays open; a duration in Go syntax, at least 5m.",
        max_length=64,
        example="2h",
        rules=within("5m", ""),
    )


class Rotation(Model):
    """Regeneration of the client secret on a schedule."""

    rules = (
        Rule(
            "!self.enabled || has(self.interval) || has(self.window)",
            "an enabled rotation needs interval, window or both",
        ),
        Rule(
            f"!has(self.interval) || !has(self.window) || !({reads('self.window.closesAfter', 'self.interval')})"
            " || duration(self.window.closesAfter) <= duration(self.interval)",
            "window.closesAfter must not exceed interval",
            field_path=".window.closesAfter",
        ),
    )

    enabled: bool = field(False, doc="Whether the secret is rotated.")
    interval: str | None = field(
        None,
        doc="Time between rotations; a duration in Go syntax, from 1h to 8760h.",
        max_length=64,
        example="2160h",
        rules=within("1h", "8760h"),
    )
    window: RotationWindow | None = field(None, doc="The only times at which the secret is rotated.")
