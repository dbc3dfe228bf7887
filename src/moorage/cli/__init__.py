"""The command `moorage`: one file a command, each calls one function of the house. Contract: spec/cli.md.

Exit codes: 0 done, 1 the answer is no, 2 usage or unreadable input, 3 the surroundings failed.
Nothing heavy is imported here: `moorage --help` stays under 150 ms.
"""

from __future__ import annotations

import gc
import inspect
import sys
from importlib import import_module

import click

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


class Moorage(click.Group):
    """The command tree: a command is read when it is called, since reading one is quicker than reading fourteen."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """All commands, in the order of the list."""
        return [*COMMANDS]

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command or group of commands."""
        if cmd_name not in COMMANDS:
            return None
        found = import_module(f"{__name__}.{COMMANDS[cmd_name][0]}").command
        if isinstance(found, click.Group):
            return found
        from moorage.cli.signature import command_of

        return command_of(found, cmd_name)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list, without reading what the commands do."""
        room = formatter.width - 6 - max(map(len, COMMANDS))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, click.Command(name, help=says).get_short_help_str(room))
                    for name, (_, says) in COMMANDS.items()
                ]
            )


def build() -> Moorage:
    """The whole command line."""
    debug = click.Option(["--debug"], is_flag=True, help="Show a traceback when something fails.")
    return Moorage(
        "moorage",
        params=[debug],
        callback=_options,
        help=inspect.getdoc(_options),
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    )


def _options(debug: bool) -> None:
    """Attach identity backends to OpenStack Keystone and keep them attached.

    Start one-machine mode:  moorage up

    Check manifests in CI:   moorage lint examples/keystone-ldap
    """
    _state["debug"] = debug


_state = {"debug": False}


def main() -> None:
    """Entry point: runs the command and turns foreseen errors into one line and an exit code."""
    gc.set_threshold(20_000)  # start-up makes many objects that stay; looking through them less often saves a tenth
    root = build()
    try:
        with root.make_context("moorage", sys.argv[1:]) as context:
            root.invoke(context)
    except click.exceptions.Exit as ended:
        sys.exit(ended.exit_code)
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
        gc.freeze()  # the process ends and its memory with it: no last look for cycles, which takes as long as reading click


def _explain(error: Exception) -> int:
    from moorage.core.errors import InputError, MoorageError, RefusedError

    if isinstance(error, click.ClickException):
        return _misused(error)
    if isinstance(error, OSError) and error.strerror:
        at = f"{error.filename}: " if error.filename else "reading or writing failed: "
        sys.stderr.write(f"error: {at}{error.strerror.lower()}\n")
        return 3
    if not isinstance(error, MoorageError):
        sys.stderr.write(f"error: {type(error).__name__}: {error}. Run it again with `moorage --debug` to see where\n")
        return 3
    sys.stderr.write(f"error: {error}\n")
    if isinstance(error, InputError):
        return 2
    return 1 if isinstance(error, RefusedError) or getattr(error, "status", 0) == 404 else 3


def _misused(error: click.ClickException) -> int:
    """A call that does not fit: one line like any other error; a call without anything shows the help."""
    said = error.format_message()
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        sys.stderr.write(f"{said}\n")
        return 2
    context = getattr(error, "ctx", None)
    called = context.command_path if context is not None else "moorage"
    said = f"{said[:1].lower()}{said[1:]}".rstrip(".")
    sys.stderr.write(f"error: {called}: {said}. `{called} --help` shows how it is called\n")
    return 2
