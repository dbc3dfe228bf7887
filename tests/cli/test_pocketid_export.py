"""`moorage pocketid export` and `orphans`, as a person uses them: a used server, one machine, manifests that are applied and change nothing."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.pocketid_site import (
    DOCUMENT,
    NAMESPACE,
    NAMESPACE_OBJECT,
    SCIM_TOKEN,
    SECRETS,
    WIKI_SECRET,
    Site,
    documents,
    furnished,
    machine,
)
from tests.fakes.pocketid import API_KEY, Fake, running

from moorage.core.meta import JsonObject

LOGO = "https://icons.example.org/{{name}}.png"


@contextmanager
def used(folder: Path, kubeconfig: Path) -> Iterator[Site]:
    """A server that people have used."""
    fake = Fake("2.17.0", config={"autoCreateOidcClientSecret": "false"})
    with running(fake) as url:
        furnished(fake, url)
        yield Site(fake, url, kubeconfig, folder)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Such a server, and a machine whose operator would give every client a logo."""
    up = machine(tmp_path, {"RESYNC_INTERVAL": "2s", "DEFAULT_LOGO_URL": LOGO})
    with up as kubeconfig, used(tmp_path, kubeconfig) as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Such a server alone, to be read."""
    folder = tmp_path_factory.mktemp("server")
    with used(folder, folder / "no-kubeconfig") as found:
        yield found


def named(items: list[JsonObject], kind: str) -> dict[str, JsonObject]:
    """Specs by name."""
    return {item["metadata"]["name"]: item["spec"] for item in items if item["kind"] == kind}


def test_an_export_is_adopted_and_nothing_is_written_at_the_server(site: Site) -> None:
    """Export, apply, every object Ready, further rounds: not one write, and the secret in use still works; then what is owned is not exported again."""
    done = site.moorage("pocketid", "export", "--url", site.url, "--api-key-file", site.key_file, "-n", NAMESPACE)
    assert done.returncode == 1, done.stderr
    items = documents(done.stdout)
    (wiki,) = (name for name, spec in named(items, "PocketIDOIDCClient").items() if spec["clientID"] == "wiki")
    site.apply([
        NAMESPACE_OBJECT, site.secret("pocket-id-api-key", token=API_KEY), site.secret(f"{wiki}-scim", token=SCIM_TOKEN),
        *items,
    ])  # fmt: skip
    site.ready(items)
    site.rounds()
    assert [f"{entry.method} {entry.path}" for entry in site.fake.journal.writes()] == []
    assert site.fake.authenticates("wiki", WIKI_SECRET)
    assert "client_secret" not in site.get("Secret", f"{wiki}-oidc-credentials")["data"]

    again = site.moorage("pocketid", "export", "-o", "json")
    answer = json.loads(again.stdout)
    assert (again.returncode, answer["items"], answer["needed"]) == (1, [], [])
    assert {item["id"] for item in answer["leftOut"]} == {"bidi", "closed", "old"}
    assert len(answer["skipped"]) == len(items) - 1 + 2, "all but the instance, and two objects of the directory"

    orphans = site.moorage("pocketid", "orphans", "-o", "json")
    assert orphans.returncode == 1
    assert [(item["kind"], item["id"]) for item in json.loads(orphans.stdout)] == [
        ("PocketIDOIDCClient", "closed"),
        ("PocketIDOIDCClient", "old"),
        ("PocketIDOIDCClient", "bidi"),
    ]
    for id in ("bidi", "closed", "old"):
        site.fake.store.delete_client(id)
    orphans = site.moorage("pocketid", "orphans")
    assert (orphans.returncode, orphans.stdout) == (0, "no orphans: a resource owns everything that was looked for\n")
    _taken_over(site, next(item for item in items if item["metadata"]["name"] == wiki))
    _tells_no_secret(site)


def _taken_over(site: Site, client: JsonObject) -> None:
    """The guide's last step: an overlap, then storeClientSecret true. A new secret is stored, and the one in use works on."""
    name = client["metadata"]["name"]
    spec = {**client["spec"], "secret": {"storeClientSecret": True}, "clientSecretOverlap": "1h"}
    site.apply([{**client, "spec": spec}])
    site.ready([client])
    site.rounds()
    stored = base64.b64decode(site.get("Secret", f"{name}-oidc-credentials")["data"]["client_secret"]).decode()
    assert site.fake.authenticates("wiki", stored)
    assert site.fake.authenticates("wiki", WIKI_SECRET)
    assert len(site.fake.store.clients["wiki"].secrets) == 2


