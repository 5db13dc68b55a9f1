"""Whole backups of two planes in one store, and what can happen to their objects."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fakes.objects import MemoryObjects
from pydantic import ValidationError

from quarterdeck.backup.bolt.file import BoltFile
from quarterdeck.backup.bolt.tree import Row
from quarterdeck.backup.chain import ChainLink, FullBackup, Increments
from quarterdeck.backup.chain_store import ChainStore
from quarterdeck.backup.records import Increment, RevisionChange, encode
from support.databases import AT, database, history, parted, snapshot, stored

#: So many links of a chain are one checkpoint apart.
CHECKPOINT = 4
_REVISIONS = 40
_PLANES = ("alpha/one", "beta/two")


@dataclass(frozen=True)
class BackedUp:
    """The backup of a plane: what its database has at each revision, and its belongings by the names of objects."""

    folder: str
    rows: Mapping[int, Sequence[Row]]
    belongings: Mapping[str, bytes]

    def chains(self, store: MemoryObjects) -> ChainStore:
        """A reader that knows nothing yet."""
        return ChainStore(store, self.folder, self.folder, checkpoint_links=CHECKPOINT)


async def backed_up_planes(folder: Path) -> tuple[MemoryObjects, tuple[BackedUp, ...]]:
    """Two planes with the same revisions, numbers of links and sizes, and with other data. ``folder`` is for files."""
    store = MemoryObjects()
    return store, tuple([await _backed_up(store, each, folder) for each in _PLANES])


async def _backed_up(store: MemoryObjects, folder: str, scratch: Path) -> BackedUp:
    value = folder.rpartition("/")[2].encode()
    writes: list[Mapping[str, bytes | None]] = [
        {f"/registry/configmaps/default/{number % 7}": b"%s %d" % (value * 20, number)} for number in range(_REVISIONS)
    ]
    changes = history(writes)
    parts = parted(changes, 3)
    belongings: dict[str, bytes] = {}
    chains, chain = ChainStore(store, folder, folder, checkpoint_links=CHECKPOINT), None
    for number, part in enumerate([None, *parts]):
        link = ChainLink(number=0, previous="", plane="", writer="a test", at=AT)
        if part is None or number == 8:
            link = link.model_copy(update={"fulls": (await _full(store, folder, changes, part, scratch),)})
        if part is not None:
            joined = (part, parts[number]) if number == 5 else (part,)  # one that overlaps the next one
            link = link.model_copy(update={"increments": (await _increments(store, folder, joined),)})
        if number % 5 == 0:
            content = b"the keys of %s, %d" % (folder.encode(), number)
            reference = await stored(store, f"{folder}/data/belongings-{number}", content)
            belongings[reference.name] = content
            link = link.model_copy(update={"belongings": reference})
        chain = await chains.append(chain or await chains.read(), link)
    rows = {
        revision: [row for each in changes[: revision - 1] for row in each.rows()]
        for revision in range(1, _REVISIONS + 2)
    }
    return BackedUp(folder, rows, belongings)


async def _full(
    store: MemoryObjects, folder: str, changes: Sequence[RevisionChange], behind: Increment | None, scratch: Path
) -> FullBackup:
    revision = behind.last if behind is not None else 1
    path = database(scratch / "full", changes[: revision - 1])
    reference = await stored(store, f"{folder}/data/full-{revision}", snapshot(path))
    path.unlink()
    return FullBackup(cluster="main", epoch=0, revision=revision, at=AT, etcd_version="3.6.16", stored=reference)


async def _increments(store: MemoryObjects, folder: str, joined: Sequence[Increment]) -> Increments:
    first, last = joined[0].first, joined[-1].last
    reference = await stored(store, f"{folder}/data/{first}-{last}", b"".join(map(encode, joined)))
    return Increments(
        cluster="main", epoch=0, first=first, last=last, first_at=AT, last_at=AT, raw_bytes=1, stored=reference
    )


def rows_of(path: Path) -> Sequence[Row]:
    """What a database has in its bucket of keys."""
    with BoltFile(path) as file:
        return [*file.rows(b"key")]


# --- what can happen


def damage(store: MemoryObjects, lots: random.Random) -> str:
    """Change one object or a few of a store in one way; which, and how."""
    kind = lots.choice([*_DAMAGES])
    names = sorted(store.objects)
    if lots.random() < 0.5:  # as many links as objects of data: there are fewer of them
        names = [each for each in names if "/links/" in each]
    one = lots.choice(names)
    _DAMAGES[kind](store, one, lots)
    return f"{kind}: {one}"


def _changed(change: Callable[[bytearray, random.Random], None]) -> Callable[[MemoryObjects, str, random.Random], None]:
    def apply(store: MemoryObjects, name: str, lots: random.Random) -> None:
        content, at = store.objects[name]
        made = bytearray(content)
        for _ in range(lots.randint(1, 4)):
            change(made, lots)
        store.objects[name] = (bytes(made), at)

    return apply


def _flip(content: bytearray, lots: random.Random) -> None:
    if content:
        content[lots.randrange(len(content))] ^= 1 << lots.randrange(8)


def _cut(content: bytearray, lots: random.Random) -> None:
    del content[lots.randint(0, len(content)) :]


def _drop(content: bytearray, lots: random.Random) -> None:
    at = lots.randint(0, len(content))
    del content[at : at + lots.choice((1, 16, 500, 5000))]


def _insert(content: bytearray, lots: random.Random) -> None:
    at = lots.randint(0, len(content))
    content[at:at] = lots.randbytes(lots.choice((1, 4, 64)))


def _digit(content: bytearray, lots: random.Random) -> None:
    """Another number in a link: it stays JSON."""
    if digits := [at for at, each in enumerate(content) if 48 <= each < 58]:
        content[lots.choice(digits)] = 48 + lots.randrange(10)


def _gone(store: MemoryObjects, name: str, _: random.Random) -> None:
    del store.objects[name]


def _swapped(store: MemoryObjects, name: str, lots: random.Random) -> None:
    """Two objects of one chain, or of two, in place of each other."""
    of_links = "/links/" in name
    other = lots.choice([each for each in sorted(store.objects) if ("/links/" in each) == of_links])
    store.objects[name], store.objects[other] = store.objects[other], store.objects[name]


def _of_the_other(store: MemoryObjects, name: str, _: random.Random) -> None:
    """The same object of the other plane, unless something happened to that before."""
    mine, its = _PLANES if name.startswith(_PLANES[0]) else _PLANES[::-1]
    store.objects[name] = store.objects.get(name.replace(mine, its), store.objects[name])


def _repeated(store: MemoryObjects, name: str, lots: random.Random) -> None:
    """An object in place of another one of its chain, which is gone."""
    folder = name.rpartition("/")[0]
    store.objects[lots.choice([each for each in sorted(store.objects) if each.startswith(folder)])] = store.objects[
        name
    ]


def _claimed(store: MemoryObjects, name: str, lots: random.Random) -> None:
    """A damaged object of data, and a last link that has its hash: the link is whole, and its object is not. Nothing
    more happens to a backup whose last link or object was damaged before.
    """
    plane = next(each for each in _PLANES if name.startswith(each))
    last = max((each for each in store.objects if each.startswith(f"{plane}/links")), default=name)
    with suppress(ValidationError):
        _claim(store, last, ChainLink.model_validate_json(store.objects[last][0]), lots)


def _claim(store: MemoryObjects, last: str, link: ChainLink, lots: random.Random) -> None:
    for each in link.increments:
        if each.stored.name not in store.objects:
            continue
        _changed(_flip)(store, each.stored.name, lots)
        content = store.objects[each.stored.name][0]
        digest = {"sha256": hashlib.sha256(content).hexdigest(), "size_bytes": len(content)}
        made = each.model_copy(update={"stored": each.stored.model_copy(update=digest)})
        link = link.model_copy(update={"increments": (made,)})
    store.objects[last] = (link.model_dump_json(exclude_none=True).encode(), AT)


_DAMAGES: Mapping[str, Callable[[MemoryObjects, str, random.Random], None]] = {
    "flip": _changed(_flip),
    "cut": _changed(_cut),
    "drop": _changed(_drop),
    "insert": _changed(_insert),
    "digit": _changed(_digit),
    "gone": _gone,
    "swapped": _swapped,
    "of the other plane": _of_the_other,
    "repeated": _repeated,
    "claimed": _claimed,
}
