"""The ports of a plane, all derived from the plane's number."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.errors import InvalidInput

#: Ports of two planes differ by this much, so that many planes can share a machine.
STRIDE = 10
#: The etcd of plane 788 would want the port of plane 0's scheduler.
LAST_PLANE = 787


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanePorts:
    """TCP ports, the same on every machine of the plane.

    ``load_balancer`` is on machines of the role EDGE, all others are on those of CONTROL.
    """

    apiserver: int
    etcd_client: int
    etcd_peer: int
    etcd_metrics: int
    controller_manager: int
    scheduler: int
    load_balancer: int

    @classmethod
    def of(cls, number: int) -> PlanePorts:
        """The ports of plane ``number`` (0 - 787): upstream's own for 0. Raises InvalidInput."""
        if not 0 <= number <= LAST_PLANE:
            raise InvalidInput(
                "giving a plane its ports", f"{number} is not between 0 and {LAST_PLANE}", "choose another number"
            )
        shift = STRIDE * number
        return cls(
            apiserver=6443 + shift,
            etcd_client=2379 + shift,
            etcd_peer=2380 + shift,
            etcd_metrics=2381 + shift,
            controller_manager=10257 + shift,
            scheduler=10259 + shift,
            load_balancer=6443 + shift,
        )

    @property
    def of_replica(self) -> tuple[int, ...]:
        """Every port that a replica listens on."""
        return (
            self.apiserver,
            self.etcd_client,
            self.etcd_peer,
            self.etcd_metrics,
            self.controller_manager,
            self.scheduler,
        )
