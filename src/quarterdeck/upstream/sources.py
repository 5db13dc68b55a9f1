"""The target machine of programs, and the port of their sources, with its errors."""

from __future__ import annotations

import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from typing_extensions import override

from quarterdeck.errors import PreconditionFailed
from quarterdeck.progress import Progress
from quarterdeck.upstream.catalog import Project, UpstreamProgram, Version

_HEADER = struct.Struct("<4sBBBBB7xHHIQQQIHHHHHH")  # Elf64_Ehdr (elf(5))
_SEGMENT = struct.Struct("<IIQQQQQQ")  # Elf64_Phdr
_MACHINES = {62: "amd64", 183: "arm64", 3: "386", 40: "arm", 21: "ppc64le", 22: "s390x", 243: "riscv64"}
_CLASS_64, _LITTLE_ENDIAN, _SEGMENT_LOAD = 2, 1, 1


@dataclass(frozen=True, slots=True)
class Target:
    """An operating system and processor, by Go's names for them (``linux``, ``amd64``)."""

    goos: str
    goarch: str

    @classmethod
    def here(cls) -> Target:
        """This machine's. Raises PreconditionFailed where upstream's releases do not run."""
        system, machine = platform.system().lower(), platform.machine().lower()
        goarch = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(machine)
        if system != "linux" or goarch is None:
            raise PreconditionFailed(
                "detecting the platform of this machine",
                f"it is {system} on {machine}",
                "use Linux on x86-64 or arm64",
            )
        return cls(system, goarch)

    @override
    def __str__(self) -> str:
        return f"{self.goos}-{self.goarch}"


def fault(path: Path, target: Target) -> str | None:
    """The problem of ``path`` as a program for ``target``; None if there is none.

    Reads the ELF header and the program headers only: a file that ends before its last loaded segment was cut short.
    Raises OSError.
    """
    with path.open("rb") as stream:
        head = stream.read(_HEADER.size)
        if not head:
            return "is empty"
        if len(head) < _HEADER.size or head[:4] != b"\x7fELF" or (head[4], head[5]) != (_CLASS_64, _LITTLE_ENDIAN):
            return "is not a 64-bit Linux program"
        fields = _HEADER.unpack(head)
        machine, segments_at, segment_size, segments = fields[7], fields[10], fields[14], fields[15]
        if (found := _MACHINES.get(machine, f"machine {machine}")) != target.goarch:
            return f"is of the wrong architecture ({found}, this machine is {target.goarch})"
        stream.seek(segments_at)
        table = stream.read(segment_size * segments)
        size = stream.seek(0, 2)
    if segment_size != _SEGMENT.size or len(table) < segment_size * segments:
        return f"is cut short ({size} bytes)"
    ends = [at + length for kind, _, at, _, _, length, _, _ in _SEGMENT.iter_unpack(table) if kind == _SEGMENT_LOAD]
    whole = max(ends, default=0)
    return f"is cut short ({size} of at least {whole} bytes)" if size < whole else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRequest:
    """Programs of one release to fetch. ``folder`` is empty, and takes all temporary files."""

    project: Project
    version: Version
    programs: tuple[UpstreamProgram, ...]
    target: Target
    folder: Path


class CannotGive(Exception):
    """This source does not have the requested programs.

    ``absent``: the source was reached and has no such release; else it could not be reached or used.
    """

    def __init__(self, why: str, *, absent: bool) -> None:
        super().__init__(why)
        self.absent = absent


class ProgramSource(Protocol):
    """A source of programs: a site with releases, or a compiler."""

    @property
    def name(self) -> str:
        """The source in one word, for people."""
        ...

    async def fetch(self, order: ProgramRequest, progress: Progress) -> Mapping[UpstreamProgram, Path]:
        """All programs of ``order`` as files in its folder, checked against the project's published sums.

        Raises CannotGive when it does not have them, Corrupt when its files are wrong (no other source is tried then),
        PreconditionFailed when there is no room for them.
        """
        ...
