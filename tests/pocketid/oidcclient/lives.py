"""What a client is going through when an operator dies or an answer is lost; what must be the same in the end.

Enters: a scene. Leaves: steps to begin with, the state to compare.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.fakes.pocketid import Fake
from tests.fakes.pocketid.model import Client

from moorage.pocketid.oidcclient.types import KIND

from .scene import KEY, SECRET, Scene, scene
from .test_adoption import SETTINGS
from .test_features import AUDIENCE, access, icon

Step = Callable[[Scene], Awaitable[None]]
HOURLY = {"enabled": True, "interval": "1h"}


async def settled(here: Scene, **spec: Any) -> None:
    """A client that rotates each hour, Ready."""
    await here.make(**{"clientSecretRotation": HOURLY, **spec})
    await here.settle()


async def everything(here: Scene) -> dict[str, Any]:
    """A spec with all that can hang on a client; what it refers to is made."""
    await here.api("orders", AUDIENCE, "read", "write")
    await here.secret("scim", token="scim-token")
    here.server_group("staff")
    return {
        "scim": {"endpoint": "https://scim.example.org", "tokenSecretRef": {"name": "scim", "key": "token"}},
        "apiAccess": [access("orders", clientPermissions=["read"], delegatedAccess=True)],
        "logo": {"logoUrl": icon("light"), "darkLogoUrl": icon("dark")},
        "allowedUserGroups": [{"groupName": "staff"}],
    }


# --- what is done when the first life begins


async def made(here: Scene) -> None:
    """The client is only made."""
    await here.make(clientSecretRotation=HOURLY)


async def made_with_everything(here: Scene) -> None:
    """With SCIM, access, both logos, groups, and a group that lists it."""
    await here.group("listing", clients=(KEY.name,))
    await here.make(**await everything(here))


async def stripped(here: Scene) -> None:
    """All of it is declared no more."""
    spec = await everything(here)
    await settled(here, **spec)
    await here.edit(**dict.fromkeys(spec))


async def adopted_by_id(here: Scene) -> None:
    """Somebody made the client, with a secret of his own."""
    here.fake.store.clients["wiki-app"] = Client("wiki-app", {**SETTINGS, "name": "Old"})
    here.fake.place_legacy_secret("wiki-app", "somebody-elses-secret")
    await here.make(clientID="wiki-app", **await everything(here))


async def adopted_by_name(here: Scene) -> None:
    """The same without a declared id; its secret is not to be stored, so it stays."""
    here.fake.store.clients["some-id"] = Client("some-id", {**SETTINGS})
    here.fake.place_legacy_secret("some-id", "somebody-elses-secret")
    await here.make(secret={"storeClientSecret": False})


async def rotated(here: Scene) -> None:
    """A scheduled rotation is due."""
    await settled(here)
    here.later(hours=2)


async def asked_for(here: Scene) -> None:
    """A new secret is asked for, and the old one is to live on for a while."""
    await settled(here, clientSecretOverlap="1h")
    await here.annotate(regenerate_client_secret="true")


async def declared(here: Scene) -> None:
    """A declared secret takes over, with groups beside it."""
    await settled(here)
    await here.secret("source", value="a-declared-secret-0123456789")
    here.server_group("staff")
    ref = {"name": "source", "key": "value"}
    await here.edit(clientSecretRef=ref, clientSecretRotation=None, allowedUserGroups=[{"groupName": "staff"}])


async def renamed_while_due(here: Scene) -> None:
    """Secret and key get other names, and a rotation is due."""
    await settled(here)
    await here.edit(secret={"name": "wiki-login", "keys": {"clientSecret": "password"}})
    here.later(hours=2)


async def lost(here: Scene) -> None:
    """Somebody deleted the client; everything that hung on it is made anew."""
    await settled(here, **await everything(here))
    here.fake.store.delete_client(here.server().id)


async def kept(here: Scene) -> None:
    """The client is lost and made anew; its first secret is stored and then never replaced."""
    await settled(here)
    await here.edit(clientSecretRotation=None, secret={"storeClientSecret": False})
    here.fake.store.delete_client(here.server().id)


async def kept_from_the_start(here: Scene) -> None:
    """The first secret is stored and never replaced; nothing tells of it before the client is made but its id."""
    await here.make(secret={"storeClientSecret": False})


async def kept_under_a_declared_id(here: Scene) -> None:
    """The same with an id that anybody could have taken."""
    await here.make(clientID="wiki-app", secret={"storeClientSecret": False})


async def full(here: Scene) -> None:
    """Twenty secrets within their overlaps, and a new one is due."""
    await settled(here, clientSecretRotation={"enabled": True, "interval": "24h"}, clientSecretOverlap="24h")
    for number in range(19):
        here.fake.place_legacy_secret(here.server().id, f"legacy-secret-{number:04}")
    mine, *others = here.server().secrets
    older = (replace(item, prefix=f"x{n:03}", created=mine.created - 10**12) for n, item in enumerate(others))
    here.server().secrets[:] = [*older, mine]
    here.later(hours=23)
    await here.annotate(regenerate_client_secret="true")


async def deleted(here: Scene) -> None:
    """By a person, with everything that hangs on it."""
    await settled(here, **await everything(here))
    with contextlib.suppress(Exception):
        await here.client.delete(KIND.resource, KEY)


def anew_by(folder: Path, step: Step) -> Callable[[], contextlib.AbstractAsyncContextManager[Scene]]:
    """How a fresh scene is made in which the first life begins."""
    numbers = itertools.count()

    @contextlib.asynccontextmanager
    async def anew() -> AsyncIterator[Scene]:
        async with scene(folder / str(next(numbers))) as here:
            await step(here)
            yield here

    return anew


async def locked_out_never(here: Scene) -> None:
    """Whatever stands in a credentials Secret of a client that is there authenticates, before the next start mends anything."""
    for name, key in ((SECRET, "client_secret"), ("wiki-login", "password")):
        found = await here.credentials(name)
        row = here.fake.store.clients.get(found.get("client_id", ""))
        if row is not None and not row.public and key in found:
            assert await here.login(found["client_id"], found[key]) == 200


async def state(here: Scene) -> Any:
    """What must be the same in the end.

    Secrets are counted by their values: a declared one whose revision was not recorded yet is pushed once more, and of two that cannot be told
    apart both stay (seed 004, Client Secret).
    """
    if await here.stored() is None:
        return at_the_server(here.fake)  # the Secret follows its owner in its own time
    stored = [await here.credentials(name) for name in (SECRET, "wiki-login")]
    status = await here.status()
    known = (
        "initialSecretPending",
        "credentials",
        "logoUrl",
        "darkLogoUrl",
        "logoReachable",
        "darkLogoReachable",
        "clientType",
    )
    return {
        "server": at_the_server(here.fake),
        "keys": [sorted(found) for found in stored],
        "bound": [found["client_id"] in here.fake.store.clients for found in stored if found],
        "same": [found["client_id"] == status.get("clientID") for found in stored if found],
        "ready": await here.ready(),
        "source": bool(status.get("clientSecretSourceVersion")),
        "managed": (len(status.get("managedAPIs") or ()), len(status.get("managedAPIPermissionIDs") or ())),
        "provider": bool(status.get("scimProviderID")),
        "status": {name: status.get(name) for name in known},
    }


def at_the_server(fake: Fake) -> Any:
    """Clients and what hangs on them, without ids that the server made up.

    Two secrets may be three: a request to regenerate whose removal was cut short is followed once more, and an overlap keeps what it replaced.
    """
    store = fake.store
    return {
        "clients": [
            (
                item.settings,
                min(2, len({secret.digest for secret in item.secrets})),
                len(item.groups),
                sorted(item.logos),
            )
            for item in store.clients.values()
        ],
        "grants": [
            (held.user, held.client, len(held.user_permissions), len(held.client_permissions))
            for held in store.grants.values()
        ],
        "providers": [(item.endpoint, item.token) for item in store.providers.values()],
    }
