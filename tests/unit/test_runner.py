"""The runner of ``./test``: all stages run whatever comes of each, and its end says what ran and what did not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from runner.child import Child
from runner.command_line import Asked, BadUsage, asked
from runner.run import run
from runner.shell import ROOT, scripts
from runner.stages import STAGES, Command, Stage
from runner.summary import Ran, Result, summary
from support.conditions import until
from support.tally import Tally
from support.tiers import Tier

FETCH = Command((sys.executable, "-c", ""))


def stage(name: str, code: str, **more: object) -> Stage:
    """A stage that runs some Python."""
    command = Command((sys.executable, "-c", code))
    return replace(Stage(name=name, what=f"what {name} shows", commands=lambda _: (command,)), **more)  # type: ignore[arg-type]


def ran(stages: Sequence[Stage], tier: Tier = Tier.FULL, arguments: tuple[str, ...] = ()) -> int:
    return run(Asked(tier, tuple(stages), arguments), stages, fetch=FETCH)


def lines_of(out: str) -> dict[str, list[str]]:
    """The table's lines by their first word."""
    table = out.rsplit("stage ", 1)[1]
    return {words[0]: words[1:] for line in table.splitlines() if (words := line.split())}


# --- what is asked for


def names(found: Asked) -> list[str]:
    return [each.name for each in found.stages]


def test_without_arguments_it_is_the_smoke_tier() -> None:
    found = asked([])
    assert found.tier is Tier.SMOKE
    assert names(found) == ["lint", "types", "layers", "unit", "model", "loop", "contract", "e2e"]
    assert names(asked(["full"])) == names(found)
    assert names(asked(["soak"])) == ["model", "loop", "contract", "e2e", "seeds"]


def test_stages_that_are_named_run_in_full_unless_a_tier_is_named() -> None:
    assert asked(["unit", "e2e", "--", "-k", "x"]) == Asked(Tier.FULL, asked(["e2e", "unit"]).stages[::-1], ("-k", "x"))
    assert asked(["smoke", "model"]).tier is Tier.SMOKE
    assert asked(["seeds", "--", "--minutes", "1"]).tier is Tier.SOAK


def test_a_stage_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(BadUsage, match=r"no stage units; stages: lint types .* mutants"):
        asked(["unit", "units"])


# --- what runs


