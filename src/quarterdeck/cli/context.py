"""What every command needs: a console, a way to run coroutines, the home to look at, and the way inside of networks."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from rich.console import Console

from quarterdeck.api.site import Isolation
from quarterdeck.app import home_folder, home_key, inside_argv
from quarterdeck.app.looking import Looks
from quarterdeck.errors import NotFound

T = TypeVar("T")

#: Set in a process that already is inside the lab.
INSIDE = "QUARTERDECK_INSIDE_LAB"

#: The planes that this command was given, the last one last: a message about an interrupted command names it.
NAMED: list[str] = []

out = Console()
err = Console(stderr=True)


class Output(StrEnum):
    """How facts are printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


def note_plane(name: str) -> str:
    """The plane's name, once it is noted which one the command is about."""
    NAMED.append(name)
    return name


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine."""
    return asyncio.run(work)


def here() -> Path:
    """The home's folder."""
    return home_folder(os.environ)


def looking() -> AbstractAsyncContextManager[Looks]:
    """The home, open for the block, for a command that only looks at it: see ``opening.opened``."""
    return Looks.open(here(), key=home_key(os.environ))


def go_inside(plane: str) -> None:
    """For a plane on network namespaces, go on as a new process inside their network; else do nothing.

    The machines of such sites can be reached from nowhere else. Must run before any thread starts.
    """

    async def network() -> Isolation | None:
        async with looking() as looks:
            try:
                return await looks.network_of(plane)
            except NotFound:
                return None  # the command itself will say so

    if must_go_inside() and run(network()) is Isolation.NETNS:
        enter_lab()


def go_inside_for_all() -> None:
    """The same where all planes are on network namespaces. Others would not be reached from there."""

    async def networks() -> set[Isolation]:
        async with looking() as looks:
            return {await looks.network_of(each.metadata.name) for each in await looks.planes()}

    if must_go_inside() and run(networks()) == {Isolation.NETNS}:
        enter_lab()


def must_go_inside() -> bool:
    """Whether this process is outside of all labs."""
    return not os.environ.get(INSIDE)


def enter_lab() -> NoReturn:
    """Go on as a new process inside the lab of this home."""
    argv = inside(*sys.argv[1:])
    os.environ[INSIDE] = "1"
    sys.stdout.flush()
    os.execv(argv[0], argv)  # noqa: S606 - no shell is the point


def inside(*arguments: str) -> tuple[str, ...]:
    """The command line that has a command run inside of the lab of this home."""
    return run(inside_argv(here(), sys.executable, "-m", "quarterdeck", *arguments))
