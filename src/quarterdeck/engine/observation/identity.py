"""Whether etcd has the plane's own data: by the cluster's id, and by its revision, which never decreases.

An etcd that was started on an empty folder with the arguments of a founder has the same ids as before, so only its
revision shows it; one with another plane's data has another cluster's id.
"""

from __future__ import annotations

from functools import partial

from quarterdeck.actions.addresses import client_urls
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import remember
from quarterdeck.engine.observation.queries import all_or_none, or_none
from quarterdeck.etcd.facts import MemberReport
from quarterdeck.etcd.port import EtcdCluster
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.memory import Memory
from quarterdeck.model.steps.clusters import NoteCluster


def foreign(memory: Memory, status: MemberReport | None) -> str:
    """Why a member belongs to another cluster; "" if it does not."""
    if status is None or memory.cluster_id in (0, status.cluster_id):
        return ""
    return f"it belongs to etcd cluster {status.cluster_id:x}, and the plane's is {memory.cluster_id:x}"


async def set_back(etcd: EtcdCluster, urls: tuple[str, ...], memory: Memory, newest: int) -> str | None:
    """Why the cluster has older data than before, or none; "" if it has not, None if that is unknown now. ``newest`` is
    the newest revision that a member reported: members may lag, so a quorum must confirm a lower one.
    """
    if newest >= memory.revision:
        return ""
    confirmed = await or_none(etcd.revision(urls))
    if confirmed is None:
        return None
    if confirmed >= memory.revision:
        return ""
    return f"its etcd revision is {confirmed:,}, and {memory.revision:,} was observed before"


async def note_cluster(plane: Plane) -> None:
    """Record the ids and revisions of the clusters at the end of a drive: no process may observe them for long after.
    Nothing is recorded where no quorum answers, or where members do not agree on the cluster's id.
    """
    for cluster in Cluster:
        await _note(plane, cluster)


async def _note(plane: Plane, cluster: Cluster) -> None:
    memory, urls = plane.memory.of(cluster), client_urls(plane, cluster)
    confirmed = await or_none(plane.etcd.revision(urls)) if memory.created else None
    known = memory.cluster_id or await _agreed(plane.etcd, urls)
    if confirmed is not None and known:
        why = "data of another cluster, or from before that revision, is not the plane's"
        await remember(plane, (NoteCluster(site="", why=why, cluster_id=known, revision=confirmed, cluster=cluster),))


async def _agreed(etcd: EtcdCluster, urls: tuple[str, ...]) -> int:
    """The cluster's id, from all members that answer; 0 if they do not agree."""
    heard = await all_or_none(partial(etcd.status, url) for url in urls)
    ids = {status.cluster_id for status in heard if status is not None}
    return ids.pop() if len(ids) == 1 else 0
