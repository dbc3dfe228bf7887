"""The credentials Secret: its keys, labels, annotations and owner; what a rename leaves behind is found again."""

from __future__ import annotations

import base64
import copy
from dataclasses import replace
from typing import Any

import pytest

from moorage.core.meta import JsonObject, Key
from moorage.core.secret import SecretText
from moorage.pocketid.oidcclient.render import (
    LABELS,
    ROTATED_AT,
    SCHEDULED_AT,
    VALUE_KEY,
    Facts,
    History,
    Refused,
    differs,
    recorded,
    removable,
    render,
    stored,
)
from moorage.pocketid.oidcclient.types import KIND, PocketIDOIDCClient

VALUE = SecretText("abcd-the-stored-value")
ORDERS, PAYMENTS = Key("n", "orders"), Key("n", "payments")
FACTS = Facts(
    "id-1",
    "https://id.example/",
    VALUE,
    History("2026-03-01T00:00:00Z"),
    {ORDERS: "https://orders.example", PAYMENTS: "urn:payments"},
)


def client(spec: JsonObject | None = None, status: JsonObject | None = None) -> PocketIDOIDCClient:
    meta = {"name": "app", "namespace": "n", "uid": "u1"}
    return KIND.parse({"metadata": meta, "spec": spec or {}, "status": status or {}})


def made(spec: JsonObject | None = None, live: JsonObject | None = None, **facts: Any) -> JsonObject:
    found = render(client(spec), replace(FACTS, **facts), live)
    assert not isinstance(found, Refused)
    return found


def texts(secret: JsonObject) -> dict[str, str]:
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def access(name: str, *permissions: str, **more: Any) -> JsonObject:
    return {"apiRef": {"name": name}, "clientPermissions": list(permissions), **more}


def test_the_secret_holds_credentials_and_endpoints_under_the_names_of_the_seed() -> None:
    assert texts(made({"callbackUrls": ["https://a/cb?x=1&y=<2>", "app:/cb"]})) == {
        "client_id": "id-1",
        "client_secret": "abcd-the-stored-value",
        "issuer_url": "https://id.example",
        "callback_urls": '["https://a/cb?x=1&y=<2>","app:/cb"]',
        "discovery_url": "https://id.example/.well-known/openid-configuration",
        "authorization_url": "https://id.example/authorize",
        "token_url": "https://id.example/api/oidc/token",
        "userinfo_url": "https://id.example/api/oidc/userinfo",
        "jwks_url": "https://id.example/.well-known/jwks.json",
        "end_session_url": "https://id.example/api/oidc/end-session",
    }


def test_the_secret_is_opaque_and_controlled_by_the_client() -> None:
    secret = made()
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (secret["type"], secret["metadata"]["name"], owner["uid"], owner["controller"]) == (
        "Opaque",
        "app-oidc-credentials",
        "u1",
        True,
    )


def test_every_key_can_be_renamed() -> None:
    names = texts(made())
    for field in ("clientID", "clientSecret", "issuerUrl", "tokenUrl", "jwksUrl"):
        renamed = texts(made({"secret": {"keys": {field: "MY_NAME"}}}))
        assert len(renamed) == len(names)
        assert renamed["MY_NAME"] in names.values()


@pytest.mark.parametrize(
    "spec",
    [
        {"secret": {"keys": {"clientID": "client_secret"}}},
        {"callbackUrls": [], "logoutCallbackUrls": [], "secret": {"keys": {"logoutCallbackUrls": "callback_urls"}}},
        {"apiAccess": [access("orders", "read")], "secret": {"keys": {"jwksUrl": "resource_orders"}}},
    ],
)
def test_two_values_of_one_key_are_refused_even_when_equal(spec: JsonObject) -> None:
    found = render(client(spec), FACTS, None)
    assert isinstance(found, Refused)
    assert "would hold two values" in found.message
    assert VALUE.reveal() not in found.message


def test_an_explicit_empty_list_is_shown_and_an_absent_one_is_not() -> None:
    assert texts(made({"callbackUrls": []}))["callback_urls"] == "[]"
    assert "logout_callback_urls" not in texts(made({"callbackUrls": []}))


# --- APIs


@pytest.mark.case("PIDA8")
def test_one_audience_has_plain_keys_and_keys_by_api() -> None:
    found = texts(made({"apiAccess": [access("orders", "read", "write")]}))
    pair = {"resource": "https://orders.example", "scopes": "read write"}
    assert {key: found[key] for key in pair} == pair
    assert {key: found[f"{key}_orders"] for key in pair} == pair


