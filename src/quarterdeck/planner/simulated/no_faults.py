"""The faults that a dry run does not have; tests override these methods to inject them."""

from __future__ import annotations

from typing import Self

from quarterdeck.model.components import Component
from quarterdeck.planner.simulated.parts import SimReplica


class NoFaults:
    """A world without faults but those that a ``Truth`` has as fields."""

    @property
    def unreachable(self) -> frozenset[str]:
        """The machines that do not answer the manager although they run, or may."""
        return frozenset()

    def is_mute(self, thing: str, site: str = "") -> bool:
        """Whether something that works (see ``things``), at a site, does not answer the manager."""
        return False

    def connected(self, one: str, other: str) -> bool:
        """Whether two sites can talk: packets pass both ways."""
        return True

    @property
    def deceived(self) -> frozenset[str]:
        """The members that still hear the leader, which no longer hears them, and do not know it yet."""
        return frozenset()

    def breaks(self, revision: str, component: Component) -> bool:
        """Whether a program cannot run with the configuration of a revision."""
        return False

    def ended(self, replica: SimReplica) -> frozenset[Component]:
        """The programs that end as soon as they have started."""
        return frozenset()

    def quiet(self, replica: SimReplica) -> tuple[Component, ...]:
        """The programs that run and never report anything new."""
        return ()

    def hanging_on(self, machine: str) -> frozenset[Component]:
        """The programs that hang on a machine whenever they are started there."""
        return frozenset()

    def lagging_on(self, machine: str) -> frozenset[Component]:
        """The members that never catch up when they are started on a machine."""
        return frozenset()

    @property
    def asks_for_a_user(self) -> bool:
        """Whether etcd refuses the manager since authentication is on."""
        return False

    def is_roomy(self, name: str) -> bool:
        """Whether a replica's etcd was started with the larger quota."""
        return False

    def with_former_voters(self) -> Self:
        """The same truth as the epoch of the main cluster ends. Those who voted in it may still be a quorum."""
        return self

    def balances(self, site: str) -> bool:
        """Whether the load balancer that is wanted at a site runs."""
        return True

    def with_second_notified(self, site: str, backends: frozenset[str] | None) -> tuple[Self, bool]:
        """The same truth once the other edge of a site, if there is one that answers, was given backends, or (None) its
        load balancer was stopped; and whether there is.
        """
        return self, False

    def with_edges_named(self, site: str) -> Self:
        """The same truth once the name has the addresses of those edges of a site that it should."""
        return self

    @property
    def record_amiss(self) -> str:
        """Why the DNS record must be set again."""
        return ""
