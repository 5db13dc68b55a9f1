"""A bbolt file that is read, and that gets pages added."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Self

from quarterdeck.backup.bolt.pages import (
    BUCKET_HEADER,
    HEADER,
    LEAF,
    BoltMeta,
    Element,
    damaged,
    leaf,
    read_branch,
    read_leaf,
    read_meta,
)
from quarterdeck.backup.bolt.tree import Row, TreeWriter

#: The largest page that a Linux machine may have had which made the file.
_LARGEST_PAGE = 1 << 16
#: Bytes that are written at once.
_BUFFERED = 1 << 20
#: No tree of a file that fits on a disk is deeper.
_DEEPEST = 16


class BoltFile:
    """The buckets of a bbolt file. Nothing is written but behind the pages that are there, and only ``commit`` makes it
    part of the database: until then a crash leaves the file as it was, and what is read is what was there.

    Raises Corrupt for a file that no bbolt has written, and OSError as the file system does.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("r+b", buffering=_BUFFERED)
        try:
            self.meta = _newest_meta(self._file.fileno())
            if os.fstat(self._file.fileno()).st_size < self.meta.pages * self.meta.page_size:
                raise damaged(f"the file ends before page {self.meta.pages - 1}")
            self._buckets = {each.key: each.value for each in self._elements(self.meta.root) if each.is_bucket}
        except BaseException:
            self._file.close()
            raise
        self._tree = TreeWriter(self._file, self.meta.page_size, self.meta.pages)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. What was not committed is not part of it."""
        self._file.close()

    @property
    def names(self) -> tuple[bytes, ...]:
        """The names of its buckets, in order."""
        return tuple(self._buckets)

    def rows(self, name: bytes) -> Iterator[Row]:
        """The keys and values of a bucket, in order; none where there is no such bucket."""
        if name not in self._buckets:
            return
        for page in self._leaves(name):
            yield from ((each.key, each.value) for each in read_leaf(page))

    def last(self, name: bytes) -> Row | None:
        """The last key of a bucket with its value."""
        if name not in self._buckets:
            return None
        page = self._root(name)
        for _ in range(_DEEPEST):
            if HEADER.unpack_from(page)[1] == LEAF:
                found = [*read_leaf(page)]
                return (found[-1].key, found[-1].value) if found else None
            page = self._page(_children(page)[-1][1])
        raise damaged("its tree has a circle")

    def get(self, name: bytes, key: bytes) -> bytes | None:
        """The value of a key of a bucket; None where there is none."""
        if name not in self._buckets:
            return None
        page = self._root(name)
        for _ in range(_DEEPEST):
            if HEADER.unpack_from(page)[1] == LEAF:
                return next((each.value for each in read_leaf(page) if each.key == key), None)
            children = _children(page)
            page = self._page(children[max(0, bisect_right(children, key, key=itemgetter(0)) - 1)][1])
        raise damaged("its tree has a circle")

    def append(self, name: bytes, rows: Iterable[Row]) -> None:
        """Add rows to a bucket, behind those that it has: their keys are larger, and in order."""
        root = self._root(name)
        if not self._root_number(name):
            held = [(each.key, each.value) for each in read_leaf(root)]
            page = self._tree.write((*held, *rows))
        else:
            page = self._tree.write(rows, behind=self._references(name))
        self._point(name, page)

    def replace(self, name: bytes, rows: Iterable[Row]) -> None:
        """Have a bucket hold these rows, in order, and no others. It is made where there is none."""
        self._point(name, self._tree.write(rows))

    def commit(self) -> None:
        """Make what was written part of the database, and wait until that is on the disk."""
        elements = [Element(name, value, is_bucket=True) for name, value in sorted(self._buckets.items())]
        root = self._tree.add(lambda number: leaf(number, elements, self.meta.page_size))
        self.meta = self.meta.next(root=root, pages=self._tree.end())
        os.fsync(self._file.fileno())
        os.pwrite(self._file.fileno(), self.meta.to_page(), self.meta.place * self.meta.page_size)
        os.fsync(self._file.fileno())

    def _point(self, name: bytes, root: int) -> None:
        self._buckets[name] = BUCKET_HEADER.pack(root, 0)

    def _root(self, name: bytes) -> bytes:
        value = self._buckets.get(name, b"")
        number = self._root_number(name)
        return self._page(number) if number else value[BUCKET_HEADER.size :]

    def _root_number(self, name: bytes) -> int:
        """The page of a bucket's root; 0 where it follows in its value."""
        value = self._buckets.get(name, b"")
        number = int(BUCKET_HEADER.unpack_from(value)[0]) if len(value) >= BUCKET_HEADER.size else 0
        if not number and len(value) < BUCKET_HEADER.size + HEADER.size:
            raise damaged(f"bucket {name.decode(errors='replace')} has no root")
        return number

    def _leaves(self, name: bytes) -> Iterator[bytes]:
        root = self._root(name)
        if HEADER.unpack_from(root)[1] == LEAF:
            yield root
        else:
            yield from (self._page(number) for _, number in self._references(name))

    def _references(self, name: bytes) -> Iterator[tuple[bytes, int]]:
        """The first key and the number of each leaf of a bucket with pages of its own."""
        number = self._root_number(name)
        page = self._page(number)
        if HEADER.unpack_from(page)[1] == LEAF:
            first = next(read_leaf(page), None)
            if first is not None:
                yield first.key, number
            return
        yield from self._below(number, set())

    def _below(self, number: int, branches: set[int]) -> Iterator[tuple[bytes, int]]:
        """The leaves below a branch. ``branches``: those that were there before."""
        if number in branches:
            raise damaged(f"page {number} is in its tree twice")
        branches.add(number)
        children = _children(self._page(number))
        if HEADER.unpack_from(self._page(children[0][1]))[1] == LEAF:
            yield from children
            return
        for _, child in children:
            yield from self._below(child, branches)

    def _elements(self, number: int) -> list[Element]:
        """The elements of the tree of buckets."""
        page = self._page(number)
        if HEADER.unpack_from(page)[1] == LEAF:
            return [*read_leaf(page)]
        leaves = [child for _, child in self._below(number, set())]
        return [each for child in leaves for each in read_leaf(self._page(child))]

    def _page(self, number: int) -> bytes:
        """A page, with those that belong to it."""
        size = self.meta.page_size
        if not 2 <= number < self.meta.pages:
            raise damaged(f"there is no page {number}")
        page = os.pread(self._file.fileno(), size, number * size)
        stored, _, _, more = HEADER.unpack_from(page) if len(page) == size else (None, 0, 0, 0)
        if stored != number or number + more >= self.meta.pages:
            raise damaged(f"page {number} is not what its place says")
        return page + os.pread(self._file.fileno(), more * size, (number + 1) * size) if more else page


def _children(page: bytes) -> list[tuple[bytes, int]]:
    """The children of a branch: one at least."""
    children = [*read_branch(page)]
    if not children:
        raise damaged("a branch of its tree is empty")
    return children


def _newest_meta(descriptor: int) -> BoltMeta:
    """The newest of the two roots that was written whole. The second one's place follows from the size of pages, which
    the first one says if it is whole.
    """
    start = os.pread(descriptor, _LARGEST_PAGE + 4096, 0)
    sizes = (1 << power for power in range(9, 17))
    found = [read_meta(start), *(read_meta(start[size : size + 4096]) for size in sizes)]
    whole = [each for each in found if each is not None]
    if not whole:
        raise damaged("it has no root that was written whole: this is no database, or only a part of one")
    return max(whole, key=lambda each: each.transaction)
