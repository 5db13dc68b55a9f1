"""What a person sees while steps are taken, and what is asked of them."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from model.stories import serving
from rich.console import Console

from quarterdeck.cli import progress as progress_module
from quarterdeck.cli.progress import LiveProgress
from quarterdeck.model.endpoints import BackendAddress, BackendsMust
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.traffic import SetBackends

BACKENDS = {"demo-1": "192.0.2.1", "demo-2": "192.0.2.2"}


def sets(*names: str) -> SetBackends:
    return SetBackends(site="east", backends=names, why="")


async def looked(progress: LiveProgress, *now: SetBackends) -> None:
    """A look, after which these steps are tried, which a person has to take."""
    steps: tuple[Step, ...] = now
    await progress.observed(serving(), Plan(now=steps))
    for step in now:
        await progress.asks(step, wanted(step))


def wanted(step: SetBackends) -> BackendsMust:
    backends = tuple((name, BackendAddress(BACKENDS[name], 16443)) for name in step.backends)
    return BackendsMust(
        name="demo", at=(BackendAddress("192.0.2.9", 6443),), wanted=backends, check="check", seen="none is seen"
    )


async def test_a_person_is_asked_once_for_each_thing_and_again_when_it_is_wanted_again() -> None:
    output = io.StringIO()
    progress = LiveProgress(Console(file=output, width=200))
    both, one = sets("demo-1", "demo-2"), sets("demo-1")
    for step in (both, both, one, one, both):
        await looked(progress, step)
    lines = [line.split()[-1] for line in output.getvalue().splitlines() if "16443" in line]
    assert lines == ["demo-1", "demo-2", "demo-1", "demo-1", "demo-2"]


@pytest.mark.parametrize("terminal", [False, True])
def test_what_is_waited_for_is_on_a_line_of_its_own_after_a_while_where_no_terminal_shows_it(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    output, clock = io.StringIO(), [100.0]
    monkeypatch.setattr(progress_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    progress = LiveProgress(Console(file=output, width=200, force_terminal=terminal))
    for words in ("a quorum", "a quorum", "a person", "a person", "a person", "a quorum", "a quorum"):
        progress.waits(f"waiting for {words}")
        clock[0] += 6.0
    lines = [line.strip() for line in output.getvalue().splitlines() if "waiting for" in line]
    assert [line.split("waiting for ")[1] for line in lines] == ([] if terminal else ["a person"])
    progress.waits("waiting for a quorum")
    assert output.getvalue().count("waiting for a quorum") == (0 if terminal else 1)
