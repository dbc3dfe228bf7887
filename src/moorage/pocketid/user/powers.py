"""What a namespace that only uses an instance may not make of a user: an administrator, or itself out of a person who exists.

Enters: a snapshot. Leaves: why it may not, or nothing. Pure. An administrator's API key opens every client and every user of the server,
and who sets a person's mail address receives that person's login codes: whoever may write PocketIDUsers in an admitted namespace would be
administrator otherwise. A user that we made is known by its id, which nobody else can have.
"""

from __future__ import annotations

from .seen import Seen


def overreach(seen: Seen) -> str:
    """Why the namespace of this user may not have it as declared; "" when it may."""
    instance, there = seen.bond.instance, seen.found
    if seen.bond.trusts or instance is None:
        return ""
    if seen.resource.spec.admin:
        asked = "spec.admin makes an administrator"
    elif there is not None and there.is_admin:
        asked = f"user {there.username!r} is an administrator"
    elif there is not None and there.id != seen.known and not is_made_here(seen, there.id):
        asked = f"user {there.username!r} exists already, and would be taken over"
    else:
        return ""
    space = seen.resource.metadata.namespace
    return (
        f"{asked}, which namespace {space} may not: declare it in namespace {instance.namespace},"
        f" or name {space} in spec.adminNamespaces of PocketIDInstance {instance.namespace}/{instance.name}"
    )


def is_made_here(seen: Seen, id: str) -> bool:
    """Whether a user can only be ours, whatever the status remembers; a declared id may be anybody's."""
    return seen.resource.spec.user_id is None and id == seen.wanted_id
