"""Increments that wait on the disk of this host until the store takes them."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import AwareDatetime, ValidationError

from quarterdeck.api.base import Model
from quarterdeck.concurrency import in_thread
from quarterdeck.errors import Unavailable
from quarterdeck.files import file_errors, on_disk, sync_folder, write_secret

_SUFFIX: Final = ".increment"


class SpoolFull(Unavailable):
    """The spool has no room for another increment. It is empty now."""

    kind = "spool-full"


class PieceHeader(Model):
    """What is known of an increment without the key that opens it."""

    plane: str
    cluster: str
    epoch: int
    first: int
    last: int
    first_at: AwareDatetime
    last_at: AwareDatetime
    #: Its size before it was compressed.
    raw_bytes: int = 0
    #: Of the sealed increment, hexadecimal.
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A sealed increment, as it is stored."""

    header: PieceHeader
    content: bytes


class Spool:
    """Pieces of one cluster in a folder of its own, oldest first. What was put survives this process and a crash of the
    host. ``limit_bytes`` bounds it: one piece more, and everything is discarded.
    """

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._folder, self._limit = folder, limit_bytes
        self._headers: deque[PieceHeader] = deque()
        self.size_bytes = 0

    async def open(self, plane: str, cluster: str, epoch: int) -> None:
        """Find what an earlier process has left, and delete what is damaged or of another cluster or epoch."""

        def belongs(header: PieceHeader) -> bool:
            return (header.plane, header.cluster, header.epoch) == (plane, cluster, epoch)

        self._headers = deque(await on_disk("the spool of backups", self._found, belongs))
        self.size_bytes = sum(each.size_bytes for each in self._headers)

    @property
    def headers(self) -> Sequence[PieceHeader]:
        """What waits, oldest first."""
        return tuple(self._headers)

    async def put(self, piece: Piece) -> None:
        """Keep a piece; it is on the disk when this returns. Raises SpoolFull, also where the disk has no room."""
        doing = f"keeping changes of cluster {piece.header.cluster} in {self._folder}"
        if self.size_bytes + piece.header.size_bytes > self._limit:
            await self.clear()
            seen = f"more than {self._limit:,} bytes wait for the store"
            raise SpoolFull(doing, seen, "make the store answer, or allow a larger spool")
        content = piece.header.model_dump_json().encode() + b"\n" + piece.content
        try:
            with file_errors(doing):
                await in_thread(write_secret, self._path(piece.header), content)
        except Unavailable as error:
            await self.clear()
            raise SpoolFull(doing, error.seen, error.next_step) from error
        self._headers.append(piece.header)
        self._headers = deque(sorted(self._headers, key=lambda each: each.first))
        self.size_bytes += piece.header.size_bytes

    async def load(self, header: PieceHeader) -> Piece | None:
        """A piece that waits. None where it is gone or damaged; then it is deleted."""
        content = await on_disk("the spool of backups", self._read, header)
        if content is None:
            await self.drop(header)
            return None
        return Piece(header, content)

    async def drop(self, header: PieceHeader) -> None:
        """Delete a piece; fine where it is gone."""
        if header in self._headers:
            self._headers.remove(header)
            self.size_bytes -= header.size_bytes
        with file_errors(f"deleting what was stored from {self._folder}"):
            await in_thread(self._path(header).unlink, missing_ok=True)

    async def clear(self) -> None:
        """Delete all pieces."""
        for header in self.headers:
            await self.drop(header)

    def _path(self, header: PieceHeader) -> Path:
        return self._folder / f"{header.first:020d}-{header.last:020d}{_SUFFIX}"

    def _found(self, belongs: Callable[[PieceHeader], bool]) -> list[PieceHeader]:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = []
        for path in sorted(self._folder.iterdir()):
            header = _header(path) if path.suffix == _SUFFIX else None
            if header is not None and path == self._path(header) and belongs(header):
                found.append(header)
            else:
                path.unlink(missing_ok=True)  # also what a crash left half-written
        sync_folder(self._folder)
        return found

    def _read(self, header: PieceHeader) -> bytes | None:
        try:
            _, _, content = self._path(header).read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        return content if hashlib.sha256(content).hexdigest() == header.sha256 else None


def _header(path: Path) -> PieceHeader | None:
    """The header of a piece that is as long as it says."""
    with path.open("rb") as file:
        line = file.readline()
    try:
        header = PieceHeader.model_validate_json(line)
    except ValidationError:
        return None
    return header if path.stat().st_size == len(line) + header.size_bytes else None


class Outbox:
    """Pieces on their way to the store. While it keeps up, the newest one is only in memory; whatever waits behind
    another one, or has failed once, is in the spool.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._fresh: Piece | None = None
        #: Set when there may be something to send.
        self.filled = asyncio.Event()

    @property
    def headers(self) -> Sequence[PieceHeader]:
        """What waits, oldest first."""
        fresh = (self._fresh.header,) if self._fresh is not None else ()
        return tuple(sorted((*fresh, *self._spool.headers), key=lambda each: each.first))

    async def put(self, piece: Piece) -> None:
        """Add a piece behind the others. Raises SpoolFull; then nothing waits any more."""
        if self.headers:
            try:
                await self._spool.put(piece)
            except SpoolFull:
                self._fresh = None
                raise
        else:
            self._fresh = piece
        self.filled.set()

    async def load(self, header: PieceHeader) -> Piece | None:
        """A piece that waits; None where it is lost."""
        if self._fresh is not None and self._fresh.header == header:
            return self._fresh
        return await self._spool.load(header)

    async def keep(self) -> None:
        """Have everything on the disk: the store has failed. Raises SpoolFull."""
        fresh, self._fresh = self._fresh, None
        if fresh is not None:
            await self._spool.put(fresh)

    async def drop(self, header: PieceHeader) -> None:
        """Forget a piece that is stored, or of no use."""
        if self._fresh is not None and self._fresh.header == header:
            self._fresh = None
        else:
            await self._spool.drop(header)

    async def clear(self) -> None:
        """Forget everything."""
        self._fresh = None
        await self._spool.clear()
