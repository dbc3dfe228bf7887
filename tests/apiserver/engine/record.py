"""Records scenarios of requests with the answers of a real kube-apiserver: `python -m tests.apiserver.engine.record SERVER TOKEN [scenario ...]`.

A scenario (scenarios/*.yaml) is a list of steps; after one with `served`, that path answers 200 before the next. The recording (cases/NAME.json) is the same list with answers: status code and body.
Uids, times and resource versions are normalised, so that recordings do not differ from run to run.
"""

from __future__ import annotations

import json
import re
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import yaml
from tests.real.process import poll

HERE = Path(__file__).parent
TYPES = {
    "apply": "application/apply-patch+yaml",
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NOW = re.compile(time.strftime("%Y", time.gmtime()) + r"-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Oracle:
    """A running kube-apiserver."""

    def __init__(self, server: str, token: str) -> None:
        self.server, self.token = server, token
        self.context = ssl._create_unverified_context()

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        type_: str = "application/json",
        accept: str = "application/json",
    ) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": type_, "Accept": accept}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self.context) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            return error.code, json.loads(text) if text.startswith("{") else text

    def until(self, path: str, code: int) -> None:
        """Ask until it answers so; raises TimeoutError after half a minute."""
        poll(lambda: self.ask("GET", path)[0] == code, what=f"{path} answers {code}")


def normalise(value: Any, uids: dict[str, str]) -> Any:
    """Uids become uid-1, uid-2 ...; times of this run become one time."""
    if isinstance(value, dict):
        return {normalise(k, uids): normalise(v, uids) for k, v in value.items() if k != "resourceVersion"}
    if isinstance(value, list):
        return [normalise(item, uids) for item in value]
    if isinstance(value, str):
        value = _UID.sub(lambda found: uids.setdefault(found[0], f"uid-{len(uids) + 1}"), value)
        return _NOW.sub("2020-01-01T00:00:00Z", value)
    return value


def perform(oracle: Oracle, step: dict[str, Any]) -> tuple[int, Any]:
    method, _, path = step["do"].partition(" ")
    query = "&".join(f"{k}={v}" for k, v in {"fieldManager": step.get("as", "tester"), **step.get("query", {})}.items())
    if method in TYPES:
        return oracle.ask("PATCH", f"{path}?{query}", step["body"], TYPES[method])
    if method == "TABLE":
        step["objects"] = oracle.ask("GET", path)[1]
        return oracle.ask(
            "GET", path + "?includeObject=Metadata", accept="application/json;as=Table;v=v1;g=meta.k8s.io"
        )
    if method == "PUT" and step.get("edit"):
        _, body = oracle.ask("GET", path)
        return oracle.ask("PUT", f"{path}?{query}", _deep(body, step["edit"]))
    return oracle.ask(method, f"{path}?{query}", step.get("body"))


def _deep(obj: Any, edit: Any) -> Any:
    if not isinstance(edit, dict) or not isinstance(obj, dict):
        return edit
    merged = dict(obj)
    for name, value in edit.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _deep(obj.get(name), value)
    return merged


def clear(oracle: Oracle, steps: list[dict[str, Any]]) -> None:
    """Deletes what an earlier recording left."""
    for step in reversed(steps):
        method, _, path = step["do"].partition(" ")
        if method == "POST":
            path = f"{path}/{step['body']['metadata'].get('name')}"
        elif method != "apply" or path.endswith(("/status", "/scale")):
            continue
        oracle.ask("PATCH", path, {"metadata": {"finalizers": None}}, TYPES["merge"])
        oracle.ask("DELETE", path + "?gracePeriodSeconds=0&propagationPolicy=Background")
        oracle.until(path, 404)


def record(oracle: Oracle, scenario: Path) -> None:
    namespace = f"{scenario.stem}"
    oracle.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    uids: dict[str, str] = {}
    recorded = []
    steps = json.loads(json.dumps(yaml.safe_load(scenario.read_text()), default=str).replace("$NS", namespace))
    clear(oracle, steps)
    for step in steps:
        code, body = perform(oracle, step)
        if served := step.get("served"):
            oracle.until(served, 200)
        if "objects" in step:
            step["objects"] = normalise(step["objects"], uids)
        recorded.append({**step, "code": code, "answer": normalise(body, uids)})
    out = HERE / "cases" / f"{scenario.stem}.json"
    out.write_text(json.dumps(recorded, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    wanted = sys.argv[3:]
    for file in sorted((HERE / "scenarios").glob("*.yaml")):
        if not wanted or file.stem in wanted:
            record(Oracle(sys.argv[1], sys.argv[2]), file)
            print(file.stem)
