"""Pages of a bbolt file, as bytes and back.

A page begins with 16 bytes: its number, its kind, the number of its elements, and how many pages follow that belong to
it. Elements are headers of a fixed size with the places of their keys and values (bbolt: internal/common/page.go and
meta.go).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from quarterdeck.errors import Corrupt

BRANCH, LEAF, META = 0x01, 0x02, 0x04
#: The flag of an element of a leaf whose value is a bucket.
BUCKET = 0x01

HEADER = struct.Struct("<QHHI")
LEAF_ELEMENT = struct.Struct("<IIII")
BRANCH_ELEMENT = struct.Struct("<IIQ")
#: The root page of a bucket, and its sequence (which etcd does not use). The number 0: its page follows in the value.
BUCKET_HEADER = struct.Struct("<QQ")
_META = struct.Struct("<IIIIQQQQQ")
_CHECKSUM = struct.Struct("<Q")
_MAGIC, _VERSION = 0xED0CDAED, 2
#: In place of the page of the list of free pages: programs find them when they open the file, as etcd always does.
NO_FREE_LIST = 2**64 - 1
_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


@dataclass(frozen=True, slots=True, kw_only=True)
class BoltMeta:
    """The root of a file as of one transaction. Two of them take turns, so that one is whole at any moment."""

    page_size: int
    flags: int
    root: int
    sequence: int
    #: The number of pages, in use or free.
    pages: int
    transaction: int

    def next(self, *, root: int, pages: int) -> BoltMeta:
        """The root after one more transaction."""
        return replace(self, root=root, pages=pages, transaction=self.transaction + 1)

    def to_page(self) -> bytes:
        """The page that holds it, which is the first or the second one of the file by its transaction."""
        content = _META.pack(
            _MAGIC,
            _VERSION,
            self.page_size,
            self.flags,
            self.root,
            self.sequence,
            NO_FREE_LIST,
            self.pages,
            self.transaction,
        )
        page = HEADER.pack(self.place, META, 0, 0) + content + _CHECKSUM.pack(fnv(content))
        return page.ljust(self.page_size, b"\0")

    @property
    def place(self) -> int:
        """The number of its page."""
        return self.transaction % 2


def read_meta(page: bytes) -> BoltMeta | None:
    """The meta page that begins with ``page``; None where it is none, or was not written whole."""
    end = HEADER.size + _META.size
    if len(page) < end + _CHECKSUM.size or HEADER.unpack_from(page)[1] != META:
        return None
    content = page[HEADER.size : end]
    magic, version, page_size, flags, root, sequence, _, pages, transaction = _META.unpack(content)
    if (magic, version) != (_MAGIC, _VERSION) or _CHECKSUM.unpack_from(page, end)[0] != fnv(content):
        return None
    if page_size < 512 or page_size & (page_size - 1) or pages < 4:
        return None
    return BoltMeta(
        page_size=page_size, flags=flags, root=root, sequence=sequence, pages=pages, transaction=transaction
    )


def fnv(content: bytes) -> int:
    """FNV-1a of 64 bits, which guards a meta page."""
    value = _FNV_OFFSET
    for byte in content:
        value = (value ^ byte) * _FNV_PRIME % 2**64
    return value


@dataclass(frozen=True, slots=True)
class Element:
    """A key of a leaf with its value; ``is_bucket``: the value is a bucket."""

    key: bytes
    value: bytes
    is_bucket: bool = False


def leaf(number: int, elements: Sequence[Element], page_size: int) -> bytes:
    """A leaf with all of these elements, as many pages as it takes."""
    headers, content = [], bytearray()
    at = len(elements) * LEAF_ELEMENT.size
    for index, each in enumerate(elements):
        flags = BUCKET if each.is_bucket else 0
        place = at + len(content) - index * LEAF_ELEMENT.size
        headers.append(LEAF_ELEMENT.pack(flags, place, len(each.key), len(each.value)))
        content += each.key
        content += each.value
    return _page(number, LEAF, headers, content, page_size)


def branch(number: int, children: Sequence[tuple[bytes, int]], page_size: int) -> bytes:
    """A branch with these children: the first key and the page of each."""
    headers, content = [], bytearray()
    at = len(children) * BRANCH_ELEMENT.size
    for index, (key, page) in enumerate(children):
        headers.append(BRANCH_ELEMENT.pack(at + len(content) - index * BRANCH_ELEMENT.size, len(key), page))
        content += key
    return _page(number, BRANCH, headers, content, page_size)


def _page(number: int, kind: int, headers: Sequence[bytes], content: bytearray, page_size: int) -> bytes:
    size = HEADER.size + sum(map(len, headers)) + len(content)
    count = -(-size // page_size)
    head = HEADER.pack(number, kind, len(headers), count - 1)
    return b"".join((head, *headers, content)).ljust(count * page_size, b"\0")


def read_leaf(page: bytes) -> Iterator[Element]:
    """The elements of a leaf, in order. Raises Corrupt where it points outside of itself."""
    for at, (flags, place, key_size, value_size) in _elements(page, LEAF, LEAF_ELEMENT):
        middle = at + place + key_size
        if middle + value_size > len(page):
            raise damaged(f"an element of page {HEADER.unpack_from(page)[0]} is outside of its page")
        yield Element(page[at + place : middle], page[middle : middle + value_size], bool(flags & BUCKET))


def read_branch(page: bytes) -> Iterator[tuple[bytes, int]]:
    """The children of a branch, in order: the first key and the page of each. Raises Corrupt."""
    for at, (place, key_size, child) in _elements(page, BRANCH, BRANCH_ELEMENT):
        if at + place + key_size > len(page):
            raise damaged(f"an element of page {HEADER.unpack_from(page)[0]} is outside of its page")
        yield page[at + place : at + place + key_size], child


def _elements(page: bytes, kind: int, shape: struct.Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
    number, flags, count, _ = HEADER.unpack_from(page)
    if flags != kind or HEADER.size + count * shape.size > len(page):
        raise damaged(f"page {number} is not the page that others take it for")
    for index in range(count):
        at = HEADER.size + index * shape.size
        yield at, shape.unpack_from(page, at)


def damaged(seen: str) -> Corrupt:
    """The error of a file that is not what bbolt would have written."""
    return Corrupt("reading a database of etcd", seen, "use another backup, or an earlier one")
