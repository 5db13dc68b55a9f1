"""Calls to the supervisord of a machine: XML-RPC over its unix socket, without a thread."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
import xmlrpc.client
from functools import lru_cache
from pathlib import Path

from quarterdeck.errors import LeaseLost, Unavailable
from quarterdeck.model.units import Fence, UnitState, UnitStatus
from quarterdeck.sites.local.supervisor.fences import FENCED, on_the_wire

SOCKET = "supervisor.sock"
_PASSED_ON = "another process drives the plane; run the command again to continue"
KILL_GRACE = 10.0  # seconds that a process may take to end after SIGKILL


_HEAD = b"POST /RPC2 HTTP/1.0\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n"
_PIECE = 65_536


class NotRunning(Unavailable):
    """There is no supervisord, or no longer: nothing listens on the socket, or the call broke off."""


class SupervisorClient:
    """The methods of quarterdeck's plugin in one machine's supervisord. ``patience`` is how many seconds an
    answer may take. All raise NotRunning, or Unavailable when the answer does not come.
    """

    def __init__(self, machine: str, folder: Path, patience: float) -> None:
        self._machine = machine
        self._folder = folder
        self._patience = patience

    async def units(self) -> tuple[UnitStatus, ...]:
        """Every unit in supervisord's state."""
        answer = await self._call("units", (), self._patience)
        return tuple(
            UnitStatus(
                name=each["name"],
                state=UnitState(each["state"]),
                digest=each["digest"],
                pid=each["pid"],
                exit_code=each["exit_code"],
                restarts=each["restarts"],
                refused=each["refused"],
                altered=each["altered"],
                note=each["note"],
            )
            for each in json.loads(str(answer))
        )

    async def admit(self, fence: Fence) -> None:
        """Raise LeaseLost for a fence that is older than one that the machine has accepted; else accept it."""
        await self._call("admit", (self._expires(), on_the_wire(fence)), self._patience)

    async def start(self, unit: str, fence: Fence | None = None) -> None:
        """Start the unit from its record."""
        await self._change("start", (unit,), fence)

    async def stop(self, unit: str, fence: Fence | None = None, *, kill: bool, stop_timeout: float) -> None:
        """Stop the unit and wait until its process has ended."""
        await self._change("stop", (unit, kill), fence, longer=stop_timeout + KILL_GRACE)

    async def put(self, staged: str, fence: Fence) -> None:
        """Rename files, as a JSON list of [from, to]."""
        await self._call("put", (staged, self._expires(), on_the_wire(fence)), self._patience)

    async def take(self, paths: str, fence: Fence) -> None:
        """Delete files, as a JSON list of paths."""
        await self._call("take", (paths, self._expires(), on_the_wire(fence)), self._patience)

    async def prioritize(self, unit: str, nice: int) -> None:
        """Set the unit's priority, which ends the special one of its start."""
        await self._call("prioritize", (unit, nice, self._expires()), self._patience)

    async def hold(self, unit: str, seconds: float, fence: Fence | None = None) -> None:
        """Stop the unit's process (SIGSTOP), for at most that long."""
        await self._change("hold", (unit, seconds), fence)

    async def let_go(self, unit: str) -> None:
        """Resume it."""
        await self._call("let_go", (unit, self._expires()), self._patience)

    async def forget(self, unit: str, fence: Fence | None = None) -> None:
        """Drop a stopped unit."""
        await self._change("forget", (unit,), fence)

    async def read_again(self, unit: str, fence: Fence | None = None) -> None:
        """Reload the unit's record."""
        await self._change("read_again", (unit,), fence)

    def _expires(self) -> float:
        return time.monotonic() + self._patience

    async def _change(
        self, method: str, given: tuple[str | bool | float, ...], fence: Fence | None, *, longer: float = 0.0
    ) -> None:
        """Make a change, under a fence if there is one. ``longer``: additional seconds that it may take."""
        fenced = () if fence is None else (on_the_wire(fence),)
        await self._call(method, (*given, self._expires(), *fenced), self._patience + longer)

    async def _call(self, method: str, arguments: tuple[str | bool | float, ...], patience: float) -> object:
        doing = f"calling {method} on machine {self._machine}"
        try:
            call = xmlrpc.client.dumps(arguments, f"quarterdeck.{method}").encode() if arguments else _bare(method)
            async with asyncio.timeout(patience):
                reply = await self._exchange(call)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise NotRunning(doing, "its supervisord is not running") from error
        except (ConnectionResetError, BrokenPipeError) as error:
            raise NotRunning(doing, "its supervisord ended in the meantime") from error
        except TimeoutError as error:
            raise Unavailable(doing, f"no answer within {patience:.1f} s") from error
        except OSError as error:
            raise Unavailable(doing, f"the connection broke ({error})") from error
        if not reply:
            raise NotRunning(doing, "its supervisord ended in the meantime")
        head, _, body = reply.partition(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise Unavailable(doing, f"its supervisord failed ({head[:80]!r})")
        try:
            (result,), _ = xmlrpc.client.loads(body.decode())
        except xmlrpc.client.Fault as fault:
            if fault.faultCode == FENCED:
                seen = fault.faultString.removeprefix("UNKNOWN: ")  # supervisor's own fault code of an error of ours
                raise LeaseLost(doing, f"it refused: {seen}", _PASSED_ON) from fault
            raise Unavailable(doing, f"it refused: {fault.faultString}") from fault
        return result

    async def _exchange(self, body: bytes) -> bytes:
        """The complete answer. A plain socket: an observation calls each machine several times a second."""
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.setblocking(False)
            # a socket's path has at most 107 bytes, a home may have more: go through an open folder
            folder = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                await loop.sock_connect(sock, f"/proc/self/fd/{folder}/{SOCKET}")
            finally:
                os.close(folder)
            await loop.sock_sendall(sock, _HEAD % len(body) + body)
            answer = bytearray()
            while piece := await loop.sock_recv(sock, _PIECE):
                answer += piece
            return bytes(answer)


@lru_cache(maxsize=16)
def _bare(method: str) -> bytes:
    """A call without arguments."""
    return xmlrpc.client.dumps((), f"quarterdeck.{method}").encode()
