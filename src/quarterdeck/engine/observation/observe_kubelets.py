"""Whether kubelets reach the apiservers of a new epoch of etcd."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from quarterdeck.actions.addresses import apiserver_address
from quarterdeck.actions.plane import Plane
from quarterdeck.addons.objects import items, mapping, text_of
from quarterdeck.components.etcd import BUMP
from quarterdeck.engine.observation.queries import or_none
from quarterdeck.model.memory import Memory

#: The Leases that kubelets renew (kubernetes: pkg/kubelet/kubelet.go). One page is enough: one of them is looked for.
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?limit=500"
#: Seconds for an answer: an observation does not wait longer.
_WITHIN_S = 1.0


@dataclass(kw_only=True)
class KubeletsObserver:
    """Looks for a kubelet that has renewed its Lease in the present epoch, up to ``within`` seconds from when its first
    apiserver served. It remembers only the epoch in which it found one.
    """

    plane: Plane
    within: float
    _back: int | None = None

    async def observe(self, memory: Memory, ready: Mapping[str, bool | None], now: float) -> bool | None:
        """One observation through a ``ready`` apiserver. None: it is unknown, or nobody needs to know. ``now``: on the
        memory's timeline.
        """
        seed = memory.seed
        if seed is None or not seed.restored:
            return None
        if self._back == memory.epoch:
            return True
        serving = next((each for each in memory.replicas if ready.get(each.name)), None)
        if serving is None or memory.is_former(serving):
            return None
        if seed.served is not None and now - seed.served >= self.within:
            return None
        try:
            async with asyncio.timeout(_WITHIN_S):
                listed = await or_none(self.plane.kube.read(apiserver_address(serving), LEASES))
        except TimeoutError:
            return None
        if listed is None:
            return None
        # All revisions that are written in the epoch are that much higher than those of its origin.
        written = [_revision(mapping(each.get("metadata"))) for each in items(mapping(listed).get("items"))]
        if written and max(written) < seed.revision + BUMP:
            return False
        self._back = memory.epoch
        return True


def _revision(metadata: Mapping[str, JsonValue]) -> int:
    text = text_of(metadata.get("resourceVersion"))
    return int(text) if text.isdigit() else 0
