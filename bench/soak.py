"""A plane that a manager keeps, while machines, programs and networks fail at random; and whether anything that clients
were promised was broken. It ends with 0 if nothing was.

    python bench/soak.py [--seed 7] [--for 30m] [--isolation netns] [--replicas 3] [--keep FOLDER]

What fails when is the same for the same seed. Clients create, read, write and compare-and-swap registers (ConfigMaps);
porcupine judges their history. The probe looks on. --keep: where the history goes, and a picture of what could not be.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from histories.faults import ANYWHERE, ON_NETWORKS, Strike, strikes
from histories.judge import judge_file
from lab import quarterdeck, temporary_home, this_machine

from quarterdeck.api.site import Isolation
from quarterdeck.api.values import seconds_in
from quarterdeck.drivers.networks import inside_argv
from quarterdeck.model.faults import Fail

NAME = "soak"
SITE = """
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {{name: lab}}
spec: {{isolation: {isolation}}}
"""
#: Seconds for the plane to be whole at the end, and for what is told to stop to do so.
WHOLE = 300.0
STOPPING = 150.0
#: Seconds for which clients are at work before the first strike: they have connected by then.
FIRST = 4.0


def say(words: str) -> None:
    """A line, at once."""
    print(words, flush=True)


class Manager:
    """``quarterdeck serve``, that is killed at times."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: Process | None = None

    async def start(self) -> None:
        """Have one run."""
        with self._log.open("ab") as log:
            argv = (sys.executable, "-m", "quarterdeck", "serve", "--log-format", "json")
            self._process = await asyncio.create_subprocess_exec(*argv, stdin=DEVNULL, stdout=log, stderr=STDOUT)

    async def stop(self, number: signal.Signals) -> None:
        """Have it end. Raises AssertionError when it had ended by itself."""
        assert self._process is not None
        assert self._process.returncode is None, f"the manager ended by itself: see {self._log}"
        self._process.send_signal(number)
        async with asyncio.timeout(STOPPING):
            await self._process.wait()

    async def killed(self, planned: tuple[Strike, ...]) -> None:
        """Kill it in its time, as often as planned."""
        began = time.monotonic() + FIRST
        for each in planned:
            if each.fail is Fail.MANAGER:
                await asyncio.sleep(max(0.0, began + each.at - time.monotonic()))
                say(f"{each}: the manager is killed")
                await self.stop(signal.SIGKILL)
                await asyncio.sleep(each.hold)
                await self.start()


@asynccontextmanager
async def managed(log: Path) -> AsyncIterator[Manager]:
    """A manager until the block ends."""
    manager = Manager(log)
    await manager.start()
    try:
        yield manager
    finally:
        await manager.stop(signal.SIGTERM)


async def looked_on(work: asyncio.Task[int], log: Path) -> dict[str, Any]:
    """What the probe saw while ``work`` was done; in ``log`` is what it says of each failure."""
    argv = (sys.executable, "-m", "quarterdeck", "probe", NAME, "-o", "json")
    with log.open("wb") as complaints:
        probe = await asyncio.create_subprocess_exec(*argv, stdin=DEVNULL, stdout=PIPE, stderr=complaints)
    reading = asyncio.create_task(probe.communicate())
    await asyncio.wait((work, reading), return_when=asyncio.FIRST_COMPLETED)
    assert not reading.done(), "the probe ended by itself"
    probe.send_signal(signal.SIGINT)
    async with asyncio.timeout(STOPPING):
        said, _ = await reading
    found: dict[str, Any] = json.loads(said)
    return found


async def struck(home: Path, given: argparse.Namespace, kinds: dict[Fail, int], out: Path, manager: Manager) -> int:
    """Have all fail that is to fail, until all is as wanted; 0 if it came to that."""
    words = [f"{fail}={weight}" for fail, weight in kinds.items()]
    program = (sys.executable, "-m", "histories.soak", str(home), NAME, str(given.seed), str(given.seconds), str(out))
    argv = (*program, *words)
    if given.isolation is Isolation.NETNS:
        argv = await inside_argv(home, *argv)
    here = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(here / "src"), str(here / "tests")))}
    clients = await asyncio.create_subprocess_exec(*argv, stdin=DEVNULL, env=environment)
    killing = asyncio.create_task(manager.killed(strikes(given.seed, given.seconds, kinds)))
    try:
        code = await clients.wait()
    finally:
        if clients.returncode is None:
            clients.terminate()
            await clients.wait()
    await killing
    since = time.monotonic()
    if not await asyncio.to_thread(_is_whole):
        return code or 1
    say(f"all is as wanted {time.monotonic() - since:.1f} s after clients ended")
    return code


def _is_whole() -> bool:
    """Whether the plane is, or comes to be, as wanted."""
    try:
        quarterdeck("wait", NAME, "--timeout", f"{WHOLE:.0f}", timeout=WHOLE + STOPPING)
    except subprocess.CalledProcessError:  # what it said is printed: the history is judged all the same
        return False
    return True


async def soak(home: Path, folder: Path, given: argparse.Namespace) -> bool:
    """Whether all went well."""
    kinds = ANYWHERE | (ON_NETWORKS if given.isolation is Isolation.NETNS else {})
    out = folder / "history.jsonl"
    async with managed(folder / "serve.log") as manager:
        work = asyncio.create_task(struck(home, given, kinds, out, manager))
        seen = await looked_on(work, folder / "probe.log")
        code = await work
    writes, watches = seen["writes"], seen["watches"]
    requests, failed = (sum(each["overall"][what] for each in seen["periods"]) for what in ("requests", "failures"))
    say(f"probe: {requests:,} requests, {failed} failed; {watches['missed']} events missed")
    say(f"       {writes['acknowledged']:,} writes acknowledged, {writes['lost']} lost")
    verdict = await judge_file(out, picture=folder / "history.html")
    say(f"history: {verdict}")
    return code == 0 and not writes["lost"] and not watches["missed"] and verdict.linearizable


def main() -> int:
    """Run and print; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--for", type=seconds_in, default=seconds_in("30m"), dest="seconds")
    parser.add_argument("--isolation", type=Isolation, default=Isolation.NETNS)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp(prefix="qds."))
    folder.mkdir(parents=True, exist_ok=True)
    say(f"seed {given.seed}, {given.seconds:.0f} s, {given.isolation}; {this_machine()}; kept in {folder}")
    with temporary_home() as home:
        site = folder / "site.yaml"
        site.write_text(SITE.format(isolation=given.isolation))
        quarterdeck("apply", "-f", str(site))
        quarterdeck("create", NAME, "--site", "lab", "--replicas", str(given.replicas))
        well = asyncio.run(soak(home, folder, given))
    say("well" if well else "NOT WELL")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
