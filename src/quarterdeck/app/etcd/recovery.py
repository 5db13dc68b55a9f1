"""A lost quorum: the survivors, what may be lost, and the user's consent to continue with a survivor's data."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from quarterdeck.actions.addresses import client_url
from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.epochs import NewEpoch
from quarterdeck.engine.observation.observe import observer_of
from quarterdeck.engine.observation.queries import or_none
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane
from quarterdeck.errors import Corrupt, NotFound, Paused, PreconditionFailed
from quarterdeck.etcd.facts import KeySpaceHash
from quarterdeck.model.epochs import MemberWord
from quarterdeck.model.world import World
from quarterdeck.planner.next_steps import expired
from quarterdeck.planner.rules.standby import offer
from quarterdeck.planner.rules.volume_moves import may_return
from quarterdeck.planner.standbys import without_standbys
from quarterdeck.planner.survivors import Survivors, VoterFate, loss, survivors
from quarterdeck.planner.view import view
from quarterdeck.stores.port import amend


@dataclass(frozen=True, slots=True, kw_only=True)
class Survivor:
    """A surviving member, as it reports itself: raft's ``term``, the indexes that it knows to be ``committed`` and has
    ``applied``, the etcd ``revision`` of its newest key, and the ``hash`` of all its keys up to the lowest of these
    (None: not reported). ``chosen``: the plane would continue with its data.
    """

    replica: str
    machine: str
    term: int
    committed: int
    applied: int
    revision: int
    hash: int | None
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LostQuorum:
    """The survivors of a plane's etcd that has lost its quorum."""

    name: str
    #: The epoch that recovery would begin.
    epoch: int
    survivors: tuple[Survivor, ...]
    #: What may be lost then, in a sentence.
    loss: str
    #: Voters that are dead.
    dead: tuple[str, ...]
    #: Voters that do not answer.
    cut_off: tuple[str, ...]
    #: Whether these are enough to serve clients.
    others_may_live: bool
    #: Survivors with other data than the chosen one up to the last common revision, though they have compacted the same
    #: history.
    differ: tuple[str, ...] = ()
    #: Members that can return on other machines first, with all their data: then no epoch begins.
    may_return: tuple[str, ...] = ()
    #: What a failover to the standby would continue with, in a sentence; "" where the plane cannot fail over.
    instead: str = ""


async def lost_quorum(home: Home, name: str) -> LostQuorum:
    """See ``Looks.lost_quorum``."""
    async with open_plane(home, name) as plane:
        require_drivable(plane.resource)
        world = await (await observer_of(plane)).observe()
        left = _required(name, world)
        hashes = await _hashes(plane, left)
        return LostQuorum(
            name=name,
            epoch=world.memory.epoch + 1,
            survivors=tuple(_survivor(plane, left, word, hashes[word.replica]) for word in left.words),
            loss=loss(world.memory, left.best),
            dead=left.of(VoterFate.DEAD),
            cut_off=left.of(VoterFate.CUT_OFF),
            others_may_live=left.others_may_live,
            differ=_differ(left, hashes),
            may_return=tuple(each.replica for each in may_return(view(world), left, confirmed=True)),
            instead=offer(world),
        )


def require_drivable(plane: ControlPlane) -> None:
    """Raise what prevents a driver from doing anything for a plane: a consent that no process acts on is not stored."""
    doing = f"recovering plane {plane.name}"
    if plane.metadata.deletion_timestamp is not None:
        raise PreconditionFailed(doing, "it is being deleted", f"'quarterdeck wait {plane.name}' continues that")
    if paused := operations.why_paused(plane, datetime.now(UTC)):
        raise Paused(doing, paused, f"'quarterdeck resume {plane.name}' first: what can be started is started then")
    operations.require_known(plane)


