"""Every command line and every spec of a plane in the pages is one that quarterdeck accepts."""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import pytest
import typer
import yaml
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.cli.groups import EXAMPLES
from quarterdeck.cli.main import app
from quarterdeck.sites.ssh.checks import LEAST_BASH, LEAST_SYSTEMD
from quarterdeck.upstream.catalog import Project, Versions, supported

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = (README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
#: The pages that a newcomer follows line by line.
FOLLOWED = (README, ROOT / "docs/getting-started.md", *sorted((ROOT / "docs/how-to").glob("*.md")))

_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`((?:[^`\n]|\n(?!\s*\n))+)`")
_ASSIGNMENT = re.compile(r"[A-Z_]+=\S*")
_SHELL_PUNCTUATION = set("();<>|&")


@dataclass(frozen=True, slots=True)
class Line:
    """The words after ``quarterdeck``; ``whole``: it is to be run as it stands, and does not only name a command."""

    words: tuple[str, ...]
    whole: bool


def shell_commands(line: str) -> Iterator[tuple[str, ...]]:
    """The simple commands of a shell line, without assignments before them and without comments."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for token in (*lexer, ";"):
        if not set(token) <= _SHELL_PUNCTUATION:
            if token != "$" and (words or not _ASSIGNMENT.fullmatch(token)):
                words.append(token)
        elif words:
            yield tuple(words)
            words = []


def ours(line: str) -> Iterator[tuple[str, ...]]:
    """The arguments of each call of quarterdeck in a shell line."""
    for program, *arguments in shell_commands(line):
        if program in ("quarterdeck", "./quarterdeck"):
            yield tuple(arguments)


def lines_of(text: str) -> Iterator[Line]:
    """The calls of quarterdeck in a page: in shell blocks, and in code spans that begin with it."""
    for language, block in _FENCE.findall(text):
        if language == "sh":
            for line in block.replace("\\\n", " ").splitlines():
                yield from (Line(words, whole=True) for words in ours(line))
    for span in _SPAN.findall(_FENCE.sub("", text)):
        if re.match(r"(\./|[A-Z_]+=\S+ )*quarterdeck ", span):
            yield from (Line(tuple(takewhile("...".__ne__, words)), whole=False) for words in ours(span))


def resolved(words: tuple[str, ...]) -> tuple[TyperCommand | TyperGroup, tuple[str, ...]]:
    """The command that the first words name, and the words after them. Fails if there is no such command."""
    command: TyperCommand | TyperGroup = root()
    while isinstance(command, TyperGroup) and words and not words[0].startswith("-"):
        context = typer.Context(command)
        default = getattr(command, "default", "")
        below = command.get_command(context, words[0])
        if below is None and default:
            below = command.get_command(context, default)
        else:
            words = words[1:]
        assert below is not None, f"{command.name} has no command of that name"
        assert isinstance(below, TyperCommand | TyperGroup)
        command = below
    return command, words


def root() -> TyperGroup:
    made = typer.main.get_command(app)
    assert isinstance(made, TyperGroup)
    return made


def trouble(line: Line) -> str:
    """What the command line interface would refuse about a call; "" for nothing. Nothing is run."""
    try:
        command, words = resolved(line.words)
        if isinstance(command, TyperGroup):
            assert words or not line.whole, "this is a group of commands"
            known = {option for each in command.params for option in each.opts}
            assert {each.partition("=")[0] for each in words} <= known, "it has no such option"
        elif words or line.whole:
            command.make_context(command.name or "", list(words)).close()
    except (AssertionError, TyperException) as error:
        return f"{shlex.join(line.words)}: {error}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_accepted(page: Path) -> None:
    assert [found for line in lines_of(page.read_text()) if (found := trouble(line))] == []


@pytest.mark.parametrize("page", FOLLOWED, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_that_is_followed_has_commands(page: Path) -> None:
    assert any(line.words for line in lines_of(page.read_text()))


@pytest.mark.parametrize(
    "text",
    [
        "```sh\nquarterdeck create\n```",
        "```sh\nquarterdeck migrate alpha --too west\n```",
        "```sh\nsudo true && ./quarterdeck site remove\n```",
        "```sh\nquarterdeck replica\n```",
        "```sh\nquarterdeck scale alpha \\\n  --replicas many\n```",
        "`quarterdeck replica exchange`",
        "`quarterdeck scale\nalpha --replicas many`",
        "`quarterdeck drill alpha --fail everything`",
        "`quarterdeck --verbosity 3`",
    ],
)
def test_what_is_not_accepted_is_found(text: str) -> None:
    assert [found for line in lines_of(text) if (found := trouble(line))]


@pytest.mark.parametrize(
    "text",
    [
        "```sh\nQUARTERDECK_KEY_FILE=/key quarterdeck home seal --make  # a comment\n```",
        "```sh\nquarterdeck site bootstrap cp-1 > setup.sh\n```",
        '```sh\n$(quarterdeck upstream path kubectl) --kubeconfig "alpha.kubeconfig" get nodes\n```',
        "`quarterdeck drill alpha --fail machine` and `quarterdeck site machines rack`",
        "`quarterdeck kubeconfig` only names a command",
    ],
)
def test_what_is_accepted_is_found_and_passes(text: str) -> None:
    lines = list(lines_of(text))
    assert lines
    assert not any(map(trouble, lines))