@pytest.mark.case("PIDA8")
def test_a_second_audience_removes_the_plain_pair() -> None:
    found = texts(made({"apiAccess": [access("orders", "read"), access("payments", "pay")]}))
    assert {key for key in found if key.startswith(("resource", "scopes"))} == {
        "resource_orders", "scopes_orders", "resource_payments", "scopes_payments",
    }  # fmt: skip


@pytest.mark.case("PIDA8")
def test_an_entry_without_client_permissions_has_no_scopes_and_one_without_a_grant_nothing() -> None:
    found = texts(made({"apiAccess": [access("orders", clientAccess=True), access("payments")]}))
    assert {key for key in found if key.startswith(("resource", "scopes"))} == {"resource", "resource_orders"}


def test_the_prefixes_of_the_keys_by_api_follow_a_rename() -> None:
    keys = {"resource": "AUDIENCE", "scopes": "SCOPE"}
    found = texts(made({"apiAccess": [access("orders", "read")], "secret": {"keys": keys}}))
    assert {"AUDIENCE", "SCOPE", "AUDIENCE_orders", "SCOPE_orders"} <= set(found)


def test_entries_of_one_api_are_merged() -> None:
    spec = {"apiAccess": [access("orders", "read"), access("orders", "write", "read")]}
    assert texts(made(spec))["scopes_orders"] == "read write"


@pytest.mark.case("PIDA9")
def test_one_api_name_in_two_namespaces_is_refused() -> None:
    other = {"apiRef": {"name": "orders", "namespace": "m"}, "clientPermissions": ["read"]}
    facts = replace(FACTS, audiences={**FACTS.audiences, Key("m", "orders"): "urn:other"})
    found = render(client({"apiAccess": [access("orders", "read"), other]}), facts, None)
    assert isinstance(found, Refused)
    assert "resource_orders" in found.message


@pytest.mark.case("P3")
def test_an_api_that_cannot_be_read_takes_nothing_away() -> None:
    spec = {"apiAccess": [access("orders", "read")]}
    live = made(spec)
    assert texts(made(spec, live, audiences={})) == texts(live)
    assert "resource" not in texts(made(spec, audiences={}))


def test_a_key_that_no_secret_can_have_is_refused() -> None:
    spec = {"apiAccess": [access("a" * 250, "read")]}
    found = render(client(spec), replace(FACTS, audiences={Key("n", "a" * 250): "urn:a"}), None)
    assert isinstance(found, Refused)
    assert "more than 253" in found.message


# --- wholesale


@pytest.mark.case("PIDX11")
def test_foreign_keys_go_and_what_was_edited_comes_back() -> None:
    live = made()
    edited = copy.deepcopy(live)
    edited["data"] |= {"foreign": "eA==", "client_id": "eA=="}
    assert differs(edited, made(live=edited))
    assert made(live=edited)["data"] == live["data"]


@pytest.mark.case("P1")
def test_an_unchanged_secret_is_not_written() -> None:
    live = made({"secret": {"additionalLabels": {"team": "a"}}})
    live["metadata"] |= {"resourceVersion": "7", "uid": "s1", "creationTimestamp": "2026-03-01T00:00:00Z"}
    again = made({"secret": {"additionalLabels": {"team": "a"}}}, live)
    assert not differs(live, again)
    assert again["metadata"]["resourceVersion"] == "7"
    assert differs(None, again)


@pytest.mark.case("PIDX12", "PIDS21")
@pytest.mark.parametrize(
    "owners",
    [
        [],
        [{"apiVersion": "v1", "kind": "X", "name": "app", "uid": "u2", "controller": True}],
        [{"apiVersion": "v1", "kind": "X", "name": "app", "uid": "u1"}],
    ],
)
def test_a_secret_that_the_client_does_not_control_is_refused_not_read_and_not_removed(
    owners: list[JsonObject],
) -> None:
    live = made()
    live["metadata"]["ownerReferences"] = owners
    found = render(client(), FACTS, live)
    assert isinstance(found, Refused)
    assert found.reason == "ForeignSecret"
    assert "spec.secret.name" in found.message
    assert stored(client(), live).value is None
    assert not removable(live, client())


@pytest.mark.case("PIDS20", "PIDS21")
def test_only_a_labelled_secret_of_ours_is_removed_and_its_label_comes_back() -> None:
    live = made()
    assert removable(live, client())
    live["metadata"]["labels"] = {}
    assert not removable(live, client())
    assert made(live=live)["metadata"]["labels"] == {"managed-by": "pocket-id-operator"}


