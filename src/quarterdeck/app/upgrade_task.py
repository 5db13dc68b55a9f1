"""Upgrades of Kubernetes and of etcd go on by themselves: once the plane has soaked, and to the next minor version."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from quarterdeck.actions.plane import Plane
from quarterdeck.api.operation import OperationPhase, OperationType
from quarterdeck.components.transitions.upgrade_parts import next_part, soak
from quarterdeck.engine.background.tasks import BackgroundTask, Check, LongTask, Work
from quarterdeck.engine.preflight.requests import Upgrade
from quarterdeck.engine.preflight.upgrades import examined_upgrade
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.model.world import World

#: Seconds between two looks at the operations of a plane.
_EVERY = 5.0


def upgrade_task(engine: Engine) -> BackgroundTask:
    """The background task of one plane."""
    return LongTask(name="upgrades", due=GoOnWithUpgrades(engine=engine).due)


@dataclass(kw_only=True)
class GoOnWithUpgrades:
    """Asks for the next part of an upgrade once the one before has succeeded and its soak is over. A check that refuses
    is reported, and asked again later. ``now`` is an aware datetime.
    """

    engine: Engine
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _looked: float = field(default=-math.inf)

    async def due(self, plane: Plane, world: World) -> Work | None:
        """See ``LongTask``."""
        if next_part(plane.resource.spec) is None or plane.resource.metadata.deletion_timestamp is not None:
            return None
        moment = asyncio.get_running_loop().time()
        if moment - self._looked < _EVERY:
            return None
        self._looked = moment
        last = (await recorded.operations_of(plane.store, plane.name))[-1:]
        if not last or last[0].status.phase is not OperationPhase.SUCCEEDED or last[0].status.finished_at is None:
            return None
        waited = (self.now() - last[0].status.finished_at).total_seconds()
        return partial(self._go_on, plane.name) if waited >= soak(plane.resource.spec) else None

    async def _go_on(self, name: str, check: Check) -> None:
        found = await examined_upgrade(self.engine, Upgrade(name))
        found.require()
        await check()
        await operations.change(self.engine.home, found.wanted, OperationType.UPGRADE, self.engine.requester)
