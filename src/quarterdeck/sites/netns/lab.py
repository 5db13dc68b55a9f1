"""The client side of a lab: the sites and machines of one home as networks that can be cut and delayed."""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout

from quarterdeck.errors import QuarterdeckError, TimedOut, Unavailable
from quarterdeck.linux.processes import ProcessId
from quarterdeck.package import python_path
from quarterdeck.sites.isolation import MachinePlace
from quarterdeck.sites.netns import control, enter
from quarterdeck.sites.netns.enter import enter_argv
from quarterdeck.sites.netns.layout import (
    CLIENT,
    HUB,
    Cut,
    Layout,
    Link,
    address,
    floating_address,
    inside,
    led_addresses,
)
from quarterdeck.sites.netns.processes import members

_STARTING = 30.0
_ENDING = 20.0


class Lab:
    """The lab of one home. The object has no state: any process may create one, and drop it.

    ``open`` starts the keeper if needed; every other call but ``runs`` raises Unavailable if there is none.
    """

    def __init__(self, home: Path) -> None:
        self.home = home.absolute()
        self._folder = control.lab_folder(home)

    @classmethod
    async def open(cls, home: Path) -> Self:
        """The lab of a home, with its keeper started if it does not run. Raises Unavailable if the host forbids it.

        An earlier lab comes back with its last layout, without its processes.
        """
        lab = cls(home)
        await asyncio.to_thread(lab._ensure_keeper)
        return lab

    async def runs(self) -> bool:
        """Whether the keeper runs; raises Unavailable if it does but does not answer."""
        return await asyncio.to_thread(control.answers, self._folder)

    async def add_site(self, name: str, number: int) -> None:
        """Create a site, ``number`` 1 to 254. Raises Conflict if the name or number belongs to another one."""
        await self._ask("site", name, str(number))

    async def add_machine(self, site: str, machine: str, number: int) -> str:
        """Create a machine at an existing site, or plug it in again; returns its address.

        Raises NotFound, Conflict.
        """
        await self._ask("machine", site, machine, str(number))
        return address((await self.layout()).number(site), number)

    async def seat_addresses(self, site: str, machine: str) -> tuple[str, ...]:
        """The addresses that lead to a machine besides its own. Raises NotFound."""
        return tuple((await self._ask("addresses", site, machine)).split())

    async def remove_machine(self, site: str, machine: str) -> None:
        """Remove a machine's network, and with the last machine the site. End its processes before."""
        await self._ask("remove", site, machine)

    async def cut_machine(self, site: str, machine: str) -> None:
        """Pull a machine's cable out: its peers hear nothing any more. Raises NotFound."""
        await self._ask("unplug", site, machine)

    async def deafen_machine(self, site: str, machine: str) -> None:
        """Drop all packets to a machine; its own packets pass. Raises NotFound."""
        await self._ask("deafen", site, machine)

    async def restore_machine(self, site: str, machine: str) -> None:
        """Plug it in again, for both directions."""
        await self._ask("plug", site, machine)

    async def set_link(
        self,
        a: str,
        b: str,
        *,
        delay_ms: float = 0.0,
        cut: Cut = Cut.NONE,
        delay_back_ms: float | None = None,
    ) -> None:
        """Set the link between two sites, in place of the former one. A site is its name, or OUTSIDE.

        ``delay_ms`` is one way, so the round trip grows by twice as much; ``delay_back_ms`` is that from b to a if it
        differs. A cut drops packets silently. Connections survive every change. Raises NotFound.
        """
        back = delay_ms if delay_back_ms is None else delay_back_ms
        await self._set_way(a, b, delay_ms, cut=cut in {Cut.BOTH, Cut.A_TO_B})
        await self._set_way(b, a, back, cut=cut in {Cut.BOTH, Cut.B_TO_A})

    async def link(self, a: str, b: str) -> Link:
        """The link between two sites."""
        layout = await self.layout()
        return Link(layout.way(a, b), layout.way(b, a))

    async def layout(self) -> Layout:
        """The layout of the lab."""
        return Layout.from_json((await self._ask("layout")).encode())

    async def processes(self, where: str) -> tuple[int, ...]:
        """The ids of all processes that run at CLIENT, HUB or ``inside(site, machine)``, daemons too."""
        return await asyncio.to_thread(self._processes, where)

    async def holds_us(self) -> bool:
        """Whether this process is in one of the lab's networks. It can reach them then."""
        return await self.runs() and await asyncio.to_thread(self._holds_us)

    def enter_argv(self, where: str) -> tuple[str, ...]:
        """The prefix that makes an argv run there (see ``enter.enter_argv``)."""
        return enter.enter_argv(self.home, where)

    def enter(self, where: str) -> None:
        """Move this process there for good (see ``enter.enter``)."""
        enter.enter(self.home, where)

    async def close(self) -> None:
        """End the keeper and every process of the lab, this one too if it is inside. The layout stays on disk."""
        await asyncio.to_thread(self._close)

    async def _ask(self, *words: str) -> str:
        return await asyncio.to_thread(control.ask, self._folder, *words)

    async def _set_way(self, source: str, target: str, delay_ms: float, *, cut: bool) -> None:
        await self._ask("way", source, target, str(delay_ms), "cut" if cut else "open")

    def _processes(self, where: str) -> tuple[int, ...]:
        return members("net", self._network(where))

    def _holds_us(self) -> bool:
        ours = Path("/proc/self/ns/net").stat().st_ino
        if ours == self._network(CLIENT):  # nearly always
            return True
        layout = Layout.from_json(control.ask(self._folder, "layout").encode())
        places = (HUB, *(inside(each.site, each.name) for each in layout.machines))
        return any(ours == self._network(each) for each in places)

    def _network(self, where: str) -> int:
        """The id of a place's network namespace."""
        descriptors = control.ask_descriptors(self._folder, "enter", where)
        try:
            return os.fstat(descriptors[1]).st_ino
        finally:
            for each in descriptors:
                os.close(each)

    def _ensure_keeper(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with FileLock(self._folder / control.START_FILE, timeout=_STARTING):
                if not control.answers(self._folder):
                    self._start_keeper()
        except Timeout as error:
            raise TimedOut("starting the lab", "another process has been starting it for too long") from error

    def _start_keeper(self) -> None:
        """Start a keeper and wait until it serves."""
        read, write = os.pipe()
        log = os.open(self._folder / control.LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            subprocess.run(
                [sys.executable, "-P", "-m", "quarterdeck.sites.netns.keeper", str(self._folder), str(write)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(write,),
                env={**os.environ, "PYTHONPATH": python_path()},
                cwd="/",
                timeout=_STARTING,
                check=False,
            )
            os.close(write)
            write = -1
            if not select.select([read], [], [], _STARTING)[0]:
                raise TimedOut("starting the lab", "its keeper does not get ready", f"see {self._folder}")
            message = os.read(read, control.LARGEST)
        finally:
            for each in (read, write, log):
                if each >= 0:
                    os.close(each)
        if not message:
            raise Unavailable("starting the lab", "its keeper ended", f"see {self._folder / control.LOG_FILE}")
        control.read_answer(message)

    def _keeper(self, role: str) -> ProcessId | None:
        """The keeper or its guard as recorded in their file, if that very process still runs."""
        try:
            ids: dict[str, dict[str, int]] = json.loads((self._folder / control.KEEPER_FILE).read_bytes())
        except FileNotFoundError:
            return None
        process = ProcessId(**ids[role])
        return process if process.alive() else None

    def _close(self) -> None:
        keeper, guard = self._keeper("keeper"), self._keeper("guard")
        try:
            control.ask(self._folder, "end")
        except Unavailable:
            if keeper is not None:
                keeper.kill()
        for process in (keeper, guard):
            if process is not None:
                process.wait(time.monotonic() + _ENDING)


async def available() -> tuple[bool, str]:
    """Whether this host allows labs, tested by creating one with all its parts; if not, the reason. Takes about 1 s."""
    with tempfile.TemporaryDirectory(prefix="quarterdeck-") as home:
        try:
            lab = await Lab.open(Path(home))
            try:
                for number, site in enumerate(("east", "west"), start=1):
                    await lab.add_site(site, number)
                    await lab.add_machine(site, "machine", 1)
                await lab.set_link("east", "west", delay_ms=1.0)
            finally:
                await lab.close()
        except QuarterdeckError as error:
            return False, str(error)
    return True, ""


# Isolation ``netns`` behind the port of the local driver.


class NetnsIsolation:
    """Each machine of a home is a network namespace of the home's lab. It has no other state than the home."""

    name = "netns"
    cannot_cut = ""

    def __init__(self, home: Path) -> None:
        self._home = home

    def address(self, place: MachinePlace) -> str:
        """10.89.SITE.MACHINE."""
        return address(place.site_number, place.machine_number)

    async def more_addresses(self, place: MachinePlace) -> tuple[str, ...]:
        """The additional addresses that the lab routes to the machine."""
        return await Lab(self._home).seat_addresses(place.site, place.machine)

    def floating_address(self, place: MachinePlace) -> str | None:
        """One that leads to the site, and that no machine has by itself."""
        return floating_address(place.site_number, place.machine_number)

    def led_addresses(self, site_number: int) -> tuple[str, ...]:
        """Those of the network of seats that belong to no machine."""
        return led_addresses(site_number)

    async def prepare(self, place: MachinePlace) -> None:
        """Start the lab if it does not run; create the site and the machine, if they do not exist."""
        lab = await Lab.open(self._home)
        if (await lab.layout()).machine(place.site, place.machine) is None:
            await self.plug(place)

    async def plug(self, place: MachinePlace) -> None:
        """The same, and plug the machine in."""
        lab = await Lab.open(self._home)
        await lab.add_site(place.site, place.site_number)
        await lab.add_machine(place.site, place.machine, place.machine_number)

    def launch_prefix(self, place: MachinePlace) -> tuple[str, ...]:
        """The program that enters the machine's namespaces and becomes the rest of the argv."""
        return enter_argv(self._home, inside(place.site, place.machine))

    async def unplug(self, place: MachinePlace) -> None:
        """Unplug it; without a keeper there is no network."""
        lab = Lab(self._home)
        if await lab.runs() and (await lab.layout()).machine(place.site, place.machine):
            await lab.cut_machine(place.site, place.machine)

    async def deafen(self, place: MachinePlace) -> None:
        """Drop all packets to it; its own packets pass."""
        await Lab(self._home).deafen_machine(place.site, place.machine)

    async def release(self, place: MachinePlace) -> None:
        """Remove the machine from the lab, and from its stored layout."""
        lab = await Lab.open(self._home)
        await lab.remove_machine(place.site, place.machine)
