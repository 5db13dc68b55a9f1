"""A home as an older quarterdeck left it, put together from a fixture. Its machines have never run here."""

from __future__ import annotations

import json
import shutil
import sqlite3
from dataclasses import fields, is_dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar, cast

from quarterdeck.model.units import UnitSpec
from quarterdeck.sites.port import Site

T = TypeVar("T")

HOME = Path(__file__).parents[1] / "fixtures" / "home-2026-11-23"
#: Where it was when its units were rendered.
MADE_AT = "/tmp/qdold"


def put_together(folder: Path) -> None:
    """Have the home in ``folder``, with a write-ahead log in the volume of each member."""
    shutil.copytree(HOME / "sites", folder / "sites")
    for path in folder.rglob("unit.json"):
        path.write_text(path.read_text().replace(MADE_AT, str(folder)))
    for each in records(folder).values():
        if each["needs"]:
            log = Path(each["needs"]).parent
            log.mkdir(parents=True)
            (log / "0000000000000000-0000000000000000.wal").touch()
    folder.chmod(0o700)
    database = sqlite3.connect(folder / "quarterdeck.db")
    database.executescript((HOME / "quarterdeck.sql").read_text())
    database.close()


def records(folder: Path = HOME) -> dict[tuple[str, str], dict[str, Any]]:
    """What machines keep of their units, by (machine, unit)."""
    paths = (folder / "sites").glob("*/machines/*/units/*/unit.json")
    return {(path.parts[-4], path.parts[-2]): json.loads(path.read_bytes()) for path in paths}


class Recording:
    """A site, which only keeps the units that it is told to start."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.started: dict[tuple[str, str], UnitSpec] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._site, name)

    async def start_unit(self, machine: str, spec: UnitSpec) -> None:
        self.started[machine, spec.name] = spec


def moved(value: T, old: str, new: str) -> T:
    """The same with one path in the place of another, however deep it is in there."""
    return cast("T", _moved(value, old, new))


def _moved(value: Any, old: str, new: str) -> Any:
    match value:
        case str():
            return value.replace(old, new)
        case bytes():
            return value.replace(old.encode(), new.encode())
        case PurePosixPath():
            return PurePosixPath(str(value).replace(old, new))
        case tuple():
            return tuple(_moved(each, old, new) for each in value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{each.name: _moved(getattr(value, each.name), old, new) for each in fields(value)})
        case _:
            return value
