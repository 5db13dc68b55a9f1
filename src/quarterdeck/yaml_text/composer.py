"""One document of YAML as plain data, composed as go.yaml.in/yaml/v2 composes it (decode.go)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from quarterdeck.yaml_text.invisible import is_invisible, visible
from quarterdeck.yaml_text.scalars import MERGE, key, plain, resolved

#: Parsed JSON. A scalar inside is as JSON has it; see ``scalars.plain``.
Value: TypeAlias = Any

#: Aliases may make most of a small document and little of a large one (decode.go, allowedAliasRatio).
_FEW_NODES, _MANY_NODES = 400_000, 4_000_000
_UNFINISHED = object()


class UnreadableError(Exception):
    """Why a text is not a document. ``line`` (None where it is not known) and ``column`` count from 0. ``syntax``: the
    text is not YAML at all.
    """

    def __init__(self, problem: str, line: int | None = None, column: int = 0, *, syntax: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.column = column
        self.syntax = syntax


def composed(text: str, *, only: bool) -> tuple[Value, int]:
    """The first document of a text, and the line that it begins on (from 0). ``only``: nothing may follow it.

    Raises UnreadableError, RecursionError.
    """
    import yaml

    parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        composer = _Composer(yaml, parser.get_event)
        value, line = composer.document()
        if only:
            composer.require_end()
        return value, line
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join((error.problem or error.context or "not YAML").split())
        raise UnreadableError(problem, *((mark.line, mark.column) if mark else ()), syntax=True) from error
    except yaml.YAMLError as error:
        raise UnreadableError(" ".join(str(error).split()), syntax=True) from error
    finally:
        parser.dispose()


class _Composer:
    """``library``: the YAML library; ``advance`` returns the next event of its parser."""

    def __init__(self, library: Any, advance: Callable[[], Any]) -> None:
        self._library = library
        self._advance = advance
        self._anchors: dict[str, tuple[Value, int]] = {}
        self._nodes = 0
        self._from_aliases = 0
        self._ended = False

    def document(self) -> tuple[Value, int]:
        """The first document, and the line that its content begins on."""
        self._advance()  # the stream's start
        if not self.goes_on():
            return None, 0
        first = self._advance()
        value = self._json(first)
        self._advance()  # the document's end
        return value, first.start_mark.line

    def goes_on(self) -> bool:
        """Whether another document begins here."""
        self._ended = self._ended or isinstance(self._advance(), self._library.StreamEndEvent)
        return not self._ended

    def require_end(self) -> None:
        """Nothing may follow: a reader of one document would not see it."""
        try:
            mark = None if not self.goes_on() else self._advance().start_mark
        except self._library.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
        if mark is not None:
            problem = "this does not belong to the document above: check its indentation, or put '---' before it"
            raise UnreadableError(problem, mark.line, mark.column, syntax=True)

    def _json(self, event: Any) -> Value:
        value = self._node(event)
        try:
            return plain(value) if isinstance(value, int | float) else value
        except ValueError as error:
            raise _at(event, str(error)) from error

    def _node(self, event: Any) -> Value:
        self._count(1)
        if isinstance(event, self._library.AliasEvent):
            return self._alias(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = (_UNFINISHED, 0)
        before = self._nodes
        if isinstance(event, self._library.ScalarEvent):
            value: Value = self._scalar(event)
        elif isinstance(event, self._library.SequenceStartEvent):
            value = self._sequence()
        else:
            value = self._mapping()
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._nodes - before + 1)
        return value

    def _count(self, nodes: int, *, alias: bool = False) -> None:
        self._nodes += nodes
        if not alias:
            return
        self._from_aliases += nodes
        above = min(max(self._nodes - _FEW_NODES, 0) / (_MANY_NODES - _FEW_NODES), 1)
        if (
            self._from_aliases > 100
            and self._nodes > 1_000
            and self._from_aliases > self._nodes * (0.99 - 0.89 * above)
        ):
            raise UnreadableError("aliases make it far larger than it is")

    def _alias(self, event: Any) -> Value:
        if event.anchor not in self._anchors:
            raise _at(event, f"anchor &{event.anchor} is not defined above")
        value, nodes = self._anchors[event.anchor]
        if value is _UNFINISHED:
            raise _at(event, f"&{event.anchor} contains itself")
        self._count(nodes, alias=True)
        return value

    def _scalar(self, event: Any) -> Value:
        if event.tag is None and not event.implicit[0]:
            return event.value
        try:
            return resolved(event.value, event.tag or "")
        except ValueError as error:
            raise _at(event, str(error)) from error

    def _sequence(self) -> list[Value]:
        found: list[Value] = []
        while not isinstance(event := self._advance(), self._library.SequenceEndEvent):
            found.append(self._json(event))
        return found

    def _mapping(self) -> dict[str, Value]:
        made: dict[str, Value] = {}
        own: set[str] = set()
        while not isinstance(event := self._advance(), self._library.MappingEndEvent):
            if self._is_merge(event):
                made.update(self._merged(self._advance()))
                continue
            name = self._key(event)
            if name in own:
                raise _at(event, f"{name!r} appears twice in one mapping")
            own.add(name)
            made[name] = self._json(self._advance())
        return made

    def _key(self, event: Any) -> str:
        value = self._node(event)
        if isinstance(value, dict | list):
            raise _at(event, "a key must be text, not a mapping or a list")
        try:
            name = key(value)
        except ValueError as error:
            raise _at(event, str(error)) from error
        unquoted = isinstance(event, self._library.ScalarEvent) and event.implicit[0]
        if unquoted and name and (is_invisible(name[0]) or is_invisible(name[-1])):
            raise _at(event, f"the key {visible(name)} has an invisible character; remove it, or put the key in quotes")
        return name

    def _is_merge(self, event: Any) -> bool:
        scalar = isinstance(event, self._library.ScalarEvent) and event.value == "<<"
        return scalar and (event.tag == MERGE or (event.tag in (None, "!") and bool(event.implicit[0])))

    def _merged(self, event: Any) -> dict[str, Value]:
        """The values that ``<<`` merges. In a list the first mapping wins. The order of a mapping's keys decides
        between it and ``<<``, as in go.yaml.in/yaml/v2: the later one wins.
        """
        if isinstance(event, self._library.SequenceStartEvent):
            parts = []
            self._count(1)
            while not isinstance(inner := self._advance(), self._library.SequenceEndEvent):
                parts.append(self._mapping_of(inner))
            return {name: value for part in reversed(parts) for name, value in part.items()}
        return self._mapping_of(event)

    def _mapping_of(self, event: Any) -> dict[str, Value]:
        value = self._node(event)
        if not isinstance(value, dict):
            raise _at(event, "<< takes a mapping, an alias of one, or a list of them")
        return value


def _at(event: Any, problem: str) -> UnreadableError:
    return UnreadableError(problem, event.start_mark.line, event.start_mark.column)
