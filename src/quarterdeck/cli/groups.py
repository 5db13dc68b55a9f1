"""Groups of commands: what they all have alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typing_extensions import override

F = TypeVar("F", bound=Callable[..., Any])

#: The line above the examples in the help of a command.
EXAMPLES = "Examples:"


class Command(TyperCommand):
    """A command whose help names no type for its flags."""

    @override
    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters and ``--help``."""
        return without_flag_types(super().get_params(ctx))


class Group(TyperGroup):
    """A group whose commands all take ``--yes``, whether or not they have something to ask: scripts need not know.

    ``default``: the command that is meant where the first word is neither a command nor a call for help; "": none is.
    """

    default = ""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for each in self.commands.values():
            if isinstance(each, TyperCommand) and not any("--yes" in param.opts for param in each.params):
                each.params.append(_yes())

    @override
    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters and ``--help``."""
        return without_flag_types(super().get_params(ctx))

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command first where none is named."""
        if self.default and args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


def command(app: typer.Typer, *examples: str, name: str | None = None) -> Callable[[F], F]:
    """Make a function a command of a group. ``examples``: what its help shows, without the first word ``quarterdeck``;
    ``name``: the function's own without one.
    """
    lines = "\n".join(f"quarterdeck {each}" for each in examples)
    return app.command(name, cls=Command, epilog=f"{EXAMPLES}\n{lines}")


def group(text: str = "", *, default: str = "") -> typer.Typer:
    """A group of commands with this help. ``default``: see ``Group``."""
    kind = type("DefaultGroup", (Group,), {"default": default}) if default else Group
    return typer.Typer(cls=kind, help=text or None, no_args_is_help=True)


def without_flag_types(params: Iterable[Any]) -> list[Any]:
    """Parameters whose flags have an empty metavar, since help prints the type ``<bool>`` for them otherwise."""
    found = list(params)
    for each in found:
        if isinstance(each, TyperOption) and each.is_bool_flag:
            each.metavar = ""
    return found


def _yes() -> Any:
    """A hidden ``--yes`` that changes nothing, made from a function as typer makes all options."""
    made = typer.Typer()
    made.command()(_nothing_to_ask)
    (option,) = (each for each in typer.main.get_command(made).params if each.name == "yes")
    option.expose_value = False
    return option


def _nothing_to_ask(yes: Annotated[bool, typer.Option("--yes", "-y", hidden=True)] = False) -> None: ...
