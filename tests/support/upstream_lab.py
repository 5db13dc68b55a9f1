"""What the tests of upstream programs share: small programs, a mirror on 127.0.0.1, and listeners."""

from __future__ import annotations

import asyncio
import hashlib
import io
import re
import struct
import tarfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from quarterdeck.upstream.catalog import Project, UpstreamProgram, Version
from quarterdeck.upstream.releases import release_files
from quarterdeck.upstream.sources import ProgramRequest, Target

AMD64 = Target("linux", "amd64")


def elf(content: bytes = b"", *, machine: int = 62) -> bytes:
    """A whole 64-bit ELF file with one loaded segment that ends with the file (62: amd64, 183: arm64)."""
    size = 64 + 56 + len(content)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return header + struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, 4096) + content


def tar_gz(members: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def order(folder: Path, version: Version, *programs: UpstreamProgram, target: Target = AMD64) -> ProgramRequest:
    return ProgramRequest(project=programs[0].project, version=version, programs=programs, target=target, folder=folder)


@dataclass
class Heard:
    """A Progress that remembers."""

    started: dict[str, int | None] = field(default_factory=dict)
    resized: dict[str, list[int]] = field(default_factory=dict)
    done: dict[str, list[int]] = field(default_factory=dict)
    finished: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def start(self, task: str, total: int | None) -> None:
        self.started[task] = total

    def resize(self, task: str, total: int) -> None:
        self.resized.setdefault(task, []).append(total)

    def advance(self, task: str, done: int) -> None:
        self.done.setdefault(task, []).append(done)

    def finish(self, task: str, outcome: str) -> None:
        self.finished[task] = outcome

    def note(self, line: str) -> None:
        self.notes.append(line)


@dataclass
class Mirror:
    """Files by path, served over HTTP. ``cuts`` says how often a path still ends halfway; ``froms`` from which byte on
    each was asked for.
    """

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    cuts: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    froms: list[int] = field(default_factory=list)

    def publish(
        self, project: Project, version: Version, contents: Mapping[UpstreamProgram, bytes], target: Target = AMD64
    ) -> None:
        """Put a release up as its project does, with its checksums."""
        for file in release_files(project, version, tuple(contents), target):
            if file.members is None:
                body = contents[file.programs[0]]
            else:
                body = tar_gz({"README": b"x"} | {file.members[p]: contents[p] for p in file.programs})
            self.files[path_of(file.url)] = body
            self.files[path_of(file.checksum_url)] = f"{sha256(body)}  {file.name}\n".encode()


def path_of(url: str) -> str:
    """Where a mirror has what is at ``url`` officially."""
    return "/" + url.removeprefix("https://")


@asynccontextmanager
async def serving(address: str = "127.0.0.1") -> AsyncIterator[Mirror]:
    mirror = Mirror(url="")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split()[1].decode()
            mirror.asked.append(path)
            body = mirror.files.get(path)
            status = "404 Not Found" if body is None else "200 OK"
            body = b"no such file" if body is None else body
            since = int(found[1]) if (found := re.search(rb"(?i)\r\nrange: bytes=(\d+)-\r\n", head)) else 0
            mirror.froms.append(since)
            if since:
                status = f"206 Partial Content\r\nContent-Range: bytes {since}-{len(body) - 1}/{len(body)}"
                body = body[since:]
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode())
            if mirror.cuts.get(path, 0) > 0:
                mirror.cuts[path] -= 1
                body = body[: len(body) // 2]
            writer.write(body)
            await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(answer, address, 0)
    mirror.url = f"http://{address}:{server.sockets[0].getsockname()[1]}"
    try:
        yield mirror
    finally:
        server.close()
        await server.wait_closed()
