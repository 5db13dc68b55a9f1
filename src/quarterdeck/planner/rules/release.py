"""Release: of replicas that are no longer members, and of whole planes that the user deleted."""

from __future__ import annotations

from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.placement import ReleaseReplica
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.steps.traffic import RemoveRecord, StopBalancer
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.model.units import IDLE, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner import next_steps
from quarterdeck.planner.events import left_behind
from quarterdeck.planner.machines import why_silent
from quarterdeck.planner.rules.recovery import drop_kept
from quarterdeck.planner.rules.traffic import unknown
from quarterdeck.planner.rules.volume_moves import leave
from quarterdeck.planner.view import View


def release(view: View) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """Steps, and leftovers on machines that do not answer. Only for a plane that is otherwise up to date: until then
    the data of removed members is kept. The last record of a site whose load balancer does not answer is kept as well:
    a load balancer may be left there, with its key.
    """
    steps: list[Step] = []
    held = {site for site, _ in view.world.memory.held}
    left = set(_dark(view.world)) & (held | {record.site for record in view.unwanted})
    leftovers = [f"the load balancer at {site}, whose machine does not answer" for site in sorted(left)]
    for record in view.unwanted:
        if view.member(record) is not None or _has_a_vote_on_events(view, record):
            continue
        if not view.reachable(record):
            why = why_silent(view.world, record.site, record.machine)
            leftovers.append(f"{record.name} on machine {record.machine}, which does not answer{why}")
        elif record.site in left - held:
            leftovers.append(
                f"{record.name} on machine {record.machine}, until that load balancer is observed to be gone"
            )
        else:
            keep = view.world.memory.is_former(record) and record.started
            steps.append(_release(record, "the plane is healthy without it", keep=keep))
    gone, stays = leave(view.world)
    leftovers += (f"leftovers of {each.replica} on machine {each.machine}, which does not answer" for each in stays)
    return (*steps, *gone), (*leftovers, *left_behind(view))


def _has_a_vote_on_events(view: View, record: Replica) -> bool:
    """Whether a replica is, or may be, a member of the events' cluster."""
    events = view.events
    if events is None:
        return False
    return record.events is not None if events.world.membership is None else events.member(record) is not None


def _release(record: Replica, why: str, *, keep: bool = False) -> ReleaseReplica:
    """Release a replica. Data of a former epoch is kept: it may be the only copy of what was lost."""
    return ReleaseReplica(site=record.site, why=why, replica=record.name, keep=keep)


def _dark(world: World) -> tuple[str, ...]:
    """The sites where an unreachable load balancer may run. A fixed address has only one."""
    silent = (each for each in world.balancers if not each.reachable or each.silent)
    return tuple(each.site for each in silent if world.front in (None, each.site))


def take_down(world: World) -> tuple[tuple[Step, ...], tuple[Wait, ...]]:
    """Steps and waits that delete a whole plane: the name first (a fixed address has none), then the load balancers,
    then the programs, the data last. As long as an unreachable site may have a load balancer left, with its key,
    nothing is released that tells which sites to observe.
    """
    why = "the plane is deleted"
    if not world.record_known:
        return (), (unknown(world),)
    if world.record is not None and not world.fixed and not world.foreign:
        return (RemoveRecord(site="", why=why),), ()
    balancers = tuple(StopBalancer(site=each.site, why=why) for each in world.balancers if each.there)
    if balancers:
        return balancers, ()
    dark = _dark(world)
    components = tuple(reversed(world.programs.every))
    steps: list[Step] = []
    waiting = [
        next_steps.edges(world, site, ", because the plane's load balancer and its key may still be there")
        for site in dark
    ]
    for record in world.memory.replicas:
        running = [component for component in components if world.replica(record.name).unit(component) not in IDLE]
        if any(world.replica(record.name).unit(component) is UnitState.UNKNOWN for component in running):
            waiting.append(next_steps.machine(world, record))
        elif running:
            steps.append(StopUnit(site=record.site, why=why, replica=record.name, component=running[0]))
        elif not dark:
            steps.append(_release(record, why))
    return (tuple(steps), tuple(waiting)) if world.memory.replicas or dark else _drop_the_rest(world)


def _drop_the_rest(world: World) -> tuple[tuple[Step, ...], tuple[Wait, ...]]:
    """The rest after the replicas: their leftovers on other machines, and data of former epochs."""
    gone, stays = leave(world)
    silent = tuple(
        next_steps.silent(world, each.site, each.machine, f", which {each.replica} was moved away from,")
        for each in stays
    )
    kept, missing = drop_kept(world)
    return (*gone, *kept), (*silent, *missing)
