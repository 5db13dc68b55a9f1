"""Volumes of re-attachable classes go from a machine that does not answer to another one.

Here a volume is a folder, and who has it is where it lies. It is renamed out of the machine that had it first, so that
nothing there finds it any more: programs that need it are not started (``data_guard.py``). What still has files of it
open, as on a machine that stands still, is killed. Only then it gets its name at the other machine. Each of this is
done at most once, by whoever comes first, and what was cut short goes on with the next call.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from quarterdeck.errors import Conflict, NotFound, PreconditionFailed, Unavailable
from quarterdeck.model.units import Fence, Volume
from quarterdeck.sites.local.disk import on_disk
from quarterdeck.sites.local.machine import LocalMachine
from quarterdeck.sites.local.users import end_users, uses
from quarterdeck.sites.local.volumes import VolumeFolders


@dataclass(frozen=True, slots=True)
class Holder:
    """A machine with its volumes."""

    machine: LocalMachine
    disk: VolumeFolders


@dataclass(frozen=True, slots=True, kw_only=True)
class Attaching:
    """Attaches volumes of the ``reattachable`` classes. ``marks`` are of all machines of the site, any of which may
    have had a volume.
    """

    reattachable: frozenset[str]
    marks: Collection[str]
    fence: Fence | None

    async def attach(self, name: str, here: Holder, source: Holder) -> Volume:
        """See Site.attach_volume."""
        doing = f"attaching volume {name} to machine {here.machine.name}"
        owner = here.machine.name
        await here.machine.admit(self.fence)
        has, had = await on_disk(owner, here.disk.folder_of, name), await on_disk(owner, source.disk.folder_of, name)
        if has is not None and had is not None and source.machine.name != owner:
            seen = f"machine {source.machine.name} has one of that name as well"
            raise Conflict(doing, seen, "see which of them has the data; nothing was touched")
        if has is None:
            if await on_disk(owner, here.disk.arriving, name) is None:
                await self._take(doing, name, here, source)
            arriving = await on_disk(owner, here.disk.arriving, name)
            if arriving is None:
                raise Conflict(doing, "somebody else has just taken it")
            await on_disk(owner, end_users, doing, arriving, self.marks)
            await here.machine.admit(self.fence)
            await on_disk(owner, here.disk.settle, name)
        return await on_disk(owner, here.disk.volume, name)

    async def _take(self, doing: str, name: str, here: Holder, source: Holder) -> None:
        """Have nothing find it any more where it was."""
        found = await on_disk(source.machine.name, source.disk.class_of, name)
        if found is None:
            raise NotFound(doing, f"machine {source.machine.name} has no such volume")
        if found not in self.reattachable:
            raise PreconditionFailed(doing, f"volumes of storage class {found} are local to their machine")
        if await self._answers(source.machine):
            await source.machine.admit(self.fence)
            folder = await on_disk(source.machine.name, source.disk.folder_of, name)
            if folder is not None and await on_disk(source.machine.name, uses, folder, self.marks):
                raise Conflict(doing, f"machine {source.machine.name} answers, and uses it")
        await on_disk(here.machine.name, here.disk.take, name, found, source.disk)

    @staticmethod
    async def _answers(machine: LocalMachine) -> bool:
        try:
            await machine.reach()
        except Unavailable:
            return False
        return True
