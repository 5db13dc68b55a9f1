"""Processes of a trial, and their folder: neither outlives the process that started them."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from quarterdeck.files import file_errors, remove_folder
from quarterdeck.linux import job_init
from quarterdeck.package import isolated

#: Bytes of output that are kept: enough for a reason that precedes a usage text.
_MOST = 128 * 1024
_PIECE = 64 * 1024
#: In memory, if there is such a folder: etcd reserves 64 MB for its log.
_MEMORY = Path("/dev/shm")  # noqa: S108 - what is made there is ours alone
#: Bytes: two files of etcd's log, and its database.
_ROOM = 256 * 2**20
_LOCK = "lock"
#: Seconds. A younger folder may not have its lock yet.
_YOUNG = 600.0


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of a process: the end of its output, and its exit code, negative for a signal. ``started``: it was
    executed at all.
    """

    output: str
    exit_code: int
    started: bool


@dataclass(slots=True)
class TrialProcess:
    """A program that runs below its own parent (``job_init``), which ends with this process."""

    _process: asyncio.subprocess.Process
    _output: bytearray = field(default_factory=bytearray)
    _ended: asyncio.Task[int] = field(init=False)

    def __post_init__(self) -> None:
        self._ended = asyncio.ensure_future(self._read())

    @classmethod
    @asynccontextmanager
    async def started(cls, argv: tuple[str, ...]) -> AsyncIterator[Self]:
        """Run a program for the block, and then kill it and all its descendants."""
        process = await asyncio.create_subprocess_exec(
            *isolated(job_init.__name__, *argv),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd="/",
            env={"PATH": os.defpath},
        )
        made = cls(process)
        try:
            yield made
        finally:
            assert process.stdin is not None
            process.stdin.close()
            await made._ended

    async def ended(self, seconds: float) -> TrialResult | None:
        """Its result, if it ends within that many seconds."""
        await asyncio.wait((self._ended,), timeout=seconds)
        if not self._ended.done():
            return None
        code = self._ended.result()
        return TrialResult(bytes(self._output).decode(errors="replace"), code, code != job_init.EX_NOT_STARTED)

    async def _read(self) -> int:
        stdout = self._process.stdout
        assert stdout is not None
        while piece := await stdout.read(_PIECE):
            self._output += piece
            del self._output[: max(0, len(self._output) - _MOST)]
        return await self._process.wait()


class TrialFolder:
    """Folders of trials."""

    @staticmethod
    @asynccontextmanager
    async def made() -> AsyncIterator[Path]:
        """A folder (0700) for the block. Folders of trials whose process was killed are removed, too. Raises
        Unavailable when none can be created.
        """
        with file_errors("creating a folder for a trial"):
            root = _MEMORY if _has_room(_MEMORY) else Path(tempfile.gettempdir())
            prefix = f"quarterdeck-trial-{os.geteuid()}-"
            await asyncio.to_thread(_remove_left, root, prefix)
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
            with _locked(folder / _LOCK):
                try:
                    yield folder
                finally:
                    await asyncio.to_thread(remove_folder, folder)


def _has_room(folder: Path) -> bool:
    """Whether a trial fits there: containers often have 64 MB of such memory."""
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= _ROOM


def _remove_left(root: Path, prefix: str) -> None:
    """Remove folders of trials that have ended: their lock is free."""
    for folder in root.glob(f"{prefix}*"):
        with suppress(OSError):  # another process removes it, or uses it
            seen = folder.lstat()
            if stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid() and seen.st_mtime < time.time() - _YOUNG:
                with _locked(folder / _LOCK):
                    remove_folder(folder)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Create a file and hold its lock. Raises OSError where another process has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
