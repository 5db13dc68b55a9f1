"""What every command needs: the open home, a console, a way to run coroutines, and the way inside of networks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich.console import Console

from quarterdeck.api.site import Isolation
from quarterdeck.app import Quarterdeck, asker, home_folder, home_key, inside_argv
from quarterdeck.cli.fetching import RichProgress
from quarterdeck.errors import NotFound

T = TypeVar("T")

#: Set in a process that already is inside the lab.
INSIDE = "QUARTERDECK_INSIDE_LAB"

out = Console()
err = Console(stderr=True)


class Output(StrEnum):
    """How facts are printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine."""
    return asyncio.run(work)


def here() -> Path:
    """The home's folder."""
    return home_folder(os.environ)


@asynccontextmanager
async def opened() -> AsyncIterator[Quarterdeck]:
    """The home, open for the block; shows what it fetches."""
    words = " ".join(["quarterdeck", *(word for word in sys.argv[1:3] if not word.startswith("-"))])
    with RichProgress(err) as progress:
        async with Quarterdeck.open(here(), key=home_key(os.environ), asker=asker(words), progress=progress) as made:
            yield made


async def _kind_of(plane: str, *, fetch: bool) -> Isolation | None:
    """What kind of network a plane lives in (None: there is no such plane). ``fetch``: also get its programs, since
    inside the lab there is no way out to get them.
    """
    async with opened() as quarterdeck:
        try:
            kind = await quarterdeck.network_of(plane)
        except NotFound:
            return None  # the command itself will say so
        if fetch and kind is Isolation.NETNS:
            await quarterdeck.fetch_programs(plane)
        return kind


def _must_go_inside(plane: str, *, drives: bool) -> bool:
    return not os.environ.get(INSIDE) and run(_kind_of(plane, fetch=drives)) is Isolation.NETNS


def go_inside(plane: str, *, drives: bool = False) -> None:
    """For a plane on network namespaces, go on as a new process inside their network; else do nothing.

    The machines of such sites can be reached from nowhere else. Must run before any thread starts. ``drives``:
    the command may start units.
    """
    if _must_go_inside(plane, drives=drives):
        go_inside_lab()


def go_inside_lab() -> None:
    """Go on inside the lab of this home."""
    if os.environ.get(INSIDE):
        return
    argv = _inside(*sys.argv[1:])
    os.environ[INSIDE] = "1"
    sys.stdout.flush()
    os.execv(argv[0], argv)  # noqa: S606 - no shell is the point


def wait_inside(plane: str) -> bool:
    """Have another process drive the plane from inside its network, if it must; whether it did.

    Ends the command with that process's exit code when it fails: it has said itself what was wrong.
    """
    if not _must_go_inside(plane, drives=True):
        return False
    done = subprocess.run(_inside("wait", "--quiet", plane), env={**os.environ, INSIDE: "1"}, check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)
    return True


def _inside(*arguments: str) -> tuple[str, ...]:
    return run(inside_argv(here(), sys.executable, "-m", "quarterdeck", *arguments))


async def tidy() -> None:
    """Take down what all planes shared, once there are none. From outside: inside the lab the host is out of reach."""
    async with opened() as quarterdeck:
        await quarterdeck.tidy()
