"""The observed facts about load balancers and the edges that they run on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeFact:
    """One machine that a site's load balancer of this plane runs on."""

    name: str
    #: The plane's name must have its address.
    named: bool = True
    #: It leads to a ready apiserver; None: it does not answer.
    leads: bool | None = True
    #: Why no floating address can move to it; "": one can, or there are none.
    unrouted: str = ""
    #: "": none.
    zone: str = ""
    #: "": it is a host of its own.
    host: str = ""
    #: Why it does not answer, for people.
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancerFact:
    """A site's load balancer for this plane, on all of its edges. One that does not run has no backends."""

    site: str
    running: bool
    #: It does not run on an edge, but its unit or files are there: the supervisor may start it at any moment.
    left: bool = False
    #: Every edge that a client may be led to answers, so that all can be configured.
    reachable: bool = True
    #: The replicas to which any answering edge sends new connections.
    backends: frozenset[str] = frozenset()
    #: The replicas that pass the health check of every edge.
    healthy: frozenset[str] = frozenset()
    #: All edges run, and send to the same replicas.
    alike: bool = True
    #: The replicas to which every answering edge sends.
    common: frozenset[str] = frozenset()
    #: Open connections of clients.
    connections: int = 0
    #: Empty: it runs on one edge, of which no more is known.
    edges: tuple[EdgeFact, ...] = ()

    @property
    def there(self) -> bool:
        """Whether any part of it is still on a machine."""
        return self.running or self.left

    @property
    def ready(self) -> bool:
        """Whether it leads to a ready apiserver."""
        return bool(self.healthy)

    @property
    def everywhere(self) -> frozenset[str]:
        """The replicas to which every edge that clients may use is observed to send."""
        return self.backends if self.alike and self.reachable else frozenset()

    @property
    def listed(self) -> frozenset[str]:
        """The replicas to which every answering edge sends."""
        return self.backends if self.alike else self.common

    @property
    def silent(self) -> frozenset[str]:
        """Its edges that do not answer."""
        return frozenset(each.name for each in self.edges if each.leads is None)

    @property
    def unrouted(self) -> tuple[str, ...]:
        """Its edges to which no floating address can move."""
        return tuple(each.name for each in self.edges if each.unrouted)

    @property
    def on(self) -> tuple[EdgeFact, ...]:
        """Its edges; one that stands for the site where none are known."""
        return self.edges or (EdgeFact(name=self.site, leads=self.ready if self.reachable else None),)
