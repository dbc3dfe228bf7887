"""The encryption key of a deployed server: made or taken once, never replaced in silence, never lost; and what outlives an instance."""

from __future__ import annotations

import pytest

from moorage.core.meta import Key
from moorage.core.outcome import Done, Stalled, Waiting
from moorage.kube.errors import ApiError
from moorage.kube.resources import PVCS, SECRETS

from .scene import KEY, NAME, Scene

HELD = f"{NAME}-held-encryption-key"
DATA = f"{NAME}-data"
FROM_SECRET = {"valueFrom": {"secretKeyRef": {"name": "brought", "key": "key"}}}


async def test_a_key_is_made_once_and_cannot_be_edited(here: Scene) -> None:
    """32 letters and digits in an immutable Secret; whatever starts anew takes the same."""
    await here.make(encryptionKey={"generate": True})
    await here.drive()
    made = (await here.secret_data(HELD))["token"]
    assert len(made) == 32
    assert made.isalnum()
    assert here.encrypted_with == made
    assert "EncryptionKeyHeld" in [event.reason for event in here.told]
    with pytest.raises(ApiError, match="immutable"):
        await here.client.patch(SECRETS, Key(here.namespace, HELD), {"data": {"token": "b3RoZXI="}})
    await here.drive()
    assert (await here.secret_data(HELD))["token"] == made


async def test_a_key_of_a_secret_is_waited_for_and_its_line_end_is_none_of_it(here: Scene) -> None:
    """Nothing is made before it is there."""
    await here.make(encryptionKey=FROM_SECRET)
    assert isinstance(await here.drive(), Waiting)
    said, message = await here.ready()
    assert (said, message) == (
        "False/SecretNotFound",
        'spec.encryptionKey.valueFrom: Secret "brought" does not exist; create it with key "key"',
    )
    assert await here.names() == {"Secret": [], "PersistentVolumeClaim": [], "Service": [], "Deployment": []}
    await here.secret("brought", key=f"{KEY}\n")
    assert isinstance(await here.drive(), Done)
    assert here.encrypted_with == KEY


async def test_a_short_key_of_a_secret_is_refused_without_being_shown(here: Scene) -> None:
    """No schema sees it."""
    await here.secret("brought", key="too-short")
    await here.make(encryptionKey=FROM_SECRET)
    assert isinstance(await here.drive(), Stalled)
    said, message = await here.ready()
    assert said == "False/EncryptionKeyInvalid"
    assert "at least 16 characters" in message
    assert "too-short" not in message


@pytest.mark.parametrize("change", ["value", "secret", "source gone"])
async def test_another_key_never_takes_the_place_of_the_one_that_is_held(here: Scene, change: str) -> None:
    """The server runs on; the condition says what to do; a lost source alone changes nothing, for the key is held."""
    await here.secret("brought", key=KEY)
    await here.make(encryptionKey=FROM_SECRET)
    await here.drive()
    if change == "value":
        await here.edit(encryptionKey={"value": "another-key-of-the-person", "valueFrom": None})
    elif change == "secret":
        await here.secret("brought", key="another-key-of-the-person")
    else:
        await here.client.delete(SECRETS, Key(here.namespace, "brought"))
    await here.drive()
    assert (await here.secret_data(HELD))["token"] == KEY
    assert (here.starts, here.encrypted_with) == (1, KEY)
    said, message = await here.ready()
    if change == "source gone":
        assert said == "True/Ready"
        return
    assert said == "False/EncryptionKeyChanged"
    assert "set the former key again" in message
    assert "another-key" not in message


async def test_a_lost_key_that_was_given_is_taken_again(here: Scene) -> None:
    """From the same place."""
    await here.make()
    await here.drive()
    await here.client.delete(SECRETS, Key(here.namespace, HELD))
    assert isinstance(await here.drive(), Done)
    assert (await here.secret_data(HELD))["token"] == KEY
    assert here.starts == 1


async def test_a_lost_key_that_was_made_is_never_made_anew(here: Scene) -> None:
    """The data could not be read again. The restored Secret is taken as it is, and nothing was restarted meanwhile."""
    await here.make(encryptionKey={"generate": True})
    await here.drive()
    kept = await here.get(SECRETS, HELD)
    assert kept is not None
    await here.client.delete(SECRETS, Key(here.namespace, HELD))
    assert isinstance(await here.drive(), Stalled)
    said, message = await here.ready()
    assert said == "False/EncryptionKeyLost"
    assert "restore the Secret from a backup" in message
    meta = {"name": HELD, "namespace": here.namespace, "labels": kept["metadata"]["labels"]}
    await here.client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": kept["data"]})
    assert isinstance(await here.drive(), Done)
    assert here.starts == 1


async def test_data_and_key_outlive_the_instance_and_serve_the_next_of_its_name(here: Scene) -> None:
    """The default: nothing that cannot be made anew goes with the resource."""
    await here.make(encryptionKey={"generate": True})
    await here.drive()
    claim = await here.get(PVCS, DATA)
    await here.delete()
    assert await here.names() == {"Secret": [HELD], "PersistentVolumeClaim": [DATA], "Service": [], "Deployment": []}
    await here.make(encryptionKey={"generate": True})
    assert isinstance(await here.drive(), Done)
    assert here.starts == 2
    found = await here.get(PVCS, DATA)
    assert claim is not None
    assert found is not None
    assert found["metadata"]["uid"] == claim["metadata"]["uid"]


async def test_a_key_is_not_made_for_data_that_an_instance_before_left_behind(here: Scene) -> None:
    """The volume is there, its key is not: a fresh key could not read it."""
    await here.make(encryptionKey={"generate": True})
    await here.drive()
    await here.delete()
    await here.client.delete(SECRETS, Key(here.namespace, HELD))
    await here.make(encryptionKey={"generate": True})
    await here.drive()
    assert (await here.ready())[0] == "False/EncryptionKeyLost"
    assert await here.secret_data(HELD) == {}


async def test_everything_goes_where_the_policy_says_so(here: Scene) -> None:
    """Also when it said otherwise before."""
    await here.make()
    await here.drive()
    await here.edit(deletionPolicy="Delete")
    await here.drive()
    assert await here.writes() == 0
    await here.delete()
    assert await here.names() == {"Secret": [], "PersistentVolumeClaim": [], "Service": [], "Deployment": []}


async def test_a_policy_that_changes_its_mind_keeps_the_data(here: Scene) -> None:
    """The owner is taken off again."""
    await here.make(deletionPolicy="Delete")
    await here.drive()
    await here.edit(deletionPolicy="Retain")
    await here.drive()
    await here.delete()
    assert await here.names() == {"Secret": [HELD], "PersistentVolumeClaim": [DATA], "Service": [], "Deployment": []}


async def test_a_person_who_encrypted_the_data_anew_gives_the_new_key_and_deletes_the_held_one(here: Scene) -> None:
    """The documented way: the pod restarts once, with the new key."""
    await here.make()
    await here.drive()
    await here.edit(encryptionKey={"value": "the-key-after-the-change"})
    await here.drive()
    assert (await here.ready())[0] == "False/EncryptionKeyChanged"
    here.encrypted_with = ""
    await here.client.delete(SECRETS, Key(here.namespace, HELD))
    assert isinstance(await here.drive(), Done)
    assert (here.encrypted_with, here.starts) == ("the-key-after-the-change", 2)
    assert await here.writes() == 0
