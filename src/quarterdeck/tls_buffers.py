"""The memory that asyncio keeps for each TLS connection of this process."""

from __future__ import annotations

from asyncio import sslproto

#: Bytes: one TLS record and its frame.
_TLS_BUFFER = 32 * 1024


def keep_small_tls_buffers() -> None:
    """Make asyncio keep 32 KiB of read buffer for each TLS connection of this process. The default is 256 KiB each, and
    a manager has several per plane.

    Only programs call it at their start, never a library: asyncio has one setting for the whole process.
    """
    sslproto.SSLProtocol.max_size = _TLS_BUFFER
