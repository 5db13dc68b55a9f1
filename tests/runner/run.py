"""Runs the stages that were asked for, one after the other, whatever comes of each."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from support.tally import VARIABLE as TALLY
from support.tally import Tally
from support.tiers import VARIABLE as TIER
from support.tiers import Tier

from runner.child import Child
from runner.command_line import Asked
from runner.stages import Command, Stage, module
from runner.summary import Ran, Result, summary

#: What pytest ends with where no test was selected.
_NO_TESTS = 5
FETCH = module("quarterdeck", "upstream", "fetch")
#: More inotify instances than the usual 128, which ten replicas and what else the user runs would exceed.
_INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
_INSTANCES = 1024


class Run:
    """One run. ``end`` says what came of it."""

    def __init__(self, asked: Asked, stages: Sequence[Stage], work: Path, *, fetch: Command = FETCH) -> None:
        self._asked, self._stages, self._work, self._fetch = asked, stages, work, fetch
        self._child = Child()
        self._began = time.monotonic()
        self._ran: list[Ran] = []
        self._prepared: dict[str, bool] = {}

    def stages(self) -> int:
        """Run all stages; the exit code of the run: 0, 1 where a stage failed, 128 and the signal that ended it."""
        with self._child.listening():
            for number, stage in enumerate(self._asked.stages, 1):
                if self._child.signal is not None:
                    self._ran.append(Ran(stage, Result.NOT_RUN))
                    continue
                self._say(f"{number}/{len(self._asked.stages)} {stage.name}: {stage.what}")
                self._ran.append(ran := self._stage(stage))
                self._say(f"{stage.name}: {ran.result} after {ran.seconds:.0f} s")
        print(summary(self._ran, self._stages), flush=True)
        if self._child.signal is not None:
            print(f"\ntest: ended by {self._child.signal.name}", flush=True)
            return 128 + self._child.signal
        return 0 if {each.result for each in self._ran} == {Result.PASSED} else 1

    def _say(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        print(f"\n== {text}  [{self._asked.tier}, {minutes}:{seconds:02} so far]", flush=True)

    def _stage(self, stage: Stage) -> Ran:
        """Run one; what it needs first does not count as its time."""
        prepared = self._prepare(stage)
        began, tally = time.monotonic(), self._work / f"{stage.name}.json"
        environment = {TIER: str(self._asked.tier), TALLY: str(tally)}
        codes = []
        for command in stage.commands(self._work):
            arguments = self._asked.arguments if stage.arguments else ()
            codes.append(self._child.run(Command((*command.argv, *arguments), command.environment), environment))
        result = self._result(stage, codes, prepared=prepared)
        there = Tally.read(tally) if tally.exists() else None
        return Ran(stage, result, time.monotonic() - began, there)

    def _result(self, stage: Stage, codes: Sequence[int], *, prepared: bool) -> Result:
        if self._child.signal is not None:
            return Result.INTERRUPTED
        if stage.pytest and set(codes) == {_NO_TESTS}:
            return Result.NO_TESTS
        return Result.PASSED if prepared and not any(codes) else Result.FAILED

    def _prepare(self, stage: Stage) -> bool:
        """Get what the stage needs, once in a run. Whether all of it is there: its tests say what is missing."""
        wanted = [self._fetch] if stage.programs else []
        if self._asked.tier is not Tier.SMOKE:
            wanted += map(module, stage.labs)
            if stage.programs:
                _raise_inotify()
        for command in wanted:
            key = " ".join(command.argv)
            if key not in self._prepared:
                self._say(f"what {stage.name} needs is fetched or built, once on this machine: {key}")
                self._prepared[key] = self._child.run(command, {}) == 0
        there = all(self._prepared[" ".join(each.argv)] for each in wanted)
        if not there:
            self._say(f"{stage.name} lacks what it needs, runs all the same, and has failed")
        return there


def _raise_inotify() -> None:
    """As root, or by sudo where it asks for no password."""
    if int(_INOTIFY.read_text()) >= _INSTANCES:
        return
    setting = f"fs.inotify.max_user_instances={_INSTANCES}"
    argv = (*(() if os.geteuid() == 0 else ("sudo", "-n")), "sysctl", "-q", "-w", setting)
    may = shutil.which(argv[0]) is not None
    if not may or subprocess.run(argv, capture_output=True, check=False).returncode:
        print(f"test: tests that need {setting} are skipped, and named at the end: setting it takes root", flush=True)


def run(asked: Asked, stages: Sequence[Stage], *, fetch: Command = FETCH) -> int:
    """Run what is asked for, with a temporary folder of which nothing is left."""
    with tempfile.TemporaryDirectory(prefix="quarterdeck-test.", dir=os.environ.get("TMPDIR")) as work:
        return Run(asked, stages, Path(work), fetch=fetch).stages()
