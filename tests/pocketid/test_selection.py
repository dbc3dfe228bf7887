"""Which instance an object belongs to: exactly one, by labels, as far as the instance admits the namespace."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.core.meta import Key
from moorage.pocketid.references import BoundInstance, LabelSelector
from moorage.pocketid.selection import NotSelected, Selected, bound_instance, is_ready, one_server, select

PROD = LabelSelector(match_labels={"env": "prod"})


def instance(name: str, labels: dict[str, str] | None = None, allowed: list[str] | None = None) -> dict[str, Any]:
    """An instance of namespace id on the wire."""
    spec = {} if allowed is None else {"allowedNamespaces": allowed}
    return {"metadata": {"namespace": "id", "name": name, **({"labels": labels} if labels else {})}, "spec": spec}


MAIN, TEST = instance("main", {"env": "prod"}), instance("test", {"env": "test"})


def chosen(selector: LabelSelector | None, instances: list[Any], namespace: str = "apps") -> str:
    """The name of the one that is selected, or why there is none."""
    found = select(selector, namespace, instances)
    return found.why if isinstance(found, NotSelected) else found.key.name


@pytest.mark.parametrize(
    ("selector", "instances"),
    [
        (None, [MAIN]),
        (LabelSelector(), [MAIN]),
        (PROD, [TEST, MAIN]),
        (LabelSelector.model_validate({"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["test"]}]}), [TEST, MAIN]),
        (LabelSelector.model_validate({"matchExpressions": [{"key": "env", "operator": "Exists"}]}), [MAIN, instance("bare")]),
        (LabelSelector.model_validate({"matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]}), [MAIN, instance("x", {"old": ""})]),
    ],
)  # fmt: skip
def test_the_one_that_matches_is_selected(selector: LabelSelector | None, instances: list[Any]) -> None:
    """No selector matches every instance; an empty one does, too."""
    assert chosen(selector, instances) == "main"


def test_no_instance_at_all() -> None:
    """There is nothing to list, so the remedy is said."""
    assert chosen(None, []) == "there is no PocketIDInstance in any namespace; create one"


def test_no_match_lists_instances_and_their_labels() -> None:
    """Spec 7.3.16: people forget that an instance has no labels unless they give it some."""
    assert chosen(PROD, [TEST, instance("bare")]) == (
        "instanceSelector env=prod matches no PocketIDInstance; there are: id/bare (no labels), id/test (env=test)"
    )


def test_several_matches_are_listed_in_one_order() -> None:
    """The message is the same on every pass, however the cache orders its objects."""
    told = {chosen(None, found) for found in ([MAIN, TEST], [TEST, MAIN])}
    assert told == {
        "the object has no instanceSelector and 2 PocketIDInstances are there for it, exactly one may be:"
        " id/main (env=prod), id/test (env=test); select one by its labels"
    }


def test_a_long_list_is_cut() -> None:
    """A condition is read by people."""
    assert chosen(PROD, [instance(f"i{n}") for n in range(12)]).endswith("id/i5 (no labels), and 4 more")


@pytest.mark.parametrize(
    ("allowed", "namespace", "admitted"),
    [(None, "apps", True), ([], "apps", False), ([], "id", True), (["apps"], "apps", True), (["other"], "apps", False)],
)
def test_an_instance_admits_its_own_namespace_and_those_it_lists(
    allowed: list[str] | None, namespace: str, admitted: bool
) -> None:
    """Absent: all; empty: its own only."""
    found = chosen(None, [instance("main", allowed=allowed)], namespace)
    assert (found == "main") is admitted
    if not admitted:
        assert "add apps to spec.allowedNamespaces" in found


def test_an_instance_that_does_not_admit_us_does_not_count() -> None:
    """Two teams with an instance each need no selector when each admits its own."""
    assert chosen(None, [instance("main"), instance("theirs", allowed=["team"])]) == "main"


BOUND = BoundInstance(namespace="id", name="test", url="https://test.example.org")


def test_a_selection_that_moved_says_what_was_left() -> None:
    """What was made there is still there; nothing is orphaned in silence."""
    assert select(PROD, "apps", [MAIN, TEST], BOUND) == Selected(MAIN, BOUND)
    assert select(None, "apps", [TEST], BOUND) == Selected(TEST)


def test_a_bound_instance_is_found_whatever_the_selector_says() -> None:
    """Deletion goes to where the object is."""
    assert bound_instance(BOUND, [MAIN, TEST]) == TEST
    assert bound_instance(BOUND, [MAIN]) is None
    assert bound_instance(None, [MAIN]) is None


def test_the_key_of_a_selection() -> None:
    """Namespace and name."""
    found = select(None, "apps", [MAIN])
    assert isinstance(found, Selected)
    assert found.key == Key("id", "main")


DRAWN = "6f1c1c1e-7c3f-4a0d-9d0c-3f2b7f6a9b10"


@pytest.mark.parametrize(
    ("one", "other", "id", "same"),
    [
        ({"url": "https://id.example.org"}, {"url": "https://ID.example.org/"}, "app", True),
        ({"url": "http://id.svc", "app": "https://id.example.org"}, {"url": "https://id.example.org"}, "app", True),
        ({"url": "http://127.0.0.1:1"}, {"url": "http://localhost:1"}, "app", False),
        ({"url": "http://127.0.0.1:1"}, {"url": "http://localhost:1"}, DRAWN, True),
        (
            {"url": "http://a.svc", "app": "https://a.example.org"},
            {"url": "http://b.svc", "app": "https://b.example.org"},
            DRAWN,
            False,
        ),
    ],
)
def test_two_instances_are_one_server_by_address_issuer_or_an_id_drawn_by_chance(
    one: dict[str, str], other: dict[str, str], id: str, same: bool
) -> None:
    """A copy of a server has its ids; that it is another is said by both issuers."""
    pair = []
    for name, told in (("a", one), ("b", other)):
        made = instance(name)
        made["spec"] = {"external": {"url": told["url"]}, **({"appUrl": told["app"]} if "app" in told else {})}
        pair.append(made)
    assert one_server(*pair, id) is same


def test_what_an_instance_says_of_itself_keeps_nothing_from_other_namespaces() -> None:
    """Whoever may create an instance could have a little server of their own behind it, and name anybody's address as issuer."""
    ours, evil = instance("main"), instance("own")
    ours["spec"] = {"external": {"url": "https://id.example.org"}, "appUrl": "https://id.example.org"}
    evil["spec"] = {"external": {"url": "http://mine.evil.svc"}, "appUrl": "https://id.example.org"}
    assert one_server(ours, evil, "grafana")
    evil["metadata"]["namespace"] = "evil"
    assert not one_server(ours, evil, "grafana")
    assert not one_server(ours, evil, DRAWN), "client ids are no secrets, and a server of one's own may give any"
    ours["spec"]["adminNamespaces"] = ["evil"]
    assert one_server(ours, evil, "grafana")
    assert one_server(ours, evil, DRAWN)


def test_a_server_that_an_instance_was_pointed_away_from_proves_nothing() -> None:
    """Its Ready is of the former address until it is looked at again."""
    there = instance("own")
    there["spec"] = {"external": {"url": "https://id.example.org"}}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    there["status"] = {"url": "http://mine.evil.svc", "conditions": [ready]}
    assert not is_ready(there)
    there["status"]["url"] = "https://id.example.org/"
    assert is_ready(there)
