"""The server's side of HTTP/1.1: one request of a connection."""

from __future__ import annotations

import asyncio

import h11

_PIECE = 1 << 16  # bytes that are read at once


async def read_request(http: h11.Connection, reader: asyncio.StreamReader) -> h11.Request:
    """The next request of a connection, read to its end. Its body, if it has one, is dropped.

    Raises h11.RemoteProtocolError when the client does not speak HTTP/1, and ConnectionResetError when it closes the
    connection before the request ends.
    """
    request: h11.Request | None = None
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            piece = await reader.read(_PIECE)
            if not piece:
                raise ConnectionResetError("the client closed the connection before its request ended")
            http.receive_data(piece)
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.EndOfMessage):
            assert request is not None
            return request
