"""The home, open for commands that change something, and their way inside of networks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import typer

from quarterdeck.api.site import Isolation
from quarterdeck.app import Quarterdeck, home_key, requester
from quarterdeck.cli.context import INSIDE, enter_lab, err, here, inside, must_go_inside, run
from quarterdeck.cli.fetch_progress import RichProgress
from quarterdeck.errors import NotFound

T = TypeVar("T")


def call(ask: Callable[[Quarterdeck], Awaitable[T]], *, trial: bool = True) -> T:
    """Open the home, and return what ``ask`` gets of the application face: ``call(lambda face: face.resume(name))``.
    What is fetched meanwhile is shown, and what is tried (``trial``: see ``Quarterdeck.open``).
    """
    words = " ".join(["quarterdeck", *(word for word in sys.argv[1:3] if not word.startswith("-"))])

    async def called() -> T:
        with RichProgress(err) as progress:
            key = home_key(os.environ)
            async with Quarterdeck.open(
                here(), key=key, requester=requester(words), progress=progress, trial=trial
            ) as face:
                return await ask(face)

    return run(called())


def _must_go_inside(plane: str) -> bool:
    """Whether a plane can be driven from inside the lab alone. Its programs are there then, since inside there is no
    way out to get them.
    """

    async def network(face: Quarterdeck) -> Isolation | None:
        try:
            kind = await face.network_of(plane)
        except NotFound:
            return None  # the command itself will say so
        if kind is Isolation.NETNS:
            await face.fetch_programs(plane)
        return kind

    return must_go_inside() and call(network) is Isolation.NETNS


def go_inside_to_drive(plane: str) -> None:
    """``go_inside`` for a command that may start units."""
    if _must_go_inside(plane):
        enter_lab()


def go_inside_for_site(site: str) -> None:
    """The same for a command that may start units of all planes of a site."""

    async def network(face: Quarterdeck) -> Isolation | None:
        known = (await face.sites.list()).get(site)
        kind = known.spec.network if known is not None else None
        for plane in await face.planes() if kind is Isolation.NETNS else ():
            if await face.network_of(plane.metadata.name) is kind:
                await face.fetch_programs(plane.metadata.name)
        return kind

    if must_go_inside() and call(network) is Isolation.NETNS:
        enter_lab()


def wait_inside(plane: str) -> bool:
    """Have another process drive the plane from inside its network, if it must; whether it did.

    Ends the command with that process's exit code when it fails: that process has printed the error.
    """
    if not _must_go_inside(plane):
        return False
    # Not by ``runner``: it talks to the person at the terminal, and lasts as long as it takes.
    done = subprocess.run(inside("wait", "--quiet", plane), env={**os.environ, INSIDE: "1"}, check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)
    return True


def tidy() -> None:
    """Take down what all planes shared, once there are none. From outside: inside the lab the host is out of reach."""
    call(lambda face: face.tidy())
