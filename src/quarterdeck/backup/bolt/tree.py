"""The trees of a bbolt file, built from rows that come in order: each page is written as soon as it is full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, TypeAlias

from quarterdeck.backup.bolt.pages import BRANCH_ELEMENT, HEADER, LEAF_ELEMENT, Element, branch, leaf

Row: TypeAlias = tuple[bytes, bytes]
#: The first key below a page, and its number.
Reference: TypeAlias = tuple[bytes, int]


class TreeWriter:
    """Writes pages behind the ``pages`` that a file has."""

    def __init__(self, file: BinaryIO, page_size: int, pages: int) -> None:
        self._file = file
        self._page_size = page_size
        self._next = pages
        file.seek(pages * page_size)

    def add(self, made: Callable[[int], bytes]) -> int:
        """Write what is made of the next page's number, which may be several pages; that number."""
        number = self._next
        page = made(number)
        self._file.write(page)
        self._next += len(page) // self._page_size
        return number

    def end(self) -> int:
        """The number of pages that the file has now; nothing is behind them any more."""
        self._file.flush()
        self._file.truncate(self._next * self._page_size)
        return self._next

    def write(self, rows: Iterable[Row], *, behind: Iterable[Reference] = ()) -> int:
        """Write a tree of rows, in order, behind leaves that there are already; the number of its root."""
        level: Iterator[Reference] = self._leaves(rows, behind)
        first = next(level, None)
        if first is None:
            return self.add(lambda number: leaf(number, (), self._page_size))
        while True:
            second = next(level, None)
            if second is None:
                return first[1]
            level = self._branches(first, second, level)
            first = next(level)

    def _leaves(self, rows: Iterable[Row], behind: Iterable[Reference]) -> Iterator[Reference]:
        yield from behind
        room = self._page_size - HEADER.size
        held: list[Element] = []
        left = room
        for key, value in rows:
            size = LEAF_ELEMENT.size + len(key) + len(value)
            if held and size > left:
                yield held[0].key, self._leaf(held)
                held, left = [], room
            held.append(Element(key, value))
            left -= size
        if held:
            yield held[0].key, self._leaf(held)

    def _leaf(self, elements: list[Element]) -> int:
        return self.add(lambda number: leaf(number, elements, self._page_size))

    def _branches(self, first: Reference, second: Reference, rest: Iterator[Reference]) -> Iterator[Reference]:
        """The level above one. No branch has fewer than two children: bbolt would merge it with others."""
        room = self._page_size - HEADER.size
        held, size = [first, second], _size(first) + _size(second)
        for each in rest:
            held.append(each)
            size += _size(each)
            if size > 2 * room:
                taken = _fitting(held, room)
                yield held[0][0], self._branch(held[:taken])
                held = held[taken:]
                size = sum(map(_size, held))
        while size > room:
            taken = min(_fitting(held, room), len(held) - 2)
            yield held[0][0], self._branch(held[:taken])
            held = held[taken:]
            size = sum(map(_size, held))
        yield held[0][0], self._branch(held)

    def _branch(self, children: list[Reference]) -> int:
        return self.add(lambda number: branch(number, children, self._page_size))


def _size(reference: Reference) -> int:
    return BRANCH_ELEMENT.size + len(reference[0])


def _fitting(references: list[Reference], room: int) -> int:
    """How many of them fit into one branch: two at least, as keys are shorter than half a page."""
    left = room
    for index, each in enumerate(references):
        left -= _size(each)
        if left < 0:
            return max(index, 2)
    return len(references)
