"""A dry run: the same planner, on a simulated world, until nothing is left to do."""

from __future__ import annotations

from dataclasses import dataclass, replace

from quarterdeck.model.steps.base import Step, cluster_of
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.quorum import margin
from quarterdeck.planner.simulated import apply, from_world, observe, tick
from quarterdeck.planner.simulated.truth import Truth

#: More rounds than any plan has: reaching it means that the plan makes no progress.
MOST_ROUNDS = 400
_CIRCLES = Wait("an end: the plan goes round in circles", "this is a fault of quarterdeck's: report it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """One step of a forecast. ``margin``: how many voters may fail after it before the quorum is lost;
    ``quorum_site``: the site that then holds a quorum by itself; both of the cluster that the step is about.
    """

    step: Step
    voters: int
    learners: int
    margin: int
    quorum_site: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """All steps until nothing is left to do, or until the plan waits for something that does not happen by itself."""

    steps: tuple[Forecast, ...]
    stuck_on: tuple[Wait, ...] = ()


def _forecast(step: Step, after: Truth) -> Forecast:
    truth = after.of(cluster_of(step))
    return Forecast(
        step=step,
        voters=len(truth.voters),
        learners=len(truth.members) - len(truth.voters),
        margin=margin(truth.voters) if truth.voters else 0,
        quorum_site=truth.quorum_site,
    )


def dry_run(world: World) -> DryRun:
    """Plan and apply, from an observation, until nothing is left to do."""
    truth = from_world(world)
    patience = max(world.settings.ttl, world.settings.drain, 1.0)
    done: list[Forecast] = []
    idle = 0
    for _ in range(MOST_ROUNDS):
        now = plan(replace(observe(truth), plane_name=world.plane_name))
        if now.done:
            return DryRun(steps=tuple(done))
        if not now.now:
            idle += 1
            if idle > 10:
                return DryRun(steps=tuple(done), stuck_on=now.waiting)
            truth = tick(truth, patience)
            continue
        idle = 0
        for step in now.now:
            truth = apply(truth, step)
            done.append(_forecast(step, truth))
    return DryRun(steps=tuple(done), stuck_on=(_CIRCLES,))
