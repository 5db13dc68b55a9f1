"""The reports of members about themselves while no quorum answers: each from the data on its own disk."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from quarterdeck.actions.addresses import candidates, client_url, owners
from quarterdeck.actions.plane import Plane
from quarterdeck.engine.observation.queries import SOON, or_none
from quarterdeck.errors import Unavailable
from quarterdeck.etcd.faults import EtcdRefused, Reason
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.epochs import MemberWord
from quarterdeck.model.memory import Replica


async def words_of(plane: Plane, wrong: Collection[str]) -> tuple[MemberWord, ...]:
    """The reports of all members of the main cluster that answer, except those with ``wrong`` data."""
    asked = [each for each in candidates(plane) if each.name not in wrong]
    heard = await asyncio.gather(*(_word_of(plane, each) for each in asked))
    return tuple(each for each in heard if each is not None)


async def _word_of(plane: Plane, record: Replica) -> MemberWord | None:
    """The report of one member; None where it does not answer. A learner does not report the voters.

    What it reports is in its database on the disk then. A new epoch copies that file, and etcd may be killed before.
    """
    url = client_url(record)
    status = await or_none(plane.etcd.status(url, within=SOON))
    if status is None or not await _is_flushed(plane, url):
        return None
    listed = () if status.is_learner else await or_none(plane.etcd.known_members(url))
    if listed is None:
        return None
    owner = owners(plane, Cluster.MAIN, listed)
    return MemberWord(
        replica=record.name,
        term=status.raft_term,
        committed=status.raft_index,
        applied=status.raft_applied_index,
        revision=status.revision,
        learner=status.is_learner,
        follows=status.leader_id != 0,
        voters=tuple(
            owner[each.id].name if each.id in owner else f"{each.id:x}" for each in listed if not each.is_learner
        ),
    )


async def _is_flushed(plane: Plane, url: str) -> bool:
    """Whether a member has written to its disk what it has applied. One with etcd's authentication enabled refuses to;
    no apiserver has written to it since that was enabled, and etcd itself writes within 100 ms.
    """
    try:
        await plane.etcd.flush(url)
    except Unavailable:
        return False
    except EtcdRefused as error:
        if error.reason is not Reason.DENIED:
            raise
    return True
