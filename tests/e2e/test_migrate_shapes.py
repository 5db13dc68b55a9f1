"""Migrations that change the number of replicas: no client sees a failure.

A plane goes from shape to shape where it can; each test makes the one that it needs if the test before has not left it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.planes import KeptPlane, created

from quarterdeck.errors import PreconditionFailed
from quarterdeck.report.schema import Outcome, Report
from quarterdeck.sites.local import limits

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def shapes(shared: KeptPlane) -> Iterator[KeptPlane]:
    """A plane with as many replicas as a test asks for. The shared one is taken down: ten replicas need the room."""
    shared.close()
    made = KeptPlane("shapes", created)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize(("source", "target"), [(5, 5), (5, 3), (3, 1), (1, 1), (1, 3)])
def test_a_migration_from_some_replicas_to_others(shapes: KeptPlane, source: int, target: int) -> None:
    lab = shapes.ready(source)
    try:
        limits.require_inotify("moving it", max(target, 2))
    except PreconditionFailed as error:
        pytest.skip(str(error))
    there = lab.other("shapes")
    argv = ("migrate", "shapes", "--to", there, "--replicas", str(target), "--yes", "--probe", "--quiet", "2")
    done = lab.run(*argv)
    report = Report.model_validate_json(lab.run("report", "shapes", "-o", "json").out)
    assert report.outcome is Outcome.SUCCEEDED
    assert report.probe is not None
    failed = [f"{each.kind} {each.request}: {each.reason}" for each in report.probe.failures]
    assert (failed, report.probe.writes.lost, report.probe.watches.missed) == ([], 0, 0), str(done)
    fact = lab.status("shapes", code=0)
    assert (fact["site"], fact["voters"], fact["quorumAt"]) == (there, target, there)
    assert len(fact["members"]) == target, "nothing lent is left"
