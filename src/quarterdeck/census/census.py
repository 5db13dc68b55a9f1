"""A census: the type of each value that kube-apiserver has stored in etcd, at one revision, read page by page."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from quarterdeck.census.result import Census, TypeCount, UnreadableCount
from quarterdeck.census.value_types import StoredType, UnknownType, encrypting_key, types_of
from quarterdeck.components.credentials import EncryptionKey
from quarterdeck.components.stored_keys import PREFIX, ResourcePath, resource_path
from quarterdeck.errors import Unavailable
from quarterdeck.etcd.calls import LONGEST_ANSWER
from quarterdeck.etcd.facts import KeyValue, RangeResult
from quarterdeck.etcd.faults import EtcdCompacted, EtcdRefused, Reason
from quarterdeck.etcd.kv import Get, prefix_end
from quarterdeck.etcd.port import EtcdCluster

_DOING: Final = "taking a census of what etcd stores"
_BEGIN: Final = f"{PREFIX}/".encode()
#: How many times all is read: kube-apiserver keeps 5 to 10 minutes of history (--etcd-compaction-interval).
_ATTEMPTS: Final = 3
#: The keys of the first page, and of the largest one: etcd has all values of a page in memory, however large they are,
#: and walks over all keys behind it as well, to count them.
_FEWEST, _MOST = 100, 1_000
#: Bytes that a page is meant to have.
_PAGE: Final = 4 << 20
#: How many keys are kept of each type.
_EXAMPLES: Final = 5
_TOO_LONG: Final = f"longer than {LONGEST_ANSWER:,} bytes"
_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"


async def census(etcd: EtcdCluster, urls: Sequence[str], keys: Sequence[EncryptionKey]) -> Census:
    """The types of all values below ``/registry/``, at a revision that a quorum confirms. ``urls``: client URLs of
    members; the first is asked for as long as it answers. ``keys``: those with which values may be encrypted.

    It holds one page in memory, whatever there is to read. Raises Unavailable, also where etcd discards history faster
    than it can be read, and EtcdRefused (DENIED).
    """
    for _ in range(_ATTEMPTS):
        found = _Found({each.name: each.secret for each in keys})
        try:
            return found.census(await _Reading(etcd, urls, _BEGIN, found).all_pages())
        except EtcdCompacted:
            continue
    seen = f"etcd discarded the history while it was read, {_ATTEMPTS} times"
    raise Unavailable(_DOING, seen, "try again once nothing compacts it more often than kube-apiserver does")


async def encrypted_by(
    etcd: EtcdCluster, urls: Sequence[str], prefix: str, names: Collection[str]
) -> tuple[ResourcePath, ...]:
    """The objects below a prefix, such as ``/registry/secrets/``, that the keys of these names encrypted; otherwise as
    ``census``.
    """
    found = _Encrypted(frozenset(names))
    try:
        await _Reading(etcd, urls, prefix.encode(), found).all_pages()
    except EtcdCompacted as error:
        raise Unavailable(_DOING, "etcd discarded the history while it was read", "it is tried again") from error
    return tuple(found.objects)


class _Reading:
    """One reading of all keys with a prefix."""

    def __init__(self, etcd: EtcdCluster, urls: Sequence[str], prefix: bytes, found: _Found | _Encrypted) -> None:
        self._etcd = etcd
        self._urls = deque(urls)
        self._prefix = prefix
        self._found = found
        self._revision = 0  # the newest one, until a page was read

    async def all_pages(self) -> int:
        """Read page by page; returns the revision. Raises EtcdCompacted, Unavailable, EtcdRefused."""
        key, limit, more = self._prefix, _FEWEST, True
        while more:
            try:
                page = await self._page(key, limit)
                self._found.add(page.items)
                limit = _next_limit(limit, page.items)
            except EtcdRefused as error:
                if error.reason is not Reason.TOO_LARGE:
                    raise
                if limit > 1:
                    limit = max(1, limit // 4)
                    continue
                page = await self._page(key, limit, keys_only=True)
                self._found.add_unreadable(page.items)
            self._revision = self._revision or page.revision
            more = page.more
            key = page.items[-1].key + b"\0" if more else key
        return self._revision

    async def _page(self, key: bytes, limit: int, *, keys_only: bool = False) -> RangeResult:
        end = prefix_end(self._prefix)
        what = Get(key=key, range_end=end, revision=self._revision, limit=limit, keys_only=keys_only)
        failed = Unavailable(_DOING, "no member is known")
        for _ in range(len(self._urls)):
            try:
                return await self._etcd.read(self._urls[0], what)
            except Unavailable as error:
                failed = error
                self._urls.rotate(-1)
        raise failed


def _next_limit(limit: int, items: Sequence[KeyValue]) -> int:
    """How many keys the next page should have, if its values are as long as those of this one."""
    size = sum(len(each.key) + len(each.value) for each in items)
    return max(1, min(2 * limit, _MOST, _PAGE * len(items) // max(1, size)))


@dataclass(slots=True)
class _Tally:
    number: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, key: str) -> None:
        self.number += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(key)


class _Encrypted:
    """Objects that some keys encrypted."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self.objects: list[ResourcePath] = []

    def add(self, items: Sequence[KeyValue]) -> None:
        """Look at a page."""
        for item in items:
            path = resource_path(item.key)
            if path is not None and encrypting_key(item.value) in self._names:
                self.objects.append(path)

    def add_unreadable(self, items: Sequence[KeyValue]) -> None:
        """Objects whose values are too long to be read: any key may have encrypted them."""
        self.objects += [path for each in items if (path := resource_path(each.key)) is not None]


class _Found:
    """What has been counted."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self._keys = keys
        self._types: defaultdict[tuple[str, StoredType], _Tally] = defaultdict(_Tally)
        self._unreadable: defaultdict[str, _Tally] = defaultdict(_Tally)
        self._custom: set[str] = set()

    def add(self, items: Sequence[KeyValue]) -> None:
        """Count a page."""
        for item, of in zip(items, types_of([each.value for each in items], self._keys), strict=True):
            key = item.key.decode(errors="replace")
            if isinstance(of, UnknownType):
                self._unreadable[of.why].add(key)
                continue
            path = resource_path(item.key)
            resource = path.qualified_resource if path else key.split("/")[2]
            self._types[resource, of].add(key)
            if path and resource == _DEFINITIONS:
                self._custom.add(path.name)

    def add_unreadable(self, items: Sequence[KeyValue]) -> None:
        """Count keys whose values are too long to be read."""
        for item in items:
            self._unreadable[_TOO_LONG].add(item.key.decode(errors="replace"))

    def census(self, revision: int) -> Census:
        """All that was counted."""
        types = sorted(self._types.items(), key=lambda each: (each[0][0], str(each[0][1])))
        return Census(
            revision,
            tuple(TypeCount(*what, each.number, tuple(each.examples)) for what, each in types),
            tuple(
                UnreadableCount(why, each.number, tuple(each.examples))
                for why, each in sorted(self._unreadable.items())
            ),
            frozenset(self._custom),
        )
