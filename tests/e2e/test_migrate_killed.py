"""Drivers that die, and users who change their minds, at any moment of a migration."""

from __future__ import annotations

import random

import pytest
from support.clients import Writer
from support.plane_lab import PlaneLab, started

from quarterdeck.api.operation import OperationPhase

pytestmark = pytest.mark.timeout(1200)

#: Steps of a migration of three replicas; driven more than once, it takes no fewer.
STEPS = 44
SEED = 20_260_101


def moments(number: int, *, first: int = 1, last: int = STEPS, seed: int = SEED) -> list[int]:
    """After so many steps begun: one at random in each equal part of the run."""
    chance = random.Random(seed)
    edges = [first + (last - first) * part // number for part in range(number + 1)]
    return [chance.randrange(low, max(high, low + 1)) for low, high in zip(edges, edges[1:], strict=False)]


def test_a_migration_survives_ten_kills_of_its_driver(demo: PlaneLab) -> None:
    target, after = demo.other("demo"), demo.last_entry("demo")
    with Writer(demo.client("demo"), "killed") as writer:
        driver = demo.start("migrate", "demo", "--to", target, "--yes")
        for count in moments(10):
            demo.journal(
                "demo",
                lambda seen, count=count: started(seen) >= count,  # type: ignore[misc]
                f"step {count} begins",
                after=after,
                during=driver,
            )
            driver.kill()
            driver = demo.start("wait", "demo")
        done = driver.end()
        assert done.code == 0, str(done)
    assert writer.failures == []
    fact = demo.status("demo", code=0)
    assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == target
    assert demo.operation("demo").status.phase is OperationPhase.SUCCEEDED


@pytest.mark.parametrize("count", moments(5, seed=SEED + 1))
def test_a_migration_is_aborted_at_any_moment(demo: PlaneLab, count: int) -> None:
    source, target = demo.plane("demo").spec.placement.site, demo.other("demo")
    after = demo.last_entry("demo")
    with Writer(demo.client("demo"), f"aborted-{count}") as writer:
        driver = demo.start("migrate", "demo", "--to", target, "--yes")
        demo.journal("demo", lambda seen: started(seen) >= count, f"step {count} begins", after=after, during=driver)
        done = demo.run("abort", "demo", "--yes")
        assert "plane demo is back" in done.out
        assert driver.end().code == 0, "it drove the plane back"
    assert writer.failures == []
    fact = demo.status("demo", code=0)
    assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == source
    assert {member["site"] for member in fact["members"]} == {source}
    assert demo.machines(target) == ()
