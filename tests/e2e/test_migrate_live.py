"""Live migrations of three replicas, as real clients see them."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path

import pytest
from support.client_view import watched
from support.clients import Writer
from support.conditions import until
from support.plane_lab import PlaneLab, did, started

from quarterdeck.api.operation import OperationPhase
from quarterdeck.report.schema import Outcome, Report
from quarterdeck.sites.local.site import LocalSite

pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).parents[2]


def test_no_client_sees_a_failure_and_the_kubeconfig_stays_right(demo: PlaneLab) -> None:
    target, client = demo.other("demo"), demo.client("demo")
    demo.kubectl(client, "create", "configmap", "before")
    during: list[str] = []
    over = threading.Event()

    def use() -> None:
        while not over.wait(0.2):
            during.append(demo.kubectl(client, "get", "configmap", "before", "-o", "name"))

    user = threading.Thread(target=use)
    user.start()
    try:
        with Writer(client, "live") as writer:
            done = demo.run("migrate", "demo", "--to", target, "--yes", "--probe", "--baseline", "2")
    finally:
        over.set()
        user.join()
    report = made(demo)
    assert report.outcome is Outcome.SUCCEEDED
    assert report.probe is not None
    failed = [f"{each.kind} {each.request}: {each.reason}" for each in report.probe.failures]
    assert (failed, report.probe.writes.lost, report.probe.watches.missed) == ([], 0, 0), str(done)
    assert report.probe.writes.stale_reads == report.probe.watches.duplicated == report.probe.watches.out_of_order == 0
    assert writer.failures == []
    assert set(during) == {"configmap/before\n"}
    assert "before" in client.names("configmaps")
    fact = demo.status("demo", code=0)
    assert (fact["site"], fact["quorumAt"], fact["nameLeadsTo"]) == (target, target, target)
    assert {member["site"] for member in fact["members"]} == {target}
    assert [each["site"] for each in fact["loadBalancers"]] == [target]
    the_audit_logs_of_those_who_are_gone_are_still_there(demo)
    again = demo.run("migrate", "demo", "--to", target, "--yes")
    assert f"plane demo is at {target} already and settled: nothing to do" in again.out
    assert demo.operation("demo").metadata.name == report.operation


def the_audit_logs_of_those_who_are_gone_are_still_there(demo: PlaneLab) -> None:
    """Where the plane was, its machines run nothing of it any more, and have nothing else of it."""

    async def left(site: LocalSite) -> list[str]:
        return [volume.name for each in await site.machines() for volume in await site.volumes(each.name)]

    names = demo.on_site(demo.other("demo"), left)
    assert len(names) >= 3
    assert all(name.startswith("demo-audit-") for name in names)


def made(demo: PlaneLab) -> Report:
    """The report of the last operation, as the command prints it."""
    return Report.model_validate_json(demo.run("report", "demo", "-o", "json").out)


@pytest.mark.soak  # tests/unit/test_app_drive.py has who drives; each run of e2e has drivers that are waited for
def test_a_detached_migration_goes_on_alone_and_is_waited_for(demo: PlaneLab) -> None:
    target, after = demo.other("demo"), demo.last_entry("demo")
    with watched(demo, "demo", "detached"):
        done = demo.run("migrate", "demo", "--to", target, "--yes", "--detach")
        assert "in the background" in done.out
        demo.journal("demo", lambda seen: did(seen, "place-replica"), "the background begins", after=after)
        waiting = demo.start("wait", "demo")
        until(lambda: "driven by" in waiting.output, "the driver is named")
        waiting.interrupt()
        assert waiting.end().code == 130
        assert "plane demo is settled" in demo.run("wait", "demo").out
    assert demo.plane("demo").spec.placement.site == target
    assert demo.operation("demo").status.phase is OperationPhase.SUCCEEDED
    assert re.search(r"Migrate\s.*Succeeded", demo.run("history", "demo").out)


@pytest.mark.soak  # test_migrate_crashes.py kills the driver; tests/unit has what is refused meanwhile
def test_ctrl_c_leaves_the_plane_in_use_and_wait_goes_on_from_there(demo: PlaneLab) -> None:
    source, target = demo.plane("demo").spec.placement.site, demo.other("demo")
    after = demo.last_entry("demo")
    with watched(demo, "demo", "interrupted"):
        moving = demo.start("migrate", "demo", "--to", target, "--yes")
        demo.journal("demo", lambda seen: did(seen, "promote-learner"), "promotions", after=after, during=moving)
        moving.interrupt()
        done = moving.end()
        assert (done.code, "quarterdeck wait demo" in done.err) == (130, True), str(done)
        fact = demo.status("demo", code=1)
        assert (fact["driver"], fact["operation"]) == (None, demo.operation("demo").metadata.name)
        under_way = "(Migrate) is in progress"
        demo.refused("migrate", "demo", "--to", source, "--yes", code=4, says=[under_way, "abort demo"])
        demo.refused("delete", "demo", "--yes", code=4, says=[under_way, "wait demo"])
        for site in (source, target):
            demo.refused("site", "remove", site, "--yes", code=4, says=["in use by demo"])
        demo.run("wait", "demo")
    assert demo.status("demo", code=0)["quorumAt"] == target


@pytest.mark.soak  # frozen in a hold is worse: tests/e2e/test_faults_driver.py
def test_a_driver_that_was_frozen_does_nothing_once_another_has_taken_over(demo: PlaneLab) -> None:
    target, after = demo.other("demo"), demo.last_entry("demo")
    with watched(demo, "demo", "frozen"):
        frozen = demo.start("migrate", "demo", "--to", target, "--yes")
        demo.journal("demo", lambda seen: did(seen, "start-unit"), "units start", after=after, during=frozen)
        frozen.freeze()
        demo.run("wait", "demo")  # its lease runs out, and passes on
        woken = demo.last_entry("demo")
        frozen.thaw()
        done = frozen.end()
        assert done.code == 4, str(done)
        later = demo.read(lambda home: home.store.journal("demo", after=woken))
        assert started(later) == 0, f"it acted: {later}"
    fact = demo.status("demo", code=0)
    assert fact["site"] == fact["quorumAt"] == target
    assert demo.operation("demo").status.phase is OperationPhase.SUCCEEDED


def test_the_migration_that_the_librarys_page_shows_moves_a_plane(demo: PlaneLab) -> None:
    target = demo.other("demo")
    shown = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "library.md").read_text(), re.DOTALL)
    assert shown is not None
    done = demo.start_program(sys.executable, "-c", shown[1].replace("alpha", "demo").replace("west", target)).end()
    assert (done.code, done.out.splitlines()[-1]) == (0, "succeeded"), str(done)
    assert "check='health', verdict=<Verdict.OK: 'ok'>" in done.out
    fact = demo.status("demo", code=0)
    assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == target
