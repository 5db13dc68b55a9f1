"""Numbers of replicas that change, where a plane is and as it moves: no client sees a failure.

The shared plane goes from shape to shape where it can; each test makes the one that it needs if the test before has not
left it.
"""

from __future__ import annotations

import pytest
from support.client_view import watched
from support.planes import KeptPlane

from quarterdeck.errors import PreconditionFailed
from quarterdeck.report.schema import Outcome, Report
from quarterdeck.sites.local import limits

pytestmark = pytest.mark.timeout(900)


def room_for(replicas: int) -> None:
    """So many more than there are."""
    try:
        limits.require_limits("placing them", replicas)
    except PreconditionFailed as error:
        pytest.skip(str(error))


@pytest.mark.soak  # tests/model and tests/loop have all numbers
def test_a_plane_grows_to_five_where_it_is(shared: KeptPlane) -> None:
    lab = shared.ready(3)
    room_for(2)
    site = lab.plane("demo").spec.placement.site
    with watched(lab, "demo", "five"):
        lab.run("scale", "demo", "--replicas", "5", "--yes")
    fact = lab.status("demo", code=0)
    assert (fact["voters"], fact["site"], fact["quorumAt"]) == (5, site, site)


@pytest.mark.soak  # tests/model and tests/loop have all numbers; 1 -> 3: test_events_etcd.py
@pytest.mark.parametrize(("source", "target"), [(5, 3), (3, 1), (1, 3), (5, 5), (1, 1)])
def test_a_migration_from_some_replicas_to_others(shared: KeptPlane, source: int, target: int) -> None:
    lab = shared.ready(source)
    room_for(max(target, 2))
    there = lab.other("demo")
    argv = ("migrate", "demo", "--to", there, "--replicas", str(target), "--yes", "--probe", "--baseline", "2")
    done = lab.run(*argv)
    report = Report.model_validate_json(lab.run("report", "demo", "-o", "json").out)
    assert report.outcome is Outcome.SUCCEEDED
    assert report.probe is not None
    failed = [f"{each.kind} {each.request}: {each.reason}" for each in report.probe.failures]
    assert (failed, report.probe.writes.lost, report.probe.watches.missed) == ([], 0, 0), str(done)
    fact = lab.status("demo", code=0)
    assert (fact["site"], fact["voters"], fact["quorumAt"]) == (there, target, there)
    assert len(fact["members"]) == target, "nothing lent is left"
