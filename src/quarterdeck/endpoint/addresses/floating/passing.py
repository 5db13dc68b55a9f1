"""Connections that go on where they were made, although their address has gone over to another machine.

What comes for them is passed on, as it came, by who has the address now; who had it before answers their clients
straight. Both by rules of the kernel's routing (ip-rule(8)) that name one connection each. Standard library alone, as
``kernel``.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.endpoint.addresses.floating.kernel import Client
from quarterdeck.endpoint.addresses.floating.netlink import APPEND, CREATE, EXCLUSIVE, Netlink, attribute, attributes

#: Before the rule for what is a machine's own, and behind the one by which a deaf machine loses all
#: (``sites.netns.wiring``).
_HELD, _OF_ONE, _OF_ALL = 4, 6, 8
_NOWHERE, _LOCAL = 0, 255
#: The tables that lead to other machines, each by the last two bytes of its address.
_BY_WAY_OF = 1 << 16

_NEWROUTE, _DELROUTE, _NEWRULE, _DELRULE, _GETRULE = 24, 25, 32, 33, 34
#: Bytes before the attributes of a rule (fib_rule_hdr).
_OF_A_RULE = 12
_FRA_DST, _FRA_SRC, _FRA_IIFNAME, _FRA_PRIORITY, _FRA_TABLE = 1, 2, 3, 6, 15
_FRA_IP_PROTO, _FRA_SPORT, _FRA_DPORT = 22, 23, 24
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_TABLE = 1, 4, 5, 15
_UNICAST, _OWN = 1, 2  # kinds of routes
_TO_TABLE, _BLACKHOLE = 1, 6
_STATIC, _EVERYWHERE, _HOST = 4, 0, 254
_GONE = ("06", "07", "0A")  # TIME_WAIT, CLOSE, LISTEN (proc_net_tcp)
_LISTEN = "0A"
_ANY = ("00000000", "0" * 32)
_MAPPED = "0000000000000000FFFF0000"


def connections(address: str, port: int) -> list[Client]:
    """Who has a connection to an address, or begins one, as long as this machine has anything to send over it."""
    end = f"{_packed(address):08X}:{port:04X}"
    found: list[Client] = []
    for line in _sockets():
        if end in line:
            _, local, remote, state, *_ = line.split()
            if local in (end, _MAPPED + end) and state not in _GONE:
                host, _, their_port = remote.removeprefix(_MAPPED).partition(":")
                found.append((socket.inet_ntoa(struct.pack("=I", int(host, 16))), int(their_port, 16)))
    return found


def listens(address: str, port: int) -> bool:
    """Whether anybody listens at an address, or at every one."""
    ends = {f"{host}:{port:04X}" for host in (f"{_packed(address):08X}", *_ANY)}
    rows = (line.split() for line in _sockets() if f":{port:04X}" in line)
    return any(row[3] == _LISTEN and row[1] in ends for row in rows)


def _packed(address: str) -> int:
    number: int = struct.unpack("=I", socket.inet_aton(address))[0]
    return number


def _sockets() -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            yield from Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]
        except FileNotFoundError:
            continue


@dataclass(frozen=True, slots=True)
class _Rule:
    """Which table is asked for what is sent to an address by that ``client``. By all others (None): it is lost without
    a word. (If it were sent on, two machines that have both let go would send it to and fro.)
    """

    table: int
    client: Client | None = None


class Passing:
    """What this machine does with connections to ``address``:``port`` that are another's, and with its own that go on
    after the address has left. Errors of the kernel come as OSError.
    """

    def __init__(self, interface: str, address: str, port: int) -> None:
        self._interface, self._index = interface, socket.if_nametoindex(interface)
        self._address, self._port = address, port
        self._netlink = Netlink()
        self._rules = self._found()
        # What comes for others is sent on, and nobody is told to send it there by himself.
        for name, value in (("ip_forward", "1"), ("conf/all/send_redirects", "0")):
            (Path("/proc/sys/net/ipv4") / name).write_text(value)
        (Path("/proc/sys/net/ipv4/conf") / interface / "send_redirects").write_text("0")

    @property
    def left(self) -> bool:
        """Whether the address has left this machine, where connections to it may go on."""
        return _Rule(_NOWHERE) in self._rules

    def leave(self) -> list[Client]:
        """The address is not to be this machine's any more, but for those who are connected. From this moment on nobody
        new is taken. Who they are; the address itself is still to be taken off the interface.
        """
        self._add(_Rule(_NOWHERE))
        # What is sent over connections that stay goes on to come from the address, though no interface has it.
        self._route(_NEWROUTE, _LOCAL, kind=_OWN, scope=_HOST, to=self._address, out=1)
        stay: list[Client] = []
        for _ in range(2):  # what was just being taken in is there by the second look
            stay = self.stay()
        return stay

    def stay(self) -> list[Client]:
        """Who is still connected here after the address has left; of the others nothing is left behind."""
        found = connections(self._address, self._port)
        self._have(_LOCAL, found)
        return found

    def come(self) -> None:
        """The address is this machine's again, and on its interface."""
        self._remove(_Rule(_NOWHERE))
        self._have(_LOCAL, ())
        self._route(_DELROUTE, _LOCAL, kind=_OWN, scope=_HOST, to=self._address, out=1)

    def hold(self) -> None:
        """Lose whatever comes: who sends it sends it again, and so waits."""
        with suppress(FileExistsError):
            self._ask(_NEWRULE, CREATE | EXCLUSIVE, self._lost(_HELD))

    def let_go(self) -> None:
        """Take again what comes."""
        with suppress(FileNotFoundError):
            self._ask(_DELRULE, 0, self._lost(_HELD))

    def pass_on(self, others: Mapping[str, Sequence[Client]]) -> None:
        """Pass on what these clients send to the machines (by their own address) that they are connected to."""
        tables = {_table(host): host for host in others}
        known = {each.table for each in self._rules} - {_LOCAL, _NOWHERE}
        for table in known - tables.keys():
            self._have(table, ())
        for table, host in tables.items():
            if others[host] and table not in known:
                self._route(_NEWROUTE, table, kind=_UNICAST, scope=_EVERYWHERE, out=self._index, way=host)
            self._have(table, others[host])

    def _have(self, table: int, clients: Collection[Client]) -> None:
        """Have exactly the rules of these clients lead to a table."""
        there = {each for each in self._rules if each.table == table and each.client is not None}
        wanted = {_Rule(table, each) for each in clients}
        for each in wanted - there:
            self._add(each)
        for each in there - wanted:
            self._remove(each)

    def _add(self, rule: _Rule) -> None:
        if rule not in self._rules:
            self._ask(_NEWRULE, CREATE | EXCLUSIVE, self._body(rule))
            self._rules.add(rule)

    def _remove(self, rule: _Rule) -> None:
        if rule in self._rules:
            self._ask(_DELRULE, 0, self._body(rule))
            self._rules.discard(rule)

    def _lost(self, priority: int) -> bytes:
        """A rule by which all that comes for the address is lost."""
        return self._to_the_address(priority, _BLACKHOLE, 0)

    def _to_the_address(self, priority: int, action: int, of_source: int) -> bytes:
        body = struct.pack("=BBBBBBBBI", socket.AF_INET, 32, of_source, 0, 0, 0, 0, action, 0)
        body += attribute(_FRA_DST, socket.inet_aton(self._address))
        body += attribute(_FRA_PRIORITY, _number(priority))
        return body + attribute(_FRA_IIFNAME, self._interface.encode() + b"\0")

    def _body(self, rule: _Rule) -> bytes:
        if rule.client is None:
            body = self._lost(_OF_ALL)
        else:
            host, port = rule.client
            body = self._to_the_address(_OF_ONE, _TO_TABLE, 32)
            body += attribute(_FRA_TABLE, _number(rule.table))
            body += attribute(_FRA_SRC, socket.inet_aton(host))
            body += attribute(_FRA_IP_PROTO, struct.pack("=B", socket.IPPROTO_TCP))
            body += attribute(_FRA_SPORT, struct.pack("=HH", port, port))
            body += attribute(_FRA_DPORT, struct.pack("=HH", self._port, self._port))
        return body

    def _found(self) -> set[_Rule]:
        """The rules that one before has left, as far as they are of this address and port."""
        every = self._netlink.all(_GETRULE, struct.pack("=BBBBBBBBI", socket.AF_INET, *[0] * 8))
        found = (self._read(attributes(each[_OF_A_RULE:])) for each in every)
        return {each for each in found if each is not None}

    def _read(self, has: Mapping[int, bytes]) -> _Rule | None:
        priority = struct.unpack("=I", has.get(_FRA_PRIORITY, bytes(4)))[0]
        if has.get(_FRA_DST) != socket.inet_aton(self._address) or priority not in (_OF_ONE, _OF_ALL):
            return None
        if priority == _OF_ALL:
            return _Rule(_NOWHERE)
        (table,) = struct.unpack("=I", has[_FRA_TABLE])
        (port, _), (ours, _) = (struct.unpack("=HH", has[each]) for each in (_FRA_SPORT, _FRA_DPORT))
        return _Rule(table, (socket.inet_ntoa(has[_FRA_SRC]), port)) if ours == self._port else None

    def _route(self, verb: int, table: int, *, kind: int, scope: int, out: int, to: str = "", way: str = "") -> None:
        header = struct.pack("=BBBBBBBBI", socket.AF_INET, 32 if to else 0, 0, 0, 0, _STATIC, scope, kind, 0)
        body = header + attribute(_RTA_TABLE, _number(table)) + attribute(_RTA_OIF, _number(out))
        body += attribute(_RTA_DST, socket.inet_aton(to)) if to else b""
        body += attribute(_RTA_GATEWAY, socket.inet_aton(way)) if way else b""
        with suppress(FileExistsError, ProcessLookupError):  # it is there, or gone, already
            self._ask(verb, CREATE | APPEND if verb == _NEWROUTE else 0, body)

    def _ask(self, kind: int, flags: int, body: bytes) -> None:
        self._netlink.ask(kind, flags, body, self._address)


def _table(host: str) -> int:
    return _BY_WAY_OF | int.from_bytes(socket.inet_aton(host)[2:], "big")


def _number(value: int) -> bytes:
    return struct.pack("=I", value)
