"""What the members of etcd say of themselves while no quorum of them answers: each alone, by what it has on its
disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from quarterdeck.actions.addresses import candidates, client_url, owners
from quarterdeck.actions.plane import Plane
from quarterdeck.engine.observation.asking import SOON, or_none
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.memory import MemberWord, Replica


async def words_of(plane: Plane, wrong: Collection[str]) -> tuple[MemberWord, ...]:
    """The words of all members of the main cluster that answer, but for those that have ``wrong`` data."""
    asked = [each for each in candidates(plane) if each.name not in wrong]
    heard = await asyncio.gather(*(_word(plane, each) for each in asked))
    return tuple(each for each in heard if each is not None)


async def _word(plane: Plane, record: Replica) -> MemberWord | None:
    """None where it does not answer. A learner does not say who votes."""
    url = client_url(record)
    status = await or_none(plane.etcd.status(url, within=SOON))
    if status is None:
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
