"""The seats of replicas: taken when one is placed, released when it is gone, and never shared.

The ledger of a machine and the memories of planes agree. A seat is in the ledger first, then in the memory, and only
then a program is started on it; it leaves the memory last. If a crash leaves it in only one of them, that is repaired
when the plane is driven next.
"""

from __future__ import annotations

from quarterdeck.actions.addresses import seat_of
from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.endpoint import LeadsTo
from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.components.ports import beside_balancers, ports_of
from quarterdeck.concurrency import together
from quarterdeck.errors import Corrupt, NotFound, Unavailable
from quarterdeck.model.capabilities import Capability
from quarterdeck.model.memory import Replica
from quarterdeck.model.seats import Seat, TakenSeat
from quarterdeck.model.units import MachineRole, MachineState


async def take_seat(plane: Plane, at: str, machine: str, replica: str) -> Seat:
    """A seat for a replica on a machine of the site ``at``: the same one in repeated calls.

    First all seats in the memories of planes are written to the machine's ledger, so that a lost ledger gives away no
    used port, and seats of deleted planes are released.

    Wherever they are free, the ports of the plane's own number are taken: Kubernetes has one list of ports for all
    apiservers of a plane in the Endpoints of its Service ``kubernetes``, so all should use one port. It is the same
    port on machines with and without load balancers; where clients connect to apiservers themselves it is the one that
    they use.
    """
    site = plane.site(at)
    taken = await site.seats(
        machine
    )  # before the planes are listed, so that seats of a new plane do not look like leftovers
    planes = await plane.store.list(ControlPlane)
    there = {_owner(each) for each in (*planes, plane.resource)}
    await plane.check()
    for each in taken:
        if each.plane not in there:
            await site.release(machine, each.plane, each.replica)
    for other in planes:
        for record in memory_from_status(other.status.memory).replicas:
            if (record.site, record.machine) == (site.name, machine):
                has = TakenSeat(plane=_owner(other), replica=record.name, seat=seat_of(record))
                if has not in taken:
                    await site.occupy(machine, has)
    wanted = ports_of(plane.resource.status.port_offset or 0)
    straight = plane.resource.spec.endpoint.leads_to in (LeadsTo.APISERVERS, LeadsTo.PROMOTED)
    if Capability.ONE_ADDRESS in site.capabilities and not straight:
        wanted = beside_balancers(wanted)
    return await site.allocate(machine, _owner(plane.resource), replica, wanted)


async def leave_seat(plane: Plane, record: Replica) -> None:
    """Release the seat of a replica of which nothing else is left."""
    await leave_seat_on(plane, record.site, record.machine, record.name)


async def leave_seat_on(plane: Plane, site: str, machine: str, replica: str) -> None:
    """The same on any machine."""
    await plane.check()
    await plane.site(site).release(machine, _owner(plane.resource), replica)


async def settle_seats(plane: Plane) -> None:
    """Bring the ledgers of all machines that answer in line with this plane's memory: called by the driver before it
    places replicas. Raises LeaseLost.
    """
    places = [
        place
        for place, machine in plane.machines.items()
        if machine.role is MachineRole.CONTROL and machine.state is MachineState.UP
    ]
    await together(*(_settle(plane, *place) for place in places))


async def _settle(plane: Plane, site: str, machine: str) -> None:
    """The same for one machine, if it can be reached: running programs do not need the ledger, and a later placement
    there reports the error.
    """
    driver, owner = plane.site(site), _owner(plane.resource)
    here = [record for record in plane.memory.replicas if (record.site, record.machine) == (site, machine)]
    wanted = {record.name: seat_of(record) for record in here}
    try:
        taken = await driver.seats(machine)
        has = {each.replica: each.seat for each in taken if each.plane == owner}
        await plane.check()
        left = {each.replica for each in plane.memory.left if (each.site, each.machine) == (site, machine)}
        for name in has:
            if name not in wanted and name not in left:
                await driver.release(machine, owner, name)
        for name, seat in wanted.items():
            if has.get(name) != seat:
                await driver.occupy(machine, TakenSeat(plane=owner, replica=name, seat=seat))
    except (Unavailable, NotFound, Corrupt):
        return


def _owner(plane: ControlPlane) -> str:
    """The owner of the plane's seats: unique even if a later plane has the same name."""
    return plane.metadata.uid or plane.metadata.name
