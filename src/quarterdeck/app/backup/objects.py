"""The objects of a plane as its backups have them."""

from __future__ import annotations

from quarterdeck.app.backup.restores import LATEST, Restores
from quarterdeck.backup.kubernetes.object_changes import MomentDifference
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.backups import open_backups
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.scratch_moments import moment_difference


class BackedUpObjects:
    """``Quarterdeck.backups.objects``. The rules for calls of ``Quarterdeck`` apply."""

    def __init__(self, home: Home, restores: Restores) -> None:
        self._home = home
        self._restores = restores

    async def diff(self, name: str, *, at: str, to: str = LATEST) -> MomentDifference:
        """What happened to the objects of a plane from the moment ``at`` to another one, each named as for
        ``Restores.plan``. Raises as that does for moments, and what building raises.
        """
        plane = await recorded.existing(self._home.store, name)
        backups = await open_backups(self._home, plane)
        chain = await backups.chains.read()
        before, after = [await self._restores.moment(backups, chain, each) for each in (at, to)]
        return await moment_difference(self._home, name, backups, before, after)
