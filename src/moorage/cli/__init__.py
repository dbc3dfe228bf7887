"""The command `moorage`: one file a command, each calls one function of the house. Contract: spec/cli.md.

Exit codes: 0 done, 1 the answer is no, 2 usage or unreadable input, 3 the surroundings failed.
Nothing heavy is imported here: `moorage --help` stays under 150 ms.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from itertools import takewhile
from typing import Any

import typer

COMMANDS = {
    "up": (
        "up",
        "Start one-machine mode: API server, all controllers, and a node that runs pods as processes of this machine.",
    ),
    "run": ("run", "Run the operator for all kinds against a Kubernetes cluster, inside it or outside."),
    "status": ("status", "Say of each resource whether it is ready or, in one sentence, why not."),
    "tree": (
        "tree",
        "Show a resource with its conditions, everything it owns, and the last events; of a PocketIDInstance what is bound to it.",
    ),
    "wait": ("wait", "Wait until a condition is True, and say meanwhile what is awaited."),
    "lint": (
        "lint",
        "Check manifests as the API server would: schema, defaults, CEL, admission rules, siblings. Needs no server.",
    ),
    "mapping": ("mapping", "Try mapping rules without a server."),
    "render": ("render", "Write what the controllers would project from these files. Needs no server."),
    "diff": (
        "diff",
        "Show what applying these files would change on the server, and in the files that Moorage projects from them.",
    ),
    "explain": (
        "explain",
        "Explain a kind or a field: type, default, bounds, meaning, the rules that name it, an example.",
    ),
    "crds": ("crds", "Print the CRDs, RBAC and webhook configurations that belong to this version."),
    "pocketid": ("pocketid", "Look into a Pocket-ID: export it as manifests, find what no resource owns."),
    "support-bundle": (
        "support_bundle",
        "Collect versions, statuses, events and redacted logs in one archive. No Secret is read and no secret is in it.",
    ),
    "version": ("version", "Print the version of moorage and of the Python it runs on."),
}
"""Command name -> module of this package, and what the list of commands says of it: the first paragraph of its docstring. Each module holds
one function, `command`, or a group of that name."""


def build(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command tree, whole or with these commands only."""
    app = _root()
    for name in names:
        command = import_module(f"{__name__}.{COMMANDS[name][0]}").command
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def listing() -> typer.Typer:
    """The commands by name, for a call that names none of them: what they do is not read."""
    app = _root()
    for name, (_, says) in COMMANDS.items():
        app.command(name, help=says)(lambda: None)
    return app


def _root() -> typer.Typer:
    app = typer.Typer(
        name="moorage",
        help="Attach identity backends to OpenStack Keystone and keep them attached.",
        rich_markup_mode=None,
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    return app


def _options(
    debug: bool = typer.Option(False, "--debug", help="Show a traceback when something fails."),
) -> None:
    """Attach identity backends to OpenStack Keystone and keep them attached.

    Start one-machine mode:  moorage up

    Check manifests in CI:   moorage lint examples/keystone-ldap
    """
    _state["debug"] = debug


_state = {"debug": False}


def main() -> None:
    """Entry point: runs the command and turns foreseen errors into one line and an exit code."""
    gc.set_threshold(20_000)  # start-up makes many objects that stay; looking through them less often saves a tenth
    os.environ.setdefault(
        "PYDANTIC_DISABLE_PLUGINS", "__all__"
    )  # looking for some reads what every package says of itself
    try:
        sys.exit(_called(sys.argv[1:])(standalone_mode=False, prog_name="moorage"))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        if _state["debug"]:
            raise
        sys.exit(_explain(error))
    finally:
        gc.freeze()  # the process ends and its memory with it: no last look for cycles, which takes as long as reading pydantic


def _called(arguments: list[str]) -> typer.Typer:
    """The one command that a call names, or the list of them: reading one is quicker than reading fourteen."""
    before = list(takewhile(lambda word: word.startswith("-"), arguments))
    named = arguments[len(before) : len(before) + 1]
    return build(named) if named and named[0] in COMMANDS and not {"-h", "--help"} & {*before} else listing()


def _explain(error: Exception) -> int:
    from typer.exceptions import TyperException

    from moorage.core.errors import InputError, MoorageError, RefusedError

    if isinstance(error, TyperException):
        return _misused(error)
    if not isinstance(error, MoorageError):
        sys.stderr.write(f"error: {type(error).__name__}: {error}. Run it again with `moorage --debug` to see where\n")
        return 3
    sys.stderr.write(f"error: {error}\n")
    if isinstance(error, InputError):
        return 2
    return 1 if isinstance(error, RefusedError) or getattr(error, "status", 0) == 404 else 3


def _misused(error: Any) -> int:
    """A call that does not fit: one line like any other error; a call without anything shows the help."""
    said = str(error.format_message())
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{said}\n")
        return 2
    context = getattr(error, "ctx", None)
    called = context.command_path if context is not None else "moorage"
    said = f"{said[:1].lower()}{said[1:]}".rstrip(".").replace(": Value error, ", ": ")
    sys.stderr.write(f"error: {called}: {said}. `{called} --help` shows how it is called\n")
    return 2
