"""How much memory asyncio keeps for each secured connection of this process."""

from __future__ import annotations

from asyncio import sslproto

#: Bytes: a record of TLS and its frame.
_TLS_BUFFER = 32 * 1024


def keep_small_tls_buffers() -> None:
    """Have asyncio keep 32 KiB for what is read of each secured connection of this process. Its own default is a
    quarter of a megabyte for each, and a manager has some of each plane.

    It is called where a program starts, and by no library: asyncio has this for a whole process alone.
    """
    sslproto.SSLProtocol.max_size = _TLS_BUFFER
