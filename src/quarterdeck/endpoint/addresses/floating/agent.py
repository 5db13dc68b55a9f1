"""An edge's part in who has which address: ``python -S -P -m quarterdeck.endpoint.addresses.floating.agent FILE``.

A unit of the plane beside its load balancer. It tells the other edges of the site several times a second that it is
there, and what it has; takes what an edge that fell silent had, and ends what clients had with that one. The file says
which addresses there are, and whose; nothing is kept, and whoever is killed loses its addresses within seconds.

An address may also be led from machines to others, with or without a load balancer there: then the file is one that is
replaced while it runs, and names those which are to have it. Whoever has it lets go of it when one of these is fit,
tells who is connected, and goes on serving these: see ``passing``.
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
from dataclasses import replace
from pathlib import Path
from typing import Any

from quarterdeck.endpoint.addresses.floating.election import BEAT, Election, Word
from quarterdeck.endpoint.addresses.floating.kernel import (
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
from quarterdeck.endpoint.addresses.floating.led import Led
from quarterdeck.endpoint.addresses.floating.orders import HOLD, Orders, read
from quarterdeck.endpoint.addresses.floating.passing import connections, listens

#: Seconds between two times that it is said where an address is, in case that was not heard.
_AGAIN = 1.0
#: Seconds after which a load balancer that says nothing is none. It may stand still for a while: a hold is no failure.
_HUNG = 10.0
#: Clients that are named to the other edges for each address: those of more find out when they send something.
_MOST_NAMED = 500
_LARGEST = 65_536
_QUESTION = b"GET /stats?filter=^listener_manager.workers_started$ HTTP/1.1\r\nHost: envoy\r\nConnection: close\r\n\r\n"
_SERVES = b"workers_started: 1"


class Fitness:
    """Whether the load balancer serves, asked without waiting for it; where there is none, whether anybody listens."""

    def __init__(self, orders: Orders, *, fit: bool) -> None:
        self._admin = orders.admin
        self._end_of_clients = next(iter(orders.owners)), orders.port
        self._asking: socket.socket | None = None
        self._since = 0.0
        self._said = b""
        self.fit = fit

    def look(self, now: float) -> None:
        """Take an answer that has come, and ask anew."""
        if not self._admin:
            self.fit = listens(*self._end_of_clients)
            return
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

    def __init__(self, file: Path) -> None:
        self._file, self._written, self._hold_written = file, _written(file), (0, 0)
        orders = self._orders = self._newest = read(file)
        interface, router = way_out()
        self._all = broadcast(interface)
        self._addresses, self._herald, self._echo = Addresses(interface), Herald(interface), Echo(router)
        self._talk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._talk.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        # To all on this wire, as ARP goes: who can make others believe that it has an address is heard here as well.
        self._talk.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        self._talk.bind(("", orders.talk))
        self._led = {each: Led(interface, each, orders.port, self._addresses) for each in orders.owners if orders.order}
        self._election = Election(me=orders.edge, owners=orders.owners, since=time.monotonic(), holds=self._here())
        self._newcomers = Newcomers(orders.port)
        self._fitness = Fitness(orders, fit=bool(self._election.holds))
        self._router_heard = time.monotonic()
        self._announced: dict[str, float] = {}
        self._clients: dict[str, list[Client]] = {}
        self._ending = False
        with suppress(OSError):  # that one was for the process before
            self._hold_written = _written(file.with_name(HOLD))
        self._obey(orders)

    def _here(self) -> frozenset[str]:
        """What one that had died just now has left: it goes on where it was, as nothing is worse than before until it
        is seen to be.
        """
        gone = {address for address, each in self._led.items() if each.left}
        return frozenset(each for each in self._orders.owners if each not in gone and is_here(each))

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
                self._read_again()
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
        for led in self._led.values():
            led.end()

    def _end(self, _number: int, _frame: object) -> None:
        self._ending = True

    def _read_again(self) -> None:
        """Orders that lead an address to machines are replaced while they are followed."""
        if not self._led:
            return
        self._hold()
        if (written := _written(self._file)) == self._written:
            return
        with suppress(OSError, ValueError):
            self._obey(read(self._file))
            self._written = written

    def _hold(self) -> None:
        """Clients are to wait for a moment, or to go on; they go on by themselves as well."""
        now, file = time.monotonic(), self._file.with_name(HOLD)
        for led in self._led.values():
            led.go_on(now)
        with suppress(OSError, ValueError):
            if (written := _written(file)) != self._hold_written:
                seconds = float(file.read_bytes())
                self._hold_written = written
                for led in self._led.values():
                    led.hold(now, seconds)

    def _obey(self, orders: Orders) -> None:
        self._orders = orders
        self._election.number, self._election.order = orders.number, orders.order
        self._know(orders)

    def _know(self, orders: Orders) -> None:
        """There are such orders, here or elsewhere."""
        if orders.number >= self._newest.number:
            self._newest = orders

    def _listen(self, now: float) -> None:
        if self._echo.answered():
            self._router_heard = now
        with suppress(BlockingIOError):
            while True:
                heard, (host, port) = self._talk.recvfrom(_LARGEST)
                with suppress(ValueError, KeyError, TypeError, AttributeError):  # it is not of ours
                    said = json.loads(heard)
                    if "ask" in said:
                        self._answer(host, port)
                    elif said["edge"] != self._orders.edge:
                        self._hear(said, host, now)

    def _hear(self, said: Mapping[str, Any], host: str, now: float) -> None:
        clients = {at: _clients(each) for at, each in said["has"].items()}
        if said["more"]:
            for at, each in clients.items():
                self._clients.setdefault(at, []).extend(each)
            return
        number = (int(said["number"][0]), int(said["number"][1])) if "number" in said else (0, 0)
        for address, led in self._led.items():
            led.hear(host, _clients(said["keeps"].get(address, ())), now)
        self._election.hear(Word(said["edge"], bool(said["fit"]), frozenset(clients), number), now)
        self._clients.update(clients)
        if self._led:
            leads, owner, token = said["orders"]
            self._know(replace(self._orders, number=number, leads=tuple(leads), owner=str(owner), token=int(token)))

    def _answer(self, host: str, port: int) -> None:
        """Say what is so to who leads addresses."""
        newest = self._newest
        word = {
            "edge": self._orders.edge,
            "fit": self._fitness.fit,
            "holds": [*self._election.holds],
            "held": any(each.held for each in self._led.values()),
            "number": newest.number,
            "leads": newest.leads,
            "owner": newest.owner,
            "token": newest.token,
        }
        with suppress(OSError):
            self._talk.sendto(json.dumps(word).encode(), (host, port))

    def _tell_of_newcomers(self) -> None:
        """Before they have asked anything: else they would wait for an answer, and nobody would know of them."""
        come = {at: each for at, each in self._newcomers.come().items() if at in self._election.holds}
        if come:
            self._send(come, fit=self._fitness.fit, more=True)

    def _rule(self, now: float) -> bool:
        ruling = self._election.rule(now, fit=self._fit(now), router=self._router_heard, left=self._left)
        for each in ruling.drop:
            self._leave(each)
            self._announced.pop(each, None)
        for each in ruling.take:
            self._come(each)
            self._announced[each] = now
            with suppress(OSError):
                self._herald.announce(each)
                self._herald.wake(each, self._orders.port, self._lost(each, self._clients.pop(each, [])))
        for each, led in self._led.items():
            lost = led.forget(now)
            if lost and each in self._election.holds:
                with suppress(OSError):
                    self._herald.wake(each, self._orders.port, lost)
        for word, addresses in (("lets go of", ruling.drop), ("takes", ruling.take)):
            if addresses:
                print(f"{time.time():.3f} {self._orders.edge} {word} {' '.join(sorted(addresses))}", flush=True)  # noqa: T201
        return bool(ruling.drop or ruling.take)

    def _fit(self, now: float) -> bool:
        """Whether an address may come here. Whoever has one that is led elsewhere lets go of it at once for who says
        so, who must be able to take it then.
        """
        waits = bool(self._led) and not self._election.holds and not self._election.has_listened(now)
        return self._fitness.fit and not waits

    def _leave(self, address: str) -> None:
        if address in self._led:
            self._led[address].leave()
        else:
            self._addresses.drop(address)

    def _come(self, address: str) -> None:
        if address in self._led:
            self._led[address].come()
        else:
            self._addresses.renew(address)

    def _lost(self, address: str, before: list[Client]) -> list[Client]:
        return self._led[address].lost(before) if address in self._led else before

    def _left(self, address: str) -> bool:
        """Let an address go that no client is connected to. Who connects in between is not lost: while the address is
        nowhere, nobody is answered, and whoever was, is seen then. One that is led elsewhere leaves its clients here.
        """
        if address in self._led:
            return True
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
        has = {each: self._clients_of(each)[:_MOST_NAMED] for each in self._election.holds}
        self._send(has, fit=self._fit(time.monotonic()) if fit is None else fit, more=False)

    def _clients_of(self, address: str) -> list[Client]:
        return (connections if address in self._led else clients_of)(address, self._orders.port)

    def _send(self, has: Mapping[str, Sequence[Client]], *, fit: bool, more: bool) -> None:
        """Tell all others; ``more``: of clients alone, besides those that were told of in the last beat."""
        if not self._election.hears:
            return
        word: dict[str, object] = {"edge": self._orders.edge, "fit": fit, "has": has, "more": more}
        if self._led and not more:
            orders = self._orders
            word |= {"number": orders.number, "orders": (orders.leads, orders.owner, orders.token)}
            word["keeps"] = {address: each.stay() for address, each in self._led.items()}
        with suppress(OSError):
            self._talk.sendto(json.dumps(word, separators=(",", ":")).encode(), (self._all, self._orders.talk))


def _written(file: Path) -> tuple[int, int]:
    """Another one for each time that a file is replaced."""
    found = file.stat()
    return found.st_ino, found.st_mtime_ns


def _clients(said: Sequence[Any]) -> list[Client]:
    return [(str(host), int(port)) for host, port in said]


if __name__ == "__main__":
    Agent(Path(sys.argv[1])).run()
