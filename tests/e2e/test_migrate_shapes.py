"""Migrations that change the number of replicas: one plane goes through all of them, and no client sees a failure."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.plane_lab import PlaneLab, plane_lab

from quarterdeck.report.schema import Outcome, Report

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def five() -> Iterator[PlaneLab]:
    """A home with a plane that begins with five replicas, at east."""
    with plane_lab() as lab:
        lab.run("create", "shapes", "--replicas", "5")
        yield lab


@pytest.mark.parametrize(("source", "target"), [(5, 5), (5, 3), (3, 1), (1, 1), (1, 3)])
def test_a_migration_from_some_replicas_to_others(five: PlaneLab, source: int, target: int) -> None:
    plane = five.plane("shapes")
    assert plane.spec.replicas == source, "the migration before this one failed"
    there = five.other("shapes")
    argv = ("migrate", "shapes", "--to", there, "--replicas", str(target), "--yes", "--probe", "--quiet", "2")
    done = five.run(*argv)
    report = Report.model_validate_json(five.run("report", "shapes", "-o", "json").out)
    assert report.outcome is Outcome.SUCCEEDED
    assert report.probe is not None
    failed = [f"{each.kind} {each.request}: {each.reason}" for each in report.probe.failures]
    assert (failed, report.probe.writes.lost, report.probe.watches.missed) == ([], 0, 0), str(done)
    fact = five.status("shapes", code=0)
    assert (fact["site"], fact["voters"], fact["quorumAt"]) == (there, target, there)
    assert len(fact["members"]) == target, "nothing lent is left"
