"""The command line called in this process: quick, for what needs no plane that runs."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.cli.main import main
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CliResult:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


@dataclass
class Cli:
    """A home of its own below ``folder``, and the command line on it."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def __call__(self, *argv: str, stdin: str = "", **environment: str) -> CliResult:
        """Run a command to its end."""
        path = self.folder / "stdin"
        path.write_text(stdin)
        with self.monkeypatch.context() as patch, path.open() as stream:
            for name, value in {"QUARTERDECK_HOME": str(self.home), "COLUMNS": "200", **environment}.items():
                patch.setenv(name, value)
            patch.setattr("sys.argv", ["quarterdeck", *argv])
            patch.setattr("sys.stdin", stream)
            # The process of the tests goes on, and others would be started by it.
            patch.setattr("quarterdeck.app.drive.use_short_time_slices", bool)
            self.capsys.readouterr()
            try:
                main()
                code = 0
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        text = self.capsys.readouterr()
        return CliResult(code, text.out, text.err)

    def refused(
        self, *argv: str, code: int, says: tuple[str, ...] = (), stdin: str = "", **environment: str
    ) -> CliResult:
        """Run a command that must end with that code and one line, which says all of ``says``; it changes nothing."""
        before = self.stored()
        result = self(*argv, stdin=stdin, **environment)
        assert result.code == code, result
        lines = result.err.strip().splitlines()
        assert len(lines) == 1, result.err
        assert lines[0].startswith("error: "), result.err
        for words in says:
            assert words in lines[0], f"{words!r} is not said: {result.err}"
        assert self.stored() == before, "something was changed"
        return result

    def stored(self) -> tuple[tuple[str, ...], ...]:
        """All resources in the store, as they are kept."""
        path = self.home / "quarterdeck.db"
        if not path.exists():
            return ()
        try:
            with sqlite3.connect(path) as db:
                rows: list[tuple[str, ...]] = db.execute("SELECT kind, name, body FROM resources").fetchall()
            db.close()
        except sqlite3.DatabaseError:
            return (("unreadable", str(path.read_bytes())),)
        return tuple(sorted(row for row in rows if row[0] != "Site"))

    def with_store(self, do: Callable[[Home], Awaitable[T]]) -> T:
        """Prepare or look at the home."""

        async def work() -> T:
            home = await Home.open(self.home)
            try:
                return await do(home)
            finally:
                await home.close()

        return asyncio.run(work())

    def plane(self, name: str = "demo") -> None:
        """A plane as ``create`` stores it, of which nothing runs."""
        wanted = new_control_plane(name, site="east")
        self.with_store(lambda home: operations.create(home, wanted, Requester(name="a test")))
