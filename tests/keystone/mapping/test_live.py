"""What the engine says of a login is what a served Keystone answers to it."""

from __future__ import annotations

import json
import urllib.request
from http.client import RemoteDisconnected
from typing import Any
from urllib.error import HTTPError

import pytest
from tests.real.keystone import PASSWORD, Keystone

from moorage.keystone.backend.mapping_engine import NO_ANSWER, login

A, G = {"type": "HTTP_OIDC_SUB"}, {"type": "HTTP_OIDC_GROUPS"}
NAMED = {"user": {"name": "{0}"}}
SAMPLES: dict[str, tuple[Any, dict[str, str]]] = {
    "plain": ([{"remote": [A], "local": [NAMED]}], {"SUB": "alice"}),
    "no rule matches": ([{"remote": [A, G], "local": [NAMED]}], {"SUB": "alice"}),
    "an index that is not there": ([{"remote": [A], "local": [{"user": {"name": "{1}"}}]}], {"SUB": "alice"}),
    "a brace": ([{"remote": [A], "local": [{"user": {"name": "{"}}]}], {"SUB": "alice"}),
    "groups without domain": ([{"remote": [A, G], "local": [NAMED, {"groups": "{1}"}]}], {"SUB": "alice", "GROUPS": "a;b"}),
    "nobody": ([{"remote": [A], "local": [{"group": {"name": "g", "domain": {"id": "default"}}}]}], {"SUB": "alice"}),
    "a group name that is not there": ([{"remote": [A], "local": [{**NAMED, "group": {"name": "g", "domain": {"id": "default"}}}]}], {"SUB": "alice"}),
    "a local user without domain": ([{"remote": [A], "local": [{"user": {"name": "{0}", "type": "local"}}]}], {"SUB": "alice"}),
    "a domain without name": ([{"remote": [A], "local": [{"user": {"name": "{0}", "domain": {}}}]}], {"SUB": "alice"}),
    "a bad expression": ([{"remote": [{**A, "any_one_of": ["["], "regex": True}, A], "local": [NAMED]}], {"SUB": "alice"}),
    "an empty value": ([{"remote": [A], "local": [NAMED]}], {"SUB": ""}),
    "a project": ([{"remote": [A], "local": [{**NAMED, "projects": [{"name": "lab", "roles": []}]}]}], {"SUB": "alice"}),
}  # fmt: skip


class Api:
    """Keystone's API as its administrator."""

    def __init__(self, url: str) -> None:
        self.url, self.token = url, ""
        user = {"name": "admin", "domain": {"id": "default"}, "password": PASSWORD}
        scope = {"project": {"name": "admin", "domain": {"id": "default"}}}
        identity = {"methods": ["password"], "password": {"user": user}}
        _, headers, _ = self.ask("POST", "/auth/tokens", {"auth": {"identity": identity, "scope": scope}})
        self.token = headers["X-Subject-Token"]

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
        """Status, headers, body; an error status is an answer, too."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json"} | headers, method=method
        )
        if self.token:
            request.add_header("X-Auth-Token", self.token)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers, json.loads(answer.read() or b"null")
        except HTTPError as error:
            return error.code, error.headers, json.loads(error.read() or b"null")
        except RemoteDisconnected:
            return NO_ANSWER, {}, "no answer"


@pytest.fixture(scope="module")
def api(real_keystone: Keystone) -> Api:
    """An identity provider with one mapping and the protocol `mapped`."""
    served = Api(real_keystone.url)
    base = "/OS-FEDERATION"
    rules = SAMPLES["plain"][0]
    for path, body in (
        ("/mappings/m", {"mapping": {"rules": rules}}),
        ("/identity_providers/i", {"identity_provider": {"enabled": True}}),
        ("/identity_providers/i/protocols/mapped", {"protocol": {"mapping_id": "m"}}),
    ):
        assert served.ask("PUT", base + path, body)[0] == 201
    return served


def _login(api: Api, rules: Any, claims: dict[str, str]) -> tuple[int, Any]:
    assert api.ask("PATCH", "/OS-FEDERATION/mappings/m", {"mapping": {"rules": rules}})[0] == 200
    headers = {f"OIDC-{key}": value for key, value in claims.items()}
    status, _, body = api.ask("GET", "/OS-FEDERATION/identity_providers/i/protocols/mapped/auth", None, **headers)
    return status, body


@pytest.mark.parametrize("name", SAMPLES)
def test_keystone_answers_as_foretold(api: Api, name: str) -> None:
    """The status of the login is the failure's code, or 201 and the user that was foretold."""
    rules, claims = SAMPLES[name]
    status, body = _login(api, rules, claims)
    foretold = login(rules, {f"HTTP_OIDC_{key}": value for key, value in claims.items()})
    assert status == (foretold.failure.code if foretold.failure else 201), body
    if foretold.failure is None:
        assert body["token"]["user"]["name"] == foretold.user["name"]


@pytest.mark.parametrize(
    ("local", "status"),
    [
        ({"group": {"id": "nowhere"}}, 500),
        ({"group": {"name": "staff", "domain": {"name": "nowhere"}}}, 404),
        ({"groups": "staff", "domain": {"id": "nowhere"}}, 201),
    ],
)
def test_what_only_the_server_knows_is_not_foretold(api: Api, local: Any, status: int) -> None:
    """Groups and domains that do not exist: Keystone drops a name in silence, but not an id and not the name of a domain."""
    rules = [{"remote": [A], "local": [{**NAMED, **local}]}]
    assert login(rules, {"HTTP_OIDC_SUB": "alice"}).failure is None
    assert _login(api, rules, {"SUB": "alice"})[0] == status
