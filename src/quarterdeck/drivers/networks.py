"""The networks of a home (isolation ``netns``): whether a process is in them, how to enter them, and their end."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.sites.netns.enter import enter_argv
from quarterdeck.sites.netns.lab import Lab
from quarterdeck.sites.netns.layout import CLIENT


async def holds_us(folder: Path) -> bool:
    """Whether this process is in one of the networks of the home in ``folder``."""
    return await Lab(folder).holds_us()


async def inside_argv(folder: Path, *argv: str) -> tuple[str, ...]:
    """The command that runs a program inside the networks of the home in ``folder``, which are created if needed.

    Raises Unavailable where the host forbids such networks.
    """
    await Lab.open(folder)
    return (*enter_argv(folder, CLIENT), *argv)


async def close(folder: Path) -> None:
    """Delete the networks of a home with all processes in them. For a process outside of them."""
    lab = Lab(folder)
    if await lab.runs():
        await lab.close()
