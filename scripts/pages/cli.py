"""docs/reference/cli.md and cli/*.md, made from the command line: a page for each panel of the help."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import partial
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from pages.declared import table
from quarterdeck.cli.contents import PANELS
from quarterdeck.cli.groups import EXAMPLES
from quarterdeck.cli.main import app

_OPENING = """# Command line

`--help` of each command prints the same text. Options with a `duration` take `30s`, `5m`, `2h` or `7d`; a bare number
is seconds. Every command accepts `--yes`. The exit codes are in the [README](../../README.md#commands).

## Options before the command
"""
_WORDS: Mapping[object, str] = {str: "text", int: "integer", float: "number", bool: ""}


def index() -> str:
    """The page with all commands, one a line."""
    root = _root()
    parts = [_OPENING, _options(root, typer.Context(root))]
    for panel, names in PANELS.items():
        rows = [
            (f"[`quarterdeck {' '.join(words)}`](cli/{panel.lower()}.md#{_anchor(words)})", _summary(command))
            for name in names
            for words, command in _commands(root, name)
        ]
        parts.append(f"\n## {panel}\n{table(('command', 'what it does'), rows)}")
    return "".join(parts)


def panel_pages() -> Mapping[str, Callable[[], str]]:
    """The page of each panel, by its name below ``reference``."""
    return {f"cli/{panel.lower()}.md": partial(_panel, panel) for panel in PANELS}


def _panel(panel: str) -> str:
    root = _root()
    commands = (found for name in PANELS[panel] for found in _commands(root, name))
    opening = f"# Commands: {panel}\n\nAll commands are in [command line](../cli.md).\n\n"
    return opening + "\n".join(_section(words, command) for words, command in commands)


def _root() -> TyperGroup:
    made = typer.main.get_command(app)
    assert isinstance(made, TyperGroup)
    return made


def _commands(group: TyperGroup, name: str, *before: str) -> Iterator[tuple[tuple[str, ...], TyperCommand]]:
    """A command, or all commands of a group, each with its words."""
    command = group.get_command(typer.Context(group), name)
    if isinstance(command, TyperGroup):
        for each in command.list_commands(typer.Context(command)):
            yield from _commands(command, each, *before, name)
    else:
        assert isinstance(command, TyperCommand)
        yield (*before, name), command


def _section(words: tuple[str, ...], command: TyperCommand) -> str:
    context = typer.Context(command)
    params = [each for each in command.get_params(context) if not getattr(each, "hidden", False)]
    arguments = [each for each in params if isinstance(each, TyperArgument)]
    usage = " ".join(("quarterdeck", *words, *map(_placeholder, arguments), "[OPTIONS]"))
    text = _plain(re.sub(r"(?<!\n)\n(?!\n)", " ", (command.help or "").strip()))
    heading, *examples = (command.epilog or EXAMPLES).splitlines()
    assert heading == EXAMPLES
    lines = "\n".join(examples)
    return (
        f"## {' '.join(words)}\n{text}\n\n```text\n{usage}\n```\n\n{_options(command, context)}\n```sh\n{lines}\n```\n"
    )


def _options(command: TyperCommand | TyperGroup, context: Any) -> str:
    params = [each for each in command.get_params(context) if not getattr(each, "hidden", False)]
    rows = [_row(each) for each in params if not isinstance(each, TyperOption) or each.name != "help"]
    return table(("argument or option", "value", "default", "meaning"), rows) if rows else ""


def _row(param: Any) -> tuple[str, str, str, str]:
    words = [_placeholder(param)] if isinstance(param, TyperArgument) else [*param.opts, *param.secondary_opts]
    return ", ".join(f"`{each}`" for each in words), _value(param), _default(param), _plain(param.help or "")


def _placeholder(argument: TyperArgument) -> str:
    word = (argument.name or "").upper() + ("..." if argument.nargs == -1 else "")
    return word if argument.required else f"[{word}]"


def _value(param: Any) -> str:
    if isinstance(param, TyperOption) and param.is_bool_flag:
        return ""
    if param.metavar:
        return str(param.metavar).strip("<>")
    kind = param.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(f"`{each.value}`" for each in kind)
    return _WORDS.get(kind, "text") if not (isinstance(kind, type) and kind.__name__.endswith("Path")) else "file"


def _default(param: Any) -> str:
    if param.required:
        return "required"
    if not param.show_default or param.default in (None, False, (), []) or callable(param.default):
        return ""
    return f"`{param.default.value if isinstance(param.default, Enum) else param.default}`"


def _summary(command: TyperCommand) -> str:
    return _plain(" ".join((command.help or "").split("\n\n")[0].split()))


def _plain(text: str) -> str:
    """Help without the marks that Rich reads, and with angle brackets that Markdown does not take for HTML."""
    return text.replace("\\[", "[").replace("<", "&lt;")


def _anchor(words: tuple[str, ...]) -> str:
    return "-".join(words)
