"""The base of all site drivers: machines and storage classes by name, and the caller's fence."""

from __future__ import annotations

import asyncio
import copy
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Generic, Self, TypeVar

from typing_extensions import override

from quarterdeck.errors import NotFound, PreconditionFailed, Unavailable
from quarterdeck.model.units import Fence, Program, Volume
from quarterdeck.sites.port import SitePort

M = TypeVar("M")
C = TypeVar("C")


class BaseSite(SitePort, Generic[M, C]):
    """A site with machines of type ``M`` and storage classes of type ``C``, each by its name; the first storage class
    is the default. Views for fences (``fenced``) share all but the fence.
    """

    def __init__(self, name: str, machines: Mapping[str, M], storage_classes: Mapping[str, C]) -> None:
        self._name = name
        self._machines = machines
        self._classes = storage_classes
        self._fence: Fence | None = None
        self._unit_locks: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    @override
    def name(self) -> str:
        return self._name

    @override
    def fenced(self, fence: Fence) -> Self:
        view = copy.copy(self)
        view._fence = fence  # noqa: SLF001 - of its own class
        return view

    @override
    async def storage_classes(self) -> tuple[str, ...]:
        return tuple(self._classes)

    def storage_class(self, doing: str, name: str) -> C:
        """A storage class of the site. No IO. Raises NotFound."""
        try:
            return self._classes[name]
        except KeyError:
            offered = ", ".join(self._classes)
            raise NotFound(doing, f"storage class {name} does not exist", f"choose of: {offered}") from None

    def _machine(self, name: str) -> M:
        """A machine of the site. No IO. Raises NotFound."""
        try:
            return self._machines[name]
        except KeyError:
            offered = ", ".join(self._machines)
            doing, seen = f"using machine {name}", f"site {self.name} has no such machine"
            raise NotFound(doing, seen, f"there are: {offered}") from None

    @abstractmethod
    async def _reached(self, name: str) -> M:
        """A machine that answers, as far as the driver knows before it sends a request. Raises NotFound,
        Unavailable.
        """

    @abstractmethod
    async def _admitted(self, name: str) -> M:
        """``_reached``, for a change. Raises LeaseLost for an older fence."""

    async def _volume_with_room(self, doing: str, machine: str, name: str, size: int) -> Volume:
        """A volume that has room for that many more bytes. Raises NotFound, Unavailable."""
        volume = next((each for each in await self.volumes(machine) if each.name == name), None)
        if volume is None:
            raise NotFound(doing, "there is no such volume")
        free = await self.free_bytes(machine, volume.storage_class)
        if free < size:
            needed, left = (f"{count / 2**20:,.1f} MiB" for count in (size, free))
            seen = f"{needed} are needed and {left} are free in storage class {volume.storage_class}"
            raise Unavailable(doing, seen, "make room there")
        return volume

    def _file_of(self, doing: str, program: Program) -> PurePosixPath:
        """The file of a program. Raises PreconditionFailed for one that is only an image."""
        if program.path is None:
            raise PreconditionFailed(doing, f"site {self.name} runs files, not images", "name a file")
        return program.path


# One observation for all concurrent callers.

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Look(Generic[T]):
    task: asyncio.Task[T]
    waiting: int = 0


class Shared(Generic[T]):
    """Observations one after the other, each for all callers that came before it began. So no caller gets older facts:
    an observation in progress does not count for later callers. One without any waiting caller is cancelled.
    """

    def __init__(self, look: Callable[[], Awaitable[T]]) -> None:
        self._look = look
        self._now: _Look[T] | None = None
        self._next: _Look[T] | None = None

    async def __call__(self) -> T:
        """The result, or the error, of the next observation."""
        if self._next is None:
            self._next = _Look(asyncio.get_running_loop().create_task(self._after(self._now)))
        mine = self._next
        mine.waiting += 1
        try:
            return await asyncio.shield(mine.task)
        finally:
            mine.waiting -= 1
            if not mine.waiting and not mine.task.done():
                await self._drop(mine)

    async def _after(self, before: _Look[T] | None) -> T:
        if before is not None and not before.task.done():
            await asyncio.wait((before.task,))
        self._now, self._next = self._next, None
        return await self._look()

    async def _drop(self, look: _Look[T]) -> None:
        if self._next is look:
            self._next = None
        look.task.cancel()
        with suppress(asyncio.CancelledError):
            await look.task
