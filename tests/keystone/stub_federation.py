"""The stub Keystone's federation objects, groups, roles, projects and role assignments, in memory.

It reproduces documented semantics only: remote ids unique in the whole Keystone (409) and of 64 characters at most (400), a domain that must
exist and never changes, a mapping that must exist for its protocol, the remote id attribute told by the list of protocols alone, assignments that
go with their group, role or project, deletion of a domain with everything in it. tests/keystone/identity/test_semantics.py holds it against Keystone.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Item = dict[str, Any]


def error(status: int, message: str) -> web.Response:
    """An answer as Keystone words it."""
    return web.json_response({"error": {"code": status, "message": message, "title": "x"}}, status=status)


def absent(what: str, id: str) -> web.Response:
    """404."""
    return error(404, f"Could not find {what}: {id}.")


@dataclass
class Federated:
    """Everything besides domains. `domains` is the stub's own table."""

    domains: dict[str, Item]
    providers: dict[str, Item] = field(default_factory=dict)
    mappings: dict[str, Item] = field(default_factory=dict)
    protocols: dict[tuple[str, str], Item] = field(default_factory=dict)
    groups: dict[str, Item] = field(default_factory=dict)
    roles: dict[str, Item] = field(default_factory=dict)
    projects: dict[str, Item] = field(default_factory=dict)
    grants: set[tuple[str, str, str, str]] = field(default_factory=set)
    """Kind of scope, id of scope, group, role."""

    def routes(self) -> Iterable[web.RouteDef]:
        """What the stub serves."""
        idp, mapping = "/v3/OS-FEDERATION/identity_providers", "/v3/OS-FEDERATION/mappings"
        one, protocol = f"{idp}/{{id}}", f"{idp}/{{id}}/protocols/{{protocol}}"
        grant = "/v3/{kind:domains|projects}/{scope}/groups/{group}/roles/{role}"
        return [
            web.get(idp, self._list_providers), web.get(one, self._get_provider), web.put(one, self._put_provider),
            web.patch(one, self._patch_provider), web.delete(one, self._delete_provider),
            web.get(f"{mapping}/{{id}}", self._get_mapping), web.put(f"{mapping}/{{id}}", self._put_mapping),
            web.patch(f"{mapping}/{{id}}", self._patch_mapping), web.delete(f"{mapping}/{{id}}", self._delete_mapping),
            web.get(f"{one}/protocols", self._list_protocols), web.put(protocol, self._put_protocol),
            web.patch(protocol, self._patch_protocol), web.delete(protocol, self._delete_protocol),
            web.get("/v3/groups", self._list_groups), web.post("/v3/groups", self._post_group),
            web.delete("/v3/groups/{id}", self._delete_group),
            web.get("/v3/roles", self._list_roles), web.post("/v3/roles", self._post_role),
            web.delete("/v3/roles/{id}", self._delete_role),
            web.get("/v3/projects", self._list_projects), web.post("/v3/projects", self._post_project),
            web.get("/v3/role_assignments", self._list_grants),
            web.put(grant, self._put_grant), web.delete(grant, self._delete_grant),
        ]  # fmt: skip

    # --- for tests

    def role(self, name: str, *, domain: str | None = None) -> str:
        """A role; its id."""
        return _add(self.roles, name=name, domain_id=domain)

    def project(self, name: str, domain: str) -> str:
        """A project; its id."""
        return _add(self.projects, name=name, domain_id=domain)

    def granted(self) -> set[tuple[str, str, str]]:
        """Assignments by names: group, role, and project or ""."""
        return {
            (
                self.groups[group]["name"],
                self.roles[role]["name"],
                self.projects[id]["name"] if kind == "projects" else "",
            )
            for kind, id, group, role in self.grants
        }

    def forget_domain(self, id: str) -> None:
        """A domain is deleted with everything in it."""
        for name in [item["id"] for item in self.providers.values() if item["domain_id"] == id]:
            self._drop_provider(name)
        for table, kind in ((self.groups, "group"), (self.projects, "project"), (self.roles, "role")):
            for key in [item["id"] for item in table.values() if item["domain_id"] == id]:
                self._drop(table, kind, key)
        self.grants = {item for item in self.grants if item[1] != id}

    def _drop(self, table: dict[str, Item], kind: str, id: str) -> None:
        table.pop(id, None)
        place = {"project": 1, "group": 2, "role": 3}[kind]
        self.grants = {item for item in self.grants if item[place] != id}

    def _drop_provider(self, id: str) -> None:
        del self.providers[id]
        self.protocols = {key: item for key, item in self.protocols.items() if key[0] != id}

    # --- identity providers

    async def _list_providers(self, _: web.Request) -> web.Response:
        return web.json_response({"identity_providers": list(self.providers.values()), "links": {"next": None}})

    async def _get_provider(self, request: web.Request) -> web.Response:
        found = self.providers.get(request.match_info["id"])
        return (
            web.json_response({"identity_provider": found})
            if found
            else absent("Identity Provider", request.match_info["id"])
        )

    async def _put_provider(self, request: web.Request) -> web.Response:
        id, wanted = request.match_info["id"], (await request.json())["identity_provider"]
        if refusal := self._refused(id, wanted):
            return refusal
        if id in self.providers:
            return error(409, f"Conflict occurred attempting to store identity_provider - Duplicate entry: {id}.")
        domain = wanted.get("domain_id")
        if domain is not None and domain not in self.domains:
            return absent("domain", domain)
        if domain is None:
            domain = uuid.uuid4().hex
            self.domains[domain] = {
                "id": domain,
                "name": domain,
                "enabled": True,
                "description": f"Auto generated: {id}",
            }
        defaults = {"enabled": False, "description": None, "remote_ids": [], "authorization_ttl": None}
        self.providers[id] = {"id": id, **defaults, **wanted, "domain_id": domain}
        return web.json_response({"identity_provider": self.providers[id]}, status=201)

    async def _patch_provider(self, request: web.Request) -> web.Response:
        id, changes = request.match_info["id"], (await request.json())["identity_provider"]
        if "domain_id" in changes:
            return error(400, "Additional properties are not allowed ('domain_id' was unexpected)")
        if refusal := self._refused(id, changes):
            return refusal
        if id not in self.providers:
            return absent("Identity Provider", id)
        self.providers[id].update(changes)
        return web.json_response({"identity_provider": self.providers[id]})

    def _refused(self, id: str, wanted: Item) -> web.Response | None:
        for remote_id in wanted.get("remote_ids") or ():
            if len(remote_id) > 64:
                return error(
                    400, f"Invalid input for field 'identity_provider/remote_ids/0': '{remote_id}' is too long"
                )
            if any(remote_id in item["remote_ids"] and item["id"] != id for item in self.providers.values()):
                return error(
                    409, f"Conflict occurred attempting to store identity_provider - Duplicate remote ID: {remote_id}."
                )
        return None

    async def _delete_provider(self, request: web.Request) -> web.Response:
        id = request.match_info["id"]
        if id not in self.providers:
            return absent("Identity Provider", id)
        self._drop_provider(id)
        return web.Response(status=204)

    # --- mappings

    async def _get_mapping(self, request: web.Request) -> web.Response:
        found = self.mappings.get(request.match_info["id"])
        return web.json_response({"mapping": found}) if found else absent("mapping", request.match_info["id"])

    async def _put_mapping(self, request: web.Request) -> web.Response:
        id, rules = request.match_info["id"], (await request.json())["mapping"]["rules"]
        if not rules:
            return error(400, "[] should be non-empty")
        if id in self.mappings:
            return error(409, f"Conflict occurred attempting to store mapping - Duplicate entry found with ID {id}.")
        self.mappings[id] = {"id": id, "rules": rules, "schema_version": "1.0"}
        return web.json_response({"mapping": self.mappings[id]}, status=201)

    async def _patch_mapping(self, request: web.Request) -> web.Response:
        id, rules = request.match_info["id"], (await request.json())["mapping"]["rules"]
        if not rules:
            return error(400, "[] should be non-empty")
        if id not in self.mappings:
            return absent("mapping", id)
        self.mappings[id]["rules"] = rules
        return web.json_response({"mapping": self.mappings[id]})

    async def _delete_mapping(self, request: web.Request) -> web.Response:
        if self.mappings.pop(request.match_info["id"], None) is None:
            return absent("mapping", request.match_info["id"])
        return web.Response(status=204)

    # --- protocols

    async def _list_protocols(self, request: web.Request) -> web.Response:
        id = request.match_info["id"]
        found = [{**item, "idp_id": id} for (provider, _), item in self.protocols.items() if provider == id]
        return web.json_response({"protocols": found, "links": {"next": None}})

    async def _put_protocol(self, request: web.Request) -> web.Response:
        key, wanted = (request.match_info["id"], request.match_info["protocol"]), (await request.json())["protocol"]
        if wanted["mapping_id"] not in self.mappings:
            return error(400, f"Invalid mapping id: {wanted['mapping_id']}")
        if key[0] not in self.providers:
            return absent("Identity Provider", key[0])
        if key in self.protocols:
            return error(409, f"Conflict occurred attempting to store federation_protocol - Duplicate entry: {key[1]}.")
        self.protocols[key] = {"id": key[1], "remote_id_attribute": None, **wanted}
        return web.json_response({"protocol": _shown(self.protocols[key])}, status=201)

    async def _patch_protocol(self, request: web.Request) -> web.Response:
        key, wanted = (request.match_info["id"], request.match_info["protocol"]), (await request.json())["protocol"]
        if wanted["mapping_id"] not in self.mappings:
            return error(400, f"Invalid mapping id: {wanted['mapping_id']}")
        if key not in self.protocols:
            return absent("federated protocol", key[1])
        self.protocols[key].update(wanted)
        return web.json_response({"protocol": _shown(self.protocols[key])})

    async def _delete_protocol(self, request: web.Request) -> web.Response:
        if self.protocols.pop((request.match_info["id"], request.match_info["protocol"]), None) is None:
            return absent("federated protocol", request.match_info["protocol"])
        return web.Response(status=204)

    # --- groups, roles, projects

    async def _list_groups(self, request: web.Request) -> web.Response:
        return web.json_response(
            {"groups": _filtered(self.groups, request, "domain_id", "name"), "links": {"next": None}}
        )

    async def _post_group(self, request: web.Request) -> web.Response:
        return self._post(self.groups, "group", (await request.json())["group"])

    async def _delete_group(self, request: web.Request) -> web.Response:
        return self._deleted(self.groups, "group", request.match_info["id"])

    async def _list_roles(self, request: web.Request) -> web.Response:
        wanted = request.query.get("domain_id")
        found = [item for item in _filtered(self.roles, request, "name") if item["domain_id"] == wanted]
        return web.json_response({"roles": found, "links": {"next": None}})

    async def _post_role(self, request: web.Request) -> web.Response:
        return self._post(self.roles, "role", {"domain_id": None, **(await request.json())["role"]})

    async def _delete_role(self, request: web.Request) -> web.Response:
        return self._deleted(self.roles, "role", request.match_info["id"])

    async def _list_projects(self, request: web.Request) -> web.Response:
        return web.json_response(
            {"projects": _filtered(self.projects, request, "domain_id", "name"), "links": {"next": None}}
        )

    async def _post_project(self, request: web.Request) -> web.Response:
        return self._post(self.projects, "project", (await request.json())["project"])

    def _post(self, table: dict[str, Item], kind: str, wanted: Item) -> web.Response:
        if any((item["name"], item["domain_id"]) == (wanted["name"], wanted["domain_id"]) for item in table.values()):
            return error(
                409, f"Conflict occurred attempting to store {kind} - Duplicate entry found with name {wanted['name']}."
            )
        if wanted["domain_id"] is not None and wanted["domain_id"] not in self.domains:
            return absent("domain", wanted["domain_id"])
        return web.json_response({kind: table[_add(table, **wanted)]}, status=201)

    def _deleted(self, table: dict[str, Item], kind: str, id: str) -> web.Response:
        if id not in table:
            return absent(kind, id)
        self._drop(table, kind, id)
        return web.Response(status=204)

    # --- assignments

    async def _list_grants(self, request: web.Request) -> web.Response:
        wanted = {"group.id": 2, "role.id": 3}
        found = []
        for item in sorted(self.grants):
            if any(name in request.query and request.query[name] != item[place] for name, place in wanted.items()):
                continue
            scope = request.query.get(f"scope.{item[0][:-1]}.id")
            other = request.query.get("scope.domain.id", request.query.get("scope.project.id"))
            if "include_subtree" in request.query and item[0] == "projects":
                below = self.projects[item[1]]["domain_id"] == other or item[1] == other
            else:
                below = other is None or scope == item[1]
            if not below:
                continue
            found.append(
                {
                    "scope": {item[0][:-1]: {"id": item[1]}},
                    "group": {"id": item[2]},
                    "role": {"id": item[3]},
                    "links": {},
                }
            )
        return web.json_response({"role_assignments": found, "links": {"next": None}})

    def _grant_of(self, request: web.Request) -> tuple[tuple[str, str, str, str], web.Response | None]:
        info = request.match_info
        scopes = self.domains if info["kind"] == "domains" else self.projects
        found = (info["kind"], info["scope"], info["group"], info["role"])
        for what, table, id in (
            ("role", self.roles, found[3]),
            (info["kind"][:-1], scopes, found[1]),
            ("group", self.groups, found[2]),
        ):
            if id not in table:
                return found, absent(what, id)
        return found, None

    async def _put_grant(self, request: web.Request) -> web.Response:
        grant, refusal = self._grant_of(request)
        if refusal:
            return refusal
        self.grants.add(grant)
        return web.Response(status=204)

    async def _delete_grant(self, request: web.Request) -> web.Response:
        grant, refusal = self._grant_of(request)
        if refusal or grant not in self.grants:
            return refusal or absent("role assignment with role", grant[3])
        self.grants.remove(grant)
        return web.Response(status=204)


def _add(table: dict[str, Item], **fields: Any) -> str:
    id = uuid.uuid4().hex
    table[id] = {"id": id, "description": "", **fields}
    return id


def _filtered(table: dict[str, Item], request: web.Request, *names: str) -> list[Item]:
    return [
        item
        for item in table.values()
        if all(name not in request.query or item[name] == request.query[name] for name in names)
    ]


def _shown(protocol: Item) -> Item:
    """One protocol is told without its remote id attribute."""
    return {name: value for name, value in protocol.items() if name != "remote_id_attribute"}
