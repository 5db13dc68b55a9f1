"""Isolation ``netns`` behind the port of the local driver."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.sites.isolation import Place
from quarterdeck.sites.netns.enter import enter_argv
from quarterdeck.sites.netns.lab import Lab
from quarterdeck.sites.netns.layout import address, floating_address, inside, led_addresses


class NetnsIsolation:
    """Each machine of a home is a network namespace of the home's lab. Holds nothing but the home."""

    name = "netns"
    cannot_cut = ""

    def __init__(self, home: Path) -> None:
        self._home = home

    def address(self, place: Place) -> str:
        """10.89.SITE.MACHINE."""
        return address(place.site_number, place.machine_number)

    async def more_addresses(self, place: Place) -> tuple[str, ...]:
        """Those that the lab leads to the machine."""
        return await Lab(self._home).seat_addresses(place.site, place.machine)

    def floating_address(self, place: Place) -> str | None:
        """One that leads to the site, and that no machine has by itself."""
        return floating_address(place.site_number, place.machine_number)

    def led_addresses(self, site_number: int) -> tuple[str, ...]:
        """Those of the network of seats that belong to no machine."""
        return led_addresses(site_number)

    async def prepare(self, place: Place) -> None:
        """Start the lab if it does not run; make the site and the machine, if they are not there."""
        lab = await Lab.open(self._home)
        if (await lab.layout()).machine(place.site, place.machine) is None:
            await self.plug(place)

    async def plug(self, place: Place) -> None:
        """The same, and put the machine's cable back."""
        lab = await Lab.open(self._home)
        await lab.add_site(place.site, place.site_number)
        await lab.add_machine(place.site, place.machine, place.machine_number)

    def launch_prefix(self, place: Place) -> tuple[str, ...]:
        """The program that enters the machine's namespaces and becomes the rest."""
        return enter_argv(self._home, inside(place.site, place.machine))

    async def unplug(self, place: Place) -> None:
        """Pull the cable; without a keeper there is none."""
        lab = Lab(self._home)
        if await lab.runs() and (await lab.layout()).machine(place.site, place.machine):
            await lab.cut_machine(place.site, place.machine)

    async def deafen(self, place: Place) -> None:
        """Have its cable carry one way."""
        await Lab(self._home).deafen_machine(place.site, place.machine)

    async def release(self, place: Place) -> None:
        """Remove the machine from the lab, and from what comes back with the next keeper."""
        lab = await Lab.open(self._home)
        await lab.remove_machine(place.site, place.machine)
