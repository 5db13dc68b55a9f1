"""A home of its own for a test: the command line as users run it, in processes of its own, and hands to hurt what it
made. Nothing of it is left at the end, however the test ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import psutil

import quarterdeck
from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation
from quarterdeck.api.site import Isolation, LocalSpec, Site
from quarterdeck.app.looks import Looks, summary
from quarterdeck.engine.status import Status, look
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.sites.local.site import LocalSite
from quarterdeck.sites.port import Switches
from quarterdeck.stores.port import EntryOutcome, JournalEntry
from quarterdeck.stores.sqlite import SqliteStore
from quarterdeck.upstream.catalog import UpstreamProgram, Versions
from quarterdeck.upstream.upstream import Upstream
from support.clients import Client
from support.conditions import CALL, CHANGE, freeze, until
from support.leftovers import destroy, nothing_left, processes_of

T = TypeVar("T")

SOURCE = Path(quarterdeck.__file__).parents[1]
#: The user's settings that say where the environment and the upstream programs come from, and which are folders.
FOLDERS = {"QUARTERDECK_CACHE", "QUARTERDECK_BIN_DIR"}
PROGRAMS = FOLDERS | {"QUARTERDECK_MIRROR", "QUARTERDECK_PYTHON"}


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended. ``seconds`` is how long it took."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str
    seconds: float

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def __str__(self) -> str:
        return f"{' '.join(self.argv)}\nexit code {self.code} after {self.seconds:.1f} s\n{self.err}\n{self.out}"


class Command:
    """A command that runs. Signals go to that process only, as those of `kill PID` do."""

    def __init__(self, lab: PlaneLab, argv: Sequence[str], env: dict[str, str]) -> None:
        self.argv = tuple(argv)
        self._streams = [lab.scratch() for _ in range(2)]
        self._since = time.monotonic()
        with self._streams[0].open("wb") as out, self._streams[1].open("wb") as err:
            self.process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=env,
                cwd=lab.root,
            )

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def output(self) -> str:
        """What it wrote so far, to either stream."""
        return "\n".join(stream.read_text() for stream in self._streams)

    def kill(self) -> None:
        """kill -9, and see it gone."""
        self.process.kill()
        self.process.wait(CALL)

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def freeze(self) -> None:
        freeze(self.process.pid)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self, deadline: float = CHANGE) -> Done:
        """Wait until it ends."""
        try:
            code = self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            output = self.output
            self.kill()
            raise AssertionError(f"{' '.join(self.argv)}: still at it after {deadline:.0f} s\n{output}") from None
        out, err = (stream.read_text() for stream in self._streams)
        return Done(self.argv, code, out, err, time.monotonic() - self._since)


@dataclass
class PlaneLab:
    """A QUARTERDECK_HOME below /tmp. Call ``close`` (``plane_lab`` does), which leaves nothing of it."""

    root: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="qd-", dir="/tmp")))
    commands: list[Command] = field(default_factory=list)
    _clients: dict[str, Client] = field(default_factory=dict)
    _files: int = 0

    @property
    def home(self) -> Path:
        return self.root / "h"

    def scratch(self) -> Path:
        """A new file's path."""
        self._files += 1
        return self.root / f"{self._files}.txt"

    # commands

    def start(self, *argv: str, **environment: str) -> Command:
        """A command that runs on its own."""
        return self.start_program(sys.executable, "-m", "quarterdeck", *argv, **environment)

    def start_program(self, *argv: str, **environment: str) -> Command:
        """Any program, run as commands are."""
        self.commands.append(Command(self, argv, self.environment | environment))
        return self.commands[-1]

    @property
    def environment(self) -> dict[str, str]:
        """What commands run with: where programs come from is the tests' own, all else of ours is not passed on."""
        ours = {name for name in os.environ if name.startswith("QUARTERDECK_")} - PROGRAMS
        env = {name: value for name, value in os.environ.items() if name not in ours}
        for name in FOLDERS & env.keys():  # commands have another working folder
            env[name] = str(Path(env[name]).absolute())
        return env | {"QUARTERDECK_HOME": str(self.home), "PYTHONPATH": str(SOURCE), "COLUMNS": "200"}

    def run(self, *argv: str, code: int = 0, deadline: float = CHANGE, **environment: str) -> Done:
        """A command that ends with that exit code."""
        done = self.start(*argv, **environment).end(deadline)
        assert done.code == code, str(done)
        return done

    def refused(self, *argv: str, code: int, says: Sequence[str] = (), **environment: str) -> Done:
        """A command that is refused: that exit code, and one line that says what it should."""
        done = self.run(*argv, code=code, deadline=CHANGE, **environment)
        lines = [line for line in done.err.splitlines() if line.strip()]
        assert len([line for line in lines if "error: " in line]) == 1, str(done)
        assert "Traceback" not in done.err, str(done)
        for words in says:
            assert words in done.err, f"{words!r} is not said: {done}"
        return done

    def file(self, text: str) -> Path:
        """A file with that text."""
        path = self.scratch()
        path.write_text(text)
        return path

    # what is so

    def read(self, ask: Callable[[Home], Awaitable[T]]) -> T:
        """Ask the open home."""

        async def work() -> T:
            home = await Home.open(self.home)
            try:
                return await ask(home)
            finally:
                await home.close()

        return asyncio.run(work())

    def status(self, name: str, *, code: int | None = None) -> dict[str, Any]:
        """What ``status -o json`` prints, with exit code ``code``; without the command, which takes longer, where its
        machines can be reached from here.
        """

        async def examined(home: Home) -> dict[str, Any] | None:
            plane = await recorded.existing(home.store, name)
            site = await home.site(plane.spec.placement.site)
            near = isinstance(site.spec, LocalSpec) and site.spec.isolation is Isolation.LOOPBACK
            return summary(await Looks(home).examine(name)).model_dump(mode="json") if near else None

        seen = self.read(examined)
        if seen is None:
            return self.printed_status(name, code=code)
        assert code is None or bool(code) is not seen["healthy"], json.dumps(seen, indent=1)
        return seen

    def printed_status(self, name: str, *, code: int | None = None) -> dict[str, Any]:
        """What the command ``status -o json`` prints."""
        done = self.start("status", name, "-o", "json").end(CALL)
        assert done.code in ((0, 1) if code is None else (code,)), str(done)
        fact: dict[str, Any] = done.json
        return fact

    def plane(self, name: str) -> ControlPlane:
        """The plane's resource."""
        return self.read(lambda home: recorded.existing(home.store, name))

    def planes(self) -> tuple[ControlPlane, ...]:
        """All planes."""
        return self.read(lambda home: home.store.list(ControlPlane))

    def operation(self, name: str) -> Operation:
        """The plane's last operation."""
        return self.read(lambda home: recorded.operations_of(home.store, name))[-1]

    def other(self, name: str) -> str:
        """The default site at which the plane is not."""
        return "east" if self.plane(name).spec.placement.site == "west" else "west"

    def journal(
        self,
        name: str,
        good: Callable[[Sequence[JournalEntry]], bool],
        what: str,
        *,
        after: int = 0,
        during: Command | None = None,
        seconds: float = CHANGE,
    ) -> Sequence[JournalEntry]:
        """The entries with ids over ``after`` once they are ``good``; fails when ``during`` ends before that."""

        async def work() -> Sequence[JournalEntry]:
            end = time.monotonic() + seconds
            async with SqliteStore(self.home / "quarterdeck.db") as store:
                while True:
                    alive = during is None or during.running
                    entries = await store.journal(name, after=after)
                    if good(entries):
                        return entries
                    output = during.output if during is not None else ""
                    assert alive, f"{what}: never, before this ended: {output}"
                    assert time.monotonic() < end, f"{what}: not within {seconds:.0f} s; {output}"
                    await asyncio.sleep(0.005)

        return asyncio.run(work())

    def last_entry(self, name: str) -> int:
        """The id of the newest entry of the plane's journal."""
        entries = self.read(lambda home: home.store.journal(name, limit=1))
        return entries[-1].id if entries else 0

    def look(self, name: str) -> Status:
        """One observation of a plane at loopback sites, made here: quicker than a command."""

        async def work(home: Home) -> Status:
            return await look(home, name)

        return self.read(work)

    def opened(self, name: str, ask: Callable[[Plane], Awaitable[T]]) -> T:
        """Ask something of a plane with its ports (of loopback sites only)."""

        async def work(home: Home) -> T:
            async with AsyncExitStack() as stack:
                return await ask(await home.plane(await recorded.existing(home.store, name), stack))

        return self.read(work)

    # clients

    def client(self, name: str) -> Client:
        """A client with the kubeconfig that was printed when it was first asked for, however long ago."""
        if name not in self._clients:
            path = self.scratch()
            self.run("kubeconfig", name, "--output-file", str(path))
            self._clients[name] = Client(path)
        return self._clients[name]

    def kubectl(self, client: Client, *argv: str, stdin: str = "", code: int = 0) -> str:
        """Plain kubectl."""
        done = subprocess.run(
            [kubectl_program(), "--kubeconfig", client.kubeconfig, *argv],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=CALL,
            check=False,
            env={"PATH": os.defpath, "HOME": str(self.root)},
            cwd=self.root,
        )
        assert done.returncode == code, f"kubectl {' '.join(argv)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    # faults

    def on_site(self, site: str, act: Callable[[LocalSite], Awaitable[T]]) -> T:
        """Have the driver of a site do something."""

        async def work(home: Home) -> T:
            return await act(home.sites.open(await home.site(site)))

        return self.read(work)

    def machines(self, site: str) -> tuple[str, ...]:
        """The machines of a site that run units of replicas."""
        planes = self.planes()
        records = [record for plane in planes for record in plane.status.memory.replicas]
        return tuple(record.machine for record in records if record.slot.site == site)

    def pid(self, site: str, machine: str, unit: str) -> int:
        """The process of the unit on a machine whose name ends so."""
        units = self.on_site(site, lambda driver: driver.units(machine))
        found = next((each for each in units if each.name.endswith(unit) and each.state is UnitState.RUNNING), None)
        assert found is not None, f"no {unit} runs on {machine}: {units}"
        assert found.pid is not None
        return found.pid

    def kill_machine(self, site: str, machine: str) -> None:
        self.on_site(site, lambda driver: driver.kill_machine(machine))

    def boot_machine(self, site: str, machine: str) -> None:
        self.on_site(site, lambda driver: driver.boot_machine(machine))

    def boot_all(self) -> None:
        """Every machine of every site that is off is booted."""

        async def work(home: Home) -> None:
            for resource in await home.store.list(Site):
                driver = home.sites.open(resource)
                assert isinstance(driver, Switches)
                for machine in await driver.machines():
                    if machine.state is MachineState.DOWN:
                        await driver.boot_machine(machine.name)

        self.read(work)

    # the end

    def lose_home(self) -> None:
        """Kill everything that runs, and delete the home: a disaster that only backups survive."""
        processes = processes_of(self.root)
        for process in processes:
            process.kill()
        psutil.wait_procs(processes, timeout=CALL)
        shutil.rmtree(self.home)
        self._clients.clear()

    def close(self) -> None:
        """Kill and remove all that this home made. Fails if a process is left."""
        for command in self.commands:
            if command.running:
                command.kill()
        for process in processes_of(self.root):  # detached drivers: they would start again what is being destroyed
            if "quarterdeck" in process.cmdline() and "wait" in process.cmdline():
                process.kill()
        try:
            asyncio.run(destroy(self.home))
            nothing_left(self.root)
        finally:
            shutil.rmtree(self.root, ignore_errors=True)


