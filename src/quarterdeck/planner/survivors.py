"""Whether the quorum of the main cluster is lost for good, which members survived, and what data may be lost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from quarterdeck.model.components import Component
from quarterdeck.model.epochs import MemberWord, SurvivorOrigin
from quarterdeck.model.memory import Memory
from quarterdeck.model.units import IDLE, MachineState, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.quorum import quorum


class VoterFate(StrEnum):
    """The fate of a voter, as far as this process observes."""

    ALIVE = "alive"  # its machine answers, and has its data
    DEAD = "dead"  # its machine is observed to be off, or its data to be gone
    CUT_OFF = "cut off"  # its machine does not answer: it may still serve others


@dataclass(frozen=True, kw_only=True)
class Survivors:
    """The rest of the main cluster where no quorum of it answers."""

    #: The reports of answering members about themselves, the most complete first.
    words: tuple[MemberWord, ...]
    #: The fates of all voters, which are known from the applied log.
    fates: tuple[tuple[str, VoterFate], ...]
    #: Members that exist, and have not reported yet.
    awaited: tuple[str, ...] = ()
    #: An epoch began from another member, which was lost before its data was copied; the reports are older than that.
    began: bool = False

    @property
    def best(self) -> MemberWord:
        """The member that has applied most. (Committed entries are the same on all members, so terms need not be
        compared.)
        """
        return self.words[0]

    def of(self, fate: VoterFate) -> tuple[str, ...]:
        """The voters with that fate."""
        return tuple(name for name, became in self.fates if became is fate)

    @cached_property
    def lost(self) -> bool:
        """Whether the rest can never be a quorum by itself, and follows no leader."""
        if not self.words or any(word.follows for word in self.words):
            return False
        return self.began or len(self.of(VoterFate.ALIVE)) < quorum(len(self.fates))

    @property
    def others_may_live(self) -> bool:
        """Whether the members that do not answer could be a quorum: then they may still serve without the others."""
        return len(self.of(VoterFate.CUT_OFF)) >= quorum(len(self.fates))


def survivors(world: World) -> Survivors | None:
    """The rest of the main cluster; None where a quorum answers, where it was not founded yet, or no member answers."""
    memory = world.memory
    if memory.seeding is not None:
        return _others(world, memory.seeding.origin) if isinstance(memory.seeding.origin, SurvivorOrigin) else None
    if world.membership is not None or not memory.created or not world.words:
        return None
    words = tuple(sorted(world.words, key=_completeness, reverse=True))
    differing = {each.name for each in memory.replicas if each.differs} | {each.replica for each in world.wrong}
    right = tuple(word for word in words if word.replica not in differing)
    words = right or words
    voters = next((word.voters for word in words if word.voters), None) or _remembered(world)
    fates = tuple((name, _fate(world, name)) for name in voters)
    heard = {word.replica for word in world.words}
    return Survivors(
        words=words,
        fates=fates,
        awaited=tuple(
            name for name, fate in fates if fate is VoterFate.ALIVE and name not in heard and _comes(world, name)
        ),
    )


def _others(world: World, origin: SurvivorOrigin) -> Survivors | None:
    """The members that may replace a survivor whose data can no longer be copied: none of them has run since. None
    where the survivor is there, or no other member is.
    """
    words = tuple(word for word in origin.others if _fate(world, word.replica) is VoterFate.ALIVE)
    if not words or _fate(world, origin.replica) is VoterFate.ALIVE:
        return None
    voters = words[0].voters or tuple(dict.fromkeys((origin.replica, *(word.replica for word in words))))
    return Survivors(words=words, fates=tuple((name, _fate(world, name)) for name in voters), began=True)


def fates(world: World) -> tuple[tuple[str, VoterFate], ...]:
    """The fates of all possible voters while no quorum answers, with or without a report of any of them."""
    voters = next((word.voters for word in world.words if word.voters), None)
    return tuple((name, _fate(world, name)) for name in voters or _remembered(world))


def cut_off_majority(world: World) -> tuple[str, ...]:
    """The members that do not answer, where they may be a quorum that still serves; () where they cannot be."""
    if world.membership is not None:
        return ()  # a quorum answers: the others are none
    voters = _remembered(world)
    away = tuple(name for name in voters if _fate(world, name) is VoterFate.CUT_OFF)
    return away if voters and len(away) >= quorum(len(voters)) else ()


def _remembered(world: World) -> tuple[str, ...]:
    """The possible voters where only learners are left: all listed members that are not known to be learners."""
    learners = {word.replica for word in world.words if word.learner}
    there = (each for each in world.memory.replicas if each.listed and not world.memory.is_former(each))
    return tuple(each.name for each in there if each.name not in learners)


def _completeness(word: MemberWord) -> tuple[int, int, bool, str]:
    return word.applied, word.committed, not word.learner, word.replica


def _fate(world: World, name: str) -> VoterFate:
    if name not in {each.name for each in world.memory.replicas}:
        return VoterFate.CUT_OFF  # it belongs to no replica: its machine is unknown
    fact = world.replica(name)
    if fact.machine is MachineState.DOWN:
        return VoterFate.DEAD
    if fact.machine is MachineState.UNREACHABLE:
        return VoterFate.CUT_OFF
    return VoterFate.DEAD if fact.has_data is False else VoterFate.ALIVE


def _comes(world: World, name: str) -> bool:
    """Whether a member that has not answered may do so: it is about to be started, or runs. One that exits repeatedly
    is not waited for.
    """
    fact = world.replica(name)
    return fact.unit(Component.ETCD) in (*IDLE, UnitState.RUNNING, UnitState.STOPPING) and not (
        fact.refused or Component.ETCD in fact.crash_looping
    )


def away(world: World, left: Survivors) -> str:
    """The voters that do not answer, in words. The machine of a voter that belongs to no replica is unknown."""
    gone, known = (*left.of(VoterFate.DEAD), *left.of(VoterFate.CUT_OFF)), {each.name for each in world.memory.replicas}
    ours, others = [each for each in gone if each in known], [each for each in gone if each not in known]
    machines = [f"machines of {', '.join(ours)}"] if ours else []
    return " and ".join((*machines, *(f"voter {each}, which belongs to no replica," for each in others)))


def loss(memory: Memory, word: MemberWord) -> str:
    """The loss if a new epoch begins from a member, in a sentence that claims no more than is known."""
    later = "; writes that were acknowledged later without this member are lost"
    has, seen = f"{word.replica} has etcd revision {word.revision:,}", memory.revision
    if word.revision >= seen:
        known = f", and {seen:,} is the last observed revision of the plane" if seen else ""
        return f"nothing that was ever observed: {has}{known}{later}"
    return (
        f"etcd revisions {word.revision + 1:,} to {seen:,}: {has}, and the plane was last observed at {seen:,}{later}"
    )
