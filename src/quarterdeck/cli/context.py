"""What every command needs: a console, a way to run coroutines, the home to look at, and the way inside of networks."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from rich.console import Console

from quarterdeck.errors import NotFound

if TYPE_CHECKING:  # the help needs a console, and none of what opens a home
    from quarterdeck.api.site import Isolation
    from quarterdeck.app.looks import Looks
    from quarterdeck.app.records import Records

T = TypeVar("T")

#: Set in a process that already is inside the lab.
INSIDE = "QUARTERDECK_INSIDE_LAB"

#: The planes that this command was given, the last one last: a message about an interrupted command names it.
NAMED: list[str] = []

out = Console()
err = Console(stderr=True)


class Output(StrEnum):
    """How facts about things with names are printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"

    @property
    def for_people(self) -> bool:
        """Whether people read it; programs read the rest."""
        return self in (Output.TABLE, Output.WIDE)


class UnnamedOutput(StrEnum):
    """How facts without names are printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"

    @property
    def for_people(self) -> bool:
        """See ``Output``."""
        return self in (UnnamedOutput.TABLE, UnnamedOutput.WIDE)


class ObjectOutput(StrEnum):
    """How an object of Kubernetes is printed."""

    YAML = "yaml"
    JSON = "json"


def note_plane(name: str) -> str:
    """The plane's name, once it is noted which one the command is about."""
    NAMED.append(name)
    return name


def plain(text: str, console: Console = out, *, end: str = "\n") -> None:
    """Print text as it is: nothing in it is markup, and no line is broken."""
    console.print(text, end=end, highlight=False, markup=False, soft_wrap=True)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine."""
    return asyncio.run(work)


def here() -> Path:
    """The home's folder."""
    from quarterdeck.app import home_folder

    return home_folder(os.environ)


def look(ask: Callable[[Looks], Awaitable[T]]) -> T:
    """Open the home, and return what ``ask`` observes there: ``look(lambda looks: looks.examine(name))``. ``read`` is
    enough for what is stored; for a command that changes something see ``open_home.call``.
    """

    from quarterdeck.app import home_key
    from quarterdeck.app.looks import Looks

    async def found() -> T:
        async with Looks.open(here(), key=home_key(os.environ)) as looks:
            return await ask(looks)

    return run(found())


def read(ask: Callable[[Records], Awaitable[T]]) -> T:
    """Open the store of the home alone, and return what ``ask`` reads there:
    ``read(lambda records: records.events(name))``.
    """

    from quarterdeck.app import home_key
    from quarterdeck.app.records import Records

    async def found() -> T:
        async with Records.open(here(), key=home_key(os.environ)) as records:
            return await ask(records)

    return run(found())


def go_inside(plane: str) -> None:
    """For a plane on network namespaces, go on as a new process inside their network; else do nothing.

    The machines of such sites can be reached from nowhere else. Must run before any thread starts.
    """

    from quarterdeck.api.site import Isolation

    async def network(records: Records) -> Isolation | None:
        try:
            return await records.network_of(plane)
        except NotFound:
            return None  # the command itself will say so

    if must_go_inside() and read(network) is Isolation.NETNS:
        enter_lab()


def go_inside_for_all() -> None:
    """The same where all planes are on network namespaces. Others would not be reached from there."""

    from quarterdeck.api.site import Isolation

    async def networks(records: Records) -> set[Isolation]:
        return {await records.network_of(each.metadata.name) for each in await records.planes()}

    if must_go_inside() and read(networks) == {Isolation.NETNS}:
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
    from quarterdeck.app import inside_argv

    return run(inside_argv(here(), sys.executable, "-m", "quarterdeck", *arguments))
