"""What messages of commands say: which plane they mean, and what a program wrote that wrote nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.golden import Golden

import quarterdeck
from quarterdeck.app.logs import Tail
from quarterdeck.cli import main
from quarterdeck.cli.commands import planes
from quarterdeck.cli.context import NAMED, note_plane
from quarterdeck.model.components import Component

SOURCE = Path(quarterdeck.__file__).parent
#: A command that a message suggests, with a word in the place of the plane's name.
PLACEHOLDER = re.compile(r"""'quarterdeck [a-z -]*\b(?:NAME|PLANE)\b""")
#: Where no plane is meant: there is none yet.
NONE_YET = ("quarterdeck create NAME",)


def test_commands_that_messages_suggest_name_the_plane() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        for line in path.read_text().splitlines()
        if PLACEHOLDER.search(line) and not any(each in line for each in NONE_YET)
    ]
    assert found == []


def test_who_is_interrupted_is_told_how_to_continue_with_that_plane(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(main, "NAMED", NAMED)
    NAMED.clear()
    assert "'quarterdeck get'" in main._how_to_continue()
    note_plane("alpha")
    golden(main._how_to_continue())
    NAMED.clear()


@pytest.mark.parametrize("text", ["", "\n"])
def test_a_program_that_wrote_nothing_has_one_line_that_says_so(
    capsys: pytest.CaptureFixture[str], text: str, golden: Golden
) -> None:
    planes._print_tail("alpha", Tail(replica="east-1", component=Component.ETCD, text=text))
    golden(capsys.readouterr().out)


def test_a_program_that_wrote_something_has_it_under_its_name(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    planes._print_tail("alpha", Tail(replica="east-1", component=Component.ETCD, text="it [starts]"))
    golden(capsys.readouterr().out)
