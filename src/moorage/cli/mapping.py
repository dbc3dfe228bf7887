"""`moorage mapping test`: what Keystone would make of somebody's claims, before anybody logs in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from moorage.cli.options import Output, OutputOption
from moorage.cli.printable import printable
from moorage.cli.signature import Argument, Option, group_of
from moorage.core.errors import InputError, RefusedError
from moorage.core.meta import JsonObject

if TYPE_CHECKING:
    from moorage.keystone.backend.mapping_engine import Mapped, RuleTrace
    from moorage.keystone.backend.mapping_trial import Trial


def try_login(
    file: Annotated[
        str,
        Argument(
            help="A KeystoneIdentityBackend, a folder with one, or Keystone's own mapping JSON; - for standard input."
        ),
    ],
    claims: Annotated[
        str | None, Option("--claims", help="Claims: JSON, `NAME: value` lines; - for standard input.")
    ] = None,
    claim: Annotated[
        list[str] | None, Option("--claim", help="One claim, NAME=VALUE; several values with ; between.")
    ] = None,
    name: Annotated[str | None, Option("--name", help="Which backend, where the file holds several.")] = None,
    output: OutputOption = Output.text,
) -> None:
    """Say what Keystone would make of these claims: each rule and why, then user, groups, projects.

    Claims are named as in the token or assertion (preferred_username, groups) or as Keystone's environ has them (HTTP_OIDC_GROUPS).
    Exit 0 when the user is let in, 1 when not.

    Example:  moorage mapping test backend.yaml --claim preferred_username=alice --claim 'groups=dev;ops'
    """
    from moorage.cli.claims import claims_of
    from moorage.cli.patience import Patience
    from moorage.keystone.backend.mapping_trial import try_backend, try_rules

    if file == "-" == claims:
        raise InputError("-", "rules and claims cannot both come from standard input", "Put one of them into a file")
    given = claims_of(claims, claim or ())
    found = _source(file, name)
    search = Patience().search
    trial = try_rules(found, given, search) if isinstance(found, list) else try_backend(found, given, search)
    if output is Output.json:
        click.echo(json.dumps(_wire(trial), ensure_ascii=False))
    else:
        for line in _lines(trial):
            click.echo(printable(line))
    raise click.exceptions.Exit(1 if trial.mapped.failure else 0)


def _source(file: str, name: str | None) -> Any:
    """Bare rules, or the declaration of the one backend that is meant."""
    from moorage.cli import manifests

    if file != "-" and Path(file).is_dir():
        given = manifests.read([file])
    else:
        text = manifests.text_of(file)
        bare = _bare(text)
        if bare is not None:
            return _checked_rules(file, bare)
        given = manifests.parsed(text, file)
    found = [item for item in given if item.kind == "KeystoneIdentityBackend"]
    federated = [item for item in found if (item.object.get("spec") or {}).get("type") != "LDAP"]
    chosen = [item for item in federated if name in (None, item.key.name)]
    if not federated:
        what = "holds LDAP backends only, and those have no mapping" if found else "holds no KeystoneIdentityBackend"
        raise InputError(file, what, "Give a file with a backend of type OIDC or SAML")
    if len(chosen) != 1:
        names = ", ".join(item.key.name for item in federated)
        raise InputError(file, f"OIDC and SAML backends in it: {names}", "Name one that is there with --name")
    return _declared(file, chosen[0].object)


def _bare(text: str) -> Any:
    """Rules as Keystone has them: a list, or an object with `rules`, perhaps inside `mapping`; None for manifests."""
    from moorage.core.yamltext import Unreadable, load_all

    try:
        first = next(iter(load_all(text)), None)
    except Unreadable:
        return None
    if isinstance(first, dict) and "apiVersion" not in first:
        inner = first.get("mapping", first)
        return inner.get("rules") if isinstance(inner, dict) else None
    return first if isinstance(first, list) else None


def _checked_rules(file: str, rules: Any) -> list[JsonObject]:
    from moorage.keystone.backend.mapping_schema import fault

    why = fault(rules)
    if why:
        raise InputError(file, why, "Write rules as Keystone's mapping API takes them")
    return list(rules)


def _declared(file: str, obj: JsonObject) -> Any:
    """The admitted declaration. What admission refuses would never reach Keystone, so it is the answer."""
    from moorage.cli.systems import admissions_of
    from moorage.keystone.backend.types import KIND
    from moorage.runtime.offline import lint

    result = lint([(file, 1, obj)], (), admissions_of([KIND.kind]))
    errors = [item.message for item in result.findings if item.severity == "error"]
    if errors:
        raise RefusedError(file, "; ".join(map(printable, errors)), "See `moorage lint`")
    warnings = [item.message for item in result.findings if item.message.startswith("spec.mappings")]
    for warning in warnings:
        click.echo(printable(f"warning: {warning}"), err=True)
    return KIND.parse(result.admitted[0]).spec


def _wire(trial: Trial) -> JsonObject:
    """The JSON form of spec/cli.md, with what arrived beside it."""
    mapped = trial.mapped
    failure = mapped.failure
    return {
        "matched": list(mapped.matched),
        "user": mapped.user,
        "group_ids": list(mapped.group_ids),
        "group_names": list(mapped.group_names),
        "projects": list(mapped.projects),
        "error": {"code": failure.code, "message": failure.message} if failure else None,
        "rules": [_rule_wire(rule) for rule in mapped.rules],
        "claims": dict(trial.claims),
        "notes": list(trial.notes),
    }


def _rule_wire(rule: RuleTrace) -> JsonObject:
    remote = [
        {"index": item.index, "type": item.type, "matched": item.matched, "why": item.why, "value": item.value}
        for item in rule.remote
    ]
    return {"index": rule.index, "matched": rule.matched, "remote": remote}


def _lines(trial: Trial) -> Iterator[str]:
    mapped = trial.mapped
    for rule in mapped.rules:
        yield f"rule {rule.index}: {'matches' if rule.matched else 'does not match'}"
        for item in rule.remote:
            mark = "yes" if item.matched else "no"
            value = "" if item.value is None else f" = {item.value!r}"
            yield f"  {mark:3} remote[{item.index}] {item.type}{value}: {item.why}"
    for note in trial.notes:
        yield f"note: {note}"
    if mapped.failure:
        yield f"no login: {mapped.failure.code}: {mapped.failure.message}"
    else:
        yield from _identity(mapped, trial.domain)


def _identity(mapped: Mapped, domain: str) -> Iterator[str]:
    user = mapped.user
    where = _domain(user.get("domain")) or domain or "that of the identity provider"
    yield f"user: {user.get('name') or user.get('id')} ({user['type']}), domain {where}"
    if mapped.ignored:
        yield f"note: {len(mapped.ignored)} more users were given and are ignored: the first counts"
    groups = dict.fromkeys(f"{group['name']} in domain {_domain(group['domain'])}" for group in mapped.group_names)
    yield f"groups: {', '.join([*groups, *(f'id {item}' for item in mapped.group_ids)]) or 'none'}"
    for project in mapped.projects:
        roles = ", ".join(role["name"] for role in project.get("roles", ())) or "no role"
        yield f"project: {project['name']}: {roles}"


def _domain(domain: Mapping[str, Any] | None) -> str:
    return str((domain or {}).get("name") or (domain or {}).get("id") or "")


command = group_of(
    """Try mapping rules without a server.

    Example:  moorage mapping test backend.yaml --claim preferred_username=alice
    """,
    {"test": try_login},
)
