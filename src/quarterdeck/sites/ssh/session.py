"""A session with a host's script: requests and answers over one channel of an ssh connection."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import asyncssh

from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.model.units import Fence
from quarterdeck.sites.ssh import wire
from quarterdeck.sites.ssh.shells import last_words

#: Seconds without an answer to a heartbeat after which the host counts as lost.
_SILENCE = 3 * wire.HEARTBEAT
#: Bytes of a line that is not an answer which are kept for people.
_KEPT = 400


class OutputReader(Protocol):
    """The output of a host."""

    async def readuntil(self, separator: bytes) -> bytes:
        """Up to and with the separator; raises asyncio.IncompleteReadError at the end."""
        ...


class Session:
    """One session. ``name``: the host, for people. It ends by itself when the host falls silent; then all requests
    raise Unavailable. ``uptime``: seconds since the host's boot, as first reported.
    """

    def __init__(
        self, name: str, read: OutputReader, write: Callable[[bytes], None], close: Callable[[], None], uptime: float
    ) -> None:
        self._name = name
        self._read = read
        self._write = write
        self._close = close
        self._heard = time.monotonic()
        self._missed = 0.0
        self._booted = self._heard - uptime
        self._number = 0
        self._waiting: dict[int, asyncio.Future[tuple[int, bytes]]] = {}
        self._ended = ""
        #: The last line that was no answer.
        self._noise = ""
        self._tasks = (asyncio.create_task(self._listen()), asyncio.create_task(self._beat()))

    @property
    def silent(self) -> bool:
        """Whether nothing was received since a caller timed out."""
        return self._missed > self._heard

    @property
    def ended(self) -> bool:
        """Whether no request is possible any more."""
        return bool(self._ended)

    async def ask(
        self,
        *words: str,
        doing: str,
        deadline: float,
        fence: Fence | None = None,
        body: bytes = b"",
        cancels: bool = False,
    ) -> bytes:
        """The host's answer to a request. ``cancels``: it is cancelled there when the caller stops waiting.

        Raises Unavailable after ``deadline`` seconds (TimedOut for a request that is cancelled then) and when the
        session ends, and the errors of answers in wire.py.
        """
        if self._ended:
            raise Unavailable(doing, self._ended)
        self._number += 1
        number = self._number
        expires = time.monotonic() - self._booted + deadline + 1
        sent = wire.request(number, expires, fence, words, body)
        answered: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answered
        try:
            self._send(sent)
            async with asyncio.timeout(deadline):
                code, answer = await answered
        except TimeoutError:
            self._missed = time.monotonic()
            await self._cancel(number, cancels)
            raise self._unanswered(doing, deadline, TimedOut if cancels else Unavailable) from None
        except asyncio.CancelledError:
            await asyncio.shield(self._cancel(number, cancels))
            raise
        finally:
            self._waiting.pop(number, None)
        if code < 0:
            raise Unavailable(doing, answer.decode())
        if code:
            raise wire.refusal(doing, code, answer.decode(errors="replace"))
        return answer

    def _unanswered(self, doing: str, deadline: float, kind: type[Unavailable]) -> Unavailable:
        heard = last_words(self._noise) if self._noise else ""
        return kind(doing, f"{self._name} has not answered within {deadline:g} s{heard}")

    async def _cancel(self, number: int, cancels: bool) -> None:
        if cancels and not self._ended:
            with suppress(Unavailable):
                await self.ask("cancel", str(number), doing="ending a job", deadline=wire.HEARTBEAT)

    def _send(self, data: bytes) -> None:
        try:
            self._write(data)
        except (OSError, asyncssh.Error) as error:
            self._end(f"the connection to {self._name} broke ({error})")

    async def close(self) -> None:
        """Close it; waiting callers get an error."""
        self._end(f"the connection to {self._name} was closed")
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _end(self, why: str) -> None:
        if not self._ended:
            self._ended = why
            self._close()
            for each in self._waiting.values():
                if not each.done():
                    each.set_result((-1, why.encode()))

    async def _listen(self) -> None:
        try:
            pieces: defaultdict[int, bytes] = defaultdict(bytes)
            while True:
                received = await self._read.readuntil(b"\n")
                try:
                    line = wire.answer(received)
                except ValueError:  # a program that the login shell left behind prints there as well
                    self._noise = received[-_KEPT:].decode(errors="replace").strip() or self._noise
                    continue
                if not 0 < line.id <= self._number:
                    continue
                pieces[line.id] += line.text
                self._heard = time.monotonic()
                if line.code is None:
                    continue
                text, waiting = wire.text_of(pieces.pop(line.id)), self._waiting.get(line.id)
                if waiting is not None and not waiting.done():
                    waiting.set_result((line.code, text))
        except asyncio.IncompleteReadError:
            self._end(f"the connection to {self._name} ended")
        except (OSError, asyncssh.Error) as error:
            self._end(f"the connection to {self._name} broke ({error})")

    async def _beat(self) -> None:
        """Send a heartbeat now and then, which the host answers at once: a host that does not is lost."""
        while not self._ended:
            await asyncio.sleep(wire.HEARTBEAT)
            if time.monotonic() - self._heard > _SILENCE:
                self._end(f"{self._name} has been silent for {_SILENCE:.0f} s")
                return
            self._number += 1
            self._send(wire.request(self._number, time.monotonic() - self._booted + _SILENCE, None, ("ping",), b""))
