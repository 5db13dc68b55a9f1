"""The ledger of a machine, kept in its folder. Plain calls that may block on the disk; run them in a thread."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from quarterdeck.errors import Corrupt, TimedOut
from quarterdeck.files import write_atomic
from quarterdeck.model.seats import Endpoint, Seat, SeatPort, TakenSeat
from quarterdeck.sites.ledger import Ledger

T = TypeVar("T")

_FILE = "ledger.json"
#: Seconds to wait for another process that is just writing.
_PATIENCE = 10.0


def read_ledger(machine: Path) -> Ledger:
    """The ledger in a machine's folder; an empty one before its first seat. Raises Corrupt, OSError."""
    file = machine / _FILE
    try:
        content = json.loads(file.read_bytes())
        return Ledger(
            taken=tuple(
                TakenSeat(
                    plane=str(each["plane"]),
                    replica=str(each["replica"]),
                    seat=Seat(machine=machine.name, ports=tuple(map(_port, each["ports"]))),
                )
                for each in content["taken"]
            ),
            fences={str(plane): int(token) for plane, token in content["fences"].items()},
        )
    except (FileNotFoundError, NotADirectoryError):
        return Ledger()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(
            f"reading {file}", f"not a ledger of seats ({error!r})", "remove it: what planes remember makes it anew"
        ) from error


def change_ledger(machine: Path, change: Callable[[Ledger], tuple[Ledger, T]]) -> T:
    """Change it, one process after another: what ``change`` makes of it is on the disk when this returns. Raises what
    ``change`` and ``read_ledger`` do, and TimedOut when another process does not come to an end.
    """
    machine.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with FileLock(machine / "ledger.lock", timeout=_PATIENCE):
            before = read_ledger(machine)
            after, result = change(before)
            if after != before:
                write_atomic(machine / _FILE, json.dumps(_content(after), indent=1).encode(), mode=0o600)
            return result
    except Timeout as error:
        doing = f"changing who sits where on machine {machine.name}"
        raise TimedOut(doing, f"another process has been at it for {_PATIENCE:.0f} s") from error


def _content(ledger: Ledger) -> dict[str, object]:
    return {
        "taken": [
            {
                "plane": each.plane,
                "replica": each.replica,
                "ports": [
                    {
                        "name": port.name,
                        "listen": [port.listen.host, port.listen.port],
                        "advertised": [port.advertised.host, port.advertised.port],
                    }
                    for port in each.seat.ports
                ],
            }
            for each in ledger.taken
        ],
        "fences": dict(ledger.fences),
    }


def _port(content: dict[str, Any]) -> SeatPort:
    return SeatPort(name=str(content["name"]), listen=_end(*content["listen"]), advertised=_end(*content["advertised"]))


def _end(host: object, port: int) -> Endpoint:
    return Endpoint(str(host), int(port))
