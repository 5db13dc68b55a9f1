"""The events of a plane, for its operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from quarterdeck.api.events import EventReason
from quarterdeck.model.clusters import CALLED, MEMBER, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.healing import Pardon
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.machines import flapping
from quarterdeck.planner.members import (
    CORRUPT,
    NOSPACE,
    disable_authentication,
    disarm_corrupt,
    listed,
    raised,
    strays,
)
from quarterdeck.planner.next_steps import expired, renewal
from quarterdeck.planner.revisions import stand_still
from quarterdeck.planner.rules.healing import held_back
from quarterdeck.planner.rules.recovery import advice
from quarterdeck.planner.view import view
from quarterdeck.stores.port import Event, EventType


@dataclass(frozen=True, slots=True)
class Happening:
    """A fact about a plane that makes an event. ``reason`` is a CamelCase name, ``message`` a sentence for people."""

    reason: EventReason
    message: str
    type: EventType = EventType.WARNING

    def event(self, plane: str, now: float) -> Event:
        """The event, observed at ``now`` (seconds)."""
        return Event(plane=plane, type=self.type, reason=self.reason.value, message=self.message, first=now, last=now)


def happenings(world: World) -> frozenset[Happening]:
    """The facts of one observation. A plane in deletion has none."""
    if world.deleting:
        return frozenset()
    worlds = {cluster: world.of(cluster) for cluster in Cluster}
    clusters = (each for cluster, of in worlds.items() for each in _of_etcd(of, CALLED[cluster]))
    return frozenset(
        (
            *clusters,
            *_of_epochs(world),
            *_of_certificates(world),
            *_of_replicas(worlds),
            *_of_healing(world),
            *_of_leading(world),
            *_of_clients(world),
        )
    )


def warnings(world: World) -> tuple[str, ...]:
    """The warnings of one observation, a sentence each."""
    return tuple(sorted(each.message for each in happenings(world) if each.type is EventType.WARNING))


def authentication(world: World, etcd: str) -> str:
    """The message where authentication is on in a cluster, called ``etcd``."""
    return (
        f"authentication was enabled in {etcd}, but not by quarterdeck; it now refuses apiservers and"
        f" quarterdeck: {disable_authentication(world)}"
    )


def exchanged_after_corrupt(world: World) -> str:
    """When a replica is replaced whose member differs while etcd has raised CORRUPT."""
    return f"it is replaced once the alarm CORRUPT is turned off ({world.command('etcd disarm')})"


def _then(world: World, alarm: str) -> str:
    """What ends an alarm, as the end of a sentence."""
    if CORRUPT in alarm:
        return f"; {disarm_corrupt(world)}"
    if NOSPACE in alarm:
        return f"; quarterdeck makes room and turns the alarm off while it drives the plane ({world.command('wait')})"
    return ""


def _of_epochs(world: World) -> list[Happening]:
    """Facts about a lost quorum, and about epochs."""
    found = (
        [Happening(EventReason.QUORUM_LOST, f"the quorum of etcd is lost: {advised}")]
        if (advised := advice(world))
        else []
    )
    seed, memory = world.memory.seed, world.memory
    if seed is not None:
        began = f"epoch {memory.epoch} of etcd began from {seed.origin}, etcd revision {seed.revision:,}"
        found.append(
            Happening(
                EventReason.EPOCH_STARTED,
                f"{began}; the last observed revision before was {seed.seen:,}",
                EventType.NORMAL,
            )
        )
    found += [
        Happening(
            EventReason.FORMER_DATA_KEPT,
            f"the data of {each.replica}, of a former epoch, is kept on machine {each.machine}",
            EventType.NORMAL,
        )
        for each in memory.kept
    ]
    return found


def _of_certificates(world: World) -> list[Happening]:
    if not world.expired:
        return []
    words = expired(world) if world.settings.offline else renewal(world)
    return [Happening(EventReason.CERTIFICATES_EXPIRED, words)]


def _of_etcd(world: World, etcd: str) -> list[Happening]:
    """Facts about one cluster, called ``etcd``, on the world of that cluster."""
    membership = world.membership
    wrong = [
        Happening(EventReason.WRONG_DATA, f"{etcd} of {each.replica} has the wrong data: {each.seen}")
        for each in world.wrong
    ]
    if membership is None:
        if not world.memory.created:
            return []  # it did not exist yet
        return [
            *wrong,
            Happening(EventReason.NO_QUORUM, f"no quorum of its {etcd.removeprefix('the ')} members answers"),
        ]
    found = wrong + [
        Happening(EventReason.ALARM_RAISED, f"{etcd} raised an alarm: {alarm.strip()}{_then(world, alarm)}")
        for alarm in membership.alarms
    ]
    if membership.authenticates:
        found.append(Happening(EventReason.AUTHENTICATION_ENABLED, authentication(world, etcd)))
    joining = {record.name for record in world.memory.replicas if not record.started}
    unknown = strays(world)
    found += [_unknown_member(world, each, etcd) for each in unknown]
    known = (each for each in membership.members if each not in unknown)
    found += [event for each in known for event in _of_member(each, etcd, joining=each.replica in joining)]
    if membership.leader is not None:
        found.append(Happening(EventReason.LEADER_ELECTED, f"{membership.leader} leads {etcd}", EventType.NORMAL))
    return found


def _of_member(member: MemberFact, etcd: str, *, joining: bool) -> Iterator[Happening]:
    """Facts about a member of a replica. One that is ``joining`` has not answered yet."""
    subject = f"{'learner' if member.learner else 'voter'} {member.replica} of {etcd}"
    if member.lagging:
        yield Happening(EventReason.MEMBER_LAGGING, f"{subject} is far behind the leader, and does not catch up")
    if joining:
        return
    if member.health is Health.DOWN:
        yield Happening(EventReason.MEMBER_DOWN, f"{subject} is down: it answers neither this process nor the leader")
    elif member.health is Health.UNREACHABLE:
        seen = "does not answer this process, but may still serve others: quarterdeck waits for it"
        yield Happening(EventReason.MEMBER_UNREACHABLE, f"{subject} {seen}")


def _unknown_member(world: World, member: MemberFact, etcd: str) -> Happening:
    """The event for a member that belongs to no replica: a person, or another program, has added it."""
    role, remove = "learner" if member.learner else "voter", f"quarterdeck etcd remove-member {world.plane_name}"
    then = "quarterdeck removes it" if member.learner else f"remove it with '{remove} {member.id:x}'"
    return Happening(EventReason.UNKNOWN_MEMBER, f"{role} {member.description} of {etcd} belongs to no replica: {then}")


#: The world of each cluster.
_Worlds = Mapping[Cluster, World]


def _of_replicas(worlds: _Worlds) -> list[Happening]:
    return [each for record in worlds[Cluster.MAIN].memory.replicas for each in _of_replica(worlds, record)]


def _of_replica(worlds: _Worlds, record: Replica) -> list[Happening]:
    fact = worlds[Cluster.MAIN].replica(record.name)
    if fact.machine is not MachineState.UP:
        silent = f"cannot be used now: {fact.why}" if fact.why else "does not answer"
        what = "is off" if fact.machine is MachineState.DOWN else silent
        return [Happening(EventReason.MACHINE_DOWN, f"machine {record.machine} of replica {record.name} {what}")]
    # etcd exits by itself when its member is removed, and is stopped a moment later.
    reported = {MEMBER[cluster] for cluster in Cluster if _ended(worlds[cluster], record)}
    found = [each for cluster, of in worlds.items() for each in _of_data(of, record.name, CALLED[cluster])]
    if fact.why:
        why = f"machine {record.machine} of replica {record.name} is slow to accept quarterdeck's login: {fact.why}"
        found.append(Happening(EventReason.MACHINE_SLOW, why))
    found += [
        Happening(
            EventReason.UNIT_FAILED,
            _ends(worlds[Cluster.MAIN], record, component),
        )
        for component, state in fact.units
        if (state is UnitState.FAILED or component in fact.crash_looping) and component not in reported
    ]
    world = worlds[Cluster.MAIN]
    found += [
        Happening(EventReason.UNIT_NOT_READY, _stands(world, record, each)) for each in stand_still(world, record)
    ]
    found += [
        Happening(EventReason.UNIT_MODIFIED, f"the files of {component} of {record.name} were changed on the machine")
        for component in fact.altered
    ]
    return found


def _stands(world: World, record: Replica, component: Component) -> str:
    complaint = world.replica(record.name).complaint(component)
    last = f" new; its last error is: {complaint}" if complaint else ""
    logs = world.command("logs", "--replica", record.name, "--component", component)
    return f"{component} of {record.name} runs, is not ready, and reports nothing{last}: see {logs}"


def _ends(world: World, record: Replica, component: Component) -> str:
    why = dict(world.replica(record.name).endings).get(component)
    message = f"{component} of {record.name} exits repeatedly" + (f": {why}" if why else "")
    return f"{message}: see 'quarterdeck logs {world.plane_name} --replica {record.name} --component {component}'"


def _of_data(world: World, name: str, etcd: str) -> list[Happening]:
    """Facts about the data of a member of one cluster."""
    record, fact = world.memory.replica(name), world.replica(name)
    found = []
    if fact.refused:
        why = f"machine {record.machine} does not start {etcd} of {name}: {fact.refused}"
        found.append(Happening(EventReason.DATA_MISSING, why))
    if record.started and fact.has_data is False:
        of = "" if etcd == CALLED[Cluster.MAIN] else f" in {etcd}"
        found.append(Happening(EventReason.DATA_LOST, f"the data of {name}{of} is gone from machine {record.machine}"))
    if record.differs:
        held = world.membership is not None and CORRUPT in raised(world.membership)
        then = exchanged_after_corrupt(world) if held else "it is replaced"
        found.append(Happening(EventReason.DATA_DIFFERS, f"{etcd} of {name} has other data than most members: {then}"))
    return found


def _ended(world: World, record: Replica) -> bool:
    """Whether a member is known to have stopped for a reason: it was removed, or its machine refuses to start it."""
    known = world.memory.replica(record.name)
    removed = known.started and world.membership is not None and not listed(world.membership, known)
    return removed or bool(world.replica(record.name).refused)


def _of_healing(world: World) -> list[Happening]:
    found = [
        Happening(
            EventReason.REPLICA_MARKED_FOR_REPLACEMENT, f"{each.description} is marked for replacement: {each.why}"
        )
        for each in world.memory.condemned
    ]
    there = {each.name: each.machine for each in world.memory.replicas}
    found += [
        Happening(
            EventReason.REPLICA_REATTACHED,
            f"{each.replica} is on machine {there[each.replica]} with its data: machine {each.machine} was dead",
            EventType.NORMAL,
        )
        for each in world.memory.left
        if each.replica in there
    ]
    found += [Happening(EventReason.UNIT_UNHEALTHY, f"{name} does not get well") for name, _ in world.memory.unhealthy]
    if (world.memory.down or world.memory.unhealthy) and world.membership is not None:
        found += [
            Happening(EventReason.HEALING_BLOCKED, f"{name} is unhealthy, and healing is blocked: {why}")
            for name, why in held_back(view(world))
        ]
    found += [
        Happening(
            EventReason.MACHINE_FLAPPING,
            f"the replicas of machine {name} had to be replaced repeatedly: it is cordoned until a person uncordons it",
        )
        for name in sorted(flapping(world))
    ]
    return found


def _of_leading(world: World) -> list[Happening]:
    return [Happening(EventReason.NO_LEADER, each.trouble) for each in world.unled]


def event_of(step: Step) -> Happening | None:
    """The event of a step that no later observation shows; None for other steps."""
    if isinstance(step, Pardon):
        return Happening(
            EventReason.REPLACEMENT_CANCELLED,
            f"the replacement of {step.replica} is cancelled: {step.why}",
            EventType.NORMAL,
        )
    return None


def _of_clients(world: World) -> list[Happening]:
    found = []
    if world.foreign:
        found.append(Happening(EventReason.NAME_TAKEN, f"its name belongs to another owner: {world.foreign}"))
    if not world.record_known and world.record_trouble:
        found.append(Happening(EventReason.NAME_UNKNOWN, f"it is unknown where its name leads: {world.record_trouble}"))
    if world.led_straight and world.elsewhere:
        message = f"clients cannot reach {', '.join(sorted(world.elsewhere))}, which listen at another port"
        found.append(Happening(EventReason.PORT_TAKEN, message))
    if world.torn:
        found.append(
            Happening(EventReason.NAME_INCONSISTENT, f"the DNS servers of its name answer differently: {world.torn}")
        )
    found += [
        Happening(
            EventReason.EDGE_WITHOUT_ADDRESS,
            f"edge {each.name} of site {balancer.site} can get no address: {each.unrouted}",
        )
        for balancer in world.balancers
        for each in balancer.edges
        if each.unrouted
    ]
    if world.record is not None:
        direct = world.record == APISERVERS
        where = world.record if direct else f"site {world.record}"
        found.append(Happening(EventReason.NAME_RESOLVED, f"its name leads to {where}", EventType.NORMAL))
        # A fixed address exists before anything serves.
        if world.memory.served_site is not None and not world.balancer(world.record).ready:
            door = "its name" if direct else f"the load balancer of {where}"
            found.append(Happening(EventReason.NO_BACKENDS, f"{door} leads to no ready apiserver"))
    return found
