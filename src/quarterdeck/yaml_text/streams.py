"""Texts of several documents, as kubectl reads them, and texts of which only the first counts, as servers read them.

``documents`` follows k8s.io/apimachinery (pkg/util/yaml/decoder.go): JSON objects one after the other, then YAML
documents with lines of ``---`` between them. It refuses texts that kubectl reads differently from how they look: a
duplicate key, and a document after ``...``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from quarterdeck.errors import InvalidInput
from quarterdeck.yaml_text.composer import UnreadableError, Value, composed
from quarterdeck.yaml_text.invisible import first_in, named
from quarterdeck.yaml_text.scalars import plain

_BOM = "\ufeff"
_SEPARATOR = "---"
_BLANK = re.compile(r"[\s\ufeff]*")
#: Characters that YAML 1.1 forbids everywhere.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a text. ``number`` and ``line`` count from 1; ``place`` names both, and the text."""

    source: str
    number: int
    line: int
    value: Value

    @property
    def place(self) -> str:
        """Such as ``plane.yaml, document 2 (line 14)``."""
        return f"{self.source}, document {self.number} (line {self.line})"


def documents(text: str, source: str) -> Iterator[Document]:
    """All documents of a text that are not empty. ``source``: its name in errors.

    Raises InvalidInput with the document and the line.
    """
    number = 0
    end = 0
    for found, start, stop in _json_objects(text, source):
        number, end = number + 1, stop
        yield Document(source, number, text.count("\n", 0, start) + 1, found)
    for chunk, first in _chunks(text[end:], source, text.count("\n", 0, end)):
        number += 1
        value, line = _composed(chunk, f"{source}, document {number}", first, only=True)
        if value is not None:
            yield Document(source, number, line, value)


def first_document(text: str, source: str) -> Value:
    """The first document of a text: kube-apiserver and other servers read only that of their files, and so do the
    clients that read a kubeconfig. Raises InvalidInput with the line.
    """
    text = text.removeprefix(_BOM)
    value, _ = _composed(text, source, 0, only=False)
    return value


def _json_objects(text: str, source: str) -> Iterator[tuple[Value, int, int]]:
    """JSON objects at the start of the text: each with its start and end."""
    number = 0
    start = _after_blank(text, 0)
    while text.startswith("{", start):
        place = f"{source}, document {number + 1}"
        try:
            value, end = _JSON.raw_decode(text, start)
        except json.JSONDecodeError:
            return  # YAML has braces too; if it is neither, YAML's error says more
        except UnreadableError as error:
            _refuse(f"{place} (line {text.count(chr(10), 0, start) + 1})", error.problem)
        except RecursionError:
            _refuse(place, "it is nested too deeply")
        if _HALF.search(text, start, end):
            _require_characters(value, place)
        number += 1
        yield value, start, end
        start = _after_blank(text, end)


def _after_blank(text: str, start: int) -> int:
    blank = _BLANK.match(text, start)
    return blank.end() if blank else start


def _once(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise UnreadableError(f"{twice!r} appears twice in one mapping")
    return made


def _number(text: str) -> Value:
    try:
        return plain(float(text))
    except ValueError as error:
        raise UnreadableError(f"{text} is not a number that JSON can hold") from error


def _integer(text: str) -> Value:
    return plain(int(text)) if len(text) <= len(str(2**64)) else _number(text)


_JSON = json.JSONDecoder(object_pairs_hook=_once, parse_float=_number, parse_int=_integer, parse_constant=_number)


def _require_characters(value: Value, place: str) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        _refuse(place, f"it has \\u{ord(half):04x}, which is half of a character")


def _chunks(text: str, source: str, first: int) -> Iterator[tuple[str, int]]:
    """The documents of a text that are not blank, each with the number of lines before it; ``first``: those before the
    text. A line of ``---`` belongs to what follows it, as a blank line.
    """
    lines: list[str] = []
    begin = first
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=first):
        bare = line.removeprefix(_BOM)
        if not bare.startswith(_SEPARATOR):
            lines.append(line if _holds(lines) else bare)
            continue
        after = bare.removeprefix(_SEPARATOR).strip()
        if after and not after.startswith("#"):
            seen = f"nothing but a comment may follow '---' on its line, not {after[:40]!r}"
            _refuse(f"{source}, line {number + 1}", seen)
        if _holds(lines):
            yield "\n".join(lines) + "\n", begin
        lines, begin = [""], number
    if _holds(lines):
        yield "\n".join(lines) + "\n", begin


def _holds(lines: list[str]) -> bool:
    """Whether they contain anything but blanks."""
    return any(line.strip(" \t\r") for line in lines)


def _composed(text: str, place: str, before: int, *, only: bool) -> tuple[Value, int]:
    """``composed``, with lines as the whole text counts them, from 1; ``before``: the number of lines before this
    document.
    """
    forbidden = _FORBIDDEN.search(text)
    if forbidden is not None:
        line = text.count("\n", 0, forbidden.start())
        column = forbidden.start() - (text.rfind("\n", 0, forbidden.start()) + 1)
        seen = f"{named(forbidden[0])} is not allowed"
        _refuse(f"{place}, line {before + line + 1}, column {column + 1}", f"not valid YAML: {seen}")
    try:
        value, line = composed(text, only=only)
    except UnreadableError as error:
        where = "" if error.line is None else f", line {before + error.line + 1}, column {error.column + 1}"
        hidden = _hidden(text, error.line, before) if error.syntax else ""
        _refuse(place + where, f"not valid YAML: {error.problem}{hidden}")
    except RecursionError:
        _refuse(place, "it is nested too deeply")
    return value, before + line + 1


def _hidden(text: str, line: int | None, before: int) -> str:
    """An invisible character on the line of an error, or on the line before it."""
    if line is None:
        return ""
    lines = text.split("\n")
    for number in (line, line - 1):
        found = first_in(lines[number]) if 0 <= number < len(lines) else None
        if found is not None:
            return f" (line {before + number + 1} has {found[1]} in column {found[0]})"
    return ""


def _refuse(place: str, seen: str) -> NoReturn:
    raise InvalidInput(f"reading {place}", seen)