def test_a_stage_that_fails_hides_no_other_one_and_the_run_fails(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stages = [
        stage("first", "raise SystemExit(3)"),
        stage("second", f"open({str(tmp_path / 'second')!r}, 'w')"),
    ]
    assert ran(stages) == 1
    assert (tmp_path / "second").exists()
    table = lines_of(capfd.readouterr().out)
    assert (table["first"][-1], table["second"][-1]) == ("FAILED", "passed")


def test_a_run_of_which_every_stage_passes_ends_with_0(capfd: pytest.CaptureFixture[str]) -> None:
    stages = [stage("first", ""), stage("second", "")]
    assert ran(stages) == 0
    out = capfd.readouterr().out
    assert "== 1/2 first: what first shows" in out
    assert "== 2/2 second: what second shows" in out


def test_all_commands_of_a_stage_run_though_one_fails(tmp_path: Path) -> None:
    argv = (sys.executable, "-c", f"open({str(tmp_path / 'second')!r}, 'w')")
    both = lambda _: (Command(("false",)), Command(argv))  # noqa: E731
    assert ran([stage("lint", "", commands=both)]) == 1
    assert (tmp_path / "second").exists()


def test_a_program_that_cannot_be_started_fails_its_stage(capfd: pytest.CaptureFixture[str]) -> None:
    assert ran([stage("lint", "", commands=lambda _: (Command(("/proc/nowhere/shellcheck",)),))]) == 1
    assert "/proc/nowhere/shellcheck cannot be run: No such file" in capfd.readouterr().out


def test_programs_are_got_once_and_labs_only_beyond_smoke(capfd: pytest.CaptureFixture[str]) -> None:
    stages = [stage(each, "", programs=True, labs=("this",)) for each in ("one", "two")]
    assert ran(stages, Tier.SMOKE) == 0
    assert capfd.readouterr().out.count("is fetched or built") == 1
    assert ran(stages, Tier.FULL) == 0
    assert capfd.readouterr().out.count("is fetched or built") == 2


def test_a_stage_whose_needs_cannot_be_had_runs_and_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    one = stage("one", f"open({str(tmp_path / 'one')!r}, 'w')", programs=True)
    assert run(Asked(Tier.SMOKE, (one,)), [one], fetch=Command(("false",))) == 1
    assert (tmp_path / "one").exists()
    assert "one lacks what it needs" in capfd.readouterr().out


def test_arguments_go_to_the_stages_that_take_some() -> None:
    wants = "import sys; assert sys.argv[1:] == {}"
    stages = [stage("one", wants.format(["-k"]), arguments=True), stage("two", wants.format([]))]
    assert ran(stages, arguments=("-k",)) == 0


# --- tests of pytest, with the conftest of tests/


PYTEST = """
import pytest

@pytest.mark.smoke
def test_smoke() -> None:
    pass

@pytest.mark.smoke
def test_skipped() -> None:
    pytest.skip("there is no tool")

def test_full() -> None:
    pass

@pytest.mark.soak
@pytest.mark.parametrize("number", [1, 2])
def test_soak(number: int) -> None:
    pass

@pytest.mark.smoke
@pytest.mark.soak
def test_in_each_tier() -> None:
    pass
"""


def pytest_stage(folder: Path, *arguments: str) -> Stage:
    """Tests that know the tiers, and nothing else of this folder."""
    (folder / "conftest.py").write_text(f"exec(open({str(ROOT / 'tests/conftest.py')!r}).read())\n")
    (folder / "test_x.py").write_text(PYTEST)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  smoke: x\n  soak: x\n")
    argv = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, str(folder))
    command = Command(argv, {"PYTHONPATH": os.pathsep.join(sys.path)})
    return stage("some", "", commands=lambda _: (command,), pytest=True)


@pytest.fixture(autouse=True)
def _not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is skipped here is skipped on purpose."""
    monkeypatch.delenv("CI", raising=False)


@pytest.mark.parametrize(
    ("tier", "arguments", "tests", "left_out"),
    [
        (Tier.SMOKE, (), 2, "of ./test full: x 1\n\nleft out of some, tests of ./test soak: x 2"),
        (Tier.FULL, ("-n", "2"), 3, "of ./test soak: x 2"),
        (Tier.SOAK, (), 3, "of ./test smoke: x 2\n\nleft out of some, tests of ./test full: x 1"),
    ],
    ids=["smoke", "full, workers", "soak"],
)
def test_the_end_says_how_many_tests_ran_and_names_those_that_did_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], tier: Tier, arguments: tuple[str, ...], tests: int, left_out: str
) -> None:
    assert ran([pytest_stage(tmp_path, *arguments)], tier) == 0
    out = capfd.readouterr().out
    assert lines_of(out)["some"][0] == str(tests), out
    assert f"left out of some, tests {left_out}" in out
    assert ("test_x.py::test_skipped: there is no tool" in out) is (tier is not Tier.SOAK)


def test_a_test_that_is_named_runs_in_every_tier(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    named = pytest_stage(tmp_path)
    (command,) = named.commands(tmp_path)
    one = replace(command, argv=(*command.argv[:-1], f"{tmp_path}/test_x.py::test_soak"))
    assert ran([replace(named, commands=lambda _: (one,))], Tier.SMOKE) == 0
    assert lines_of(capfd.readouterr().out)["some"][0] == "2"


def test_arguments_for_which_there_is_no_test_are_no_success(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert ran([pytest_stage(tmp_path, "-k", "nothing")]) == 1
    out = capfd.readouterr().out
    assert "no tests" in out
    assert "left out of some, tests for which there are other arguments: x 4" in out


# --- the end


def test_the_summary_names_the_slowest_tests_and_the_stages_that_did_not_run() -> None:
    unit, model, *_ = (each for each in STAGES if each.pytest)
    slow = tuple((f"tests/unit/test_x.py::test_{number}", float(number)) for number in range(10, 0, -1))
    tally = Tally(passed=1_000, failed=2, skipped=(("tests/unit/test_y.py::test_z", "no root"),), slowest=slow)
    slower = replace(tally, slowest=(("tests/model/test_m.py::test_m", 99.5),) * 10, failed=0)
    text = summary([Ran(unit, Result.FAILED, 61.2, tally), Ran(model, Result.PASSED, 2.0, slower)], STAGES)
    assert "unit         1,002       2       1       61  FAILED" in text
    assert "all          2,002                       63" in text
    assert text.count("   99.5  model/test_m.py::test_m") == 10
    assert text.count("  unit/test_x.py::test_") == 5
    assert "  unit/test_y.py::test_z: no root" in text
    assert "  ./test mutants: breaks each line of the planner's rules" in text
    assert "  ./test unit" not in text


# --- signals

INTERRUPTED = """
import sys
from pathlib import Path
from runner.command_line import Asked
from runner.run import run
from runner.stages import Command, Stage
from support.tiers import Tier

