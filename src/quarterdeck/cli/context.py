"""What every command needs: the home, who asks, a console, and a way to run coroutines."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from quarterdeck.api.site import Isolation
from quarterdeck.engine import operations
from quarterdeck.engine.drive import Engine
from quarterdeck.engine.driver import Unwatched, Watcher
from quarterdeck.engine.home import Home, home_folder
from quarterdeck.engine.operations import Asker
from quarterdeck.errors import NotFound
from quarterdeck.sites.netns.enter import enter_argv
from quarterdeck.sites.netns.lab import Lab
from quarterdeck.sites.netns.layout import CLIENT
from quarterdeck.stores.identity import this_process
from quarterdeck.upstream.progress import RichProgress
from quarterdeck.upstream.upstream import Upstream

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


def asker() -> Asker:
    """Who runs this command."""
    words = " ".join(["quarterdeck", *(word for word in sys.argv[1:3] if not word.startswith("-"))])
    return Asker(who=f"{getpass.getuser()}@{this_process(words)}")


@asynccontextmanager
async def opened() -> AsyncIterator[Home]:
    """The home, open for the block."""
    home = await Home.open(here())
    try:
        yield home
    finally:
        await home.close()


@asynccontextmanager
async def engine(home: Home, watcher: Watcher | None = None) -> AsyncIterator[Engine]:
    """An engine that shows what it fetches."""
    with RichProgress(err) as progress:
        upstream = Upstream.from_environment(os.environ, progress=progress)
        yield Engine(home=home, upstream=upstream, asker=asker(), watcher=watcher or Unwatched())


async def isolation_of(plane: str) -> Isolation:
    """What kind of network a plane lives in."""
    async with opened() as home:
        resource = await operations.existing(home.store, plane)
        return (await home.site(resource.spec.placement.site)).spec.isolation


def go_inside(plane: str) -> None:
    """For a plane on network namespaces, go on as a new process inside their network; else do nothing.

    The machines of such sites can be reached from nowhere else. Must run before any thread starts.
    """
    if os.environ.get(INSIDE):
        return
    try:
        kind = run(isolation_of(plane))
    except NotFound:
        return  # the command itself will say so
    if kind is Isolation.NETNS:
        go_inside_lab()


def go_inside_lab() -> None:
    """Go on inside the lab of this home."""
    if os.environ.get(INSIDE):
        return
    run(_lab())
    os.environ[INSIDE] = "1"
    argv = (*enter_argv(here(), CLIENT), sys.executable, "-m", "quarterdeck", *sys.argv[1:])
    sys.stdout.flush()
    os.execv(argv[0], argv)  # noqa: S606 - no shell is the point


async def _lab() -> Lab:
    return await Lab.open(here())
