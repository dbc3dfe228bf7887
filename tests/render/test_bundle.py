"""Bundles: a name that follows the content and nothing else."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from moorage.core.meta import Key, Ref
from moorage.render.bundle import BASE_LABEL, Bundle

OWNER = Ref("k/v1", "Keystone", Key("ns", "ks"), "uid-1")
DATA = st.dictionaries(st.text("abc.-", min_size=1, max_size=4), st.binary(max_size=8), max_size=4)


@given(DATA)
def test_the_order_of_files_does_not_change_the_name(data: dict[str, bytes]) -> None:
    turned = dict(reversed(data.items()))
    assert Bundle("ks-domains", data).name == Bundle("ks-domains", turned).name


@given(DATA, DATA)
def test_other_content_gives_another_name(one: dict[str, bytes], other: dict[str, bytes]) -> None:
    assert (Bundle("b", one).name == Bundle("b", other).name) is (one == other)


def test_the_name_is_the_base_and_eight_hex_digits() -> None:
    bundle = Bundle("ks-domains", {"a": b"1"})
    assert bundle.name == f"ks-domains-{bundle.hash}"
    assert len(bundle.hash) == 8


def test_a_secret_is_immutable_owned_labelled_and_holds_the_bytes() -> None:
    secret = Bundle("ks-domains", {"b": b"\xff", "a": b"x"}).secret("ns", OWNER, {"app": "ks"})
    assert secret["immutable"] is True
    assert secret["metadata"]["labels"] == {"app": "ks", BASE_LABEL: "ks-domains"}
    assert secret["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    assert list(secret["data"]) == ["a", "b"]
    assert base64.b64decode(secret["data"]["b"]) == b"\xff"


def test_a_config_map_keeps_text_as_text_and_other_bytes_as_binary_data() -> None:
    made = Bundle("ks-config", {"t": "ä".encode(), "b": b"\xff"}).config_map("ns", OWNER, {})
    assert made["data"] == {"t": "ä"}
    assert base64.b64decode(made["binaryData"]["b"]) == b"\xff"
    assert "data" not in Bundle("x", {"b": b"\xff"}).config_map("ns", OWNER, {})