CODE = '''
import os, pathlib, signal, sys, time
def handle(number, frame):
    pathlib.Path("told").write_text(signal.Signals(number).name)
    sys.exit(2)
signal.signal(signal.SIGINT, handle)
pathlib.Path("began.new").write_text(str(os.getpid()))
pathlib.Path("began.new").rename("began")
while True:
    signal.pause()
'''
waits = Stage(name="waits", what="", commands=lambda work: (Command((sys.executable, "-c", CODE)),))
after = Stage(name="after", what="", commands=lambda work: (Command(("touch", "after")),))
sys.exit(run(Asked(Tier.FULL, (waits, after)), (waits, after)))
"""


@pytest.mark.parametrize(
    ("number", "code", "ignored"),
    [(signal.SIGINT, 130, False), (signal.SIGTERM, 143, False), (signal.SIGINT, 130, True)],
    ids=["SIGINT", "SIGTERM", "SIGINT, which its parent ignores"],
)
def test_a_signal_ends_what_runs_and_the_run_and_the_end_says_so(
    tmp_path: Path, number: signal.Signals, code: int, ignored: bool
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    prefix = ("sh", "-c", 'trap \'\' INT TERM; exec "$0" "$@"') if ignored else ()
    runner = subprocess.Popen(
        (*prefix, sys.executable, "-c", INTERRUPTED), cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    )
    began = tmp_path / "began"
    until(began.exists, "the first stage runs")
    runner.send_signal(number)
    out, _ = runner.communicate(timeout=60)
    assert runner.returncode == code, out
    assert (tmp_path / "told").read_text() == "SIGINT", "pytest takes down what its tests made upon that one alone"
    assert not Path(f"/proc/{began.read_text()}").exists()
    assert not (tmp_path / "after").exists()
    table = lines_of(out)
    assert (table["waits"][-1], table["after"][-2:]) == ("INTERRUPTED", ["not", "run"])
    assert f"ended by {number.name}" in out
    assert not list(tmp_path.glob("quarterdeck-test.*"))


def test_programs_do_not_ignore_the_signals_that_end_them() -> None:
    child = Child()
    code = "import signal; assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    with child.listening():
        assert child.run(Command((sys.executable, "-c", code)), {}) == 0


# --- shell scripts


def test_every_shell_script_is_found_for_shellcheck() -> None:
    found = {str(each.relative_to(ROOT)) for each in scripts()}
    assert {"test", "quarterdeck", ".ci/run", "scripts/lock", "scripts/bootstrap.sh"} <= found
    assert {"src/quarterdeck/sites/ssh/check/facts.sh", "tests/support/nodes_lab/setup.sh"} <= found
    assert "scripts/picture" not in found, "it is in Python"
    pieces = ("ssh/host/", "ssh/drill/", "sites/vrrp/")
    assert not [each for each in found if any(part in each for part in pieces)], "they are checked together"
