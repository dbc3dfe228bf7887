"""The options that Keystone 30 knows in its `[ldap]` section, as data: name and form of the value.

Source: `keystone.conf.ldap` of Keystone 30.0.0. An option that is not here is admitted with a warning (case B06).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

TEXT: Final = re.compile(r".*", re.DOTALL)
NUMBER: Final = re.compile(r"-?[0-9]+")
DECIMAL: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")
TRUTH: Final = re.compile(r"true|1|on|yes|false|0|off|no", re.IGNORECASE)
TRUE_WORDS: Final = frozenset({"true", "1", "on", "yes"})

_BY_FORM: Final[Mapping[re.Pattern[str], str]] = {
    TEXT: """url user password suffix user_tree_dn user_filter user_objectclass user_id_attribute user_name_attribute
        user_description_attribute user_mail_attribute user_pass_attribute user_enabled_attribute user_enabled_default
        user_attribute_ignore user_default_project_id_attribute user_enabled_emulation_dn
        user_additional_attribute_mapping group_tree_dn group_filter group_objectclass group_id_attribute
        group_name_attribute group_member_attribute group_desc_attribute group_attribute_ignore
        group_additional_attribute_mapping tls_cacertfile tls_cacertdir""",
    NUMBER: """page_size debug_level user_enabled_mask connection_timeout pool_size pool_retry_max
        pool_connection_timeout pool_connection_lifetime auth_pool_size auth_pool_connection_lifetime""",
    DECIMAL: "pool_retry_delay",
    TRUTH: """randomize_urls chase_referrals user_enabled_invert user_enabled_emulation
        user_enabled_emulation_use_group_config group_members_are_ids group_ad_nesting use_tls use_pool use_auth_pool""",
    re.compile("one|sub"): "query_scope",
    re.compile("never|searching|always|finding|default"): "alias_dereferencing",
    re.compile("demand|never|allow"): "tls_req_cert",
}

KNOWN: Final[Mapping[str, re.Pattern[str]]] = {name: form for form, names in _BY_FORM.items() for name in names.split()}
"""Option name to the form that Keystone accepts."""

WRITABLE: Final = frozenset(
    f"{what}_allow_{verb}" for what in ("user", "group") for verb in ("create", "update", "delete")
)
"""Options of the seed that make a directory writable; today's Keystone no longer reads them."""
