"""Every option that takes a time reads it in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import pytest
import typer
from support.cli_lab import Cli
from support.golden import Golden
from typer.core import TyperCommand, TyperGroup, TyperOption

from quarterdeck.cli.durations import METAVAR, duration_option
from quarterdeck.cli.main import app
from quarterdeck.errors import InvalidInput

#: Options with a number that is not a time.
NUMBERS = {"--rate"}


def read(text: str) -> float:
    """What a command gets for ``--for``."""
    found: list[float] = []
    lone = typer.Typer()

    @lone.command()
    def command(seconds: Annotated[float, duration_option("--for", "How long.")] = 10.0) -> None:
        found.append(seconds)

    typer.main.get_command(lone).main(["--for", text] if text else [], standalone_mode=False)
    return found[0]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", 10), ("3", 3), ("2.5", 2.5), ("500ms", 0.5), ("30s", 30), ("5m", 300), ("2h", 7200), ("7d", 604_800)],
)
def test_a_time_has_a_unit_or_is_seconds(text: str, seconds: float) -> None:
    assert read(text) == seconds


@pytest.mark.parametrize("text", ["soon", "-1", "5 m", "1e3", "nan", "inf", "1w", "2h30m"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--for: .* is not a time"):
        read(text)


def test_a_time_without_an_end_is_refused() -> None:
    with pytest.raises(InvalidInput, match="999999999d' is too long"):
        read("999999999d")


def options(group: TyperGroup, *path: str) -> Iterator[tuple[str, str, str]]:
    """The options with a metavar, or of a number with a fraction: the command, the option, the metavar."""
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, TyperGroup):
            yield from options(command, *path, name)
        elif isinstance(command, TyperCommand):
            for each in (param for param in command.params if isinstance(param, TyperOption)):
                kind = each.metavar or each.display_type(context)
                if kind in (METAVAR, "<float>"):
                    yield " ".join((*path, name)), each.opts[0], kind


def test_every_option_with_a_time_is_of_the_one_type() -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    found = list(options(root))
    assert {option for _, option, kind in found if kind != METAVAR} == NUMBERS
    assert {(command, option) for command, option, kind in found if kind == METAVAR} == {
        ("backup create", "--timeout"),
        ("controllers verify", "--since"),
        ("controllers verify", "--slack"),
        ("demo", "--baseline"),
        ("drill run", "--hold"),
        ("kubeconfig", "--for"),
        ("migrate", "--baseline"),
        ("node token create", "--ttl"),
        ("pause", "--for"),
        ("probe", "--for"),
        ("upgrade run", "--soak"),
        ("wait", "--timeout"),
    }


def test_a_command_names_the_option_that_is_no_time(cli: Cli, golden: Golden) -> None:
    golden(cli.refused("wait", "demo", "--timeout", "soon", code=2).err)
