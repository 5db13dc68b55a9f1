"""Links and chains of backups for tests, without objects behind them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fakes.objects import MemoryObjects

from quarterdeck.backup.chain import Chain, ChainLink, FullBackup, Increments, KeyHash, ObjectReference
from quarterdeck.backup.chain_store import ChainStore

START = datetime(2030, 1, 1, tzinfo=UTC)


def at(revision: int) -> datetime:
    return START + timedelta(seconds=revision)


def stored(name: str) -> ObjectReference:
    return ObjectReference(name=name, sha256="0", size_bytes=1)


def full(revision: int, epoch: int = 0) -> FullBackup:
    return FullBackup(
        cluster="main",
        epoch=epoch,
        revision=revision,
        at=at(revision),
        etcd_version="3.6.16",
        hash=KeyHash(value=1, revision=revision, compact_revision=0),
        stored=stored(f"full-{epoch}-{revision}"),
    )


def steps(first: int, last: int, epoch: int = 0) -> Increments:
    return Increments(
        cluster="main",
        epoch=epoch,
        first=first,
        last=last,
        first_at=at(first),
        last_at=at(last),
        stored=stored(f"steps-{epoch}-{first}-{last}"),
    )


def link(
    *parts: FullBackup | Increments, dropped: tuple[str, ...] = (), writer: str = "one", belongings: str = ""
) -> ChainLink:
    return ChainLink(
        number=0,
        previous="",
        plane="",
        writer=writer,
        at=START,
        fulls=tuple(each for each in parts if isinstance(each, FullBackup)),
        increments=tuple(each for each in parts if isinstance(each, Increments)),
        belongings=stored(belongings) if belongings else None,
        dropped=dropped,
    )


def chain_of(*parts: FullBackup | Increments) -> Chain:
    return Chain("uid").with_link(link(*parts), "")


async def written(store: MemoryObjects, *links: ChainLink, plane: str = "uid") -> Chain:
    chains = ChainStore(store, plane, "alpha")
    chain = await chains.read()
    for each in links:
        chain = await chains.append(chain, each)
    return chain
