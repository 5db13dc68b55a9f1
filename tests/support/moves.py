"""Moves of a plane ``demo`` that go wrong somewhere, watched by clients from beginning to end."""

from __future__ import annotations

import random
from collections.abc import Sequence

from quarterdeck.api.operation import OperationPhase
from support.client_view import watched
from support.plane_lab import PlaneLab, started

#: Steps of a migration of three replicas; driven more than once, it takes no fewer.
STEPS = 44


def moments(number: int, *, seed: int, first: int = 1, last: int = STEPS) -> list[int]:
    """After so many steps begun: one at random in each equal part of the run."""
    chance = random.Random(seed)
    edges = [first + (last - first) * part // number for part in range(number + 1)]
    return [chance.randrange(low, max(high, low + 1)) for low, high in zip(edges, edges[1:], strict=False)]


def migrated(demo: PlaneLab, label: str, killed_after: Sequence[int] = ()) -> None:
    """A migration to the other site; its driver is killed when so many steps have begun, and another one goes on."""
    target, after = demo.other("demo"), demo.last_entry("demo")
    with watched(demo, "demo", label):
        driver = demo.start("migrate", "demo", "--to", target, "--yes")
        for count in killed_after:
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
    fact = demo.status("demo", code=0)
    assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == target
    assert demo.operation("demo").status.phase is OperationPhase.SUCCEEDED


def aborted(demo: PlaneLab, label: str, count: int) -> None:
    """A migration that is aborted when so many steps have begun: its driver brings the plane back."""
    source, target = demo.plane("demo").spec.placement.site, demo.other("demo")
    after = demo.last_entry("demo")
    with watched(demo, "demo", label):
        driver = demo.start("migrate", "demo", "--to", target, "--yes")
        demo.journal("demo", lambda seen: started(seen) >= count, f"step {count} begins", after=after, during=driver)
        done = demo.run("abort", "demo", "--yes")
        assert "plane demo is back" in done.out
        assert driver.end().code == 0, "it drove the plane back"
    fact = demo.status("demo", code=0)
    assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == source
    assert {member["site"] for member in fact["members"]} == {source}
    assert demo.machines(target) == ()
