"""Large objects are worked on beside the event loop: whoever asks for something small does not wait for them."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Awaitable
from time import perf_counter
from typing import Any

import pytest

from moorage.apiserver.aside import LARGE, Aside
from moorage.apiserver.errors import StatusError

from .conftest import CONFIG_MAPS, MERGE, Answer, Client, config_map

FIELDS = 20_000
APPLY = "application/apply-patch+yaml"
YAML = "application/yaml"


async def beside(client: Client, large: Awaitable[Answer]) -> tuple[Answer, int, float]:
    """What a large request came to, how many small ones were answered meanwhile, and the longest of them as a part of it."""
    started, longest, answered = perf_counter(), 0.0, 0
    task = asyncio.ensure_future(large)
    while not task.done():
        asked = perf_counter()
        assert (await client.ask("GET", "/api/v1/namespaces/default")).status == 200
        longest, answered = max(longest, perf_counter() - asked), answered + 1
    return task.result(), answered, longest / (perf_counter() - started)


def wide(name: str) -> Any:
    return config_map(name, **{f"key-{number}": "v" for number in range(FIELDS)})


def as_yaml(name: str) -> bytes:
    data = "".join(f"  key-{number}: v\n" for number in range(FIELDS))
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n{data}".encode()


@pytest.mark.parametrize("way", ["create", "yaml", "apply", "patch", "read"])
async def test_small_requests_go_on_being_answered_while_a_large_one_is_worked_on(client: Client, way: str) -> None:
    """S10: 2.8 MB of YAML, or an apply of 50,000 fields, held the loop for seconds: no health, no leases, no probes."""
    if way in ("patch", "read"):
        await client.create(CONFIG_MAPS, wide("wide"))
    asked = {
        "create": lambda: client.ask("POST", CONFIG_MAPS, wide("wide")),
        "yaml": lambda: client.ask("POST", CONFIG_MAPS, as_yaml("wide"), media=YAML),
        "apply": lambda: client.ask(
            "PATCH", f"{CONFIG_MAPS}/wide?fieldManager=me", json.dumps(wide("wide")).encode(), media=APPLY
        ),
        "patch": lambda: client.ask("PATCH", f"{CONFIG_MAPS}/wide", {"metadata": {"labels": {"a": "b"}}}, media=MERGE),
        "read": lambda: client.ask("GET", f"{CONFIG_MAPS}/wide", Accept=YAML),
    }[way]
    answer, answered, part = await beside(client, asked())
    assert answer.status < 300, answer.body
    assert answered > 10, "as many as were asked while the large request ran"
    assert part < 0.9, "none of them waited for the end of the large one"


async def test_a_body_that_is_refused_in_the_end_holds_nobody_up_either(client: Client) -> None:
    """What is beyond the storable size is known only after it was read, tracked and validated."""
    data = "".join(f"  key-{number}: {'v' * 60}\n" for number in range(FIELDS))
    body = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: far\ndata:\n{data}".encode()
    answer, answered, part = await beside(client, client.ask("POST", CONFIG_MAPS, body, media=YAML))
    assert answer.status in (413, 422)
    assert answered > 10
    assert part < 0.5


async def test_large_work_is_done_in_a_thread_and_small_work_is_not() -> None:
    aside, here = Aside(), threading.get_ident()
    try:
        assert await aside.run(LARGE - 1, threading.get_ident) == here
        assert await aside.run(LARGE, threading.get_ident) != here
    finally:
        aside.close()


async def test_too_much_large_work_is_refused_for_now_and_the_interpreter_is_left_as_it_was() -> None:
    aside, go_on, usual = Aside(), threading.Event(), sys.getswitchinterval()
    tasks = [asyncio.ensure_future(aside.run(LARGE, go_on.wait)) for _ in range(64)]
    try:
        await asyncio.sleep(0)
        with pytest.raises(StatusError) as refused:
            await aside.run(LARGE, go_on.wait)
        assert refused.value.code == 429
    finally:
        go_on.set()
        await asyncio.gather(*tasks)
        aside.close()
    assert sys.getswitchinterval() == usual
