"""Sentences for people, kept as text in ``tests/golden``: a file for each module of tests, an entry for each test.

A test asserts kinds, codes and structure itself, and hands the sentences to the fixture ``golden``, which compares them
with what is kept under the name of the test. ``./test unit -- --update-golden`` keeps what the tests say now; the
difference is then reviewed as text.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

FOLDER = Path(__file__).parents[1] / "golden"
UPDATE = (
    "--update-golden"  # an option of tests/conftest.py, which is copied alone in places and imports nothing of ours
)
#: What is kept where a test hands over no sentence at all.
NOTHING = "(nothing)"
#: What differs from run to run, and what is kept in its place: free ports, fingerprints of keys, ids of operations.
VARYING = (
    (r"SHA256:[\w+/]{43}", "SHA256:KEY"),
    (r"(?<=127\.0\.0\.1)(\]?:| port )[3-6]\d{4}\b", r"\1PORT"),
    (r"-(abort|apply|create|delete|failover|migrate|replace|scale)-[0-9a-f]{6}\b", r"-\1-ID"),
)

E = TypeVar("E", bound=BaseException)
Entries = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class GoldenFile:
    """The sentences of one module of tests, sorted by the names of the tests."""

    path: Path

    @staticmethod
    def of(module: Path) -> GoldenFile:
        """The file that goes with a module of tests."""
        return GoldenFile(FOLDER / f"{module.stem.removeprefix('test_')}.txt")

    def read(self) -> Entries:
        """What is kept; nothing where there is no file."""
        return parsed(self.path.read_text()) if self.path.exists() else {}

    def keep(self, name: str, sentences: tuple[str, ...]) -> None:
        """Keep this of one test, or drop its entry where it says nothing. Workers may do so side by side."""
        with self._locked():
            entries = self.read()
            if entries.get(name, ()) != sentences:
                self._write({**entries, name: sentences})

    def drop(self, names: Iterable[str]) -> None:
        """Drop the entries of these tests."""
        with self._locked():
            self._write({**self.read(), **dict.fromkeys(names, ())})

    def _write(self, entries: Entries) -> None:
        filled = {name: sentences for name, sentences in entries.items() if sentences}
        if filled:
            self.path.write_text(formatted(filled))
        else:
            self.path.unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def formatted(entries: Entries) -> str:
    """Each name, and below it its sentences: a dash before each, and further lines of a sentence below its first."""
    blocks = ("\n".join((name, *map(_dashed, entries[name]))) for name in sorted(entries))
    return "\n\n".join(blocks) + "\n"


def _dashed(sentence: str) -> str:
    first, *more = sentence.split("\n")
    return "\n".join((f"  - {first}".rstrip(), *(f"    {line}".rstrip() for line in more)))


def parsed(text: str) -> Entries:
    """The entries of a text as ``formatted`` writes it."""
    found: dict[str, list[list[str]]] = {}
    sentences: list[list[str]] = []
    for line in text.split("\n"):
        if line.startswith("  -"):
            sentences.append([line[4:]])
        elif line.startswith("    ") or (not line and sentences):
            sentences[-1].append(line[4:])
        elif line:
            sentences = found[line] = []
    return {name: tuple("\n".join(lines).rstrip("\n") for lines in texts) for name, texts in found.items()}


@dataclass
class Golden:
    """What one test says. ``kept`` is what it said when it was last updated."""

    kept: tuple[str, ...]
    updating: bool = False
    sentences: list[str] = field(default_factory=list)
    hidden: list[tuple[str, str]] = field(default_factory=lambda: [*VARYING])

    def hide(self, pattern: str, name: str) -> None:
        """Keep ``name`` in place of what matches a regular expression, since that differs from run to run."""
        self.hidden.append((pattern, name))

    def __call__(self, value: object) -> None:
        """Compare a sentence, or several (a list, a tuple, an iterator, a set), with the next that are kept.

        Raises AssertionError where they differ, or nothing more is kept.
        """
        for each in _several(value) or [NOTHING]:
            self._compare(self._tidy(each))

    @contextmanager
    def raises(self, kind: type[E] | tuple[type[E], ...]) -> Iterator[pytest.ExceptionInfo[E]]:
        """As ``pytest.raises``, and the sentence of the error is compared."""
        with pytest.raises(kind) as raised:
            yield raised
        self(raised.value)

    def finish(self) -> None:
        """The test is over, and has passed: AssertionError where more is kept than it said."""
        left = self.kept[len(self.sentences) :]
        assert self.updating or not left, f"no longer said (./test unit -- {UPDATE}):\n{_listed(left)}"

    def _compare(self, sentence: str) -> None:
        kept = self.kept[len(self.sentences) : len(self.sentences) + 1]
        self.sentences.append(sentence)
        if not self.updating:
            assert kept, f"said, and not kept (./test unit -- {UPDATE}):\n{_listed((sentence,))}"
            assert sentence == kept[0], (
                f"said:\n{_listed((sentence,))}\nkept (./test unit -- {UPDATE}):\n{_listed(kept)}"
            )

    def _tidy(self, sentence: str) -> str:
        for pattern, name in self.hidden:
            sentence = re.sub(pattern, name, sentence)
        return "\n".join(line.rstrip() for line in sentence.strip().splitlines())


def _several(value: object) -> list[str]:
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return [str(each) for each in value] if isinstance(value, list | tuple | Iterator) else [str(value)]


def _listed(sentences: Iterable[str]) -> str:
    return "\n".join(map(_dashed, sentences))
