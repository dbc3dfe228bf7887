"""A login on paper: the backend's provider is known, and only what its sidecar conveys counts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.keystone.mapping.declared import ISSUER, backend

from moorage.keystone.backend.mapping_engine import login, process
from moorage.keystone.backend.mapping_rules import keystone_rules
from moorage.keystone.backend.mapping_trial import try_backend, try_rules
from moorage.keystone.backend.types import KIND

ISS = {"type": "HTTP_OIDC_ISS", "anyOneOf": [ISSUER]}
NAME = {"type": "HTTP_OIDC_PREFERRED_USERNAME"}


def spec_of(mappings: Any) -> Any:
    return KIND.parse(backend(mappings)).spec


def saml(mappings: Any, *forwarded: str) -> Any:
    """A SAML backend's declaration."""
    obj = backend(mappings)
    del obj["spec"]["oidc"]
    block = {"idpEntityID": "urn:idp", "idpMetadata": {"url": "https://idp/x"}, "forwardAttributes": list(forwarded)}
    obj["spec"] |= {"type": "SAML", "saml": block}
    KIND.structural.default(obj)
    return KIND.parse(obj).spec


@pytest.mark.case("B31")
def test_the_seeds_example_is_explained() -> None:
    """{1} is out of range: the entry with anyOneOf gives no value."""
    rule = {"remote": [ISS, NAME], "local": [{"user": {"name": "{1}"}}]}
    found = try_backend(spec_of([rule]), {"preferred_username": "alice"}).mapped
    assert found.failure
    assert (found.failure.kind, found.failure.code) == ("OutOfRange", 500)
    for words in ("rule 0", "local[0].user.name", "{1}", "1 value, {0}", "remote[0] (HTTP_OIDC_ISS)"):
        assert words in found.failure.message
    rule["local"] = [{"user": {"name": "{0}"}}]
    assert try_backend(spec_of([rule]), {"preferred_username": "alice"}).mapped.user["name"] == "alice"


@pytest.mark.case("B31")
def test_each_entry_says_what_it_did() -> None:
    """A person sees the rule, the entry that failed, and which placeholder the others would fill."""
    groups = {"type": "HTTP_OIDC_GROUPS", "whitelist": ["dev"]}
    rules = [{"remote": [NAME, groups, {"type": "HTTP_OIDC_DEPT"}], "local": [{"user": {"name": "{0}"}}]}]
    found = try_backend(spec_of(rules), {"preferred_username": "alice", "groups": ["dev", "ops"]}).mapped
    assert [(entry.matched, entry.why) for entry in found.rules[0].remote] == [
        (True, "gives {0}"),
        (True, "gives {1}; the whitelist takes out 1 of 2 values"),
        (False, "the claim is absent"),
    ]
    assert found.failure
    assert (found.failure.kind, found.failure.code) == ("Unmatched", 401)


@pytest.mark.case("B33")
def test_a_group_name_from_a_claim_with_several_values_is_the_text_of_a_list() -> None:
    """`groups` takes the list apart, `group.name` does not; an empty value at the end is a group without name."""
    local = {"user": {"name": "{0}"}, "group": {"name": "{1}", "domain": {"name": "corp"}}}
    rule = {"remote": [NAME, {"type": "HTTP_OIDC_GROUPS"}], "local": [local]}
    claims = {"preferred_username": "alice", "groups": "a;b;"}
    assert [group["name"] for group in try_backend(spec_of([rule]), claims).mapped.group_names] == ["['a', 'b', '']"]
    rule["local"] = [{"user": {"name": "{0}"}, "groups": "{1}", "domain": {"name": "corp"}}]
    assert [group["name"] for group in try_backend(spec_of([rule]), claims).mapped.group_names] == ["a", "b", ""]


