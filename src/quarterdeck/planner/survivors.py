"""Whether the quorum of the main cluster is lost for good, who survived, and what may be lost with the others."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from quarterdeck.model.components import Component
from quarterdeck.model.memory import MemberWord, Memory, Seed
from quarterdeck.model.units import IDLE, MachineState, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.quorum import quorum


class VoterFate(StrEnum):
    """What became of a voter, as far as this process sees."""

    ALIVE = "alive"  # its machine answers, and has its data
    DEAD = "dead"  # its machine is seen to be off, or its data to be gone
    CUT_OFF = "cut off"  # its machine does not answer: it may well serve others


@dataclass(frozen=True, kw_only=True)
class Survivors:
    """What is left of the main cluster where no quorum of it answers. ``words``: what members that answer say of
    themselves, the most complete first. ``fates``: of all voters, by what they have applied.
    ``awaited``: members that are there, and have not answered yet. ``began``: an epoch began from another one, which
    was lost before its data was copied; what these say is of before.
    """

    words: tuple[MemberWord, ...]
    fates: tuple[tuple[str, VoterFate], ...]
    awaited: tuple[str, ...] = ()
    began: bool = False

    @property
    def best(self) -> MemberWord:
        """Who has applied most. (What is committed is the same on all: no term is needed to tell who has more of
        it.)
        """
        return self.words[0]

    def of(self, fate: VoterFate) -> tuple[str, ...]:
        """The voters of which that became."""
        return tuple(name for name, became in self.fates if became is fate)

    @cached_property
    def lost(self) -> bool:
        """Whether what is left can never be a quorum by itself, nor follows anybody."""
        if not self.words or any(word.follows for word in self.words):
            return False
        return self.began or len(self.of(VoterFate.ALIVE)) < quorum(len(self.fates))

    @property
    def others_may_live(self) -> bool:
        """Whether those that do not answer could be a quorum: then they may have gone on without the others."""
        return len(self.of(VoterFate.CUT_OFF)) >= quorum(len(self.fates))


def survivors(world: World) -> Survivors | None:
    """What is left of the main cluster; None where a quorum answers, where it was not founded yet, or nobody
    answers.
    """
    memory = world.memory
    if memory.seeding is not None:
        return _others(world, memory.seeding)
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


def _others(world: World, seed: Seed) -> Survivors | None:
    """Who may take the place of a survivor whose data cannot be copied any more: none of them has run since. None where
    that one is there, or nobody else.
    """
    words = tuple(word for word in seed.others if _fate(world, word.replica) is VoterFate.ALIVE)
    if not words or _fate(world, seed.survivor) is VoterFate.ALIVE:
        return None
    voters = words[0].voters or tuple(dict.fromkeys((seed.survivor, *(word.replica for word in words))))
    return Survivors(words=words, fates=tuple((name, _fate(world, name)) for name in voters), began=True)


def _remembered(world: World) -> tuple[str, ...]:
    """Who may vote, where only learners are left: whoever was listed, and is not known to be one."""
    learners = {word.replica for word in world.words if word.learner}
    there = (each for each in world.memory.replicas if each.listed and not world.memory.is_former(each))
    return tuple(each.name for each in there if each.name not in learners)


def _completeness(word: MemberWord) -> tuple[int, int, bool, str]:
    return word.applied, word.committed, not word.learner, word.replica


def _fate(world: World, name: str) -> VoterFate:
    if name not in {each.name for each in world.memory.replicas}:
        return VoterFate.CUT_OFF  # it belongs to no replica: nobody knows where it is
    fact = world.replica(name)
    if fact.machine is MachineState.DOWN:
        return VoterFate.DEAD
    if fact.machine is MachineState.UNREACHABLE:
        return VoterFate.CUT_OFF
    return VoterFate.DEAD if fact.has_data is False else VoterFate.ALIVE


def _comes(world: World, name: str) -> bool:
    """Whether a member that has not answered may do so: it is about to be started, or runs. One that ends again and
    again is not waited for.
    """
    fact = world.replica(name)
    return fact.unit(Component.ETCD) in (*IDLE, UnitState.RUNNING, UnitState.STOPPING) and not (
        fact.refused or Component.ETCD in fact.restless
    )


def away(world: World, left: Survivors) -> str:
    """The voters that do not answer. Nothing is known of where one runs that belongs to no replica."""
    gone, known = (*left.of(VoterFate.DEAD), *left.of(VoterFate.CUT_OFF)), {each.name for each in world.memory.replicas}
    ours, others = [each for each in gone if each in known], [each for each in gone if each not in known]
    machines = [f"machines of {', '.join(ours)}"] if ours else []
    return " and ".join((*machines, *(f"voter {each}, which belongs to no replica," for each in others)))


def loss(memory: Memory, word: MemberWord) -> str:
    """What is lost if the cluster begins anew from a member, in a sentence: never more than is known is said."""
    later = "; what was acknowledged after that, without this member having been told so, is lost"
    has, seen = f"{word.replica} has etcd revision {word.revision:,}", memory.revision
    if word.revision >= seen:
        known = f", and {seen:,} is the last that the plane was seen to have" if seen else ""
        return f"nothing that was ever seen: {has}{known}{later}"
    return f"etcd revisions {word.revision + 1:,} to {seen:,}: {has}, and the plane was last seen at {seen:,}{later}"
