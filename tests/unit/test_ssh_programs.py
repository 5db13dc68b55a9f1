"""Sending programs to a host that is made up: what comes, from where it goes on, and what is told of it."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pytest
from support.conditions import eventually
from support.golden import Golden
from support.upstream_lab import Heard

from quarterdeck.errors import Conflict, Unavailable
from quarterdeck.model.units import Origin, Program
from quarterdeck.progress import TransferListener
from quarterdeck.sites.ssh.programs import PROGRAMS, Errand, Sender, _pack
from quarterdeck.sites.ssh.sending import Addressee

DOING, SENDING = "installing", "sending to cp-1 of rack"


@dataclass
class MadeUpHost:
    """A connection to a host that keeps what comes. ``speed``: bytes a second; ``cut``: after so many parts it breaks;
    ``others``: bytes that somebody else sends before the next part (None: all of it). Parts come while it is ``open``.
    """

    speed: float = 1e9
    cut: int | None = None
    others: list[int | None] = field(default_factory=list)
    packing: str = "zstd"
    parts: dict[str, bytes] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)
    sizes: list[int] = field(default_factory=list)
    now: float = 0.0
    open: asyncio.Event = field(default_factory=asyncio.Event)
    known: set[str] = field(default_factory=set)
    locks: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    def __post_init__(self) -> None:
        self.open.set()

    async def ask(self, verb: str, *words: str, doing: str, deadline: float, body: bytes = b"") -> bytes:
        await asyncio.sleep(0)
        if verb == "program":
            return b"there" if words[0] in self.whole else str(len(self.parts.get(words[2], b""))).encode()
        if verb == "program-part":
            await self._part(words, doing, body)
        elif verb in ("program-whole", "fetch"):
            self.whole.add(words[0])
        return b""

    async def _part(self, words: tuple[str, ...], doing: str, body: bytes) -> None:
        await self.open.wait()
        if self.others:
            come = self.others.pop(0)
            if come is None:
                self.whole.add(words[0])
            else:
                self.parts[words[2]] = bytes(come)
        if self.cut is not None and len(self.sizes) == self.cut:
            raise Unavailable(doing, "the connection broke")
        if len(self.parts.get(words[2], b"")) != int(words[3]) or words[0] in self.whole:
            raise Conflict(doing, "another process sends it as well")
        self.parts[words[2]] = self.parts.get(words[2], b"") + body
        self.sizes.append(len(body))
        self.now += len(body) / self.speed


@dataclass
class Sending:
    folder: Path
    host: MadeUpHost = field(default_factory=MadeUpHost)
    heard: Heard = field(default_factory=Heard)
    events: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sender = Sender(
            origins=lambda _: Origin("https://dl.example/etcd"),
            listener=TransferListener(progress=self.heard, event=self._event),
            clock=lambda: self.host.now,
        )

    async def _event(self, plane: str, words: str) -> None:
        self.events.append((plane, words))

    async def progress(self) -> Heard:
        return self.heard

    def program(self, name: str, size: int) -> tuple[str, bytes]:
        """A program that does not get smaller; its digest, and what it is packed."""
        file = self.folder / name
        file.write_bytes(random.Random(name).randbytes(size))
        return hashlib.sha256(file.read_bytes()).hexdigest(), _pack(file, "zstd").content

    async def install(self, name: str, *, fetch: bool = False) -> PurePosixPath:
        file, program = self.folder / name, Program(name, PurePosixPath(self.folder / name))
        to = Addressee(at=self.host, host="cp-1 of rack")  # type: ignore[arg-type]
        errand = Errand(doing=DOING, to=to, program=program, file=file, plane="alpha")
        return await self.sender.install(errand, fetch=fetch)


@pytest.fixture
def sending(tmp_path: Path) -> Sending:
    return Sending(tmp_path)


async def test_the_bytes_that_are_told_are_those_that_came(sending: Sending) -> None:
    digest, packed = sending.program("etcd", 3 * 2**20)
    assert await sending.install("etcd") == PROGRAMS / digest / "etcd"
    assert b"".join(sending.host.parts.values()) == packed
    assert sending.heard.started == {SENDING: len(packed)}
    come = [sum(sending.host.sizes[: number + 1]) for number in range(len(sending.host.sizes))]
    assert sending.heard.done == {SENDING: come}
    assert come[-1] == len(packed)
    assert sending.heard.finished == {SENDING: "etcd, 3.1 MB"}
    assert sending.events == [("alpha", "sending etcd to host cp-1 of rack (3.1 MB)")]


async def test_what_is_there_is_not_told_of(sending: Sending) -> None:
    digest, _ = sending.program("etcd", 2**20)
    sending.host.whole.add(digest)
    await sending.install("etcd")
    await sending.install("etcd", fetch=True)
    assert (sending.heard, sending.events) == (Heard(), [])
    assert sending.sender._packed == {}, "that would take longer than all else"


async def test_after_a_cut_it_goes_on_where_it_was(sending: Sending, golden: Golden) -> None:
    _, packed = sending.program("etcd", 3 * 2**20)
    sending.host.cut = 2
    with golden.raises(Unavailable):
        await sending.install("etcd")
    come = sum(sending.host.sizes)
    assert sending.heard.finished == {SENDING: f"etcd, {come / 1e6:.1f} MB; not all of etcd"}
    sending.host.cut, sending.heard.done[SENDING] = None, []
    await sending.install("etcd")
    assert sending.heard.done[SENDING][0] == come
    assert sum(sending.host.sizes) == len(packed), "nothing was sent twice"
    assert sending.heard.finished == {SENDING: f"etcd, {(len(packed) - come) / 1e6:.1f} MB"}


async def test_all_that_is_on_its_way_to_a_host_is_one_task(sending: Sending) -> None:
    sizes = [len(sending.program(name, size)[1]) for name, size in (("etcd", 2**20), ("kube-apiserver", 2**21))]
    sending.host.open.clear()
    first = asyncio.create_task(sending.install("etcd"))
    await eventually(sending.progress, lambda heard: SENDING in heard.started)
    second = asyncio.create_task(sending.install("kube-apiserver"))
    await eventually(sending.progress, lambda heard: SENDING in heard.resized)
    sending.host.open.set()
    await asyncio.gather(first, second)
    assert sending.heard.started == {SENDING: sizes[0]}
    assert sending.heard.resized == {SENDING: [sum(sizes)]}
    assert sending.heard.done[SENDING][-1] == sum(sizes)
    assert sending.heard.finished == {SENDING: f"2 files, {sum(sizes) / 1e6:.1f} MB"}


@pytest.mark.parametrize("come", [2**20, None])
async def test_where_another_process_sends_it_as_well_only_the_rest_is_sent(sending: Sending, come: int | None) -> None:
    digest, packed = sending.program("etcd", 3 * 2**20)
    sending.host.others = [come]
    await sending.install("etcd")
    assert digest in sending.host.whole
    assert sum(sending.host.sizes) == (len(packed) - come if come is not None else 0)


async def test_parts_are_as_large_as_the_way_there_carries_in_a_second(sending: Sending) -> None:
    sending.program("etcd", 20 * 2**20)
    sending.host.speed = 2e6
    await sending.install("etcd")
    assert sending.host.sizes[:2] == [2**19, 2**20]
    assert all(1.9e6 < each < 2.1e6 for each in sending.host.sizes[2:-1])


async def test_over_a_slow_way_parts_stay_small_so_that_the_host_is_heard(sending: Sending) -> None:
    sending.program("etcd", 2 * 2**20)
    sending.host.speed = 2e5
    await sending.install("etcd")
    assert all(each / sending.host.speed < 1.5 for each in sending.host.sizes[2:])


async def test_what_a_host_fetches_is_told_without_a_size(sending: Sending) -> None:
    sending.program("etcd", 2**20)
    await sending.install("etcd", fetch=True)
    assert sending.heard.started == {"host cp-1 of rack fetches": None}
    assert sending.heard.finished == {"host cp-1 of rack fetches": "etcd"}
    assert sending.events == [("alpha", "host cp-1 of rack fetches etcd")]
