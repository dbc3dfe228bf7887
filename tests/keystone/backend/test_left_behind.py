"""What the users of a directory leave behind in a real Keystone 30 when their domain goes: the guide says it, and here it is so.

Moorage takes the configuration away first and deletes the domain last; this is that order, by hand.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from tests.e2e.federation.objects import Admin, administrator
from tests.real.directory import Directory, slapd
from tests.real.keystone import PASSWORD, Keystone, keystone, manage

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.e2e, pytest.mark.case("C20")]

DOMAIN_FILE = """\
[identity]
driver = ldap
[ldap]
url = {url}
user = cn=reader,dc=planetexpress,dc=com
password = good-news-everyone
user_tree_dn = ou=people,dc=planetexpress,dc=com
user_objectclass = inetOrgPerson
user_id_attribute = uid
user_name_attribute = uid
group_tree_dn = ou=groups,dc=planetexpress,dc=com
"""


LEFT = {"id_mapping": "public_id", "nonlocal_user": "user_id", "assignment": "actor_id"}
"""Tables in which a user of a directory stands, and the column of its id."""


@dataclass
class Scene:
    """A Keystone, and a directory that is its domain `planetexpress` as long as the domain's file is there."""

    real: Keystone
    directory: Directory
    admin: Admin
    domain: str = ""

    async def attach(self) -> None:
        self.domain = await self.admin.domain("planetexpress")
        self._file.write_text(DOMAIN_FILE.format(url=self.directory.url))
        self.real.reload()

    def detach(self) -> None:
        self._file.unlink()
        self.real.reload()

    @property
    def _file(self) -> Path:
        return self.real.domains / "keystone.planetexpress.conf"

    async def users(self) -> dict[str, str]:
        """Name -> id."""
        found = (await self.admin.made("GET", f"/users?domain_id={self.domain}"))["users"]
        return {user["name"]: user["id"] for user in found}

    async def assign(self, user: str) -> None:
        """A role on a project of another domain."""
        project = (await self.admin.made("GET", "/projects?name=admin"))["projects"][0]["id"]
        role = (await self.admin.made("GET", "/roles?name=reader"))["roles"][0]["id"]
        await self.admin.made("PUT", f"/projects/{project}/users/{user}/roles/{role}")

    async def log_in(self, name: str) -> int:
        user = {"name": name, "domain": {"name": "planetexpress"}, "password": name}
        auth = {"identity": {"methods": ["password"], "password": {"user": user}}}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.admin.url}/auth/tokens", json={"auth": auth}) as answer,
        ):
            return answer.status

    async def end(self) -> None:
        """As the deletion policy Delete does."""
        await self.admin.made("PATCH", f"/domains/{self.domain}", {"domain": {"enabled": False}})
        await self.admin.made("DELETE", f"/domains/{self.domain}")

    async def purge(self) -> int:
        """Exit code of the command that the guide names."""
        words = manage(self.real, "mapping_purge", "--domain-name", "planetexpress")
        return (await asyncio.to_thread(subprocess.run, words, capture_output=True)).returncode

    def left(self) -> dict[str, set[str]]:
        """Ids by table."""
        with contextlib.closing(sqlite3.connect(self.real.folder / "state" / "keystone.db")) as database:
            rows = {table: database.execute(f"SELECT {column} FROM {table}") for table, column in LEFT.items()}
            return {table: {str(row[0]) for row in found} for table, found in rows.items()}


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """A Keystone to which the directory is attached; all its users were listed, fry logged in and has a role elsewhere."""
    with slapd(tmp_path / "slapd") as directory, keystone(tmp_path / "keystone") as real:
        async with administrator(real.url, PASSWORD) as admin:
            here = Scene(real, directory, admin)
            await here.attach()
            yield here


async def test_ids_shadows_and_roles_elsewhere_stay_and_nobody_can_use_them_again(scene: Scene) -> None:
    """Keystone deletes the domain's own role assignments only. A domain of the same name later has other users, who have none of these roles."""
    people = await scene.users()
    await scene.assign(people["fry"])
    assert await scene.log_in("fry") == 201
    scene.detach()
    await scene.end()
    left = scene.left()
    assert left["id_mapping"] == set(people.values())
    assert left["nonlocal_user"] == {people["fry"]}
    assert people["fry"] in left["assignment"]
    assert await scene.purge() != 0
    await scene.attach()
    anew = await scene.users()
    assert not set(anew.values()) & set(people.values())
    assert anew["fry"] not in scene.left()["assignment"]


async def test_a_domain_that_was_kept_is_purged_by_its_name_and_ids_come_again_as_they_were(scene: Scene) -> None:
    """Ids are made from the domain's id and the user's name in the directory."""
    people = await scene.users()
    assert await scene.purge() == 0
    assert not scene.left()["id_mapping"]
    assert await scene.users() == people


@pytest.mark.parametrize("sentence", ["keystone-manage mapping_purge --domain-name", "role assignments on projects of"])
def test_the_guide_says_so(sentence: str) -> None:
    """In the page about directories, at Detach."""
    assert sentence in (ROOT / "docs/guides/ldap.md").read_text().partition("## Detach")[2]
