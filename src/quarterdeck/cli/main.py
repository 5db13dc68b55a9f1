"""The command line's entry: commands of all modules, and errors as one line."""

from __future__ import annotations

import shlex
import signal
import sys
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand

from quarterdeck import __version__
from quarterdeck.cli import certs, demo, history, homes, moves, planes, probes, replicas, sites, upstreams
from quarterdeck.cli.context import err
from quarterdeck.errors import QuarterdeckError, Unavailable

#: What commands end with on Ctrl-C and when they are told to stop: 128 + the signal's number, as shells have it.
_INTERRUPTED = tuple(128 + each for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
_AGAIN = "look at the disk and the rights there, and run it again"


class Quiet(TyperCommand):
    """A command that takes ``--yes``, as all do, whether or not it has something to ask: scripts need not know."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not any("--yes" in each.opts for each in self.params):
            made = typer.Typer()
            made.command()(_nothing_to_ask)
            (option,) = (each for each in typer.main.get_command(made).params if each.name == "yes")
            option.expose_value = False
            self.params.append(option)


def _nothing_to_ask(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; this command never does.")] = False,
) -> None: ...


app = typer.Typer(
    name="quarterdeck",
    help="Keeps Kubernetes control planes alive, and moves them while they serve.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (demo, planes, moves, probes, history):
    for command in module.app.registered_commands:
        app.registered_commands.append(command)
for each in (app, replicas.app, certs.app, sites.app, upstreams.app):
    for command in each.registered_commands:
        command.cls = Quiet
app.add_typer(replicas.app, name="replica")
app.add_typer(certs.app, name="certs")
app.add_typer(sites.app, name="site")
app.add_typer(homes.app, name="home")
app.add_typer(upstreams.app, name="upstream")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"quarterdeck {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: bool = typer.Option(False, "--debug", help="Show where an error comes from."),
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Keeps Kubernetes control planes alive, and moves them while they serve."""


def main() -> None:
    """Run the command line. Errors are one line on stderr; the exit code says of which class they are."""
    try:
        try:
            app(prog_name="quarterdeck")
        except OSError as error:
            # A file of the user's own, or one that is written last: all else has said what was being done.
            seen = f"{error.filename or 'the operating system'}: {error.strerror or error}"
            raise Unavailable(f"running {shlex.join(['quarterdeck', *sys.argv[1:]])}", seen, _AGAIN) from error
    except QuarterdeckError as error:
        if "--debug" in sys.argv:
            err.print_exception()
        err.print(f"[red]error:[/red] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except SystemExit as ended:
        if ended.code in _INTERRUPTED:
            err.print("interrupted; nothing is lost: 'quarterdeck wait NAME' goes on from where it stands")
        raise
