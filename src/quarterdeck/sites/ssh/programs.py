"""Installing a program on a host: sent once, compressed, resumed where the last attempt ended, and verified there."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from typing_extensions import override

from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.model.units import Origin, Program
from quarterdeck.progress import TransferListener
from quarterdeck.sites.ssh.sending import PART_DEADLINE, Addressee, Deliveries, FileSender, Parcel, come_of, compressed

PROGRAMS = PurePosixPath("/var/lib/quarterdeck/programs")
_FETCHING = 1800.0  # seconds
_NO_FETCHING = "let it reach that address, or send programs from here: fetchOnHost: false"


@dataclass(frozen=True, slots=True)
class _Packed:
    digest: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """A program for a host. ``doing``: the action, as text; ``plane``: the plane that needs it ("" for none)."""

    doing: str
    to: Addressee
    program: Program
    file: Path
    plane: str = ""


@dataclass(frozen=True, slots=True)
class _ProgramParcel(Parcel):
    """A program that was compressed as a whole."""

    errand: Errand
    digest: str
    packed: _Packed

    @property
    @override
    def name(self) -> str:
        return self.errand.program.name

    @property
    @override
    def size(self) -> int:
        return len(self.packed.content)

    @override
    async def come(self) -> int | None:
        return await _come(self.errand, self._words)

    @override
    async def put(self, at: int, size: int) -> int:
        part = self.packed.content[at : at + size]
        await self._ask("program-part", *self._words, str(at), body=part)
        return len(part)

    @override
    async def finish(self) -> None:
        await self._ask("program-whole", *self._words, self.errand.to.at.packing)

    @property
    def _words(self) -> tuple[str, ...]:
        return self.digest, self.name, self.packed.digest

    async def _ask(self, *words: str, body: bytes = b"") -> None:
        await self.errand.to.at.ask(*words, doing=self.errand.doing, deadline=PART_DEADLINE, body=body)


@dataclass(slots=True, eq=False)
class Sender:
    """Sends programs to hosts, or makes them download from ``origins``. The digest of a program, and its compressed
    form, are computed once.
    """

    origins: Callable[[Path], Origin | None] = lambda _file: None
    listener: TransferListener = field(default_factory=TransferListener)
    clock: Callable[[], float] = time.monotonic
    files: FileSender = field(init=False)
    _digests: dict[tuple[str, int, int], str] = field(default_factory=dict)
    _packed: dict[tuple[str, str], _Packed] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.files = FileSender(Deliveries(self.listener.progress), self.clock)

    async def install(self, errand: Errand, *, fetch: bool = False) -> PurePosixPath:
        """Install a file of this host on that one; ``fetch``: it downloads released ones. Raises Unavailable."""
        digest, to = await self.digest(errand.doing, errand.file), errand.to.at
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
        if await _come(errand, (digest, name, digest)) is None:
            return
        size = (await asyncio.to_thread(errand.file.stat)).st_size
        words = (digest, name, str(size), origin.digest or "-")
        body = f"{origin.url}\n{origin.member}\n".encode()
        await self._announce(errand, f"host {errand.to.host} fetches {name}")
        try:
            with self.files.deliveries.on_the_way(f"host {errand.to.host} fetches", name, None):
                await errand.to.at.ask("fetch", *words, doing=doing, deadline=_FETCHING, body=body)
        except (Unavailable, PreconditionFailed) as error:
            raise type(error)(doing, error.seen, error.next_step or _NO_FETCHING) from error

    async def _sent(self, errand: Errand, digest: str) -> None:
        doing, to = errand.doing, errand.to.at
        if await _come(errand, (digest, errand.program.name, digest)) is None:
            return  # without compressing it, which takes longer than all else
        # The compression depends on what the host supports, which it has reported by now.
        packed = await self._pack(doing, errand.file, digest, to.packing)
        parcel = _ProgramParcel(errand, digest, packed)
        come = await parcel.come()
        if come is None:
            return
        if come > parcel.size:
            raise Unavailable(
                doing, f"{come} bytes of {parcel.size} have come", "remove /var/lib/quarterdeck/programs/.part-* there"
            )
        words = f"sending {parcel.name} to host {errand.to.host} ({parcel.size / 1e6:.1f} MB)"
        await self._announce(errand, words)
        await self.files.send(parcel, errand.to, come)

    async def _announce(self, errand: Errand, words: str) -> None:
        if errand.plane:
            await self.listener.event(errand.plane, words)

    async def digest(self, doing: str, file: Path) -> str:
        """The SHA-256 of a file of this host. Raises Unavailable."""
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


async def _come(errand: Errand, words: tuple[str, ...]) -> int | None:
    """How many bytes of a compressed program have arrived; None where it is complete."""
    answer = await errand.to.at.ask("program", *words, doing=errand.doing, deadline=PART_DEADLINE)
    return come_of(errand.doing, answer)


def _pack(file: Path, packing: str) -> _Packed:
    """The same bytes each time, so that a transfer can be resumed."""
    packed = compressed(file.read_bytes(), packing)
    return _Packed(hashlib.sha256(packed).hexdigest(), packed)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_program(file: PurePosixPath) -> bool:
    """Whether a file of this host can be executed."""
    return os.access(file, os.X_OK)