@contextmanager
def plane_lab() -> Iterator[PlaneLab]:
    """A lab of which nothing is left after the block."""
    lab = PlaneLab()
    try:
        yield lab
    finally:
        lab.close()


@contextmanager
def managed(lab: PlaneLab) -> Iterator[None]:
    """A manager keeps all planes of a lab for the block, and ends in good order."""
    manager = lab.start("serve", "--log-format", "json")
    until(lambda: '"serving"' in manager.output, "it serves")
    try:
        yield
    finally:
        manager.process.send_signal(signal.SIGTERM)
        manager.end(30)


def started(entries: Sequence[JournalEntry]) -> int:
    """How many steps were begun."""
    return sum(entry.outcome is EntryOutcome.STARTED for entry in entries)


def did(entries: Sequence[JournalEntry], kind: str, *, text: str = "") -> bool:
    """Whether a step of that kind was taken (with that in its text)."""
    return any(entry.kind == kind and entry.outcome is EntryOutcome.DONE and text in entry.text for entry in entries)


@cache
def kubectl_program() -> Path:
    """The path of kubectl, fetched or built if it is not there."""
    return asyncio.run(Upstream.from_environment(os.environ).ensure((UpstreamProgram.KUBECTL,), Versions()))[
        UpstreamProgram.KUBECTL
    ]
