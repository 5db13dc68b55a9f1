"""Taking down all that a home made, however what used it has ended, and the proof that nothing is left of it."""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from quarterdeck.api.site import AddressSpace, Site
from quarterdeck.engine.workspace.home import Home
from quarterdeck.sites.netns.lab import Lab

#: Seconds that processes get to end by themselves once everything was taken down.
_ENDING = 20.0


async def destroy(folder: Path) -> None:
    """Kill every machine of a home and remove what they had, then its networks: in this order, since a site in network
    namespaces that is taken down after its lab would start it again.
    """
    if not (folder / "sites").exists():
        return
    home = await Home.open(folder)
    try:
        known = {path.parent.name for path in (folder / "sites").glob("*/number")}
        drivers = [home.sites.open(each) for each in await home.store.list(Site) if each.metadata.name in known]
        drivers += [
            home.sites.hub(kind) for kind in (AddressSpace.LOOPBACK, AddressSpace.NETNS) if f"hub-{kind}" in known
        ]
        for driver in drivers:
            await driver.destroy()
    finally:
        await home.close()
        if (folder / "netns").exists():
            await Lab(folder).close()


def processes_of(folder: Path) -> list[psutil.Process]:
    """The processes that have to do with a folder: by arguments, environment or working folder; not this one."""
    mark, found = str(folder), []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), process.cwd(), *process.environ().values()]
            if any(mark in word for word in words) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return [each for each in found if each.pid != psutil.Process().pid]


def working_in(folder: Path) -> list[int]:
    """The processes whose working folder is a folder, or is below it."""
    found = []
    for pid in psutil.pids():
        try:
            if Path(f"/proc/{pid}/cwd").readlink().is_relative_to(folder):
                found.append(pid)
        except OSError:
            continue
    return found


def nothing_left(folder: Path) -> None:
    """Wait until no process has to do with a folder. What is left is killed, and an AssertionError says what it was."""
    end = time.monotonic() + _ENDING
    while survivors := processes_of(folder):
        if time.monotonic() > end:
            commands = [process.cmdline() for process in survivors]
            for process in survivors:
                process.kill()
            raise AssertionError(f"left behind: {commands}")
        time.sleep(0.05)
