"""From what a Pocket-ID holds to manifests that adopt it: applied, they change nothing at the server.

Enters: Holdings, who owns what already, where the manifests go. Leaves: an Export: manifests, what could not be declared and why, Secrets that are to be
made by hand. Pure, and without a secret. What a resource owns is not exported again; what admission would refuse is left out with its words.
Source: spec/pocketid.md 8, gap 11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from moorage.cli.pocketid_clients import client_draft
from moorage.cli.pocketid_drafts import Draft, Drafted, Needed, Owned, Undeclarable, api_draft, group_draft, user_draft
from moorage.cli.pocketid_holdings import Holdings
from moorage.cli.pocketid_names import names_of
from moorage.cli.pocketid_owners import API, CLIENT, GROUP, USER, Owners
from moorage.core.meta import JsonObject, Key
from moorage.pocketid import SYSTEM
from moorage.runtime.offline import lint
from moorage.schema import Kind

WORDS: Final[Mapping[str, str]] = {CLIENT.kind: "client", GROUP.kind: "group", API.kind: "api", USER.kind: "user"}
"""Kind -> what one of it is called."""


class _Thing(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_Thing)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the manifests go.

    Args:
        namespace: "" leaves it to whoever applies them.
        selector: labels that select the instance; empty when it is the only one.
        instance: manifest of the instance, when it is exported, too, and the Secret that it needs.
    """

    namespace: str = ""
    selector: Mapping[str, str] = field(default_factory=dict)
    instance: tuple[JsonObject, Needed] | None = None


@dataclass(frozen=True, slots=True)
class Omitted:
    """Something that is not exported. `why`: what no manifest can say, or who declares it already."""

    kind: str
    id: str
    name: str
    why: str

    def __str__(self) -> str:
        return f"{WORDS[self.kind]} {self.name!r} (id {self.id}): {self.why}"


@dataclass
class Export:
    """What came of it. `left_out` could not be declared; `skipped` need not be."""

    items: list[JsonObject] = field(default_factory=list)
    left_out: list[Omitted] = field(default_factory=list)
    skipped: list[Omitted] = field(default_factory=list)
    needed: list[Needed] = field(default_factory=list)


def called(thing: Any) -> str:
    """The name that people see."""
    return str(getattr(thing, "username", None) or thing.name)


def export(holdings: Holdings, owners: Owners, place: Place, *, users: bool = True) -> Export:
    """Manifests of everything that no resource owns: users (if they are wanted), groups, APIs, clients, in this order."""
    writer = _Writer(owners, place)
    refs, people = writer.refs, {user.id: user for user in holdings.users}
    if users:
        writer.write(USER, holdings.users, user_draft)
    writer.write(GROUP, holdings.groups, lambda item, name: group_draft(item, name, people, refs))
    writer.write(API, holdings.apis, api_draft)
    writer.write(CLIENT, holdings.clients, lambda item, name: client_draft(item, name, holdings, refs))
    return writer.made


class _Writer:
    """One export. `refs` grows with each kind, so that what comes later names only what can be declared."""

    def __init__(self, owners: Owners, place: Place) -> None:
        self._owners, self._place = owners, place
        self.made = Export()
        self.refs = {pair: self._ref(key) for pair, key in owners.by_id.items()}
        if place.instance is not None:
            self.made.items.append(place.instance[0])
            self.made.needed.append(place.instance[1])

    def write(self, kind: Kind[Any], things: Iterable[T], draft: Callable[[T, str], Drafted]) -> None:
        """The manifests of one kind."""
        fresh = [item for item in things if not self._is_owned(kind, item)]
        taken = self._owners.names(kind.kind, self._place.namespace)
        names = names_of({item.id: called(item) for item in fresh}, taken, WORDS[kind.kind])
        written: list[tuple[T, JsonObject, Draft]] = []
        for item in sorted(fresh, key=lambda item: names[item.id]):
            match draft(item, names[item.id]):
                case Undeclarable(why):
                    self.made.left_out.append(_omitted(kind, item, why))
                case Owned(owner):
                    self.made.skipped.append(_omitted(kind, item, owner))
                case Draft() as made:
                    written.append((item, self._manifest(kind, names[item.id], made.spec), made))
        self._take(kind, written)

    def _take(self, kind: Kind[Any], written: list[tuple[T, JsonObject, Draft]]) -> None:
        refused = self._refused(kind, [manifest for _, manifest, _ in written])
        for item, manifest, made in written:
            name = manifest["metadata"]["name"]
            if name in refused:
                self.made.left_out.append(_omitted(kind, item, refused[name]))
                continue
            self.made.items.append(manifest)
            self.made.needed += made.needed
            self.refs[kind.kind, item.id] = {"name": name}

    def _is_owned(self, kind: Kind[Any], item: T) -> bool:
        owner = self._owners.by_id.get((kind.kind, item.id))
        if owner is not None:
            self.made.skipped.append(_omitted(kind, item, str(owner)))
        return owner is not None

    def _manifest(self, kind: Kind[Any], name: str, spec: JsonObject) -> JsonObject:
        selector = {"instanceSelector": {"matchLabels": dict(self._place.selector)}} if self._place.selector else {}
        where = {"namespace": self._place.namespace} if self._place.namespace else {}
        return {
            "apiVersion": kind.resource.api_version,
            "kind": kind.kind,
            "metadata": {"name": name, **where},
            "spec": {**selector, **spec},
        }

    def _refused(self, kind: Kind[Any], manifests: list[JsonObject]) -> dict[str, str]:
        """What admission says of each manifest that it would refuse, by name."""
        siblings = [item for item in self._owners.resources if item["kind"] == kind.kind]
        result = lint([("", 0, item) for item in manifests], siblings, SYSTEM.admissions_of([kind.kind]))
        found: dict[str, list[str]] = {}
        for finding in result.findings:
            if finding.severity == "error":
                found.setdefault(finding.name, []).append(finding.message)
        return {name: "; ".join(texts) for name, texts in found.items()}

    def _ref(self, key: Key) -> JsonObject:
        if key.namespace == self._place.namespace:
            return {"name": key.name}
        return {"name": key.name, "namespace": key.namespace}


def _omitted(kind: Kind[Any], item: Any, why: str) -> Omitted:
    return Omitted(kind.kind, item.id, called(item), why)
