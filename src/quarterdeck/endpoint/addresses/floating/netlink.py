"""The kernel asked by rtnetlink(7). Standard library alone, as ``kernel``."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

REPLACE, EXCLUSIVE, CREATE, APPEND = 0x100, 0x200, 0x400, 0x800
"""What is to become of what is there already (netlink(7))."""
_REQUEST, _ACK, _DUMP = 0x1, 0x4, 0x300
_ERROR, _DONE = 2, 3
_HEADER = 16


class Netlink:
    """One that asks, and waits for each answer."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.bind((0, 0))

    def ask(self, kind: int, flags: int, body: bytes, about: str) -> None:
        """Have something done. Raises OSError, with what it is ``about``, where the kernel does not."""
        self._send(kind, _ACK | flags, body)
        answer = self._socket.recv(65536)
        (number,) = struct.unpack_from("=i", answer, _HEADER)
        if struct.unpack_from("=H", answer, 4)[0] == _ERROR and number:
            raise OSError(-number, f"{os.strerror(-number)}: {about}")

    def all(self, kind: int, body: bytes) -> Iterator[bytes]:
        """Everything of a kind, each without its header."""
        self._send(kind, _DUMP, body)
        while True:
            answer = self._socket.recv(1 << 20)
            at = 0
            while at < len(answer):
                length, said = struct.unpack_from("=IH", answer, at)
                if said in (_DONE, _ERROR):
                    return
                yield answer[at + _HEADER : at + length]
                at += length + 3 & ~3

    def _send(self, kind: int, flags: int, body: bytes) -> None:
        self._socket.send(struct.pack("=IHHII", _HEADER + len(body), kind, _REQUEST | flags, 0, 0) + body)


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute, as far as the next may begin."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def attributes(packed: bytes) -> dict[int, bytes]:
    """The values of those that are one after the other."""
    found: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(packed):
        length, kind = struct.unpack_from("=HH", packed, at)
        if length < 4:
            break
        found[kind] = packed[at + 4 : at + length]
        at += length + 3 & ~3
    return found
