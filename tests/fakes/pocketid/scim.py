"""SCIM providers, as the server keeps them.

Enters: a Call. Leaves: an answer; the token stands in it in clear, the client is an empty shell. Source: spec/pocketid.md 4.9; records 13.
"""

from __future__ import annotations

from .exchange import NOTHING, Answer, Call, json_answer
from .model import Provider
from .reading import Faults, Problem, as_members, missing, one_of
from .urls import is_url

NOUN = "SCIM service provider"


def _found(call: Call) -> Provider:
    provider: Provider = one_of(call.store.providers, call.params["id"], NOUN)
    return provider


def _written(call: Call) -> tuple[str, str, str]:
    """Endpoint, token and client of a write."""
    body, faults = as_members(call.json()), Faults()
    endpoint, token, client = (body.text(name) or "" for name in ("endpoint", "token", "oidcClientId"))
    if not endpoint:
        faults.add("endpoint", "required")
    elif not is_url(endpoint):
        faults.add("endpoint", "invalid_format")
    if not client:
        faults.add("oidcClientId", "required")
    faults.throw()
    return endpoint, token, client


def read_of_client(call: Call) -> Answer:
    """The one with the lowest id, whichever that is."""
    held = [item for item in call.store.providers.values() if item.client == call.params["id"]]
    if not held:
        raise missing(NOUN)
    return json_answer(call.fake.shown.provider(min(held, key=lambda item: item.id)))


def create(call: Call) -> Answer:
    endpoint, token, client = _written(call)
    one_of(call.store.clients, client, "OIDC client")
    provider = Provider(endpoint, token, client, call.now)
    call.store.providers[provider.id] = provider
    return json_answer(call.fake.shown.provider(provider, fresh=True), 201)


def replace(call: Call) -> Answer:
    endpoint, token, client = _written(call)
    provider = _found(call)
    one_of(call.store.clients, client, "OIDC client")
    provider.endpoint, provider.token, provider.client = endpoint, token, client
    return json_answer(call.fake.shown.provider(provider))


def delete(call: Call) -> Answer:
    del call.store.providers[_found(call).id]
    return NOTHING


def sync(call: Call) -> Answer:
    """The fake has nobody to synchronise with."""
    _found(call)
    raise Problem(500, "internal_error")
