"""A Keystone on the embedded API server, walked by the real room: attach, rotate, detach, and what a second pass does."""

from __future__ import annotations

from tests.crashpoints import Fence
from tests.keystone.service.machine import machine, served

BACKEND_KEY = "acme"


async def test_a_declared_keystone_becomes_ready(tmp_path):
    """Every condition turns True, and a second pass makes no write."""
    async with served(tmp_path) as client, machine(client, "openstack") as m:
        await m.drive()
        found = await m.conditions()
        print(found)
        assert {status for status, _ in found.values()} == {"True"}, found
        fence = Fence()
        await m.drive(fence)
        assert fence.writes == 0
