"""The unit that has a machine's part in who has which address of a plane: of the site's edges, or of all machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from quarterdeck.model.endpoints import Ownership
from quarterdeck.model.units import UnitFile, UnitSpec

_MODULE = "quarterdeck.endpoint.addresses.floating.agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatingSettings:
    """``edge`` is the machine, ``owners`` has all addresses of the plane at the site, in the order of its edges, with
    the edge that each is of. ``port`` is where clients connect, ``talk`` the UDP port where edges hear each other,
    ``admin`` the socket at which the load balancer answers. ``python`` and ``search_path``: how a machine runs this
    package.
    """

    unit: str
    folder: PurePosixPath
    edge: str
    owners: Mapping[str, str]
    port: int
    talk: int
    admin: PurePosixPath
    python: PurePosixPath
    search_path: str


def floating_unit(settings: FloatingSettings) -> UnitSpec:
    """The unit, beside the load balancer."""
    orders = settings.folder / "orders.json"
    content = {
        "edge": settings.edge,
        "owners": dict(settings.owners),
        "port": settings.port,
        "talk": settings.talk,
        "admin": str(settings.admin),
    }
    files = (UnitFile(orders, json.dumps(content, indent=1).encode()),)
    return _unit(settings.unit, settings.python, settings.search_path, orders, files)


def led_unit_name(plane: str) -> str:
    """The unit's name, on each machine."""
    return f"{plane}-floating"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedSettings:
    """``machine`` may have ``address``. ``port`` and ``talk`` as above; ``admin`` is None where there is no load
    balancer, and clients come to an apiserver itself.
    """

    unit: str
    folder: PurePosixPath
    machine: str
    address: str
    port: int
    talk: int
    admin: PurePosixPath | None
    python: PurePosixPath
    search_path: str


def led_unit(settings: LedSettings) -> UnitSpec:
    """The unit. Its orders are a live file, which is there before it starts: to lead an address on ends nothing."""
    return _unit(settings.unit, settings.python, settings.search_path, _live(settings), ())


def led_orders(
    settings: LedSettings,
    *,
    order: tuple[str, ...],
    leads: tuple[str, ...],
    number: tuple[int, int],
    ownership: Ownership,
) -> UnitFile:
    """The live file: the address is to be at the first of ``order`` that can serve it; ``leads`` are their own
    addresses, ``number`` is higher than that of all orders before.
    """
    content = {
        "edge": settings.machine,
        "owners": {settings.address: order[0]},
        "port": settings.port,
        "talk": settings.talk,
        "admin": str(settings.admin) if settings.admin is not None else "",
        "order": order,
        "leads": leads,
        "number": number,
        "owner": ownership.owner,
        "token": ownership.token,
    }
    return UnitFile(_live(settings), json.dumps(content, indent=1).encode())


def led_hold(settings: LedSettings, seconds: float) -> UnitFile:
    """The live file that has clients on that machine wait for at most so long; with 0 they go on."""
    return UnitFile(_live(settings).with_name("hold"), f"{seconds:.3f}".encode())


def _live(settings: LedSettings) -> PurePosixPath:
    return settings.folder / "live" / "orders.json"


def _unit(
    name: str, python: PurePosixPath, search_path: str, orders: PurePosixPath, files: tuple[UnitFile, ...]
) -> UnitSpec:
    return UnitSpec(
        name=name,
        argv=(str(python), "-S", "-P", "-B", "-m", _MODULE, str(orders)),
        files=files,
        env=(("PYTHONPATH", search_path),),
        stop_timeout=2.0,
    )
