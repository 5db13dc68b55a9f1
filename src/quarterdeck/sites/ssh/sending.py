"""Sending a file to a host: in parts, resumed where the last attempt ended, with its progress."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import zstandard

from quarterdeck.errors import Conflict
from quarterdeck.progress import Progress
from quarterdeck.sites.ssh.connections import HostConnection
from quarterdeck.sites.ssh.wire import parsing

#: Bytes that are sent at once, at first, and their bounds. Each part waits for its answer, and other requests to the
#: host wait behind it: it should take about that many seconds.
_PART, _LEAST, _MOST = 2**19, 2**17, 8 * 2**20
_ABOUT = 1.0
#: Seconds for one part.
PART_DEADLINE = 120.0


class Parcel(Protocol):
    """A file for a host, and how the host is asked to take it."""

    @property
    def name(self) -> str:
        """The file, for people."""
        ...

    @property
    def size(self) -> int:
        """How many bytes it has, as the host counts them."""
        ...

    async def come(self) -> int | None:
        """How many bytes have arrived; None where the whole file is in its place."""
        ...

    async def put(self, at: int, size: int) -> int:
        """Send the part from an offset on, of at most that many bytes; returns how many it has. Raises Conflict where
        not exactly the bytes before it have arrived.
        """
        ...

    async def finish(self) -> None:
        """Have the host verify what has arrived, and put it in its place."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressee:
    """A host that a file is sent to. ``host``: its name for people."""

    at: HostConnection
    host: str


# Progress of files on their way to hosts: one task for each host, as long as any is on its way there.


@dataclass(slots=True, eq=False)
class Delivery:
    """One file. ``size``: bytes to send, None if unknown; ``come``: how many of them have arrived."""

    file: str
    size: int | None
    come: int
    _task: _Task
    _before: int = field(init=False)

    def __post_init__(self) -> None:
        self._before = self.come

    @property
    def moved(self) -> int:
        """Bytes that were sent by this process: it may have resumed another one's transfer."""
        return self.come - self._before

    def advance(self, come: int) -> None:
        """That many bytes have arrived."""
        self.come = come
        self._task.advance()


@dataclass(slots=True, eq=False)
class _Task:
    name: str
    progress: Progress
    deliveries: list[Delivery] = field(default_factory=list)
    ended: int = 0
    failed: list[str] = field(default_factory=list)

    def begin(self, file: str, size: int | None, come: int) -> Delivery:
        made = Delivery(file, size, come, self)
        first, before = not self.deliveries, self._size()
        self.deliveries.append(made)
        total = self._size()
        if first:
            self.progress.start(self.name, total)
        elif total is not None and total != before:
            self.progress.resize(self.name, total)
        if come:
            self.advance()
        return made

    def advance(self) -> None:
        self.progress.advance(self.name, sum(each.come for each in self.deliveries))

    def end(self, delivery: Delivery, *, well: bool) -> bool:
        """Whether it was the last one."""
        self.ended += 1
        if not well:
            self.failed.append(delivery.file)
        if self.ended < len(self.deliveries):
            return False
        self.progress.finish(self.name, self._outcome())
        return True

    def _size(self) -> int | None:
        sizes = [each.size for each in self.deliveries if each.size is not None]
        return sum(sizes) if len(sizes) == len(self.deliveries) else None

    def _outcome(self) -> str:
        names = [each.file for each in self.deliveries]
        words = names[0] if len(names) == 1 else f"{len(names)} files"
        if self._size() is not None:
            words += f", {sum(each.moved for each in self.deliveries) / 1e6:.1f} MB"
        return f"{words}; not all of {', '.join(self.failed)}" if self.failed else words


class Deliveries:
    """Those of one process."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, _Task] = {}

    @contextmanager
    def on_the_way(self, task: str, file: str, size: int | None, come: int = 0) -> Iterator[Delivery]:
        """A file is on its way for the block. ``task``: a description with the host."""
        current = self._tasks.setdefault(task, _Task(task, self._progress))
        delivery = current.begin(file, size, come)
        well = False
        try:
            yield delivery
            well = True
        finally:
            if current.end(delivery, well=well):
                del self._tasks[task]


@dataclass(slots=True, eq=False)
class FileSender:
    """Sends files to hosts. ``clock``: seconds."""

    deliveries: Deliveries
    clock: Callable[[], float]

    async def send(self, parcel: Parcel, to: Addressee, come: int) -> None:
        """Send what has not arrived. Raises Unavailable, and what the parcel does."""
        with self.deliveries.on_the_way(f"sending to {to.host}", parcel.name, parcel.size, come) as delivery:
            async with to.at.locks["sending"]:  # one after the other: they share the connection
                if await self._sent_parts(parcel, delivery):
                    await parcel.finish()

    async def _sent_parts(self, parcel: Parcel, delivery: Delivery) -> bool:
        """Whether all parts have arrived; not where another process was faster."""
        size = _PART
        while (come := delivery.come) < parcel.size:
            since = self.clock()
            try:
                come += await parcel.put(come, size)
            except Conflict:  # another process sends it as well
                seen = await parcel.come()
                if seen is None:
                    return False
                come = seen
            delivery.advance(come)
            faster = _ABOUT / max(self.clock() - since, 0.001)
            size = round(min(_MOST, max(_LEAST, size * min(2.0, max(0.5, faster)))))
        return True


def come_of(doing: str, answer: bytes) -> int | None:
    """A host's answer to what has arrived: a number of bytes, or None for "there". Raises Corrupt."""
    with parsing(doing, answer) as text:
        return None if text.strip() == "there" else int(text)


def compressed(content: bytes, packing: str) -> bytes:
    """Content as a host unpacks it: the same bytes each time. ``packing``: zstd or gzip."""
    if packing == "zstd":
        return zstandard.ZstdCompressor(level=3).compress(content)
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1, mtime=0) as stream:
        stream.write(content)
    return out.getvalue()
