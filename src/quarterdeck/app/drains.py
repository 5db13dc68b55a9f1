"""Draining machines: every replica on them is replaced by one elsewhere, one plane after another, while all planes
serve.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation
from quarterdeck.app import cordons
from quarterdeck.app.changes import store_request
from quarterdeck.engine.preflight.local_changes import examined_exchange
from quarterdeck.engine.preflight.preview import forecast
from quarterdeck.engine.preflight.requests import Examined
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import PreconditionFailed, QuarterdeckError
from quarterdeck.model.findings import Finding, enforce, refuse
from quarterdeck.model.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """A plan to drain a ``machine`` (None: all of a ``site``). ``planes``: the requests to each plane that has replicas
    there; ``refused``: the obstacles, by plane. ``served``: the planes whose clients may use the load balancer of the
    site, which keeps running.
    """

    site: str
    machine: str | None
    planes: Sequence[Examined] = ()
    refused: Sequence[Finding] = ()
    served: Sequence[str] = ()

    @property
    def what(self) -> str:
        """The drained machines, as text."""
        return f"machine {self.machine}" if self.machine is not None else f"all machines of site {self.site}"

    def require(self) -> None:
        """Raise PreconditionFailed that names all obstacles."""
        enforce(self.refused, f"draining {self.what}")


async def planned(engine: Engine, site: str, machine: str | None) -> Drain:
    """All facts about a drain that are known in advance; changes nothing.

    Raises NotFound (the site, the machine), InvalidInput (the machine of load balancers).
    """
    await cordons.require_host(engine.home, "draining machine", site, machine)
    found: list[Examined] = []
    refused: list[Finding] = []
    for plane, names in _there(await engine.home.store.list(ControlPlane), site, machine):
        try:
            examined = await _examined(engine, plane, names, site, machine)
            examined.require()
        except PreconditionFailed as error:
            refused.append(refuse(f"plane {plane.name}", error.seen, error.next_step))
        except QuarterdeckError as error:
            refused.append(refuse(f"plane {plane.name}", f"{error.doing}: {error.seen}", error.next_step))
        else:
            found.append(examined)
    served = await cordons.served_from(engine.home, site) if machine is None else ()
    return Drain(site=site, machine=machine, planes=tuple(found), refused=tuple(refused), served=served)


def _there(
    planes: Collection[ControlPlane], site: str, machine: str | None
) -> list[tuple[ControlPlane, tuple[str, ...]]]:
    """The planes that stay and have replicas there, with the names of these replicas."""
    found: list[tuple[ControlPlane, tuple[str, ...]]] = []
    for plane in sorted(planes, key=lambda each: each.name):
        here = [each for each in plane.status.memory.replicas if each.slot.site == site]
        names = tuple(each.name for each in here if machine in (None, each.machine))
        if names and plane.metadata.deletion_timestamp is None:
            found.append((plane, names))
    return found


async def _examined(
    engine: Engine, plane: ControlPlane, names: tuple[str, ...], site: str, machine: str | None
) -> Examined:
    """The replacement of these replicas of a plane, simulated with the machines cordoned. Raises QuarterdeckError."""
    doing = f"moving {', '.join(names)}"
    if machine is None and plane.spec.placement.site == site:
        finding = refuse("placement", f"the plane is placed at {site}", f"'migrate {plane.name} --to' another site")
        enforce((finding,), doing)
    if paused := operations.why_paused(plane, engine.requester.now()):
        enforce((refuse("pause", paused, f"'resume {plane.name}'"),), doing)
    supposing = partial(drained, site=site, machine=machine)
    examined = await examined_exchange(engine, plane, names, supposing)
    if examined.needed:
        return examined
    return replace(examined, forecast=await forecast(engine.home, examined.wanted, supposing))


def drained(world: World, *, site: str, machine: str | None) -> World:
    """The world once the machine, or all of the site, is cordoned."""
    machines = tuple(
        replace(each, cordoned=True, why="is being drained")
        if each.site == site and machine in (None, each.name) and not each.cordoned
        else each
        for each in world.machines
    )
    return replace(world, machines=machines)


async def asked(home: Home, drain: Drain, requester: Requester) -> tuple[Operation, ...]:
    """Cordon the machines, and store the requests to each plane, which are then carried out like any replacement.

    Raises what ``Drain.require`` does; Conflict for a plane that was changed since. A repeated drain continues the
    first.
    """
    drain.require()
    await cordons.cordon_site(home, drain.site, drain.machine, requester)
    begun = [await store_request(home, each, requester) for each in drain.planes]
    return tuple(each for each in begun if each is not None)


async def left(home: Home, site: str, machine: str | None) -> tuple[str, ...]:
    """The replicas that are still there, as PLANE/REPLICA."""
    there = _there(await home.store.list(ControlPlane), site, machine)
    return tuple(f"{plane.name}/{name}" for plane, names in there for name in names)
