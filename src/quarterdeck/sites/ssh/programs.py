"""Having a program on a host: sent once, packed, from where the last try ended, and checked there."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import zstandard

from quarterdeck.errors import Conflict, PreconditionFailed, Unavailable
from quarterdeck.model.programs import Origin, Program
from quarterdeck.sites.ssh.connections import Connection

PROGRAMS = PurePosixPath("/var/lib/quarterdeck/programs")
#: Bytes that are sent at once: each waits for its answer.
PART = 4 * 2**20
_DEADLINE = 120.0  # seconds, for one part and for the unpacking
_FETCHING = 1800.0
_NO_FETCHING = "let it reach that address, or have programs sent from here: fetchOnHost: false"


@dataclass(frozen=True, slots=True)
class _Packed:
    digest: str
    content: bytes = field(repr=False)


@dataclass(slots=True, eq=False)
class Sender:
    """Sends programs to hosts, or has them fetch what ``origins`` says where to have. What a program is, and what it is
    packed, is found out once.
    """

    origins: Callable[[Path], Origin | None] = lambda _file: None
    _digests: dict[tuple[str, int, int], str] = field(default_factory=dict)
    _packed: dict[tuple[str, str], _Packed] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def install(
        self, doing: str, to: Connection, program: Program, file: Path, *, fetch: bool = False
    ) -> PurePosixPath:
        """Have a file of this host on that one; ``fetch``: it downloads what is released. Raises Unavailable."""
        digest = await self._digest(doing, file)
        async with to.locks[f"program {digest}"]:
            if f"program {digest}" not in to.known:
                origin = await asyncio.to_thread(self.origins, file) if fetch else None
                if origin is None:
                    await self._sent(doing, to, program, file, digest)
                else:
                    await self._fetched(doing, to, program, file, digest, origin)
                to.known.add(f"program {digest}")
        return PROGRAMS / digest / program.name

    async def _fetched(
        self, doing: str, to: Connection, program: Program, file: Path, digest: str, origin: Origin
    ) -> None:
        """The host has it from where it is released. Whatever comes must be the file that this host has."""
        size = (await asyncio.to_thread(file.stat)).st_size
        words = (digest, program.name, str(size), origin.digest or "-")
        body = f"{origin.url}\n{origin.member}\n".encode()
        try:
            await to.ask("fetch", *words, doing=doing, deadline=_FETCHING, body=body)
        except (Unavailable, PreconditionFailed) as error:
            raise type(error)(doing, error.seen, error.next_step or _NO_FETCHING) from error

    async def _sent(self, doing: str, to: Connection, program: Program, file: Path, digest: str) -> None:
        # How it is packed depends on what the host can unpack, which it says when it is first asked.
        await to.ask("ping", doing=doing, deadline=_DEADLINE)
        packed = await self._pack(doing, file, digest, to.packing)
        words = (digest, program.name, packed.digest)
        said = await to.ask("program", *words, doing=doing, deadline=_DEADLINE)
        if said.strip() == b"there":
            return
        come, whole = int(said), len(packed.content)
        if come > whole:
            raise Unavailable(
                doing, f"{come} bytes of {whole} have come", "remove /var/lib/quarterdeck/programs/.part-* there"
            )
        while come < whole:
            part = packed.content[come : come + PART]
            try:
                await to.ask("program-part", *words, str(come), doing=doing, deadline=_DEADLINE, body=part)
            except Conflict:  # another process sends it as well
                come = int(await to.ask("program", *words, doing=doing, deadline=_DEADLINE) or b"0")
                continue
            come += len(part)
        await to.ask("program-whole", *words, to.packing, doing=doing, deadline=_DEADLINE)

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
    """The same bytes each time, so that what was begun can be gone on with."""
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
    """Whether a file of this host can be run."""
    return os.access(file, os.X_OK)