@pytest.mark.case("PIDS22")
def test_labels_that_are_declared_no_more_go_and_those_of_others_stay() -> None:
    live = made({"secret": {"additionalLabels": {"team": "a", "tier": "b", "managed-by": "me"}}})
    assert live["metadata"]["labels"] == {"team": "a", "tier": "b", "managed-by": "pocket-id-operator"}
    live["metadata"]["labels"]["other"] = "x"
    after = made({"secret": {"additionalLabels": {"tier": "c"}}}, live)["metadata"]
    assert after["labels"] == {"tier": "c", "other": "x", "managed-by": "pocket-id-operator"}
    assert after["annotations"][LABELS] == "tier"


@pytest.mark.case("PIDS22")
def test_annotations_are_exactly_the_declared_and_our_own_and_ours_win() -> None:
    wanted = {"reflector": "yes", ROTATED_AT: "2099-01-01T00:00:00Z", SCHEDULED_AT: "2099-01-01T00:00:00Z"}
    live = made()
    live["metadata"]["annotations"]["stale"] = "x"
    after = made({"secret": {"additionalAnnotations": wanted}}, live)["metadata"]["annotations"]
    assert after == {"reflector": "yes", ROTATED_AT: "2026-03-01T00:00:00Z", VALUE_KEY: "client_secret"}


@pytest.mark.case("B78")
def test_finalizers_and_owners_of_others_are_left_alone() -> None:
    live = made()
    other = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u9"}
    live["metadata"] |= {"finalizers": ["x/y"], "ownerReferences": [other, *live["metadata"]["ownerReferences"]]}
    again = made(live=live)
    assert not differs(live, again)
    assert again["metadata"]["finalizers"] == ["x/y"]


@pytest.mark.case("PIDX17")
def test_without_a_secret_to_present_the_key_and_its_note_are_absent() -> None:
    secret = made(live=made(), value=None)
    assert "client_secret" not in texts(secret)
    assert VALUE_KEY not in secret["metadata"]["annotations"]
    assert recorded(client(), replace(FACTS, value=None)).client_secret_key is None


# --- what is found again


@pytest.mark.case("PIDX19")
def test_a_rename_of_the_key_moves_the_value() -> None:
    renamed = client({"secret": {"keys": {"clientSecret": "PASSWORD"}}})
    assert stored(renamed, made()).value == VALUE


@pytest.mark.case("PIDX19")
def test_names_that_change_places_do_not_take_the_client_id_for_the_secret() -> None:
    swapped = client({"secret": {"keys": {"clientSecret": "client_id", "clientID": "client_secret"}}})
    assert stored(swapped, made()).value == VALUE


@pytest.mark.case("PIDX19")
def test_a_key_that_only_the_status_remembers_is_found() -> None:
    live = made()
    del live["metadata"]["annotations"][VALUE_KEY]
    status = {"credentials": {"secretName": "app-oidc-credentials", "clientSecretKey": "client_secret"}}
    renamed = client({"secret": {"keys": {"clientSecret": "PASSWORD"}}}, status)
    assert stored(renamed, live).value == VALUE


@pytest.mark.case("PIDX19")
def test_a_rename_of_the_secret_moves_value_and_history() -> None:
    moved = client({"secret": {"name": "new"}})
    assert stored(moved, None, made()) == stored(client(), made())
    assert stored(moved, None, made()).history == FACTS.history


@pytest.mark.case("PIDX19")
def test_of_two_secrets_the_value_made_later_counts() -> None:
    older, newer = made(value=SecretText("zzzz-older-value")), made(history=History("2026-03-02T00:00:00Z"))
    assert stored(client(), older, newer).value == VALUE
    assert stored(client(), newer, older).value == VALUE


@pytest.mark.case("PIDX11")
@pytest.mark.parametrize("data", [None, {}, {"client_secret": ""}])
def test_a_key_that_was_removed_by_hand_is_no_value_and_keeps_the_history(data: JsonObject | None) -> None:
    live = made()
    live["data"] = data
    found = stored(client(), live)
    assert (found.value, found.history) == (None, FACTS.history)


@pytest.mark.case("PIDX11")
@pytest.mark.parametrize("text", ["%%%", "/////w=="])
def test_bytes_that_are_no_text_are_a_value_that_no_server_holds(text: str) -> None:
    live = made()
    live["data"]["client_secret"] = text
    found = stored(client(), live).value
    assert found is not None
    assert not found.reveal().isascii()


@pytest.mark.case("P2")
def test_facts_and_what_is_stored_print_no_value() -> None:
    assert "abcd" not in repr((FACTS, stored(client(), made()), recorded(client(), FACTS)))
