"""One step in, its effect on the world out: the one place that knows how each kind of step is carried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from pydantic import JsonValue

from quarterdeck.actions import members, units
from quarterdeck.actions.addresses import backend_address
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.reloading import reload_unit
from quarterdeck.actions.seats import take_seat
from quarterdeck.actions.status import remember
from quarterdeck.actions.together import together
from quarterdeck.model.components import Component
from quarterdeck.model.endpoints import PersonMust
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps import (
    NOTES,
    AddLearner,
    PlaceReplica,
    Promote,
    RejectRevision,
    ReleaseMember,
    ReleaseReplica,
    ReloadUnit,
    RemoveMember,
    RemoveRecord,
    RestartUnit,
    SetBackends,
    SetRecord,
    StartUnit,
    Step,
    StopBalancer,
    StopUnit,
    Swap,
    TransferLeadership,
)
from quarterdeck.model.world import World

Detail = Mapping[str, JsonValue]


async def carry_out(plane: Plane, step: Step, world: World) -> Detail | PersonMust:
    """Carry out one step, then write down what it leaves in the memory. Idempotent.

    Returns what reports tell besides, or what a person must do before it can be carried out. Raises a
    QuarterdeckError; then the step may have happened or not, and the next observation tells.
    """
    await plane.check()
    if isinstance(step, RejectRevision):
        step = replace(step, said=await units.last_words(plane, step))
    if isinstance(step, SetBackends):
        await remember(plane, (step,))  # before it happens: from then on clients may be sent there
    if isinstance(step, PlaceReplica):
        step = replace(step, seat=await take_seat(plane, step))  # written down before anything is started on it
    detail = await _effect(plane, step, world)
    if not isinstance(detail, PersonMust):
        await remember(plane, (step,))
    return detail


async def _effect(plane: Plane, step: Step, world: World) -> Detail | PersonMust:
    match step:
        case PlaceReplica():
            pass  # it has its seat, and is written down
        case StartUnit() | StopUnit() | RestartUnit() | ReloadUnit():
            await _unit(plane, step, world)
        case ReleaseReplica():
            await units.release_replica(plane, step)
        case ReleaseMember():
            await units.release_member(plane, step)
        case AddLearner():
            await members.add_learner(plane, step)
        case Promote():
            await members.promote(plane, step, world)
        case RemoveMember():
            await members.remove_member(plane, step, world)
        case TransferLeadership():
            await members.transfer_leadership(plane, step, world)
        case Swap():
            times = await members.swap(plane, step, world)
            changes: list[JsonValue] = [list(change) for change in times.changes]
            return {**asdict(times), "changes": changes, "cluster": step.cluster.value}
        case _:
            return await _traffic(plane, step, world)
    return {}


async def _unit(plane: Plane, step: StartUnit | StopUnit | RestartUnit | ReloadUnit, world: World) -> None:
    match step:
        case StartUnit():
            await units.start_unit(plane, step, world)
        case StopUnit():
            await units.stop_unit(plane, step, world)
        case RestartUnit():
            await units.restart_unit(plane, step, world)
        case ReloadUnit():
            await reload_unit(plane, step, world)


async def _traffic(plane: Plane, step: Step, world: World) -> Detail | PersonMust:
    match step:
        case SetBackends():
            chosen = {name: plane.memory.replica(name) for name in step.backends}
            serving = {name for balancer in world.balancers for name in balancer.backends}
            new = [record for name, record in chosen.items() if name not in serving]
            await together(*(units.favour(plane, each, *_asked_through(each)) for each in new))
            await plane.check()
            backends = {name: backend_address(plane, each) for name, each in chosen.items()}
            await plane.balancers[step.site].apply(backends)
        case StopBalancer():
            await plane.balancers[step.site].remove()
        case SetRecord():
            address = plane.balancers[step.to].address.ip
            ttl = plane.resource.spec.endpoint.ttl
            return await plane.dns.set(plane.resource.host, (address,), ttl, plane.claim) or {}
        case RemoveRecord():
            return await plane.dns.remove(plane.resource.host, plane.claim) or {}
        case _:
            assert isinstance(step, (*NOTES, RejectRevision))
    return {}


def _asked_through(record: Replica) -> tuple[Component, ...]:
    """The programs that a request passes through."""
    events = (Component.EVENTS_ETCD,) if record.events is not None else ()
    return Component.ETCD, *events, Component.APISERVER