def all_commands(group: TyperGroup, *path: str) -> Iterator[tuple[tuple[str, ...], TyperCommand]]:
    """Every command with its words."""
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, TyperGroup):
            yield from all_commands(command, *path, name)
        else:
            assert isinstance(command, TyperCommand)
            yield (*path, name), command


@pytest.mark.parametrize(
    ("words", "command"), [pytest.param(*each, id=" ".join(each[0])) for each in all_commands(root())]
)
def test_help_ends_with_examples_of_the_command(words: tuple[str, ...], command: TyperCommand) -> None:
    heading, *examples = (command.epilog or "").splitlines()
    assert heading == EXAMPLES
    assert len(examples) in (1, 2)
    for example in examples:
        (arguments,) = ours(example)
        assert resolved(arguments)[0].help == command.help, f"this is no example of {shlex.join(words)}"
        assert trouble(Line(arguments, whole=True)) == ""


def specs_of(text: str) -> Iterator[str]:
    """The specs of planes in the YAML blocks of a page, as JSON. They need not say where the plane is."""
    for language, block in _FENCE.findall(text):
        if language == "yaml":
            for document in yaml.safe_load_all(textwrap.dedent(block)):
                if "spec" in document and document.get("kind", "ControlPlane") == "ControlPlane":
                    yield json.dumps({"placement": {"site": "east"}, **document["spec"]})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_spec_of_a_page_is_valid(page: Path) -> None:
    for spec in specs_of(page.read_text()):
        ControlPlaneSpec.model_validate_json(spec)


def test_a_spec_that_is_not_valid_is_found() -> None:
    (spec,) = specs_of("```yaml\nspec:\n  healing: {budgets: 3}\n```")
    with pytest.raises(ValueError, match="budgets"):
        ControlPlaneSpec.model_validate_json(spec)


def test_the_readme_lists_every_command() -> None:
    rows = re.findall(r"^\| `quarterdeck ([a-z]+)", README.read_text(), re.MULTILINE)
    assert sorted(set(rows)) == sorted(root().list_commands(typer.Context(root())))


def test_the_readme_names_the_supported_versions() -> None:
    text = README.read_text()
    projects = (Project.KUBERNETES, Project.ETCD)
    wanted = [f"{supported(each)} | {Versions().of(each)} |" for each in projects]
    wanted += [f"systemd {LEAST_SYSTEMD}", f"bash {LEAST_BASH}"]
    assert [each for each in wanted if each not in text] == []
