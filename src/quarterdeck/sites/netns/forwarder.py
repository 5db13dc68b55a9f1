"""The delay line between sites: takes each packet, and returns it when its delay is over.

It is behind one end of a veth pair (``Wiring.add_delay_line``) with a packet socket, and needs no privilege but those
of the lab's own namespaces (a TUN device would need the host's /dev/net/tun, which is often root's alone). The socket
has a ring in memory, since its ordinary buffer holds only a few of the 64 KiB packets that TCP makes (packet(7),
PACKET_RX_RING), and PACKET_VNET_HDR lets those pass whole, with their check sums left undone.

The delays come on the standard input, a JSON object a line, ``{"1-2": 40.0}``: milliseconds from site 1 to site 2. Each
line is answered by ``ok``. The process ends with its input.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from quarterdeck.sites.netns.layout import FORWARDER_SIDE, site_of

_IPV4 = 0x0800
_SOL_PACKET = 263
_PACKET_RX_RING, _PACKET_VERSION, _PACKET_VNET_HDR = 5, 10, 15
_TPACKET_V2 = 1
_FRAME = 17 * 4096  # room for the largest IP packet and the kernel's own header
_BLOCK, _FRAMES_PER_BLOCK, _BLOCKS = 1 << 20, (1 << 20) // _FRAME, 32
_STATUS = struct.Struct("=I")
_HEADER = struct.Struct("=IIIHHII")  # tpacket2_hdr: status, length, captured, where the frame is, ..., s, ns
_VNET_HEADER = 10
_SOURCE, _TARGET = (slice(_VNET_HEADER + 14 + at, _VNET_HEADER + 14 + at + 4) for at in (12, 16))  # addresses
_LARGEST_QUEUE = 256 << 20
"""Most bytes in transit; packets beyond that are lost, as on any router."""


class Ring:
    """The packet socket and its ring."""

    def __init__(self, interface: str) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
        self.socket.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
        request = struct.pack("=IIII", _BLOCK, _BLOCKS, _FRAME, _FRAMES_PER_BLOCK * _BLOCKS)
        self.socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, request)
        self._memory = mmap.mmap(self.socket.fileno(), _BLOCK * _BLOCKS)
        self._next = 0
        self._lost = 0
        # One protocol, not all: otherwise the socket would receive its own packets.
        self.socket.bind((interface, _IPV4))

    def packets(self) -> Iterator[tuple[int, bytes]]:
        """The packets that have arrived: the time (nanoseconds of wall-clock time), and the frame behind its virtio
        header.
        """
        while True:
            block, frame = divmod(self._next, _FRAMES_PER_BLOCK)
            start = block * _BLOCK + frame * _FRAME
            status, _, captured, at, _, seconds, nanoseconds = _HEADER.unpack_from(self._memory, start)
            if not status & 1:  # TP_STATUS_USER
                return
            begin = start + at - _VNET_HEADER
            packet = self._memory[begin : start + at + captured]
            _STATUS.pack_into(self._memory, start, 0)
            self._next = (self._next + 1) % (_FRAMES_PER_BLOCK * _BLOCKS)
            yield seconds * 1_000_000_000 + nanoseconds, packet

    def give_back(self, packet: bytes) -> None:
        """Send a packet on. One that the kernel does not accept is lost, as on any router; the log has the number."""
        try:
            self.socket.send(packet)
        except OSError as error:
            self._lost += 1
            if self._lost.bit_count() == 1:  # the 1st, 2nd, 4th, 8th, ...
                sys.stderr.write(f"{self._lost} packets lost, the last one of {len(packet)} bytes: {error}\n")


@dataclass(slots=True)
class DelayLine:
    """The packets in transit. Times are in nanoseconds; a way is (from site number, to site number)."""

    delays: dict[tuple[int, int], int] = field(default_factory=dict)
    _ways: dict[tuple[int, int], deque[tuple[int, bytes]]] = field(default_factory=dict)
    _bytes: int = 0

    def put(self, arrived: int, packet: bytes) -> None:
        """Add a packet."""
        if self._bytes + len(packet) > _LARGEST_QUEUE:
            return
        way = (site_of(packet[_SOURCE]), site_of(packet[_TARGET]))
        due = arrived + self.delays.get(way, 0)
        self._ways.setdefault(way, deque()).append((due, packet))
        self._bytes += len(packet)

    def due(self, now: int) -> Iterator[bytes]:
        """The packets whose delay is over. Those of one way keep their order, also when its delay was shortened."""
        for queue in self._ways.values():
            while queue and queue[0][0] <= now:
                packet = queue.popleft()[1]
                self._bytes -= len(packet)
                yield packet

    def next_due(self) -> int | None:
        """When the next one is due; None if there is none."""
        return min((queue[0][0] for queue in self._ways.values() if queue), default=None)


def run(ring: Ring, line: DelayLine) -> None:
    """Forward until the standard input ends. Sleeps whenever there is nothing to do."""
    while True:
        due = line.next_due()
        wait = None if due is None else max(0, due - time.monotonic_ns()) / 1e9
        readable, _, _ = select.select([ring.socket, sys.stdin.fileno()], [], [], wait)
        if ring.socket in readable:
            # The kernel's timestamps make up for the time until this process got the processor; they are of the wall
            # clock, which may be set, so they are trusted only within 50 ms.
            monotonic, wall = time.monotonic_ns(), time.time_ns()
            for stamp, packet in ring.packets():
                line.put(monotonic - min(max(wall - stamp, 0), 50_000_000), packet)
        for packet in line.due(time.monotonic_ns()):
            ring.give_back(packet)
        if sys.stdin.fileno() in readable and not _read_delays(line):
            return


def _read_delays(line: DelayLine) -> bool:
    """Read the newest delays; False at the end of the input. The keeper sends no line before the last one was answered,
    so none can hide in the buffer.
    """
    content = sys.stdin.buffer.readline()
    if not content:
        return False
    wanted: dict[str, float] = json.loads(content)
    ways = {tuple(map(int, way.split("-"))): delay for way, delay in wanted.items()}
    line.delays = {(way[0], way[1]): round(delay * 1_000_000) for way, delay in ways.items()}
    os.write(sys.stdout.fileno(), b"ok\n")
    return True


if __name__ == "__main__":
    run(Ring(FORWARDER_SIDE), DelayLine())
