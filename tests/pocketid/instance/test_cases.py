"""The case folders of tests/cases/pocketid-instance/render: a spec goes in, all children come out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.keystone import folders
from tests.keystone.folders import CASES
from tests.pocketid.test_admission import complete

from moorage.core.secret import SecretText
from moorage.pocketid.instance import pods, render
from moorage.pocketid.instance.admission import ADMISSION
from moorage.pocketid.instance.environment import env, references, secrets, variables
from moorage.pocketid.instance.types import KIND, PocketIDInstance
from moorage.pocketid.instance.types_deployment import Env

ENCRYPTION, API = SecretText("the-encryption-key-of-the-case"), SecretText("the-api-key-of-the-case")
SECRET = ("the-encryption-key", "the-api-key", "of-the-database", "of-a-secret")


def parsed(spec: dict[str, Any]) -> PocketIDInstance:
    """An instance as the server holds it."""
    meta = {"name": "main", "namespace": "pocket-id", "uid": "the-uid", "generation": 1}
    body = {"apiVersion": KIND.resource.api_version, "kind": KIND.kind, "metadata": meta, "spec": spec}
    return KIND.parse(complete(ADMISSION, body))


def children(instance: PocketIDInstance) -> list[dict[str, Any]]:
    """All of them, in the order in which they are made. What a Secret of a person holds is named after its key."""
    values = secrets(instance.spec, lambda secret, key: f"{key}-of-a-secret")
    pair = ("certificate", "key") if instance.spec.tls is not None else ()
    keys = pods.Keys(ENCRYPTION, API, values, pair)
    found = [
        render.encryption_key(instance, ENCRYPTION),
        render.api_key(instance, API),
        render.settings(instance, values),
        render.volume_claim(instance),
        render.service(instance),
        render.workload(instance, instance.spec.image or "pocket-id", keys),
        render.route(instance, name) if (name := render.route_name(instance)) else None,
    ]
    return [item for item in found if item is not None]


@pytest.mark.parametrize("folder", folders.cases(CASES / "pocketid-instance" / "render"))
def test_render(folder: Path, update_cases: bool) -> None:
    """The children as they are applied; no workload, Service or route holds a secret."""
    made = children(parsed(folders.plain(folder / "given.yaml")["spec"]))
    shown = folders.text([item for item in made if item["kind"] != "Secret"])
    assert [text for text in SECRET if text in shown] == []
    folders.compare(folder, {"children.yaml": "---\n".join(map(folders.text, made))}, update=update_cases)


def marks(model: Any) -> set[str]:
    """All variables that the declaration of a model names, its blocks included."""
    found = set()
    for info in model.model_fields.values():
        found |= {mark.name for mark in info.metadata if isinstance(mark, Env)}
        for part in (info.annotation, *getattr(info.annotation, "__args__", ())):
            if hasattr(part, "model_fields"):
                found |= marks(part)
    return found


def test_every_marked_field_of_the_declaration_reaches_the_server() -> None:
    """The case with everything sets them all; none is forgotten by the walk over the marks."""
    spec = folders.plain(CASES / "pocketid-instance" / "render" / "everything" / "given.yaml")["spec"]
    instance = parsed(spec)
    declared = marks(type(instance.spec))
    assert len(declared) > 60
    assert declared - {item.name for item in variables(instance.spec)} == set()
    values = secrets(instance.spec, lambda secret, key: "x")
    assert declared - {item["name"] for item in env(instance, values)} == set()
    assert {item.secret for item in references(instance.spec)} >= {"database", "s3", "mail", "ldap", "geo", "id-tls"}


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=12)


@settings(deadline=None, max_examples=50)
@given(TEXT, st.booleans())
def test_no_text_of_a_person_is_expanded(text: str, dollar: bool) -> None:
    """`$(STATIC_API_KEY)` in the name of the application stays those letters: a kubelet would put the key there (B81)."""
    name = f"$(STATIC_API_KEY){text}" if dollar else text
    instance = parsed({"encryptionKey": {"generate": True}, "ui": {"appName": name}})
    (found,) = [item for item in env(instance, ()) if item["name"] == "APP_NAME"]
    assert "$(" not in found["value"].replace("$$", "")
    assert found["value"].replace("$$", "$") == name
