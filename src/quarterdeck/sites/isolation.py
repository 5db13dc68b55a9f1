"""The separation of a local site's machines: the port between the local driver and the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePlace:
    """The place of a machine. Both numbers are 1 to 254, never change, and are unique: ``site_number`` among the sites
    of one home, ``machine_number`` among the machines of its site.
    """

    site: str
    site_number: int
    machine: str
    machine_number: int
    zone: str


class MachineIsolation(Protocol):
    """Gives each machine of a home an address, and its processes a place to run in.

    One object serves all sites of one home. Nothing is kept in memory between calls that a later process (the next run
    of the command line) would need: machines outlive the process that made them. Every call but ``address`` and
    ``launch_prefix`` is idempotent and has its own deadline; they raise Unavailable when the host does not allow it.
    """

    @property
    def name(self) -> str:
        """The name of the isolation, as users write it: ``loopback``, ``netns``."""
        ...

    @property
    def cannot_cut(self) -> str:
        """Why a machine cannot be cut off from the others; "" if it can."""
        ...

    def address(self, place: MachinePlace) -> str:
        """The machine's IP address: always the same, known before the machine is first prepared. No IO."""
        ...

    async def more_addresses(self, place: MachinePlace) -> tuple[str, ...]:
        """More addresses for seats on the machine, so that replicas which share it can have the same ports; none where
        ports need not be the same, or where there are no more. The machine was prepared.
        """
        ...

    def floating_address(self, place: MachinePlace) -> str | None:
        """The address that is this edge's first, and that any edge of the site can have; None if there is
        none. No IO.
        """
        ...

    def led_addresses(self, site_number: int) -> tuple[str, ...]:
        """Addresses that lead to a site and belong to no machine, so that any can have one; none if there are none. No
        IO.
        """
        ...

    async def prepare(self, place: MachinePlace) -> None:
        """Create the machine's network, and what the site needs for it; an existing one stays unchanged, cut off or
        not.

        Called before anything is started inside the machine; quick when there is nothing to do.
        """
        ...

    async def plug(self, place: MachinePlace) -> None:
        """``prepare``, and undo ``unplug`` and ``deafen``. Called before the machine boots or resumes."""
        ...

    def launch_prefix(self, place: MachinePlace) -> tuple[str, ...]:
        """The prefix of an argv that makes it run inside the machine; ``()`` if none is needed.

        Called after ``prepare``. The program it starts must keep its environment, its standard streams and its session,
        and must replace itself by the rest of the argv or live as long as it. The machine's supervisor is started with
        it, and the units inherit the place.
        """
        ...

    async def unplug(self, place: MachinePlace) -> None:
        """Take the machine off the network silently, as power loss or a hung machine does.

        Called before its processes are killed or frozen. Does nothing where the network cannot do that.
        """
        ...

    async def deafen(self, place: MachinePlace) -> None:
        """Drop all packets to the machine, until ``plug``; its own packets arrive. Where ``cannot_cut`` is ""."""
        ...

    async def release(self, place: MachinePlace) -> None:
        """Remove the machine's network; with the last machine of a site, also the site's. Its processes have ended.
        Nothing happens if there is nothing.
        """
        ...
