"""An address that is led from machines to others, as the process on one of them sees to it: what becomes of those who
are connected.
"""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.endpoint.addresses.floating.kernel import Addresses, Client
from quarterdeck.endpoint.addresses.floating.passing import Passing

#: Connections that go on where they were made: of more the others are cut.
MOST_KEPT = 2_000
#: Seconds for which a machine may be silent before what its clients send is not passed on to it any more.
_FORGOTTEN = 10.0


class Led:
    """``address``, which this machine has, had or may get."""

    def __init__(self, interface: str, address: str, port: int, addresses: Addresses) -> None:
        self.address = address
        self._addresses = addresses
        self._passing = Passing(interface, address, port)
        self._passing.let_go()
        self._held_until: float | None = None
        self._kept: dict[str, tuple[list[Client], float]] = {}

    @property
    def left(self) -> bool:
        """Whether it has left this machine, which may still have connections."""
        return self._passing.left

    def hear(self, host: str, clients: list[Client], now: float) -> None:
        """The machine at ``host`` goes on with these."""
        self._kept[host] = clients, now
        self._passing.pass_on({each: found for each, (found, _) in self._kept.items()})

    def forget(self, now: float) -> list[Client]:
        """Take nothing to machines any more that are silent. Whose connections are lost by that."""
        silent = [host for host, (_, at) in self._kept.items() if now - at >= _FORGOTTEN]
        lost = [client for host in silent for client in self._kept.pop(host)[0]]
        if silent:
            self._passing.pass_on({each: found for each, (found, _) in self._kept.items()})
        return lost

    def leave(self) -> None:
        """Let it go, and go on with those who are connected."""
        self._passing.leave()
        self._addresses.drop(self.address)

    def come(self) -> None:
        """Have it."""
        self._addresses.renew(self.address)
        self._passing.come()

    def stay(self) -> list[Client]:
        """Who is connected here though it has left."""
        return self._passing.stay()[:MOST_KEPT] if self.left else []

    def lost(self, before: Iterable[Client]) -> list[Client]:
        """Those of the clients of ``before`` whose connections nobody goes on with."""
        kept = {client for clients, _ in self._kept.values() for client in clients}
        return [each for each in before if each not in kept]

    @property
    def held(self) -> bool:
        """Whether its clients are held here."""
        return self._held_until is not None

    def hold(self, now: float, seconds: float) -> None:
        """Have its clients here wait for at most so long, from now on; with 0 they go on."""
        if seconds > 0:
            self._passing.hold()
            self._held_until = now + seconds
        else:
            self._held_until = None
            self._passing.let_go()

    def go_on(self, now: float) -> None:
        """Let go of clients that were held for long enough."""
        if self._held_until is not None and now >= self._held_until:
            self.hold(now, 0.0)

    def end(self) -> None:
        """Nothing is left of it here."""
        self._passing.let_go()
        self._addresses.drop(self.address)
        self._passing.come()
        self._passing.pass_on({})
