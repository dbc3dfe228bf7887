"""Pods of a Keystone: argument vectors, modes, what rolls them and what does not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from tests.keystone.service import given

from moorage.core.meta import JsonObject
from moorage.keystone.addresses import PORT
from moorage.keystone.service import draining, keys, manifests, pods
from moorage.keystone.service.decide import decide
from moorage.keystone.service.plan import Plan
from moorage.keystone.service.render import wanted, workload
from moorage.keystone.service.seen import DEPLOYMENT

HOST = {"database": {"host": "db.acme.test", "database": "keystone", "secretRef": {"name": "keystone-db"}}}


def objects(case: dict[str, Any]) -> list[JsonObject]:
    """Every child with a pod template that a given.yaml calls for."""
    found = given.inputs(case)
    keystone, made = found.keystone, wanted(found)
    config = made.mounts.config
    children = [item.manifest for item in workload(keystone, made) if item.resource.kind == "Deployment"]
    children += [manifests.db_sync(keystone, config), manifests.bootstrap(keystone, config, "u.1")]
    children += [manifests.credential_migrate(keystone, config, "u.1")]
    flush = manifests.trust_flush(keystone, config)
    return [*children, *([flush] if flush else [])]


def templates(case: dict[str, Any]) -> Iterator[JsonObject]:
    for obj in objects(case):
        spec = obj["spec"]
        yield (spec["jobTemplate"]["spec"] if obj["kind"] == "CronJob" else spec)["template"]


def of(spec: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    keystone = given.keystone(spec)
    return {"keystone": {"metadata": {"name": "keystone"}, "spec": keystone.spec.to_wire()}, **more}


def expand(text: str, values: dict[str, str]) -> str:
    """What a kubelet makes of an argument."""
    return re.sub(
        r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)",
        lambda m: "$" if m[0] == "$$" else values.get(m[1], m[0]),
        text,
    )


@pytest.mark.case("B81")
@for_all(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=30))
def test_text_of_the_resource_reaches_the_program_unchanged(word: str) -> None:
    """No shell reads it, and a kubelet expands nothing in it: `$(OS_BOOTSTRAP_PASSWORD)` stays these letters."""
    case = of({"bootstrap": {"adminPasswordSecretRef": {"name": "keystone-admin"}, "adminUser": word, "region": word}})
    case["keystone"]["spec"]["trustFlush"] = {"args": [word]}
    secret = {"OS_BOOTSTRAP_PASSWORD": "leaked", "OS_DATABASE__CONNECTION": "leaked"}
    commands = [t["spec"]["containers"][0]["command"] for t in templates(case)]
    assert not {"sh", "bash", "/bin/sh", "/bin/bash", "-c"} & {command[0] for command in commands}
    bootstrap = [expand(item, secret) for item in commands[2]]
    assert f"--bootstrap-username={word}" in bootstrap
    assert [expand(item, secret) for item in commands[-1]][-1] == word


@pytest.mark.case("P2")
def test_no_secret_stands_in_a_pod() -> None:
    """Passwords come by secretKeyRef; neither arguments nor environment values hold them."""
    text = json.dumps(objects(of(HOST)))
    assert "s3cret" not in text
    assert "p@ss" not in text
    assert "p%40ss" not in text
    env = [item for t in templates(of(HOST)) for item in t["spec"]["containers"][0]["env"]]
    assert not [item for item in env if "value" in item]


@pytest.mark.case("B07")
def test_domain_files_are_part_of_the_template_and_readable_by_keystone_only() -> None:
    """One template for all replicas; files 0400, the pod's user and group own them."""
    template = next(templates(of({**HOST, "deployment": {"replicas": 3}}, backends=[{"name": "acme"}])))
    volume = next(v for v in template["spec"]["volumes"] if v["name"] == "domains")
    assert volume["secret"]["defaultMode"] == 0o400
    assert volume["secret"]["secretName"].startswith("keystone-domains-")
    mount = next(m for m in template["spec"]["containers"][0]["volumeMounts"] if m["name"] == "domains")
    assert mount == {"name": "domains", "mountPath": "/etc/keystone/domains", "readOnly": True}
    context = template["spec"]["securityContext"]
    assert (context["runAsUser"], context["fsGroup"]) == (42424, 42424)


