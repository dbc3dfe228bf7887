"""Small values: keys, owners, digests, secrets, errors."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.digest import content_hash, json_digest
from moorage.core.errors import InputError
from moorage.core.meta import Key, Ref, ResourceType, controlled_by, controller_of, owner_reference
from moorage.core.secret import SecretText


def test_resource_paths_are_those_of_kubernetes():
    deployments = ResourceType("apps", "v1", "Deployment", "deployments")
    assert deployments.path("a", "b", "status") == "/apis/apps/v1/namespaces/a/deployments/b/status"
    assert ResourceType("", "v1", "Namespace", "namespaces", namespaced=False).path("x", "a") == "/api/v1/namespaces/a"
    assert (deployments.api_version, deployments.group_resource) == ("apps/v1", "deployments.apps")


def test_the_controller_of_an_object_is_found_by_uid():
    owner = Ref("v1", "ConfigMap", Key("a", "x"), "u1")
    child = {"metadata": {"namespace": "a", "ownerReferences": [owner_reference(owner)]}}
    assert controller_of(child) == owner
    assert controlled_by(child, "u1")
    assert not controlled_by(child, "u2")
    assert not controlled_by({"metadata": {}}, "")


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.binary(max_size=16), max_size=5))
def test_content_hashes_ignore_order_and_see_every_byte(data):
    backwards = dict(reversed(data.items()))
    assert content_hash(data) == content_hash(backwards)
    assert content_hash({**data, "extra": b""}) != content_hash(data) or "extra" in data


def test_moving_a_byte_from_key_to_value_changes_the_hash():
    assert content_hash({"ab": b"c"}) != content_hash({"a": b"bc"})
    assert json_digest({"a": 1, "b": [2]}) == json_digest({"b": [2], "a": 1})


@pytest.mark.case("P2")
def test_a_secret_text_shows_itself_to_nobody():
    secret = SecretText("hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {[secret]} {vars} {InputError(str(secret))}"
    assert (secret.reveal(), bool(secret), secret == SecretText("hunter2")) == ("hunter2", True, True)
    with pytest.raises(TypeError):
        pickle.dumps(secret)


def test_errors_say_what_why_and_what_to_do():
    assert str(InputError("a.yaml", "is empty", "Write something")) == "a.yaml: is empty. Write something"
