"""The beginnings of messages that NaCl's secretbox sealed: XSalsa20 and Poly1305 (https://nacl.cr.yp.to/secretbox.html).

The cipher is computed for many messages at once: each word of its state is one long integer, with 64 bits for the word
of each message. The upper 32 bits of these are room for carries and rotations. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.poly1305 import Poly1305

#: Bytes of a message that ``beginnings`` returns: the rest of the first block, and another block.
BEGINNING: Final = 96
_NONCE, _TAG, _BLOCK, _SLOT = 24, 16, 64, 8
#: Bytes of the first block that are the key of Poly1305.
_MAC_KEY: Final = 32
_CONSTANTS: Final = tuple(b"expand 32-byte k"[at : at + 4] for at in range(0, 16, 4))
#: The words that each quarter of a double round changes: first by columns, then by rows.
_QUARTERS: Final = (
    *((0, 4, 8, 12), (5, 9, 13, 1), (10, 14, 2, 6), (15, 3, 7, 11)),
    *((0, 1, 2, 3), (5, 6, 7, 4), (10, 11, 8, 9), (15, 12, 13, 14)),
)
_DOUBLE_ROUNDS: Final = 10
#: The words of the state that are the key of the second step, in their order.
_DERIVED: Final = (0, 5, 10, 15, 6, 7, 8, 9)


def beginnings(key: bytes, sealed: Sequence[bytes]) -> list[bytes | None]:
    """The first 96 bytes of each message, or as many as it has. ``sealed``: nonce, tag and ciphertext of each. None
    where ``key`` (32 bytes) did not seal it, or not all of it is there.
    """
    whole = [each for each in sealed if len(each) >= _NONCE + _TAG]
    opened = iter(_opened(key, whole) if whole else ())
    return [next(opened) if len(each) >= _NONCE + _TAG else None for each in sealed]


def _opened(key: bytes, sealed: Sequence[bytes]) -> list[bytes | None]:
    lanes = len(sealed)
    same = [_repeated(word, lanes) for word in _words(key)]
    nonces = [_column([each[at : at + 4] for each in sealed]) for at in range(0, _NONCE, 4)]
    mixed = _mixed(_state(same, nonces[:4], lanes), lanes)
    derived = [mixed[at] for at in _DERIVED]
    first, second = (_blocks(derived, nonces[4:], counter, lanes) for counter in (0, 1))
    return [_open(*each) for each in zip(sealed, first, second, strict=True)]


def _open(sealed: bytes, first: bytes, second: bytes) -> bytes | None:
    content = memoryview(sealed)[_NONCE + _TAG :]
    try:
        Poly1305.verify_tag(first[:_MAC_KEY], content, sealed[_NONCE : _NONCE + _TAG])
    except InvalidSignature:
        return None
    begin = bytes(content[:BEGINNING])
    stream = (first[_MAC_KEY:] + second)[: len(begin)]
    return (int.from_bytes(begin, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(begin), "big")


def _blocks(key: Sequence[int], nonce: Sequence[int], counter: int, lanes: int) -> list[bytes]:
    """The block of that number of each message's key stream."""
    number = (_repeated(counter.to_bytes(4, "little"), lanes), 0)
    begin = _state(key, (*nonce, *number), lanes)
    mask = _repeated(b"\xff" * 4, lanes)
    words = [(one + other) & mask for one, other in zip(_mixed(begin, lanes), begin, strict=True)]
    columns = [word.to_bytes(lanes * _SLOT, "little") for word in words]
    return [b"".join([column[at : at + 4] for column in columns]) for at in range(0, lanes * _SLOT, _SLOT)]


def _state(key: Sequence[int], middle: Sequence[int], lanes: int) -> list[int]:
    one, two, three, four = (_repeated(word, lanes) for word in _CONSTANTS)
    return [one, *key[:4], two, *middle, three, *key[4:], four]


def _mixed(state: Sequence[int], lanes: int) -> list[int]:
    """The state after 20 rounds (D. J. Bernstein: The Salsa20 family of stream ciphers)."""
    words, mask = list(state), _repeated(b"\xff" * 4, lanes)
    for _ in range(_DOUBLE_ROUNDS):
        for a, b, c, d in _QUARTERS:
            for into, one, other, by in ((b, a, d, 7), (c, b, a, 9), (d, c, b, 13), (a, d, c, 18)):
                total = (words[one] + words[other]) & mask
                words[into] ^= (total << by | total >> (32 - by)) & mask
    return words


def _words(of: bytes) -> list[bytes]:
    return [of[at : at + 4] for at in range(0, len(of), 4)]


def _repeated(word: bytes, lanes: int) -> int:
    return _column([word] * lanes)


def _column(words: Sequence[bytes]) -> int:
    """One word of each message."""
    return int.from_bytes(b"".join([word + bytes(4) for word in words]), "little")
