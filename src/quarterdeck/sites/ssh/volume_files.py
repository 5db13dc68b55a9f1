"""Sending a file of this host into a volume of another one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from typing_extensions import override

from quarterdeck.errors import Unavailable
from quarterdeck.sites.ssh.connections import HostConnection
from quarterdeck.sites.ssh.sending import PART_DEADLINE, Parcel, come_of, compressed

#: Bytes a second that a slow disk reads: the host computes the digest of the whole file.
_SLOW_DISK = 20e6


class AskHost(Protocol):
    """A request to one host, fenced: see ``Session.ask``."""

    async def __call__(self, *words: str, doing: str, deadline: float, body: bytes = b"") -> bytes:
        """The host's answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeParcel(Parcel):
    """A file for a volume. Each part is compressed by itself, so that no more of it is ever in memory, and the host
    counts the bytes of the file itself. ``roots``: the folders of its storage classes, for the host.
    """

    doing: str
    to: HostConnection
    ask: AskHost
    volume: str
    file: str
    source: Path
    digest: str
    length: int
    roots: tuple[str, ...]

    @property
    @override
    def name(self) -> str:
        return self.file

    @property
    @override
    def size(self) -> int:
        return self.length

    @override
    async def come(self) -> int | None:
        answer = await self.ask("fill", *self._words, *self.roots, doing=self.doing, deadline=self._deadline)
        return come_of(self.doing, answer)

    @override
    async def put(self, at: int, size: int) -> int:
        packing = self.to.packing
        count, body = await asyncio.to_thread(self._part, at, size, packing)
        words = ("fill-part", *self._words, str(at), packing, *self.roots)
        await self.ask(*words, doing=self.doing, deadline=PART_DEADLINE, body=body)
        return count

    @override
    async def finish(self) -> None:
        await self.ask("fill-whole", *self._words, *self.roots, doing=self.doing, deadline=self._deadline)

    def _part(self, at: int, size: int, packing: str) -> tuple[int, bytes]:
        try:
            with self.source.open("rb", buffering=0) as file:
                file.seek(at)
                part = file.read(size)
        except OSError as error:
            raise Unavailable(self.doing, f"{self.source}: {error.strerror}") from error
        if not part:
            raise Unavailable(self.doing, f"{self.source} has become smaller while it was sent")
        return len(part), compressed(part, packing)

    @property
    def _words(self) -> tuple[str, ...]:
        return self.volume, self.file, self.digest, str(self.length)

    @property
    def _deadline(self) -> float:
        return PART_DEADLINE + self.length / _SLOW_DISK
