"""Directories that different authorities prove, in one real Keystone: whoever logs in first decides nothing for the others (F5, F6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.federation.objects import administrator, password_login
from tests.keystone.service import given
from tests.real.directory import CORP, CORP_PASSWORD, CORP_READER, Directory, corp
from tests.real.keystone import PASSWORD, keystone

from moorage.keystone.backend.materials import Materials
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.service.domains import project_all
from moorage.keystone.service.pods import Mounts, api_template
from moorage.keystone.service.seen import Attached

pytestmark = pytest.mark.e2e
BIND = {"username": CORP_READER.encode(), "password": CORP_PASSWORD.encode()}


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Directory]]:
    """One for each domain, each proven by an authority of its own; that of `public` is one of the image's."""
    folder = tmp_path_factory.mktemp("directories")
    with corp(folder / "one") as one, corp(folder / "two") as two, corp(folder / "public") as public:
        yield {"one": one, "two": two, "public": public}


def attached(name: str, directory: Directory) -> Attached:
    """A backend as a person declares it."""
    obj = given.backend(
        {"name": name, "domain": name, "url": directory.tls_url, **({"ca": "ca"} if name != "public" else {})}
    )
    users = {"treeDN": f"ou=people,{CORP}", "idAttribute": "uid", "nameAttribute": "uid"}
    obj["spec"]["ldap"] |= {"suffix": CORP, "users": users}
    return Attached(BACKEND.parse(obj), Materials({"bind": BIND, "ca": {"ca.crt": directory.authority.pem}}))


def environment(mounts: Mounts) -> dict[str, str]:
    """What a pod's Keystone is told besides its address and its database."""
    (container,) = api_template(given.keystone(), mounts, "")["spec"]["containers"]
    return {item["name"]: item["value"] for item in container["env"] if "value" in item}


@pytest.mark.parametrize("order", [("one", "two", "public"), ("public", "two", "one")])
async def test_users_of_all_directories_log_in_whoever_came_first(
    tmp_path: Path, directories: dict[str, Directory], order: tuple[str, ...]
) -> None:
    """One worker, which makes up its mind at the first login."""
    found = project_all([attached(name, directory) for name, directory in directories.items()])
    assert found.attached == ("one", "public", "two")
    authorities = tmp_path / "authorities"
    authorities.mkdir()
    (authorities / "public.pem").write_bytes(directories["public"].authority.pem)
    variables = environment(Mounts("config", "domains", found.paths, found.trusts_the_system))
    with keystone(tmp_path / "keystone", public=authorities, **variables) as real:
        async with administrator(real.url, PASSWORD) as admin:
            for name in order:
                await admin.domain(name)
            for path, key in found.paths.items():
                (real.domains / path).write_bytes(found.files[key])
            real.reload()
            answers = {}
            for name in order:
                answers[name], _ = await password_login(admin.session, real.url, "u1", "u1-password", domain=name)
    assert answers == dict.fromkeys(order, 201)
