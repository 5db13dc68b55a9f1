"""What the kernel is asked for addresses that float: to have one for a while, to say where it is now, to end what
clients had with its former edge. Standard library alone: it is loaded on each edge for each plane.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterable
from pathlib import Path

from quarterdeck.endpoint.addresses.floating.netlink import CREATE, REPLACE, Netlink, attribute

#: Seconds after which the kernel takes an address away that is not renewed: from a process that hangs, or is no more.
LIFETIME = 2
Client = tuple[str, int]

_RTM_NEWADDR, _RTM_DELADDR = 20, 21
_IFA_ADDRESS, _IFA_LOCAL, _IFA_CACHEINFO = 1, 2, 6
_SIOCGIFADDR, _SIOCGIFNETMASK = 0x8915, 0x891B
_ARP = 0x0806
_ESTABLISHED, _SYN_RECEIVED = "01", "03"
_SYN, _ACKNOWLEDGES = 0x02, 0x10
_SO_ATTACH_FILTER = 26


def way_out() -> tuple[str, str]:
    """The interface and the router that all that is not near goes to (proc_net_route). Raises OSError."""
    for line in Path("/proc/self/net/route").read_text().splitlines()[1:]:
        interface, target, router, *_ = line.split()
        if int(target, 16) == 0:
            return interface, socket.inet_ntoa(struct.pack("=I", int(router, 16)))
    raise OSError("there is no default route")


def broadcast(interface: str) -> str:
    """The address of all in the network of an interface (netdevice(7)). Raises OSError."""
    name = struct.pack("16s16x", interface.encode())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        own, mask = (fcntl.ioctl(asking, each, name)[20:24] for each in (_SIOCGIFADDR, _SIOCGIFNETMASK))
    return socket.inet_ntoa(bytes(each | ~bits & 0xFF for each, bits in zip(own, mask, strict=True)))


def is_here(address: str) -> bool:
    """Whether this machine has an address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
        return True


class Addresses:
    """Addresses of one interface, by rtnetlink(7). Errors of the kernel come as OSError."""

    def __init__(self, interface: str) -> None:
        self._index = socket.if_nametoindex(interface)
        self._netlink = Netlink()

    def renew(self, address: str) -> None:
        """Have it for another ``LIFETIME``."""
        # Preferred by nobody: what this machine begins by itself comes from its own address.
        lives = struct.pack("=IIII", 0, LIFETIME, 0, 0)
        self._ask(_RTM_NEWADDR, CREATE | REPLACE, address, attribute(_IFA_CACHEINFO, lives))

    def drop(self, address: str) -> None:
        """Have it no more. Nothing happens where it is not."""
        try:
            self._ask(_RTM_DELADDR, 0, address, b"")
        except OSError:
            if is_here(address):
                raise

    def _ask(self, kind: int, flags: int, address: str, more: bytes) -> None:
        packed = socket.inet_aton(address)
        body = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, self._index)
        body += attribute(_IFA_LOCAL, packed) + attribute(_IFA_ADDRESS, packed) + more
        self._netlink.ask(kind, flags, body, address)


class Herald:
    """Tells the network where an address is."""

    def __init__(self, interface: str) -> None:
        self._arp = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ARP))
        self._arp.bind((interface, 0))
        self._own: bytes = self._arp.getsockname()[4]
        self._tcp = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)

    def announce(self, address: str) -> None:
        """A gratuitous ARP request (RFC 5227 section 3): whoever knows another place for the address takes this one."""
        packed = socket.inet_aton(address)
        frame = b"\xff" * 6 + self._own + struct.pack("!HHHBBH", _ARP, 1, 0x0800, 6, 4, 1)
        self._arp.send(frame + self._own + packed + bytes(6) + packed)

    def wake(self, address: str, port: int, clients: Iterable[Client]) -> None:
        """Have clients of an address that came here find out that what they are connected to is gone, though they wait
        and send nothing: they answer a segment that is none of theirs with one that says where they are (RFC 9293
        section 3.5.2), to which this kernel, that knows of no connection, answers with a reset.
        """
        for host, their_port in clients:
            ends = socket.inet_aton(address), socket.inet_aton(host)
            segment = struct.pack("!HHIIBBHHH", port, their_port, 0, 0, 5 << 4, _ACKNOWLEDGES, 1024, 0, 0)
            pseudo = b"".join(ends) + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(segment))
            segment = segment[:16] + _checksum(pseudo + segment) + segment[18:]
            header = struct.pack("!BBHHHBBH", 0x45, 0, 0, 0, 0, 64, socket.IPPROTO_TCP, 0) + b"".join(ends)
            self._tcp.sendto(header + segment, (host, 0))


def clients_of(address: str, port: int) -> list[Client]:
    """Who is connected to an address, or just about to be (proc_net_tcp)."""
    end = f"{struct.unpack('=I', socket.inet_aton(address))[0]:08X}:{port:04X}"
    found: list[Client] = []
    for line in Path("/proc/self/net/tcp").read_text().splitlines():
        if end in line:
            _, local, remote, state, *_ = line.split()
            if local == end and state in (_ESTABLISHED, _SYN_RECEIVED):
                host, _, their_port = remote.partition(":")
                found.append((socket.inet_ntoa(struct.pack("=I", int(host, 16))), int(their_port, 16)))
    return found


class Newcomers:
    """Who begins to connect to a port of this machine, at whichever address: told by the kernel when that happens."""

    def __init__(self, port: int) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.IPPROTO_TCP)
        program = b"".join(
            struct.pack("=HBBI", *each)  # bpf(4), of a packet from its IP header on
            for each in (
                (0xB1, 0, 0, 0),  # x: the length of that header
                (0x48, 0, 0, 2),  # the port that it is sent to
                (0x15, 0, 4, port),
                (0x50, 0, 0, 13),  # the flags
                (0x54, 0, 0, _SYN | _ACKNOWLEDGES),
                (0x15, 0, 1, _SYN),
                (0x06, 0, 0, 128),  # enough of it
                (0x06, 0, 0, 0),
            )
        )
        kept = ctypes.create_string_buffer(program, len(program))
        whole = struct.pack("@HL", len(program) // 8, ctypes.addressof(kept))
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, whole)

    def come(self) -> dict[str, list[Client]]:
        """Those who have come since, by the address that they connect to."""
        found: dict[str, list[Client]] = {}
        try:
            while True:
                packet, (host, _) = self.socket.recvfrom(128)
                start = (packet[0] & 0xF) * 4
                (port,) = struct.unpack_from("!H", packet, start)
                found.setdefault(socket.inet_ntoa(packet[16:20]), []).append((str(host), port))
        except BlockingIOError:
            return found


class Echo:
    """Asks the router whether it is there (ICMP echo, RFC 792)."""

    def __init__(self, router: str) -> None:
        self._router = router
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.IPPROTO_ICMP)
        self._mark = struct.pack("!H", os.getpid() & 0xFFFF)

    def ask(self) -> None:
        """Send one question. Raises OSError where nothing can be sent."""
        body = b"\x08\x00\x00\x00" + self._mark + b"\x00\x01"
        self.socket.sendto(body[:2] + _checksum(body) + body[4:], (self._router, 0))

    def answered(self) -> bool:
        """Whether an answer is among what has come."""
        found = False
        try:
            while True:
                packet, (host, _) = self.socket.recvfrom(2048)
                body = packet[(packet[0] & 0xF) * 4 :]
                found = found or (host == self._router and body[:1] == b"\x00" and body[4:6] == self._mark)
        except BlockingIOError:
            return found


def _checksum(data: bytes) -> bytes:
    """Of an even number of bytes (RFC 1071)."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)
