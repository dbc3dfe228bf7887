"""What one client declares in its lists has a bound: it fits the store with its status, and weighs little in the list that all clients of an instance share."""

from __future__ import annotations

import json

import pytest

from moorage.core.meta import Key
from moorage.core.outcome import Stalled
from moorage.kube.resources import SECRETS
from moorage.pocketid.oidcclient.sizes import LIMIT, excess
from moorage.pocketid.oidcclient.types import KIND, Spec

from .scene import CALLBACK, KEY, NAMESPACE, SECRET, Scene, resource, until
from .test_adoption import there
from .test_features import config_map, identity

URLS = [f"https://a.example.com/{'x' * 1350}{number}" for number in range(256)]


def declared(**spec: object) -> Spec:
    """A spec as it is parsed."""
    return KIND.parse(resource(KIND, KEY.name, spec)).spec


def test_the_bound_holds_for_all_lists_together_in_bytes() -> None:
    """Half of it in each of two lists is in order, and one more byte is not; a character of three bytes is three."""
    half = {"callbackUrls": ["x" * (LIMIT // 2 - 4)], "logoutCallbackUrls": ["\u20ac" * 10 + "x" * (LIMIT // 2 - 34)]}
    assert excess(declared(**half)) is None
    found = excess(declared(**half | {"federatedIdentities": [{"issuer": "https://k.example.com"}]}))
    assert found is not None
    assert found.path == "spec.callbackUrls"
    assert f"may have {LIMIT} together" in found.why


@pytest.mark.parametrize("field", ["callbackUrls", "logoutCallbackUrls", "federatedIdentities"])
def test_the_field_that_takes_most_is_named_with_its_size(field: str) -> None:
    items = [{"issuer": url, "jwks": url} for url in URLS[:32]] if field == "federatedIdentities" else URLS
    found = excess(declared(**{"callbackUrls": [CALLBACK], field: items}))
    assert found is not None
    assert found.path == f"spec.{field}"
    assert f"has {len(json.dumps(items, separators=(',', ':')))} bytes" in found.why


async def test_a_client_that_is_older_than_the_bound_is_stalled_with_field_size_and_remedy(here: Scene) -> None:
    """Nobody judges it here, as while the webhook is away: it was made at the server, and its status was refused for ever."""
    await here.make(callbackUrls=URLS, logoutCallbackUrls=URLS)
    assert isinstance(await here.settle(), Stalled)
    ready, message = await here.ready()
    assert ready == "False/APIClientError"
    assert message.startswith("spec.callbackUrls has 35")
    assert "make several clients" in message
    assert here.writes() == []
    await here.edit(callbackUrls=[CALLBACK], logoutCallbackUrls=None)
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"


async def test_a_client_that_was_served_before_keeps_what_it_has_and_goes_with_its_resource(here: Scene) -> None:
    await here.make(clientID="wiki")
    await here.settle()
    value = await here.proven()
    await here.edit(callbackUrls=URLS)
    here.fake.journal.clear()
    await here.settle()
    assert (await here.ready())[0] == "False/APIClientError"
    assert await here.proven() == value
    assert here.writes() == []
    await here.client.delete(KIND.resource, KEY)
    await here.settle()
    assert here.fake.store.clients == {}
    async with here.world() as world:
        await until(lambda: world.cache.get(SECRETS, Key(NAMESPACE, SECRET)) is None)


async def test_lists_at_the_server_that_nobody_declares_stay_as_they_are(here: Scene) -> None:
    """Somebody made them by hand: a client that is adopted is not held to what its resource does not say."""
    there(here, "wiki", callbackURLs=URLS)
    await here.make(clientID="wiki", callbackUrls=None)
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"
    assert here.server().settings["callbackURLs"] == URLS


async def test_keys_that_a_config_map_holds_count_too(here: Scene) -> None:
    """What is referred to stands in no spec; it is sent to the server and comes back with each list."""
    here.fake.upgrade("2.17.0")
    await here.attach()
    keys = [{"kty": "RSA", "e": "AQAB", "n": "x" * 1000, "kid": str(number)} for number in range(80)]
    here.fake.journal.clear()
    await here.make(federatedIdentities=identity(await config_map(here, json.dumps({"keys": keys}))))
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/PublicKeyError"
    assert f"may have {LIMIT}" in message
    assert here.writes() == []
