"""Requests, answers, and the one error of connections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from quarterdeck.errors import Unavailable

USER_AGENT = "quarterdeck-probe"

#: RFC 9110, section 9.2.2: sending these twice does what sending them once does.
IDEMPOTENT = frozenset({"GET", "PUT", "DELETE"})


@dataclass(frozen=True, slots=True)
class Request:
    """A request with a JSON body, or none."""

    method: str
    path: str
    body: bytes = b""
    content_type: str = "application/json"

    @property
    def idempotent(self) -> bool:
        """Whether HTTP lets a client send it again on its own."""
        return self.method in IDEMPOTENT


class ConnectionCut(Unavailable):
    """The connection ended in the middle of an exchange.

    ``unanswered``: no byte of the response had come. ``unprocessed``: the server declared the request unprocessed
    (HTTP/2 GOAWAY or REFUSED_STREAM), so that it may be sent again whatever it was.
    """

    def __init__(self, seen: str, *, unanswered: bool = False, unprocessed: bool = False) -> None:
        super().__init__("waiting for a response", seen)
        self.unanswered = unanswered
        self.unprocessed = unprocessed


class ClientConnection(Protocol):
    """One connection that carries one exchange at a time."""

    @property
    def address(self) -> str:
        """The IP address at the other end."""
        ...

    @property
    def used(self) -> bool:
        """Whether it has carried a whole exchange before."""
        ...

    @property
    def usable(self) -> bool:
        """Whether it can take another request, as far as this end knows."""
        ...

    async def send(self, request: Request, *, last: bool = False) -> int:
        """Send a request and return the status; ``last`` tells the server that no other will follow. Raises Cut."""
        ...

    async def read(self) -> bytes:
        """The next piece of the body, b"" at its end. Raises Cut when the connection ends before the body."""
        ...

    async def close(self) -> None:
        """Close the connection; returns when the socket is closed."""
        ...