def _required(name: str, world: World) -> Survivors:
    """The survivors, where they cannot form a quorum. Raises PreconditionFailed."""
    doing, wait = f"recovering plane {name}", f"'quarterdeck wait {name}' starts what can be started"
    events = world.memory.events.exists and world.events_membership is None
    if world.membership is not None and events:
        seen = "a quorum of its etcd answers; that of the events' etcd does not, which loses only events"
        raise PreconditionFailed(
            doing, seen, "recreate it: set spec.etcd.events.separate to false, and then to true again"
        )
    if world.membership is not None:
        raise PreconditionFailed(doing, "a quorum of its etcd answers: there is nothing to recover", "see 'status'")
    left = survivors(without_standbys(world))
    if not world.memory.created and left is None:
        seen = "its new epoch is about to begin" if world.memory.epoch else "its etcd cluster was not created yet"
        raise PreconditionFailed(doing, seen, f"'quarterdeck wait {name}' continues it")
    if left is None and world.expired:
        raise PreconditionFailed(doing, expired(world), f"{world.command('certs renew', '--offline')} loses no data")
    if left is None and (instead := offer(world)):
        raise PreconditionFailed(doing, "no member of its etcd answers but its standby", instead)
    if left is None:
        raise PreconditionFailed(doing, "no member of its etcd answers, so it is not known what is left", wait)
    if left.awaited:
        raise PreconditionFailed(doing, f"member {', '.join(left.awaited)} is running, and does not answer yet", wait)
    if not left.lost:
        seen = (
            f"{len(left.of(VoterFate.ALIVE))} of {len(left.fates)} voters are there with their data: that is a quorum"
        )
        raise PreconditionFailed(doing, seen, wait)
    return left


def _survivor(plane: Plane, left: Survivors, word: MemberWord, found: KeySpaceHash | None) -> Survivor:
    return Survivor(
        replica=word.replica,
        machine=plane.memory.replica(word.replica).machine,
        term=word.term,
        committed=word.committed,
        applied=word.applied,
        revision=word.revision,
        hash=found.hash if found is not None else None,
        chosen=word is left.best,
    )


async def _hashes(plane: Plane, left: Survivors) -> dict[str, KeySpaceHash | None]:
    """The hash of each up to the lowest of their revisions; None for a member that does not report one."""
    lowest = min(word.revision for word in left.words)
    found = await asyncio.gather(*(_hash(plane, word, lowest) for word in left.words))
    return {word.replica: each for word, each in zip(left.words, found, strict=True)}


async def _hash(plane: Plane, word: MemberWord, revision: int) -> KeySpaceHash | None:
    url = client_url(plane.memory.replica(word.replica))
    try:
        return await or_none(plane.etcd.hash_keys(url, revision))
    except (NotFound, Corrupt):
        return None  # it has compacted that already, or cannot read its data


def _differ(left: Survivors, hashes: Mapping[str, KeySpaceHash | None]) -> tuple[str, ...]:
    """A survivor that has compacted other history hashes less, which is no difference."""
    best = hashes[left.best.replica]
    if best is None:
        return ()
    others = {name: found for name, found in hashes.items() if found is not None}
    same = (name for name, found in others.items() if found.compact_revision == best.compact_revision)
    return tuple(name for name in same if others[name].hash != best.hash)


def others_may_live(doing: str, cut_off: Sequence[str]) -> PreconditionFailed:
    """Why no epoch begins beside voters that do not answer and may be a quorum."""
    seen = (
        f"{', '.join(cut_off)} do not answer, and may serve clients elsewhere: there would be two copies of the plane"
    )
    return PreconditionFailed(doing, seen, "bring them back, or add --even-if-others-live if they are certainly down")


async def consent(home: Home, lost: LostQuorum, *, even_if_others_live: bool) -> None:
    """See ``Quarterdeck.recover``."""
    doing = f"recovering plane {lost.name}"
    if lost.others_may_live and not even_if_others_live:
        raise others_may_live(doing, lost.cut_off)

    def consented(seen: ControlPlane) -> ControlPlane:
        require_drivable(seen)
        operations.require_next_epoch(seen, lost.epoch, doing)
        word = NewEpoch(epoch=lost.epoch, even_if_others_live=even_if_others_live)
        return seen.with_spec(new_epoch=word)

    await amend(home.store, ControlPlane, lost.name, consented)
