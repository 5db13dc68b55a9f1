"""An edge's part in who has which address: ``python -S -P -m quarterdeck.endpoint.floating.agent FILE``.

A unit of the plane beside its load balancer. It tells the other edges of the site several times a second that it is
there, and what it has; takes what an edge that fell silent had, and ends what clients had with that one. The file says
which addresses there are, and whose; nothing is kept, and whoever is killed loses its addresses within seconds.
"""

from __future__ import annotations

import json
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.endpoint.floating.election import BEAT, Election, Word
from quarterdeck.endpoint.floating.kernel import (
    Addresses,
    Client,
    Echo,
    Herald,
    Newcomers,
    broadcast,
    clients_of,
    is_here,
    way_out,
)

#: Seconds between two times that it is said where an address is, in case that was not heard.
_AGAIN = 1.0
#: Seconds after which a load balancer that says nothing is none. It may stand still for a while: a hold is no failure.
_HUNG = 10.0
#: Clients that are named to the other edges for each address: those of more find out when they send something.
_MOST_NAMED = 500
_LARGEST = 65_536
_QUESTION = b"GET /stats?filter=^listener_manager.workers_started$ HTTP/1.1\r\nHost: envoy\r\nConnection: close\r\n\r\n"
_SERVES = b"workers_started: 1"


@dataclass(frozen=True, slots=True)
class Orders:
    """What the file says: ``edge`` is this one's name; ``owners`` has each address with the edge that it is of, in the
    order of the site. ``port`` is where clients connect, ``talk`` the UDP port where the edges of this plane hear each
    other, and ``admin`` the socket at which the load balancer answers.
    """

    edge: str
    owners: dict[str, str]
    port: int
    talk: int
    admin: str


class Fitness:
    """Whether the load balancer serves, asked without waiting for it."""

    def __init__(self, admin: str, *, fit: bool) -> None:
        self._admin = admin
        self._asking: socket.socket | None = None
        self._since = 0.0
        self._said = b""
        self.fit = fit

    def look(self, now: float) -> None:
        """Take an answer that has come, and ask anew."""
        if self._asking is None:
            self._ask(now)
            return
        try:
            while part := self._asking.recv(_LARGEST):
                self._said += part
        except BlockingIOError:
            if now - self._since >= _HUNG:
                self._end(fit=False)
        except OSError:
            self._end(fit=False)
        else:
            self._end(fit=_SERVES in self._said)

    def _ask(self, now: float) -> None:
        self._asking = socket.socket(socket.AF_UNIX)
        self._asking.setblocking(False)
        self._since, self._said = now, b""
        try:
            self._asking.connect(self._admin)
            self._asking.send(_QUESTION)
        except OSError:
            self._end(fit=False)

    def _end(self, *, fit: bool) -> None:
        assert self._asking is not None
        self._asking.close()
        self._asking, self.fit = None, fit


