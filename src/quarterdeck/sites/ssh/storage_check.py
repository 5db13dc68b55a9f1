"""Testing the commands that attach volumes: whether each keeps its contract in docs/how-to/storage.md.

It is not tested that nothing on a host which does not answer can write any more: no host is turned off for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

from quarterdeck.errors import InvalidInput, PreconditionFailed, QuarterdeckError, TimedOut, Unavailable
from quarterdeck.model.capabilities import Job, JobResult
from quarterdeck.model.findings import Promise
from quarterdeck.sites.port import SitePort
from quarterdeck.sites.ssh.attachment import SshAttaching, VolumeState
from quarterdeck.sites.ssh.host_queries import QUICK, root_of
from quarterdeck.sites.ssh.hosts import SshHost, SshStorageClass

_TEXT = "what was written"
_JOB = 20.0
#: A claim that becomes void as soon as another host is seen to have the volume.
_FIRST = "0"
_SNAPSHOT = "check"
#: Keeps writing, for longer than a detach may take.
_WRITER = 'while echo x; do sleep 0.05; done >> "$0"'
#: Prints the size twice, with time in between in which the above would write.
_SIZES = 'stat -c %s "$0"; sleep 1; stat -c %s "$0"'
_GROWS = 'for n in 1 2 3 4 5 6 7 8 9 10; do [ ! -s "$0" ] || exit 0; sleep 0.5; done; exit 1'


async def check_storage(
    site: SitePort, storage: SshAttaching, storage_class: str, volume: str, first: str, second: str
) -> AsyncIterator[Promise]:
    """Test the commands of a storage class with a new volume, on two machines, and delete it. ``site`` and ``storage``
    are the same site: as everybody may use it, and as its attaching driver.

    Raises InvalidInput, NotFound, PreconditionFailed for what cannot be tested, Unavailable where a host does not
    answer.
    """
    doing = f"testing storage class {storage_class} of site {site.name}"
    found = storage.storage_class(doing, storage_class)
    if found.commands is None:
        raise PreconditionFailed(doing, "its volumes are local: no command attaches them")
    if first == second:
        raise InvalidInput(doing, "it takes two machines", "name another one")
    check = _Check(site, storage, found, volume, storage.host(first), storage.host(second), doing)
    try:
        async with aclosing(check.promises()) as promises:
            async for each in promises:
                yield each
    finally:
        await check.clear()


class _Broken(Exception):
    """A promise was broken without which nothing else can be tested."""

    def __init__(self, promise: Promise) -> None:
        super().__init__(promise.words)
        self.promise = promise


@dataclass
class _Check:
    site: SitePort
    storage: SshAttaching
    storage_class: SshStorageClass
    volume: str
    first: SshHost
    second: SshHost
    doing: str

    @property
    def _root(self) -> str:
        return root_of(self.storage_class)

    @property
    def _path(self) -> PurePosixPath:
        return self.storage_class.folder / self.volume

    async def promises(self) -> AsyncGenerator[Promise, None]:
        """All of them, one after the other, up to one without which nothing else can be tested."""
        try:
            yield await self._no_such_volume()
            yield await self._needed("attach creates a volume, and mounts it", self._make())
            yield await self._needed("attach can be repeated", self._again("attach"))
            yield await self._needed("programs on the host can write to it", self._write())
            yield await self._one_host_at_a_time()
            assert self.storage_class.commands is not None
            if self.storage_class.commands.snapshot:
                yield await self._tried("snapshot copies it, and can be repeated", self._snapshot())
            words = "detach refuses, or leaves nothing on the host that can write to it"
            yield await self._needed(words, self._nothing_writes())
            yield await self._needed("detach can be repeated", self._again("detach"))
            yield await self._needed("attach mounts it on another host", self._move())
            yield await self._tried("what was written is there", self._read())
            yield await self._tried("it is deleted, and detached", self._delete())
        except _Broken as broken:
            yield broken.promise

    async def clear(self) -> None:
        """Nothing is left of it on either host. Raises Unavailable."""
        for host in (self.second, self.first):
            await self.site.delete_volume(host.name, self.volume)

    async def _no_such_volume(self) -> Promise:
        words = "attach ends with 3 when there is no such volume, and it must create none"
        await self._ask(self.first, "claim", _FIRST)
        try:
            seen = "it ended with 0" if await self._run("attach", self.first) else ""
        except Unavailable as error:
            seen = error.seen
        if seen == "it ended with 0":
            await self._run("detach", self.first)
        await self._ask(self.first, "disclaim")
        return Promise(words=words, seen=seen)

    async def _make(self) -> str:
        await self.site.create_volume(self.first.name, self.volume, self.storage_class.name)
        return ""

    async def _again(self, which: str) -> str:
        return "" if await self._run(which, self.first) else "it ended with 3"

    async def _write(self) -> str:
        done = await self._job(self.first, 'echo "$1" > "$0" && sync "$0"', "written", _TEXT)
        return "" if done.exit_code == 0 else done.output.strip() or f"it ended with {done.exit_code}"

    async def _one_host_at_a_time(self) -> Promise:
        words = "attach refuses a host while another one has it"
        await self._ask(self.second, "claim", _FIRST)
        try:
            seen = "it ended with 0" if await self._run("attach", self.second) else "it ended with 3"
        except TimedOut as error:
            seen = error.seen
        except Unavailable:
            seen = ""
        if seen:
            await self._run("detach", self.second)
        await self._ask(self.second, "disclaim")
        return Promise(words=words, seen=seen)

    async def _snapshot(self) -> str:
        for _ in range(2):
            await self.storage.snapshot_volume(self.first.name, self.volume, _SNAPSHOT)
        return ""

    async def _nothing_writes(self) -> str:
        """A detach may refuse while something uses the volume; it must not succeed and leave that."""
        writer = asyncio.create_task(self._job(self.first, _WRITER, "log", deadline=300.0))
        try:
            if (await self._job(self.first, _GROWS, "log")).exit_code != 0:
                return "nothing could be written"
            try:
                await self._run("detach", self.first)
            except TimedOut as error:
                return error.seen
            except Unavailable:
                return ""
            await self._move()
            sizes = (await self._job(self.second, _SIZES, "log")).output.split()
            return "" if len(set(sizes)) == 1 else f"it grew from {' to '.join(sizes)} bytes"
        finally:
            writer.cancel()
            with suppress(asyncio.CancelledError, QuarterdeckError):
                await writer

    async def _move(self) -> str:
        await self.site.attach_volume(self.second.name, self.volume, self.first.name)
        held = await self.storage.stands_at(self.doing, self.volume, self.first)
        return "it is still mounted on the former one" if VolumeState.ATTACHED in held.values() else ""

    async def _read(self) -> str:
        content = (await self._job(self.second, 'cat "$0"', "written")).output.strip()
        return "" if content == _TEXT else f"it contains {content[:60]!r}"

    async def _delete(self) -> str:
        await self.site.delete_volume(self.second.name, self.volume)
        return "" if not await self.storage.stands_at(self.doing, self.volume, self.second) else "it still exists"

    async def _tried(self, words: str, doing: Awaitable[str]) -> Promise:
        try:
            return Promise(words=words, seen=await doing)
        except QuarterdeckError as error:
            return Promise(words=words, seen=error.seen)

    async def _needed(self, words: str, doing: Awaitable[str]) -> Promise:
        promise = await self._tried(words, doing)
        if not promise.kept:
            raise _Broken(promise)
        return promise

    async def _run(self, which: str, host: SshHost) -> bool:
        return await self.storage.command(self.doing, self.storage_class, which, self.volume, host)

    async def _ask(self, host: SshHost, *words: str) -> None:
        verb, *more = words
        await self.storage.ask(host.name, verb, self._root, self.volume, *more, doing=self.doing, deadline=QUICK)

    async def _job(self, host: SshHost, script: str, file: str, *more: str, deadline: float = _JOB) -> JobResult:
        argv = ("/bin/sh", "-c", script, str(self._path / file), *more)
        return await self.site.run_job(host.name, Job(name=f"check-{file}", argv=argv, deadline=deadline))
