"""Values as kube-apiserver stores them."""

from __future__ import annotations


def protobuf(version: str, kind: str, rest: bytes) -> bytes:
    """A value in protobuf (k8s.io/apimachinery: runtime.Unknown), whose object is ``rest``."""
    meta = _field(1, version.encode()) + _field(2, kind.encode())
    return b"k8s\0" + _field(1, meta) + _field(2, rest)


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*found, number))
