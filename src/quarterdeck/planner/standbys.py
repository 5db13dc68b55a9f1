"""The standby: a learner at another site that is never promoted, and that no rule about replicas counts on.

The rules about replicas read a world without it (``without_standbys``): it fills no slot, counts for no quorum and is
never waited for, and nothing is placed on its machine. The rules of ``rules/standby.py`` read the whole world.
"""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.memory import Replica
from quarterdeck.model.units import IDLE, MachineState
from quarterdeck.model.world import MachineFact, World
from quarterdeck.planner.etcd_versions import is_newer
from quarterdeck.planner.members import NOSPACE, has_the_data, raised, was_removed
from quarterdeck.planner.revisions import wanted_revision
from quarterdeck.planner.slots import fits
from quarterdeck.planner.space import has_no_room


def standbys(world: World) -> tuple[Replica, ...]:
    """The standbys of the present epoch. One that a person promoted by hand counts in every quorum: it is none."""
    return tuple(each for each in world.memory.standbys if (one := world.member(each.name)) is None or one.learner)


def without_standbys(world: World) -> World:
    """The world as the rules about replicas read it."""
    hidden = standbys(world)
    if not hidden:
        return world
    names = {each.name for each in hidden}
    rest = tuple(each for each in world.memory.replicas if each.name not in names)
    membership = world.membership
    if membership is not None:
        membership = replace(
            membership, members=tuple(each for each in membership.members if each.replica not in names)
        )
    return replace(
        world,
        memory=replace(world.memory, replicas=rest),
        membership=membership,
        words=tuple(each for each in world.words if each.replica not in names),
        machines=tuple(_kept_free(each, hidden) for each in world.machines),
    )


def _kept_free(machine: MachineFact, hidden: tuple[Replica, ...]) -> MachineFact:
    here = [each.name for each in hidden if (each.site, each.machine) == (machine.site, machine.name)]
    if not here or machine.cordoned:
        return machine
    return replace(machine, cordoned=True, why=f"has the standby {here[0]}")


def kept(world: World) -> Replica | None:
    """The standby that stays; None: there is none where the spec wants it, or it must be replaced."""
    slot = world.standby
    if slot is None:
        return None
    here = (each for each in standbys(world) if fits(each, slot))
    stays = [each for each in here if each.name in world.cordoned or not _must_go(world, each)]
    return min(stays, key=lambda each: world.member(each.name) is None, default=None)


def _must_go(world: World, record: Replica) -> bool:
    fact, member = world.replica(record.name), world.member(record.name)
    if record.started and fact.has_data is False:
        return True
    assert world.membership is not None, "it is asked where the members are known"
    if was_removed(world.membership, record):
        return True
    unlike = "" not in (record.storage_class, world.storage_class) and record.storage_class != world.storage_class
    if record.name in world.condemned or record.differs or unlike:
        return True
    # A member whose peer URL is not its own is replaced: its data is a copy.
    if member is not None and (member.misplaced or _is_full(world, member) or _copies_amid_alarm(world, member)):
        return True
    # One with a newer etcd does not go back by itself: it could never open its database as the older one.
    if is_newer(world, record, wanted_revision(without_standbys(world))):
        return True
    return world.change(record.revision, world.revision).exchange or record.name in world.memory.given_up


def _is_full(world: World, member: MemberFact) -> bool:
    """Whether a learner would raise the alarm NOSPACE (again): etcd defragments no learners, and it has copied a
    database that others have defragmented since.
    """
    assert world.membership is not None, "the member was read from it"
    if member.space is None or not has_no_room(member.space):
        return False
    voters = [each.space for each in world.membership.voters if each.space is not None]
    return bool(voters) and not any(map(has_no_room, voters))


def _copies_amid_alarm(world: World, member: MemberFact) -> bool:
    """Whether a learner copies a database without room: that delays its sender, which is to be defragmented, and the
    copy would have no room either.
    """
    assert world.membership is not None, "the member was read from it"
    if NOSPACE not in raised(world.membership) or member.health not in (Health.HEALTHY, Health.UNREACHABLE):
        return False
    return member.lag is not None and not has_the_data(world, member)


def is_dead(world: World, record: Replica) -> bool:
    """Whether a standby is dead as far as observed: neither this process nor the cluster hears of it. Only where the
    members are known.
    """
    member = world.member(record.name)
    unheard = not record.listed if member is None else member.health is Health.DOWN
    return unheard and world.replica(record.name).machine is not MachineState.UP


def is_sick(world: World, record: Replica) -> bool:
    """Whether a standby's etcd runs on a machine that answers, and the cluster does not hear of it, or it lags."""
    fact, member = world.replica(record.name), world.member(record.name)
    if member is None or fact.machine is not MachineState.UP or fact.unit(Component.ETCD) in IDLE:
        return False
    return member.health is Health.DOWN or bool(member.lagging)


def ailing(world: World) -> tuple[str, ...]:
    """The dead and the sick standbys that may be replaced."""
    others = world.memory.given_up.union(world.cordoned)
    ill = (each for each in standbys(world) if is_dead(world, each) or is_sick(world, each))
    return tuple(each.name for each in ill if each.name not in others)


def taken(world: World) -> frozenset[str]:
    """The machines that no standby is placed on: it shares none."""
    return frozenset(each.machine for each in world.memory.replicas)


def follows(world: World, record: Replica) -> bool:
    """Whether a standby has nearly all the data, as far as observed."""
    member = world.member(record.name)
    return member is not None and member.health is Health.HEALTHY and has_the_data(world, member)
