"""Certificates are issued anew in time, without a person."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from datetime import UTC, datetime

from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import OperationType
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Asker
from quarterdeck.model.world import World
from quarterdeck.pki.validity import certificates, validity


@dataclass(kw_only=True)
class RenewCertificates:
    """A duty: when a third of the life of a certificate is left, all of the plane's are asked for anew, as by
    ``certs renew``: one replica takes them up after the other. Authorities stay.
    """

    home: Home
    asker: Asker
    every: float = 3600.0
    _last: float = -math.inf

    async def turn(self, plane: Plane, world: World) -> None:
        """See ``ShortTurn``. Raises Conflict where the plane was changed meanwhile: then it is for the next turn."""
        now = asyncio.get_running_loop().time()
        if now - self._last < self.every:
            return
        if _due(plane):
            await plane.check()
            await operations.change(self.home, renewed(plane.resource), OperationType.APPLY, self.asker)
        self._last = now


def renewed(plane: ControlPlane) -> ControlPlane:
    """A plane, with new certificates asked for."""
    spec = plane.spec
    newer = spec.certificates.model_copy(update={"generation": spec.certificates.generation + 1})
    return plane.with_spec(certificates=newer)


def _due(plane: Plane) -> bool:
    now = datetime.fromtimestamp(plane.clock(), UTC)
    issued = (pem for name, pem in certificates(plane.secrets) if "-ca" not in name.rpartition("/")[2])
    return any(validity(pem).due(now) for pem in issued)