@pytest.mark.case("C15")
def test_jobs_do_not_depend_on_backends() -> None:
    """Gates are the same with and without a backend, and no Job mounts domain files."""
    plain, attached = objects(of()), objects(of(backends=[{"name": "acme"}]))
    gates = [[manifests.gate_of(job) for job in found if job["kind"] == "Job"] for found in (plain, attached)]
    assert gates[0] == gates[1]
    assert "domains" not in json.dumps([job for job in attached if job["kind"] != "Deployment"])


@pytest.mark.parametrize(
    ("change", "runs_again"),
    [
        ({"image": {"repository": "moorage/keystone", "tag": "31.0.0"}}, True),
        ({"extraConfig": {"database": {"max_retries": "5"}}}, True),
        ({"logging": {"debug": True}}, False),
        ({"fernet": {"maxActiveKeys": 5}}, False),
        ({"networkPolicy": {"ingress": [{}]}}, False),
    ],
)
def test_db_sync_runs_again_for_what_concerns_the_database(change: dict[str, Any], runs_again: bool) -> None:
    """Image and database; nothing else."""
    before = manifests.gate_of(manifests.db_sync(given.keystone(), "c"))
    after = manifests.gate_of(manifests.db_sync(given.keystone(change), "c"))
    assert (before != after) is runs_again


def test_a_changed_database_password_rolls() -> None:
    """The environment is read once, at the start of a pod."""
    secrets = [{"name": "keystone-admin", "data": {"password": "x"}}]
    one, two = (
        next(templates(of(HOST, secrets=[*secrets, {"name": "keystone-db", "data": {"username": "k", "password": p}}])))
        for p in ("a", "b")
    )
    assert one["spec"] == two["spec"]
    assert one["metadata"]["annotations"] != two["metadata"]["annotations"]


def test_the_connection_url_survives_any_password() -> None:
    """Quoted so that SQLAlchemy reads the same text; IPv6 in brackets."""
    keystone = given.keystone({"database": {**HOST["database"], "host": "2001:db8::5", "engine": "PostgreSQL"}})
    url = manifests.connection_url(keystone, "us/er", "p@s:s%/")
    assert url == "postgresql+psycopg2://us%2Fer:p%40s%3As%25%2F@[2001:db8::5]:5432/keystone"


@pytest.mark.case("K19")
def test_an_embedded_database_keeps_all_pods_on_one_node() -> None:
    """The volume is mounted by the API and by Jobs, so they meet where it is."""
    for template in templates(of()):
        assert {"name": "state", "mountPath": "/var/lib/keystone"} in template["spec"]["containers"][0]["volumeMounts"]
        assert "podAffinity" in template["spec"]["affinity"]


def test_a_rotated_key_does_not_change_the_template() -> None:
    """Deployments name the Secret, not its content."""
    seen, _ = given.settle(given.snapshot(of(world="settled")))
    before = seen.child(DEPLOYMENT, "keystone")
    live = dict(seen.live)
    secret = live["Secret", "keystone-fernet-keys"]
    live["Secret", "keystone-fernet-keys"] = given.bend(
        secret, {"metadata": {"annotations": {keys.ROTATED_AT: given.OLD}}}
    )
    rotated, _ = given.settle(replace(seen, live=live))
    assert len(keys.keys_of(rotated.live["Secret", "keystone-fernet-keys"])) == 3
    assert rotated.child(DEPLOYMENT, "keystone") == before


@pytest.mark.case("P2")
def test_nothing_prints_a_secret() -> None:
    """repr of the snapshot and of every plan: what a traceback or a log would show."""
    seen = given.snapshot(of(HOST, backends=[{"name": "acme"}]))
    shown = [repr(seen)]
    while isinstance(answer := decide(seen), Plan):
        shown.append(repr(answer))
        seen = given.imagine(seen, answer)
    shown.append(repr(seen))
    for word in ("s3cret", "p@ss", "p%40ss", given.key(0), given.key(1)):
        assert not any(word in text for text in shown)


def test_a_graceful_stop_fits_into_the_grace_period() -> None:
    """The pause, the wait for answers, then the workers' mercy."""
    for grace, sleep in ((30, 5), (10, 0), (10, 9)):
        keystone = given.keystone(
            {"deployment": {"replicas": 1, "terminationGracePeriodSeconds": grace, "preStopSleepSeconds": sleep}}
        )
        argv = pods.uwsgi(keystone.spec)
        mercy = int(argv[argv.index("--worker-reload-mercy") + 1])
        assert mercy >= 1
        pause, wait, port = map(int, draining.alone(keystone.spec, PORT)[-3:])
        assert (pause, port) == (sleep, 5000)
        assert pause + wait + mercy <= grace
        assert "--die-on-term" not in argv
