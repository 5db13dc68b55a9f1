"""Installing a program on a host: sent once, compressed, resumed where the last attempt ended, and verified there."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import zstandard

from quarterdeck.errors import Conflict, PreconditionFailed, Unavailable
from quarterdeck.model.units import Origin, Program
from quarterdeck.progress import Progress, Telling
from quarterdeck.sites.ssh.connections import HostConnection
from quarterdeck.sites.ssh.wire import parsing

# Progress of programs on their way to hosts: one task for each host, as long as any is on its way there.


@dataclass(slots=True, eq=False)
class Delivery:
    """One program. ``size``: bytes to send, None if unknown; ``come``: how many of them have arrived."""

    program: str
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

    def begin(self, program: str, size: int | None, come: int) -> Delivery:
        made = Delivery(program, size, come, self)
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
            self.failed.append(delivery.program)
        if self.ended < len(self.deliveries):
            return False
        self.progress.finish(self.name, self._outcome())
        return True

    def _size(self) -> int | None:
        sizes = [each.size for each in self.deliveries if each.size is not None]
        return sum(sizes) if len(sizes) == len(self.deliveries) else None

    def _outcome(self) -> str:
        names = [each.program for each in self.deliveries]
        words = names[0] if len(names) == 1 else f"{len(names)} programs"
        if self._size() is not None:
            words += f", {sum(each.moved for each in self.deliveries) / 1e6:.1f} MB"
        return f"{words}; not all of {', '.join(self.failed)}" if self.failed else words


class Deliveries:
    """Those of one process."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, _Task] = {}

    @contextmanager
    def on_the_way(self, task: str, program: str, size: int | None, come: int = 0) -> Iterator[Delivery]:
        """A program is on its way for the block. ``task``: a description with the host."""
        current = self._tasks.setdefault(task, _Task(task, self._progress))
        delivery = current.begin(program, size, come)
        well = False
        try:
            yield delivery
            well = True
        finally:
            if current.end(delivery, well=well):
                del self._tasks[task]


PROGRAMS = PurePosixPath("/var/lib/quarterdeck/programs")
#: Bytes that are sent at once, at first, and their bounds. Each part waits for its answer, and other requests to the
#: host wait behind it: it should take about that many seconds.
_PART, _LEAST, _MOST = 2**19, 2**17, 8 * 2**20
_ABOUT = 1.0
_DEADLINE = 120.0  # seconds, for one part and for decompressing
_FETCHING = 1800.0
_NO_FETCHING = "let it reach that address, or send programs from here: fetchOnHost: false"


@dataclass(frozen=True, slots=True)
class _Packed:
    digest: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """A program and its target host. ``doing``: the action, as text; ``host``: its name for people; ``plane``: the
    plane that needs it ("" for none).
    """

    doing: str
    to: HostConnection
    host: str
    program: Program
    file: Path
    plane: str = ""


