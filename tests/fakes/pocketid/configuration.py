"""The application configuration, its version and its documents about itself.

Enters: a Call. Leaves: an answer. Source: spec/pocketid.md 4.10; records 01, 17, 19.
"""

from __future__ import annotations

from typing import Any

from .exchange import NOTHING, Answer, Call, json_answer
from .reading import Faults, Problem, as_members

DEFAULTS = {
    "appName": "Pocket ID", "sessionDuration": "60", "homePageUrl": "/settings/account", "emailsVerified": "false",
    "accentColor": "default", "disableAnimations": "false", "allowOwnAccountEdit": "true", "allowUserSignups": "disabled",
    "signupDefaultUserGroupIDs": "[]", "signupDefaultCustomClaims": "[]", "requireUserEmail": "true", "smtpHost": "",
    "smtpPort": "", "smtpFrom": "", "smtpUser": "", "smtpPassword": "", "smtpTls": "none", "smtpSkipCertVerify": "false",
    "emailLoginNotificationEnabled": "false", "emailOneTimeAccessAsUnauthenticatedEnabled": "false",
    "emailOneTimeAccessAsAdminEnabled": "false", "emailApiKeyExpirationEnabled": "false", "emailVerificationEnabled": "false",
    "ldapEnabled": "false", "ldapUrl": "", "ldapBindDn": "", "ldapBindPassword": "", "ldapBase": "", "ldapUserSearchFilter": "",
    "ldapUserGroupSearchFilter": "", "ldapSkipCertVerify": "false", "ldapAttributeUserUniqueIdentifier": "",
    "ldapAttributeUserUsername": "", "ldapAttributeUserEmail": "", "ldapAttributeUserFirstName": "",
    "ldapAttributeUserLastName": "", "ldapAttributeUserDisplayName": "", "ldapAttributeUserProfilePicture": "",
    "ldapAttributeGroupMember": "", "ldapAttributeGroupUniqueIdentifier": "", "ldapAttributeGroupName": "",
    "ldapAdminGroupName": "", "ldapSoftDeleteUsers": "true", "webauthnUserVerification": "preferred",
    "webauthnAllowSyncedPasskeys": "true", "webauthnAuthenticatorAttachment": "any", "cimdUrlAllowlist": "[]",
}  # fmt: skip
PUBLIC = (
    "appName", "homePageUrl", "accentColor", "disableAnimations", "allowOwnAccountEdit", "allowUserSignups", "requireUserEmail",
    "emailOneTimeAccessAsUnauthenticatedEnabled", "emailOneTimeAccessAsAdminEnabled", "emailVerificationEnabled", "ldapEnabled",
)  # fmt: skip
REQUIRED = (
    "sessionDuration", "homePageUrl", "emailsVerified", "disableAnimations", "allowOwnAccountEdit", "allowUserSignups",
    "requireUserEmail", "smtpTls", "smtpSkipCertVerify", "ldapEnabled", "ldapSkipCertVerify", "ldapSoftDeleteUsers",
    "webauthnUserVerification", "webauthnAllowSyncedPasskeys", "webauthnAuthenticatorAttachment",
    "emailOneTimeAccessAsAdminEnabled", "emailOneTimeAccessAsUnauthenticatedEnabled", "emailLoginNotificationEnabled",
    "emailApiKeyExpirationEnabled", "emailVerificationEnabled",
)  # fmt: skip


def version(call: Call) -> Answer:
    return json_answer({"currentVersion": call.fake.version})


def health(call: Call) -> Answer:
    return NOTHING


def _kind(value: str) -> str:
    return "bool" if value in ("true", "false") else "number" if value.isdigit() else "string"


def _shown(call: Call, names: tuple[str, ...]) -> list[dict[str, str]]:
    config = call.fake.config
    return [{"key": name, "type": _kind(config[name]), "value": config[name]} for name in names]


def read_public(call: Call) -> Answer:
    fixed = "true" if call.fake.ui_config_disabled else "false"
    told = [
        {"key": name, "type": "bool", "value": value}
        for name, value in (("uiConfigDisabled", fixed), ("tracingEnabled", "false"))
    ]
    return json_answer(_shown(call, PUBLIC) + told)


def read_all(call: Call) -> Answer:
    return json_answer(_shown(call, call.fake.config_keys()))


def replace(call: Call) -> Answer:
    body, faults = as_members(call.json()), Faults()
    values = {name: body.text(name) for name in call.fake.config_keys()}
    for name in REQUIRED:
        if not values[name]:
            faults.add(name, "required")
    faults.throw()
    if call.fake.ui_config_disabled:
        raise Problem(403, "ui_config_disabled")
    call.fake.config |= {name: value for name, value in values.items() if value is not None}
    return json_answer(_shown(call, call.fake.config_keys()))


def discovery(call: Call) -> Answer:
    app = call.fake.app_url
    document: dict[str, Any] = {
        "authorization_endpoint": f"{app}/authorize", "authorization_response_iss_parameter_supported": True,
        "claims_supported": [
            "sub", "given_name", "family_name", "name", "display_name", "email", "email_verified", "preferred_username", "picture",
            "groups", "auth_time", "amr",
        ],
        "client_id_metadata_document_supported": call.fake.config["cimdUrlAllowlist"] != "[]",
        "code_challenge_methods_supported": ["plain", "S256"], "device_authorization_endpoint": f"{app}/api/oidc/device/authorize",
        "end_session_endpoint": f"{app}/api/oidc/end-session",
        "grant_types_supported": [
            "authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code", "client_credentials",
        ],
        "id_token_signing_alg_values_supported": ["RS256"], "introspection_endpoint": f"{app}/api/oidc/introspect",
        "introspection_endpoint_auth_methods_supported": ["client_secret_basic", "Bearer"], "issuer": app,
        "jwks_uri": f"{app}/.well-known/jwks.json", "prompt_values_supported": ["none", "login", "consent", "select_account"],
        "pushed_authorization_request_endpoint": f"{app}/api/oidc/par", "request_object_signing_alg_values_supported": ["none"],
        "request_parameter_supported": True, "request_uri_parameter_supported": False,
        "require_pushed_authorization_requests": False, "response_modes_supported": ["query", "fragment", "form_post"],
        "response_types_supported": ["code"], "scopes_supported": ["openid", "profile", "email", "groups", "offline_access"],
        "service_documentation": "https://pocket-id.org/docs", "subject_types_supported": ["public"],
        "token_endpoint": f"{app}/api/oidc/token",
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
        "userinfo_endpoint": f"{app}/api/oidc/userinfo",
    }  # fmt: skip
    return json_answer(document)


def jwks(call: Call) -> Answer:
    return json_answer({"keys": [call.fake.key.jwk]})