class Agent:
    """The process. Errors of the kernel end it, and its machine starts it anew."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        interface, router = way_out()
        self._all = broadcast(interface)
        self._addresses, self._herald, self._echo = Addresses(interface), Herald(interface), Echo(router)
        self._talk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._talk.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        # To all on this wire, as ARP goes: who can make others believe that it has an address is heard here as well.
        self._talk.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        self._talk.bind(("", orders.talk))
        # One that had died just now goes on where it was: nothing is worse than before until it is seen to be.
        here, now = frozenset(each for each in orders.owners if is_here(each)), time.monotonic()
        self._newcomers = Newcomers(orders.port)
        self._fitness = Fitness(orders.admin, fit=bool(here))
        self._election = Election(me=orders.edge, owners=orders.owners, since=now, holds=here)
        self._router_heard = now
        self._announced: dict[str, float] = {}
        self._clients: dict[str, list[Client]] = {}
        self._ending = False

    def run(self) -> None:
        """Until it is told to end."""
        signal.signal(signal.SIGTERM, self._end)
        due = time.monotonic()
        while not self._ending:
            heard = [self._talk, self._echo.socket, self._newcomers.socket]
            select.select(heard, [], [], max(0.0, due - time.monotonic()))
            now = time.monotonic()
            self._tell_of_newcomers()
            self._listen(now)
            beat = now >= due
            if beat:
                due = now + BEAT
                self._fitness.look(now)
                with suppress(OSError):  # unplugged
                    self._echo.ask()
            changed = self._rule(now)
            if beat or changed:
                self._keep(now)
                self._say()
        for each in self._election.holds:
            self._addresses.drop(each)
        self._election.holds = frozenset()
        self._say(fit=False)

    def _end(self, _number: int, _frame: object) -> None:
        self._ending = True

    def _listen(self, now: float) -> None:
        if self._echo.answered():
            self._router_heard = now
        with suppress(BlockingIOError):
            while True:
                heard = self._talk.recv(_LARGEST)
                with suppress(ValueError, KeyError, TypeError, AttributeError):  # it is not of ours
                    said = json.loads(heard)
                    if said["edge"] == self._orders.edge:
                        continue
                    clients = {at: [(str(host), int(port)) for host, port in each] for at, each in said["has"].items()}
                    if said["more"]:
                        for at, each in clients.items():
                            self._clients.setdefault(at, []).extend(each)
                    else:
                        self._election.hear(Word(said["edge"], bool(said["fit"]), frozenset(clients)), now)
                        self._clients.update(clients)

    def _tell_of_newcomers(self) -> None:
        """Before they have asked anything: else they would wait for an answer, and nobody would know of them."""
        come = {at: each for at, each in self._newcomers.come().items() if at in self._election.holds}
        if come:
            self._send(come, fit=self._fitness.fit, more=True)

    def _rule(self, now: float) -> bool:
        ruling = self._election.rule(now, fit=self._fitness.fit, router=self._router_heard, left=self._left)
        for each in ruling.drop:
            self._addresses.drop(each)
            self._announced.pop(each, None)
        for each in ruling.take:
            self._addresses.renew(each)
            self._announced[each] = now
            with suppress(OSError):
                self._herald.announce(each)
                self._herald.wake(each, self._orders.port, self._clients.pop(each, ()))
        for word, addresses in (("lets go of", ruling.drop), ("takes", ruling.take)):
            if addresses:
                print(f"{time.time():.3f} {self._orders.edge} {word} {' '.join(sorted(addresses))}", flush=True)  # noqa: T201
        return bool(ruling.drop or ruling.take)

    def _left(self, address: str) -> bool:
        """Let an address go that no client is connected to. Who connects in between is not lost: while the address is
        nowhere, nobody is answered, and whoever was, is seen then.
        """
        port = self._orders.port
        if clients_of(address, port):
            return False
        self._addresses.drop(address)
        if not clients_of(address, port):
            return True
        self._addresses.renew(address)
        return False

    def _keep(self, now: float) -> None:
        for each in self._election.holds:
            self._addresses.renew(each)
            if now - self._announced.get(each, float("-inf")) >= _AGAIN:
                self._announced[each] = now
                with suppress(OSError):
                    self._herald.announce(each)

    def _say(self, *, fit: bool | None = None) -> None:
        has = {each: clients_of(each, self._orders.port)[:_MOST_NAMED] for each in self._election.holds}
        self._send(has, fit=self._fitness.fit if fit is None else fit, more=False)

    def _send(self, has: Mapping[str, Sequence[Client]], *, fit: bool, more: bool) -> None:
        """Tell all others; ``more``: of clients alone, besides those that were told of in the last beat."""
        if self._election.hears:
            word = {"edge": self._orders.edge, "fit": fit, "has": has, "more": more}
            with suppress(OSError):
                self._talk.sendto(json.dumps(word).encode(), (self._all, self._orders.talk))


if __name__ == "__main__":
    Agent(Orders(**json.loads(Path(sys.argv[1]).read_bytes()))).run()
