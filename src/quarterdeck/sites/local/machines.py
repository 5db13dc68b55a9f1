"""The machines of a local site, and their facts in one observation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeVar

from typing_extensions import override

from quarterdeck.components.traffic.keepalived import RouterSettings, Routing, own_address, router_settings
from quarterdeck.files import on_disk, remove_folder
from quarterdeck.model.capabilities import Capability
from quarterdeck.model.seats import HostPort
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.units import Machine, MachineRole
from quarterdeck.sites.base.seats import SeatingSite, SeatLedger
from quarterdeck.sites.base.site import Shared
from quarterdeck.sites.isolation import MachineIsolation
from quarterdeck.sites.kernel import TABLES, listening_ends
from quarterdeck.sites.local.machine import LocalMachine
from quarterdeck.sites.local.settings import LocalSiteSettings, LocalStorageClass, require_entry_name, stands
from quarterdeck.sites.local.site_files import change_ledger, keep_stand, kept_stands, read_ledger
from quarterdeck.sites.local.supervisor.records import FILES
from quarterdeck.sites.local.volumes import VolumeFolders, VolumesSeen
from quarterdeck.sites.port import Floats, Leads
from quarterdeck.sites.vrrp import routing_of_this_host, why_not_here

T = TypeVar("T")


class LocalMachines(SeatingSite[LocalMachine, LocalStorageClass], Leads, Floats):
    """All machines of a site below ``home``/sites, which ``LocalSite`` runs units on.

    ``number`` is the site's own in its home (``numbers.site_number``); ``patience`` how many seconds a machine has to
    answer before it counts as unreachable.
    """

    def __init__(
        self,
        home: Path,
        settings: LocalSiteSettings,
        isolation: MachineIsolation,
        *,
        number: int,
        patience: float = 2.0,
    ) -> None:
        self._home = home.resolve()
        self._settings = settings
        self._isolation = isolation
        self._number = number
        self._site_folder = self._home / "sites" / settings.name
        found = kept_stands(self._site_folder / "machines", stands(settings, number), number)
        for name, stand in found.items():
            # A full disk must not prevent observations: the next command tries again.
            with suppress(OSError):
                keep_stand(self._folder_of(name), stand)
        machines = {
            name: LocalMachine(self._folder_of(name), each, isolation, patience) for name, each in found.items()
        }
        super().__init__(settings.name, machines, settings.storage_classes)
        self._looks = MachineLooks(machines, {name: self._volumes(name) for name in machines})

    @property
    @override
    def capabilities(self) -> frozenset[Capability]:
        always = frozenset({Capability.HOLDS, Capability.FAULTS})
        always |= {Capability.LEADS} if self.led_addresses else set()
        return always | {Capability.FLOATS} if self._settings.floating else always

    @property
    @override
    def led_addresses(self) -> tuple[str, ...]:
        return self._isolation.led_addresses(self._number)

    @override
    def floating(self, machine: str) -> str | None:
        edges = self._edges()
        return own_address(machine, edges, self._floating_addresses(edges)) if machine in edges else None

    @override
    def router(self, machine: str) -> RouterSettings:
        edges = self._edges()
        return router_settings(machine, edges, self._floating_addresses(edges))

    @property
    @override
    def cannot_route(self) -> str:
        return why_not_here()

    @override
    def routing(self, machine: str, unit: str) -> Routing:
        return routing_of_this_host(PurePosixPath(self._unit_folder(self._machine(machine), unit)) / FILES)

    def _edges(self) -> dict[str, str]:
        """The edges between which addresses move, each with its own address."""
        stands = {name: each.stand for name, each in self._machines.items() if each.stand.declared}
        edges = {name: each.place for name, each in stands.items() if each.role is MachineRole.EDGE}
        return {name: self._isolation.address(place) for name, place in edges.items()}

    def _floating_addresses(self, edges: Iterable[str]) -> tuple[str, ...]:
        found = (self._isolation.floating_address(self._machine(each).stand.place) for each in edges)
        return tuple(each for each in found if each is not None)

    @override
    async def machines(self) -> tuple[Machine, ...]:
        return tuple(await asyncio.gather(*(each.seen() for each in self._machines.values())))

    @override
    async def facts(self, below: str = "") -> SiteFacts:
        """See Site. All planes of a process share their observations: views for their fences are of one site."""
        machines = await self._looks(below)
        return SiteFacts(
            name=self.name,
            machines=machines,
            storage_classes=await self.storage_classes(),
            reattachable=self._settings.reattachable,
        )

    async def processes(self, machine: str) -> tuple[int, ...]:
        """The process ids of everything that runs on a machine, its supervisord among them."""
        return await self._machine(machine).processes()

    @override
    async def destroy(self) -> None:
        """See Site: its networks, files and number as well."""
        for name, machine in self._machines.items():
            if machine.folder.exists():
                await machine.cut_power()
            await self._isolation.release(machine.stand.place)
            await on_disk(name, self._volumes(name).delete_all)
        if self._site_folder.exists():
            await on_disk(self.name, remove_folder, self._site_folder)

    def _folder_of(self, machine: str) -> Path:
        return self._site_folder / "machines" / machine

    @override
    async def _reached(self, name: str) -> LocalMachine:
        where = self._machine(name)
        await where.reach()
        return where

    @override
    async def _admitted(self, name: str) -> LocalMachine:
        where = self._machine(name)
        await where.admit(self._fence)
        return where

    @override
    def _address(self, machine: str) -> str:
        return self._machine(machine).address

    @override
    async def _addresses(self, machine: str) -> tuple[str, ...]:
        return await self._machine(machine).addresses()

    @override
    async def _listening(self, machine: str, hosts: tuple[str, ...]) -> frozenset[HostPort]:
        return listening_ends((await self._machine(machine).inside("/bin/cat", *TABLES)), hosts)

    @override
    async def _ledger(self, machine: str) -> SeatLedger:
        return await on_disk(machine, read_ledger, self._machine(machine).folder)

    @override
    async def _changed(self, machine: str, doing: str, change: Callable[[SeatLedger], tuple[SeatLedger, T]]) -> T:
        """The ledger keeps the fences as well: two processes may use it at once, and no supervisor need run."""
        del doing
        folder = self._machine(machine).folder
        return await on_disk(machine, change_ledger, folder, lambda ledger: change(ledger.admitting(self._fence)))

    def _unit_folder(self, machine: LocalMachine, unit: str) -> Path:
        require_entry_name(f"using a unit on machine {machine.name}", unit)
        return machine.units_folder / unit

    def _volumes(self, machine: str) -> VolumeFolders:
        shared = PurePosixPath(f"quarterdeck-{self.name}", machine)
        return VolumeFolders.of(machine, self._folder_of(machine), shared, self._settings.storage_classes)


class MachineLooks:
    """Observations of machines and their disks, shared by all concurrent callers. Of each volume they list the folder
    ``below``.
    """

    def __init__(self, machines: Mapping[str, LocalMachine], disks: Mapping[str, VolumeFolders]) -> None:
        self._machines = machines
        self._disks = disks
        self._shared: dict[str, Shared[tuple[MachineFacts, ...]]] = {}

    async def __call__(self, below: str) -> tuple[MachineFacts, ...]:
        """An observation that begins now or later."""
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
