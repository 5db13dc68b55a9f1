"""The command line's entry: commands of all modules, and errors as one line."""

from __future__ import annotations

import gc
import shlex
import signal
import sys
from importlib import import_module
from typing import Any

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup
from typing_extensions import override

from quarterdeck.cli.contents import PANELS
from quarterdeck.cli.context import NAMED, err
from quarterdeck.cli.groups import without_flag_types
from quarterdeck.errors import QuarterdeckError, Unavailable

#: The exit codes on Ctrl-C and after a signal to stop: 128 + the signal's number, as shells have it.
_INTERRUPTED = tuple(128 + each for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
_AGAIN = "look at the disk and the rights there, and run it again"

_PANEL_OF = {name: panel for panel, entries in PANELS.items() for name in entries}


class Commands(TyperGroup):
    """All commands, each loaded when it is asked for."""

    #: Whether the help is printed, which has a line of each command and loads none of them.
    _listing = False

    @override
    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    @override
    def get_params(self, ctx: Any) -> list[Any]:
        """The options before a command."""
        return without_flag_types(super().get_params(ctx))

    @override
    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, one panel after another."""
        return list(_PANEL_OF)

    @override
    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:
        """One of them; None if there is none of that name: then all are loaded, so that one like it can be named."""
        if panel := _PANEL_OF.get(cmd_name):
            entry = PANELS[panel][cmd_name]
            if self._listing:
                return TyperCommand(cmd_name, help=entry.summary, rich_help_panel=panel)
            found: Any = _loaded(entry.module, cmd_name)
            if not entry.is_group:
                found = found.commands[cmd_name]
            assert isinstance(found, TyperCommand | TyperGroup)
            found.rich_help_panel = panel
            return found
        for each in self.list_commands(ctx):
            if (known := self.get_command(ctx, each)) is not None:
                self.commands[each] = known
        return None


def _loaded(module: str, name: str) -> TyperGroup:
    """A module's commands, under the name that the group which it may be has."""
    made: typer.Typer = import_module(f"quarterdeck.cli.commands.{module}").app
    if not gc.isenabled():  # see ``quarterdeck.__main__``
        gc.freeze()
        gc.enable()
    made.info.name = name
    return typer.main.get_group(made)


app = typer.Typer(
    name="quarterdeck",
    cls=Commands,
    help="Create, heal, change and live-migrate highly available Kubernetes control planes.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from quarterdeck.version import version_text  # it may ask git

        typer.echo(f"quarterdeck {version_text()}")
        raise typer.Exit


@app.callback()
def options(
    debug: bool = typer.Option(False, "--debug", help="Print the traceback of an error."),
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Options of all commands; typer takes the help from ``app``."""


def _how_to_continue() -> str:
    if NAMED:
        return f"continue with 'quarterdeck wait {NAMED[-1]}'"
    return "'quarterdeck get' lists the planes; 'quarterdeck wait' continues with one"


def main() -> None:
    """Run the command line. Errors are one line on stderr; the exit code says of which class they are."""
    try:
        try:
            app(prog_name="quarterdeck")
        except OSError as error:
            # A file of the user, or one that is written last: all other errors name what was being done.
            seen = f"{error.filename or 'the operating system'}: {error.strerror or error}"
            raise Unavailable(f"running {shlex.join(['quarterdeck', *sys.argv[1:]])}", seen, _AGAIN) from error
    except QuarterdeckError as error:
        if "--debug" in sys.argv:
            err.print_exception()
        err.print(f"[red]error:[/red] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except SystemExit as ended:
        if ended.code in _INTERRUPTED:
            err.print(f"interrupted; nothing is lost: {_how_to_continue()} from where it stands")
        raise
