"""NaCl's secretbox for one message at a time, as its authors describe it: what tests seal with."""

from __future__ import annotations

import struct
from functools import lru_cache

from cryptography.hazmat.primitives.poly1305 import Poly1305

_MASK = 0xFFFFFFFF
_CONSTANT = struct.unpack("<4I", b"expand 32-byte k")


def seal(key: bytes, nonce: bytes, message: bytes, rest: bytes = b"") -> bytes:
    """Nonce (24 bytes), tag and ciphertext, as kube-apiserver stores them. ``rest``: more ciphertext, of whatever
    message it may be.
    """
    mac_key, content = _encrypted(key, nonce, message)
    return nonce + Poly1305.generate_tag(mac_key, content + rest) + content + rest


@lru_cache(maxsize=16)
def _encrypted(key: bytes, nonce: bytes, message: bytes) -> tuple[bytes, bytes]:
    """The key of the tag, and the ciphertext."""
    derived = _core(key, nonce[:16])
    derived_key = struct.pack("<8I", *(derived[at] for at in (0, 5, 10, 15, 6, 7, 8, 9)))
    blocks = range(1 + (32 + len(message)) // 64)
    stream = b"".join(_block(derived_key, nonce[16:] + struct.pack("<Q", number)) for number in blocks)
    content = bytes(one ^ other for one, other in zip(message, stream[32:], strict=False))
    return stream[:32], content


def _block(key: bytes, position: bytes) -> bytes:
    begin, end = _state(key, position), _core(key, position)
    return struct.pack("<16I", *((one + other) & _MASK for one, other in zip(begin, end, strict=True)))


def _state(key: bytes, middle: bytes) -> list[int]:
    words, between = struct.unpack("<8I", key), struct.unpack("<4I", middle)
    return [_CONSTANT[0], *words[:4], _CONSTANT[1], *between, _CONSTANT[2], *words[4:], _CONSTANT[3]]


def _core(key: bytes, middle: bytes) -> list[int]:
    """Salsa20's 20 rounds: each quarter round works on a column, or on a row, of a square of words."""
    square = _state(key, middle)
    for number in range(20):
        for start in range(4):
            step = 4 if number % 2 == 0 else 1
            line = [_place(start, turn, step) for turn in range(4)]
            for turn, bits in ((1, 7), (2, 9), (3, 13), (0, 18)):
                total = (square[line[turn - 1]] + square[line[turn - 2]]) & _MASK
                square[line[turn]] ^= (total << bits | total >> (32 - bits)) & _MASK
    return square


def _place(start: int, turn: int, step: int) -> int:
    """A place in the square: from the diagonal down a column, or along a row, and around."""
    row, column = ((start + turn) % 4, start) if step == 4 else (start, (start + turn) % 4)
    return 4 * row + column
