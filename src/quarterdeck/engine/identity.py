"""Whether what etcd answers with is the plane's own data: by the cluster's id, and by its revision, which never falls.

An etcd that was started on an empty folder with the arguments of a founder has the same ids as before, so that its
revision alone betrays it; one that has another plane's data has another cluster's id.
"""

from __future__ import annotations

from quarterdeck.actions.plane import Plane
from quarterdeck.engine.asking import or_none
from quarterdeck.etcd.facts import MemberStatus
from quarterdeck.etcd.port import Etcd
from quarterdeck.model.memory import Memory
from quarterdeck.model.steps import NoteCluster


def foreign(memory: Memory, status: MemberStatus | None) -> str:
    """How a member is known to be another cluster's; "" if it is not."""
    if status is None or memory.cluster_id in (0, status.cluster_id):
        return ""
    return f"it belongs to etcd cluster {status.cluster_id:x}, and the plane's is {memory.cluster_id:x}"


async def set_back(etcd: Etcd, urls: tuple[str, ...], memory: Memory, newest: int) -> str | None:
    """How the cluster is known to have been set back to earlier data, or to none; "" if it was not, None if that is not
    known now. ``newest`` is the newest revision that a member said to have: members may lag, so that a quorum is asked
    before anything is thought of it.
    """
    if newest >= memory.revision:
        return ""
    confirmed = await or_none(etcd.revision(urls))
    if confirmed is None:
        return None
    if confirmed >= memory.revision:
        return ""
    return f"its etcd revision is {confirmed:,}, and {memory.revision:,} was seen before"


async def note_revision(plane: Plane) -> None:
    """Write down how far etcd has come, while somebody drives: nobody may look at it for long after. Nothing is written
    where no quorum answers.
    """
    cluster = plane.memory.cluster_id
    confirmed = await or_none(plane.etcd.revision(plane.client_urls())) if cluster else None
    if confirmed is not None:
        why = "data of before that revision is not the plane's"
        await plane.remember((NoteCluster(site="", why=why, cluster_id=cluster, revision=confirmed),))
