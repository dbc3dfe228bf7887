"""CPU time of the sidecar's files for 50 OIDC backends of one Keystone, as a pass of its controller makes them: in this process, warm."""

from __future__ import annotations

import time

from tests.keystone.service.test_federation import GROUND, ITEMS

from bench.plan import Plan
from bench.table import Row, spread
from moorage.keystone.service.federation import project_all

AIM = 50


def measure(plan: Plan) -> list[Row]:
    """The first run reads modules and is not counted."""
    project_all(ITEMS, GROUND)
    cpu = spread([_timed() for _ in range(3 * plan.repetitions)], "ms")
    question = f"files of {len(ITEMS)} OIDC backends rendered, median CPU"
    return [Row(question, str(cpu), "", str(cpu), f"< {AIM} ms", cpu.median < AIM, {"CPU": cpu})]


def _timed() -> float:
    """CPU milliseconds of one rendering."""
    began = time.process_time()
    project_all(ITEMS, GROUND)
    return (time.process_time() - began) * 1000
