"""Homes as released versions left them, put together from fixtures (``scripts/home-fixture``). Nothing of them runs."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

FIXTURES = tuple(sorted((Path(__file__).parents[1] / "fixtures").glob("home-*")))
#: Where they were when their units were rendered.
_MADE_AT = "/tmp/qd-fixture/home"

UnitRecords = dict[tuple[str, str], dict[str, Any]]


def put_together(fixture: Path, folder: Path) -> None:
    """Have the home in ``folder``, with a write-ahead log in the volume of each member."""
    shutil.copytree(fixture / "sites", folder / "sites")
    for path in folder.rglob("unit.json"):
        path.write_text(path.read_text().replace(_MADE_AT, str(folder)))
    for each in unit_records(folder).values():
        if each["needs"]:
            log = Path(each["needs"]).parent
            log.mkdir(parents=True)
            (log / "0000000000000000-0000000000000000.wal").touch()
    folder.chmod(0o700)
    with contextlib.closing(sqlite3.connect(folder / "quarterdeck.db")) as database:
        database.executescript((fixture / "quarterdeck.sql").read_text())


def unit_records(folder: Path) -> UnitRecords:
    """What machines keep of their units, by (machine, unit)."""
    paths = (folder / "sites").glob("*/machines/*/units/*/unit.json")
    return {(path.parts[-4], path.parts[-2]): json.loads(path.read_bytes()) for path in paths}
