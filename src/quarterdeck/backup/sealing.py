"""The objects of a backup: compressed, and encrypted for recipients whose private keys the writer need not have.

An object is a header and frames. A frame is the length of what follows, and one part, compressed by zstd and then
encrypted by age. An empty frame ends it, so that an object that was cut off is never taken for a whole one. Lengths are
big-endian. Whether a part is another one's is not checked here: the manifest has the hash of the whole object.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from dataclasses import dataclass
from enum import Enum

import pyrage
import zstandard
from pyrage import x25519
from typing_extensions import override

from quarterdeck.errors import Corrupt, InvalidInput, PreconditionFailed

#: Bytes of one part before compression; what writing and reading hold in memory is a few of them.
PART = 1 << 20
_LENGTH = struct.Struct(">I")
_LARGEST_FRAME = 2 * PART
_LEVEL = 3


class _Kind(Enum):
    PLAIN = b"quarterdeck object 1 plain\n"
    AGE = b"quarterdeck object 1 age  \n"


_HEADER_BYTES = len(_Kind.PLAIN.value)


@dataclass(frozen=True, slots=True)
class Recipients:
    """The recipients of encrypted objects: public keys of age (``age1...``). None: they are not encrypted."""

    keys: tuple[str, ...] = ()

    def parsed(self) -> list[x25519.Recipient]:
        """The keys. Raises InvalidInput."""
        return [_recipient(each) for each in self.keys]


@dataclass(frozen=True, slots=True)
class Identities:
    """Private keys of age (``AGE-SECRET-KEY-1...``) that objects are read with; never shown."""

    keys: tuple[str, ...] = ()

    @override
    def __repr__(self) -> str:
        return f"Identities({len(self.keys)})"

    def parsed(self) -> list[x25519.Identity]:
        """The keys. Raises InvalidInput, which does not show them."""
        return [_identity(each) for each in self.keys]


async def seal(content: AsyncIterable[bytes], recipients: Recipients) -> AsyncGenerator[bytes, None]:
    """Content as an object, part by part. Raises InvalidInput for a key that is none."""
    keys = recipients.parsed()
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)

    def framed(part: bytes) -> bytes:
        small = compressor.compress(part)
        stored = pyrage.encrypt(small, keys) if keys else small
        return _LENGTH.pack(len(stored)) + stored

    yield (_Kind.AGE if keys else _Kind.PLAIN).value
    held = bytearray()
    async for part in content:
        held += part
        while len(held) >= PART:
            yield await asyncio.to_thread(framed, bytes(held[:PART]))
            del held[:PART]
    if held:
        yield await asyncio.to_thread(framed, bytes(held))
    yield _LENGTH.pack(0)


async def unseal(stored: AsyncIterable[bytes], identities: Identities, name: str) -> AsyncGenerator[bytes, None]:
    """The content of an object, part by part. ``name`` is for errors.

    Raises PreconditionFailed where none of the keys opens it, and Corrupt where it is not what ``seal`` has made, or
    not all of it: then the parts that came before must not be used.
    """
    reader = _Reader(stored, name)
    kind = await reader.kind()
    keys = identities.parsed()
    if kind is _Kind.AGE and not keys:
        raise PreconditionFailed(f"reading {name}", "it is encrypted", "give the private key that opens it")

    def opened(part: bytes) -> bytes:
        small = _decrypted(part, keys, name) if kind is _Kind.AGE else part
        try:
            # It trusts the size that the part itself says, and takes that much memory at once.
            if (size := zstandard.frame_content_size(small)) > PART:
                raise damaged(name, f"a part of it claims to have {size} bytes")
            return zstandard.ZstdDecompressor().decompress(small, max_output_size=PART)
        except zstandard.ZstdError as error:
            raise damaged(name, f"a part of it is damaged ({error})") from error

    while length := await reader.length():
        yield await asyncio.to_thread(opened, await reader.take(length))
    await reader.end()


def damaged(name: str, seen: str) -> Corrupt:
    """The error of an object that is not what was stored."""
    return Corrupt(f"reading {name}", seen, "restore another moment, or from another backup")


class _Reader:
    """The frames of an object, from parts of any size."""

    def __init__(self, stored: AsyncIterable[bytes], name: str) -> None:
        self._parts = aiter(stored)
        self._name = name
        self._held = bytearray()

    async def kind(self) -> _Kind:
        header = await self.take(_HEADER_BYTES)
        try:
            return _Kind(header)
        except ValueError:
            raise damaged(self._name, "it does not begin as objects of this version do") from None

    async def length(self) -> int:
        length = int(_LENGTH.unpack(await self.take(_LENGTH.size))[0])
        if length > _LARGEST_FRAME:
            raise damaged(self._name, f"a part of it claims to have {length} bytes")
        return length

    async def take(self, count: int) -> bytes:
        while len(self._held) < count:
            part = await anext(self._parts, None)
            if part is None:
                raise damaged(self._name, "it is cut off")
            self._held += part
        with memoryview(self._held) as held:
            taken = bytes(held[:count])
        del self._held[:count]
        return taken

    async def end(self) -> None:
        if self._held or await anext(self._parts, None) is not None:
            raise damaged(self._name, "there is more behind its end")


def _decrypted(part: bytes, keys: Sequence[x25519.Identity], name: str) -> bytes:
    try:
        return bytes(pyrage.decrypt(part, keys))
    except pyrage.DecryptError as error:
        if "No matching keys" in str(error):
            next_step = "give the private key of one of its recipients; without it the data is lost"
            raise PreconditionFailed(f"reading {name}", "none of the keys opens it", next_step) from error
        why = (str(error).splitlines() or [""])[0]
        raise damaged(name, f"a part of it cannot be decrypted ({why})") from error


def _recipient(key: str) -> x25519.Recipient:
    try:
        return x25519.Recipient.from_str(key.strip())
    except pyrage.RecipientError as error:
        raise InvalidInput(
            "reading a recipient of backups", f"{key!r} is no public key of age", "it begins with age1"
        ) from error


def _identity(key: str) -> x25519.Identity:
    try:
        return x25519.Identity.from_str(key.strip())
    except pyrage.IdentityError as error:
        seen = "this is no private key of age"
        raise InvalidInput("reading a key of backups", seen, "it begins with AGE-SECRET-KEY-1") from error