def test_everything_that_a_client_has_is_in_its_manifest(server: Site) -> None:
    """Field by field, defaults left out; references lead to exported resources, a directory's group is named as it is there."""
    done = server.moorage("pocketid", "export", "--url", server.url, "--api-key-file", "-", given=API_KEY)
    clients = named(documents(done.stdout), "PocketIDOIDCClient")
    by_id = {spec["clientID"]: (name, spec) for name, spec in clients.items()}
    name, wiki = by_id["wiki"]
    keys = wiki["federatedIdentities"][0].pop("publicKeys")
    assert {"kty", "kid"} <= keys[0]["value"].keys()
    assert wiki == {
        "clientID": "wiki",
        "name": "Wiki",
        "callbackUrls": ["https://wiki.example.org/cb", "http://localhost:*/cb"],
        "logoutCallbackUrls": ["https://wiki.example.org/bye"],
        "backchannelLogoutUrl": "https://wiki.example.org/cb/bye",
        "pkceEnabled": True,
        "federatedIdentities": [
            {"issuer": "https://cluster.example.org", "subject": "system:wiki", "replayProtection": True},
            {"issuer": "https://ci.example.org", "audience": "wiki", "jwks": "https://ci.example.org/keys"},
        ],
        "secret": {"storeClientSecret": False},
        "description": "Everybody's",
        "launchUrl": "https://wiki.example.org",
        "requiresPushedAuthorizationRequests": True,
        "skipConsent": True,
        "accessTokenDurationMinutes": 5,
        "apiAccess": [{"apiRef": {"name": "orders-api"}, "clientPermissions": ["read", "write"]}],
        "scim": {
            "endpoint": "https://wiki.example.org/scim",
            "tokenSecretRef": {"name": f"{name}-scim", "key": "token"},
        },
        "logo": {"autoGenerate": False},
        "deletionPolicy": "Retain",
    }
    assert by_id["spa"][1] == {
        "clientID": "spa",
        "name": "Spa",
        "isPublic": True,
        "allowedUserGroups": [{"groupName": "Ops Team"}, {"name": "staff"}],
        "apiAccess": [{"apiRef": {"name": "orders-api"}, "delegatedAccess": True}],
        "scim": {"endpoint": "https://spa.example.org/scim"},
        "logo": {"autoGenerate": False},
        "deletionPolicy": "Retain",
    }
    assert by_id[DOCUMENT][1].keys() == {"clientID", "description", "logo", "deletionPolicy"}
    _tells_no_secret(server)


def test_siblings_are_whole_and_the_directory_keeps_its_own(server: Site) -> None:
    """Users, groups and APIs; people can be left out, and are then members by name."""
    words = ("pocketid", "export", "--url", server.url, "--api-key-file", server.key_file)
    items = documents(server.moorage(*words).stdout)
    (user,) = named(items, "PocketIDUser").items()
    assert user[0] == "ann-lee"
    assert user[1].pop("userID") in server.fake.store.users
    assert user[1] == {
        "username": {"value": "Ann.Lee"},
        "firstName": {"value": "Ann"},
        "lastName": {"value": "Lee"},
        "email": {"value": "ann@example.org"},
        "admin": True,
        "customClaims": [{"key": "area", "value": "north"}, {"key": "team", "value": "red"}],
    }
    assert named(items, "PocketIDUserGroup") == {
        "empty": {"deletionPolicy": "Retain"},
        "staff": {
            "friendlyName": "Staff",
            "customClaims": [{"key": "role", "value": "staff"}],
            "users": {"userRefs": [{"name": "ann-lee"}], "usernames": ["bob"]},
            "deletionPolicy": "Retain",
        },
    }
    assert named(items, "PocketIDAPI") == {
        "orders-api": {
            "resource": "https://orders.example.org",
            "name": "Orders API",
            "permissions": [
                {"key": "read", "name": "Read", "description": "May read", "cimdAccess": True},
                {"key": "write", "name": "Write"},
            ],
            "cimdAccess": False,
            "deletionPolicy": "Retain",
        }
    }
    without = documents(server.moorage(*words, "--no-users").stdout)
    assert named(without, "PocketIDUser") == {}
    assert named(without, "PocketIDUserGroup")["staff"]["users"] == {"usernames": ["Ann.Lee", "bob"]}


def test_names_are_valid_and_no_two_alike_and_what_cannot_be_said_is_told(server: Site) -> None:
    """Collisions, letters that no DNS name has, a text that turns a terminal around; the same twice; both texts hold the same objects."""
    words = ("pocketid", "export", "--url", server.url, "--api-key-file", server.key_file, "-n", NAMESPACE)
    done, again = server.moorage(*words), server.moorage(*words)
    assert done.stdout == again.stdout
    assert documents(server.moorage(*words, "-o", "json").stdout) == documents(done.stdout)
    clients = {spec["clientID"]: name for name, spec in named(documents(done.stdout), "PocketIDOIDCClient").items()}
    assert clients["spa"] == "spa"
    assert {name.rpartition("-")[0] for id, name in clients.items() if id in ("wiki", "1e3", "wiki-3")} == {"wiki"}
    assert {name.rpartition("-")[0] for id, name in clients.items() if id in ("kanji", "kana")} == {"client"}
    assert len(set(clients.values())) == len(clients)
    assert "clientID: '1e3'" in done.stdout
    assert re.search(r"^ +'n': ", done.stdout, re.MULTILINE), "kubectl reads a bare n as false"
    assert "\u202e" not in done.stdout + done.stderr
    left = [line for line in done.stderr.splitlines() if line.startswith("left out")]
    assert [line.partition(": ")[2].partition("):")[0] for line in left] == [
        "client 'Closed' (id closed", "client 'a\\u202egnp x' (id bidi", "client 'Old' (id old",
    ]  # fmt: skip
    said = (
        "nobody may use it (restricted, without a group), which no manifest says; give it a group first",
        "take them out",
        "javascript: URL",
    )
    assert all(line.endswith(why) for line, why in zip(left, said, strict=True))
    assert all(f"# {line}\n" in done.stdout for line in left)
    assert done.stderr.splitlines()[0] == "exported: 7 clients, 2 groups, 1 api, 1 user"
    checked = server.moorage("lint", "-", given=done.stdout)
    assert checked.returncode == 0, checked.stdout


def _tells_no_secret(site: Site) -> None:
    """Neither printed nor given as an argument."""
    told = "\n".join(site.printed)
    assert [secret for secret in SECRETS if secret in told] == []
