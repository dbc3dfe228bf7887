"""Jobs that run once for each version of what they were made for.

A Job carries its gate, a digest of what it depends on. Another gate: it is deleted, with its pods, and made anew. One that failed
for good is made anew after a minute, so that a database that was down heals by itself.
Enters: the snapshot and the wanted Job. Leaves: a plan, a wait, or None when it ran. Source: spec/keystone.md 1.3; C15.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from moorage.core.meta import JsonObject
from moorage.core.outcome import Stalled, Waiting

from .manifests import gate_of
from .plan import Create, Plan, Remove
from .seen import JOB, Seen, Step, failed_since, job_state

RETRY: Final = 60.0
"""Seconds between a failed Job and the next attempt."""

Reasons: TypeAlias = tuple[str, str, float]
"""Reason while it runs, reason when it failed, seconds between looks."""


def job_step(seen: Seen, step: Step, job: JsonObject, reasons: Reasons) -> Plan | Waiting | Stalled | None:
    """What is still to be done for a Job; None once it is complete."""
    running, failed, poll = reasons
    name = job["metadata"]["name"]
    live = seen.child(JOB, name)
    if live is None:
        return Plan(step, (Create(JOB, job),))
    if not seen.owns(live):
        return Stalled(failed, f'Job "{name}" exists and is not ours; delete or rename it')
    state = job_state(live)
    if state == "ending":
        return Waiting(running, f'Job "{name}" of before is ending', after=poll)
    if gate_of(live) != gate_of(job):
        return Plan(step, (Remove(JOB, live, "Foreground"),))
    if state == "running":
        said = seen.troubles.get(name)
        return Waiting(running, f'Job "{name}" runs' + (f"; {said}" if said else ""), after=poll)
    if state == "failed":
        return _failed(seen, step, live, reasons)
    return None


def _failed(seen: Seen, step: Step, live: JsonObject, reasons: Reasons) -> Plan | Waiting:
    name, since = live["metadata"]["name"], failed_since(live)
    left = RETRY - (seen.now - since).total_seconds() if since is not None else 0.0
    if left <= 0:
        return Plan(step, (Remove(JOB, live, "Foreground"),))
    said = seen.troubles.get(name)
    why = f"failed: {said}" if said else f"failed; see `kubectl logs -n {seen.key.namespace} job/{name}`"
    return Waiting(reasons[1], f'Job "{name}" {why}. It is tried again within a minute', after=left)
