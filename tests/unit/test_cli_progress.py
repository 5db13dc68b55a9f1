"""What a person sees while steps are taken, and what is asked of them."""

from __future__ import annotations

import io

from model.stories import serving
from rich.console import Console

from quarterdeck.cli.progress import LiveProgress
from quarterdeck.model.endpoints import BackendAddress, BackendsMust
from quarterdeck.model.steps import Plan, SetBackends, Step

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
    said = io.StringIO()
    progress = LiveProgress(Console(file=said, width=200))
    both, one = sets("demo-1", "demo-2"), sets("demo-1")
    for step in (both, both, one, one, both):
        await looked(progress, step)
    lines = [line.split()[-1] for line in said.getvalue().splitlines() if "16443" in line]
    assert lines == ["demo-1", "demo-2", "demo-1", "demo-1", "demo-2"]
