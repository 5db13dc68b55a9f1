"""One look at all machines of a local site: each supervisor is called once, and all disks are read by one thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from quarterdeck.model.site_facts import MachineFacts
from quarterdeck.sites.local.machine import LocalMachine
from quarterdeck.sites.local.volumes import VolumeFolders, VolumesSeen
from quarterdeck.sites.shared import Shared


class Looks:
    """Looks at machines and their disks, shared by all who ask at the same time. Of each volume they tell what is in
    its folder ``below``.
    """

    def __init__(self, machines: Mapping[str, LocalMachine], disks: Mapping[str, VolumeFolders]) -> None:
        self._machines = machines
        self._disks = disks
        self._shared: dict[str, Shared[tuple[MachineFacts, ...]]] = {}

    async def __call__(self, below: str) -> tuple[MachineFacts, ...]:
        """A look that begins now or later."""
        if below not in self._shared:
            self._shared[below] = Shared(partial(self._look, below))
        return await self._shared[below]()

    async def _look(self, below: str) -> tuple[MachineFacts, ...]:
        machines, volumes = await asyncio.gather(
            asyncio.gather(*(each.facts() for each in self._machines.values())),
            asyncio.to_thread(self._volumes, below),
        )
        return tuple(
            MachineFacts(
                machine=machine,
                units=units,
                volumes=None if units is None or seen is None else seen.volumes,
                away=() if seen is None else seen.away,
            )
            for (machine, units), seen in zip(machines, volumes, strict=True)
        )

    def _volumes(self, below: str) -> tuple[VolumesSeen | None, ...]:
        return tuple(_seen(self._disks[name], below) for name in self._machines)


def _seen(disk: VolumeFolders, below: str) -> VolumesSeen | None:
    """None for a disk that cannot be read."""
    try:
        return disk.facts(below)
    except OSError:
        return None