@dataclass(slots=True, eq=False)
class Sender:
    """Sends programs to hosts, or makes them download from ``origins``. The digest of a program, and its compressed
    form, are computed once.
    """

    origins: Callable[[Path], Origin | None] = lambda _file: None
    telling: Telling = field(default_factory=Telling)
    clock: Callable[[], float] = time.monotonic
    _deliveries: Deliveries = field(init=False)
    _digests: dict[tuple[str, int, int], str] = field(default_factory=dict)
    _packed: dict[tuple[str, str], _Packed] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._deliveries = Deliveries(self.telling.progress)

    async def install(self, errand: Errand, *, fetch: bool = False) -> PurePosixPath:
        """Install a file of this host on that one; ``fetch``: it downloads released ones. Raises Unavailable."""
        digest, to = await self._digest(errand.doing, errand.file), errand.to
        async with to.locks[f"program {digest}"]:
            if f"program {digest}" not in to.known:
                origin = await asyncio.to_thread(self.origins, errand.file) if fetch else None
                if origin is None:
                    await self._sent(errand, digest)
                else:
                    await self._fetched(errand, digest, origin)
                to.known.add(f"program {digest}")
        return PROGRAMS / digest / errand.program.name

    async def _fetched(self, errand: Errand, digest: str, origin: Origin) -> None:
        """The host downloads the release. The result must be the file that this host has."""
        doing, name = errand.doing, errand.program.name
        if await self._come(errand, (digest, name, digest)) is None:
            return
        size = (await asyncio.to_thread(errand.file.stat)).st_size
        words = (digest, name, str(size), origin.digest or "-")
        body = f"{origin.url}\n{origin.member}\n".encode()
        await self._announce(errand, f"host {errand.host} fetches {name}")
        try:
            with self._deliveries.on_the_way(f"host {errand.host} fetches", name, None):
                await errand.to.ask("fetch", *words, doing=doing, deadline=_FETCHING, body=body)
        except (Unavailable, PreconditionFailed) as error:
            raise type(error)(doing, error.seen, error.next_step or _NO_FETCHING) from error

    async def _sent(self, errand: Errand, digest: str) -> None:
        doing, to, name = errand.doing, errand.to, errand.program.name
        if await self._come(errand, (digest, name, digest)) is None:
            return  # without compressing it, which takes longer than all else
        # The compression depends on what the host supports, which it has reported by now.
        packed = await self._pack(doing, errand.file, digest, to.packing)
        words, whole = (digest, name, packed.digest), len(packed.content)
        come = await self._come(errand, words)
        if come is None:
            return
        if come > whole:
            raise Unavailable(
                doing, f"{come} bytes of {whole} have come", "remove /var/lib/quarterdeck/programs/.part-* there"
            )
        await self._announce(errand, f"sending {name} to host {errand.host} ({whole / 1e6:.1f} MB)")
        with self._deliveries.on_the_way(f"sending to {errand.host}", name, whole, come) as delivery:
            async with to.locks["sending"]:  # one after the other: they share the connection
                if await self._sent_parts(errand, words, packed, delivery):
                    await to.ask("program-whole", *words, to.packing, doing=doing, deadline=_DEADLINE)

    async def _sent_parts(self, errand: Errand, words: tuple[str, ...], packed: _Packed, delivery: Delivery) -> bool:
        """Whether all parts have arrived; not where another process was faster."""
        size = _PART
        while (come := delivery.come) < len(packed.content):
            part, since = packed.content[come : come + size], self.clock()
            try:
                part_of = (*words, str(come))
                await errand.to.ask("program-part", *part_of, doing=errand.doing, deadline=_DEADLINE, body=part)
                come += len(part)
            except Conflict:  # another process sends it as well
                seen = await self._come(errand, words)
                if seen is None:
                    return False
                come = seen
            delivery.advance(come)
            faster = _ABOUT / max(self.clock() - since, 0.001)
            size = round(min(_MOST, max(_LEAST, size * min(2.0, max(0.5, faster)))))
        return True

    async def _come(self, errand: Errand, words: tuple[str, ...]) -> int | None:
        """How many bytes of a compressed program have arrived; None where it is complete."""
        said = await errand.to.ask("program", *words, doing=errand.doing, deadline=_DEADLINE)
        with parsing(errand.doing, said) as text:
            return None if text.strip() == "there" else int(text)

    async def _announce(self, errand: Errand, words: str) -> None:
        if errand.plane:
            await self.telling.event(errand.plane, words)

    async def _digest(self, doing: str, file: Path) -> str:
        try:
            seen = await asyncio.to_thread(file.stat)
            key = (str(file), seen.st_mtime_ns, seen.st_size)
            if key not in self._digests:
                self._digests[key] = await asyncio.to_thread(_sha256, file)
        except OSError as error:
            raise Unavailable(doing, f"{file}: {error.strerror}") from error
        return self._digests[key]

    async def _pack(self, doing: str, file: Path, digest: str, packing: str) -> _Packed:
        async with self._lock:  # one after the other: it takes a core, and memory
            if (digest, packing) not in self._packed:
                try:
                    self._packed[digest, packing] = await asyncio.to_thread(_pack, file, packing)
                except OSError as error:
                    raise Unavailable(doing, f"{file}: {error.strerror}") from error
            return self._packed[digest, packing]


def _pack(file: Path, packing: str) -> _Packed:
    """The same bytes each time, so that a transfer can be resumed."""
    content = file.read_bytes()
    if packing == "zstd":
        packed = zstandard.ZstdCompressor(level=3).compress(content)
    else:
        out = io.BytesIO()
        with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1, mtime=0) as stream:
            stream.write(content)
        packed = out.getvalue()
    return _Packed(hashlib.sha256(packed).hexdigest(), packed)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_program(file: PurePosixPath) -> bool:
    """Whether a file of this host can be executed."""
    return os.access(file, os.X_OK)
