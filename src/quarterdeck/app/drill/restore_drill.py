"""The drill of a total loss: the plane is restored from its backup beside it, and compared with it. Nothing fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from quarterdeck.actions.addresses import client_urls
from quarterdeck.actions.plane import Plane
from quarterdeck.api.belongings import Drill, DrillPhase, DrillStatus
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.app.drill.books import begun, ended, with_status
from quarterdeck.app.drill.plans import DrillPlan
from quarterdeck.backup.chain import BackupMoment
from quarterdeck.backup.kubernetes.equality import ObjectComparison, ObjectServer, compare_objects
from quarterdeck.drills.aim import Wish, require_meant
from quarterdeck.drills.judgement import Detection
from quarterdeck.engine.observation.queries import ready_apiserver
from quarterdeck.engine.preflight.reach import require_plane_in_reach
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.backups import open_backups
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.engine.workspace.restores import MAIN
from quarterdeck.engine.workspace.scratch_planes import scratch_plane
from quarterdeck.errors import Corrupt, QuarterdeckError
from quarterdeck.upstream.upstream import Upstream

#: How many objects that differ are named.
_NAMED = 10
_STRUCK = "nothing: the newest backup is restored on this host beside the plane, and compared with it"


async def restore_plan(home: Home, name: str, wish: Wish) -> DrillPlan:
    """The plan of the drill. Changes nothing. Raises InvalidInput for a target: nothing is hit."""
    require_meant(name, wish)
    await require_plane_in_reach(home, name)
    plane = await recorded.existing(home.store, name)
    return DrillPlan(
        name=name,
        wish=wish,
        hold=0.0,
        struck=(_STRUCK,),
        refused=tuple(_refusals(plane)),
        dangers=(),
        faults=(),
        found=Detection(),
    )


def _refusals(plane: ControlPlane) -> list[str]:
    found = []
    if not plane.spec.backup.enabled:
        found.append("it is not backed up: spec.backup.enabled is false")
    if not plane.status.memory.created:
        found.append("it has no etcd yet")
    if plane.metadata.deletion_timestamp is not None:
        found.append("it is being deleted")
    return found


async def restore_drilled(
    home: Home,
    upstream: Upstream,
    plan: DrillPlan,
    *,
    requester: Requester,
    scheduled: bool,
    tell: Callable[[str], None],
) -> Drill:
    """Run the drill. It passes where an apiserver on the restored data has each object of the plane as the plane has it
    at the revision of the backup. See ``Quarterdeck.drill``.
    """
    plan.require(dangerous=False)
    drill = await begun(home, plan, requester, dangerous=False, scheduled=scheduled)
    try:
        status = await _restored(home, upstream, plan.name, drill, tell)
    except Corrupt as error:
        status = with_status(drill, phase=DrillPhase.FAILED, message=str(error))
    except BaseException as error:
        words = str(error) if isinstance(error, QuarterdeckError) else "it was interrupted"
        await ended(home, drill, with_status(drill, phase=DrillPhase.INTERRUPTED, message=words), requester)
        raise
    return await ended(home, drill, status, requester)


async def _restored(
    home: Home, upstream: Upstream, name: str, drill: Drill, tell: Callable[[str], None]
) -> DrillStatus:
    stored = await recorded.existing(home.store, name)
    backups = await open_backups(home, stored)
    clock = asyncio.get_running_loop().time
    async with open_plane(home, name) as plane:
        began = clock()
        chain = await backups.chains.read()
        moment = chain.latest(MAIN, stored.status.memory.epoch)
        lost_at = datetime.now(UTC)  # what is stored from here on would not be there
        newest = await plane.etcd.revision(client_urls(plane))
        tell(f"etcd revision {moment.revision:,} is restored from {backups.url}")
        async with scratch_plane(home, upstream, stored, backups, chain, moment) as apiserver:
            restored = clock() - began
            tell(f"an apiserver serves it after {restored:.1f} s; its objects are compared")
            here = ObjectServer(apiserver.objects, apiserver.address)
            found = await compare_objects(here, await _live(plane), moment.revision)
    lost = max(0.0, (lost_at - moment.at).total_seconds()) if newest > moment.revision else 0.0
    return _judged(drill, moment, found, lost=lost, restored=restored)


async def _live(plane: Plane) -> ObjectServer:
    return ObjectServer(plane.kube, await ready_apiserver(plane, f"comparing plane {plane.name} with its backup"))


def _judged(
    drill: Drill, moment: BackupMoment, found: ObjectComparison, *, lost: float, restored: float
) -> DrillStatus:
    """The result. ``lost``: how old the newest moment of the backup was, where the plane had changed since."""
    named = ", ".join(found.different[:_NAMED])
    differ = f"{len(found.different):,} objects differ from the plane's at etcd revision {moment.revision:,}: {named}"
    return with_status(
        drill,
        phase=DrillPhase.FAILED if found.different else DrillPhase.PASSED,
        lost_seconds=round(lost, 3),
        restored=round(restored, 3),
        objects=found.equal,
        message=differ if found.different else "",
    )