@pytest.mark.case("B34")
def test_rules_are_sent_in_order_as_text_and_without_empty_lists() -> None:
    """Digits stay text, other scripts stay as they are, an empty list or an idle regex is left out, a project gets its list of roles."""
    remote = [{**NAME, "anyOneOf": [], "regex": False}, {"type": "HTTP_OIDC_GROUPS", "whitelist": ["2024", "España"]}]
    local = [{"group": {"name": "2024", "domain": {"name": "Ünï"}}}, {"projects": [{"name": "{0}"}]}]
    assert keystone_rules(spec_of([{"remote": remote, "local": local}]).mappings) == [
        {
            "local": [
                {"group": {"name": "2024", "domain": {"name": "Ünï"}}},
                {"projects": [{"name": "{0}", "roles": []}]},
            ],
            "remote": [NAME, {"type": "HTTP_OIDC_GROUPS", "whitelist": ["2024", "España"]}],
        }
    ]


@pytest.mark.case("B36")
def test_a_local_user_with_a_domain_is_sent_unchanged() -> None:
    """The type and the domain reach Keystone as they were declared."""
    user = {"name": "{0}", "domain": {"name": "corp"}, "type": "local"}
    assert keystone_rules(spec_of([{"remote": [NAME], "local": [{"user": user}]}]).mappings)[0]["local"] == [
        {"user": user}
    ]


@pytest.mark.case("B13")
def test_another_provider_is_refused_byte_for_byte() -> None:
    """A slash more is another provider."""
    spec = spec_of([{"remote": [NAME], "local": [{"user": {"name": "{0}"}}]}])
    failure = try_backend(spec, {"iss": f"{ISSUER}/", "preferred_username": "a"}).mapped.failure
    assert failure
    assert (failure.kind, failure.code) == ("OtherProvider", 403)


@pytest.mark.case("B38")
def test_an_attribute_that_is_not_forwarded_does_not_arrive_and_one_that_is_arrives_empty() -> None:
    """`mail` is one header; what the assertion lacks is an empty value, which matches."""
    rule = {
        "remote": [{"type": "HTTP_MELLON_NAME_ID"}, {"type": "HTTP_MELLON_MAIL"}],
        "local": [{"user": {"name": "{1}"}}],
    }
    spec = saml([rule], "mail")
    found = try_backend(spec, {"NAME_ID": "x", "mail": "a@b", "dept": "y"})
    assert (found.mapped.user["name"], found.claims["HTTP_MELLON_IDP"]) == ("a@b", "urn:idp")
    assert any("HTTP_MELLON_DEPT does not arrive" in note for note in found.notes)
    lacking = try_backend(spec, {"NAME_ID": "x"})
    assert lacking.mapped.failure
    assert lacking.mapped.failure.kind == "NoUser"
    assert any("HTTP_MELLON_MAIL was not given" in note for note in lacking.notes)


@pytest.mark.parametrize(
    ("user", "kind"),
    [
        ({}, "NoUser"),
        ({"name": "", "id": ""}, "NoUser"),
        ({"name": "x", "domain": {}}, "Unusable"),
        ({"name": "x", "type": "local"}, "Invalid"),
        ({"id": "x"}, None),
    ],
)
def test_a_user_that_keystone_cannot_use_is_refused(user: Any, kind: str | None) -> None:
    """The rule processor is content with them, the login is not."""
    rules = [{"remote": [{"type": "A"}], "local": [{"user": user}, {"group": {"id": "g"}}]}]
    assert process(rules, {"A": "x"}).failure is None
    failure = login(rules, {"A": "x"}).failure
    assert (failure and failure.kind) == kind


def test_the_web_servers_user_stands_in_where_rules_give_none() -> None:
    """REMOTE_USER names the user then."""
    rules = [{"remote": [{"type": "A"}], "local": [{"group": {"id": "g"}}]}]
    assert try_rules(rules, {"HTTP_X": "", "A": "x"}).mapped.failure
    assert login(rules, {"A": "x", "REMOTE_USER": "alice"}).failure is None
