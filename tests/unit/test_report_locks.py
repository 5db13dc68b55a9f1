"""Who held which lock of controllers, as a report shows it."""

from __future__ import annotations

import io
import json
from datetime import timedelta

import pytest
from report_lab import MACHINE, STARTED, ZERO, locked, operation
from rich.console import Console
from support.golden import Golden
from support.resources import with_status

from quarterdeck.report.build import build
from quarterdeck.report.chart import figure, legend
from quarterdeck.report.html import render_html
from quarterdeck.report.locks import ending, lock_spans
from quarterdeck.report.schema import Report, dump, load
from quarterdeck.report.text import render_text

CLOUD, KUBE, OWN = "cloud-controller-manager", "kube-controller-manager", "ipam-migration"


@pytest.fixture(scope="module")
def report() -> Report:
    return build(operation(), locked(), machine=MACHINE, now=STARTED)


def test_a_report_has_who_held_which_lock_from_when_to_when(report: Report) -> None:
    assert [(each.lock, each.replica, each.start, each.end, ending(each)) for each in report.locks] == [
        (CLOUD, "demo-2", -300.0, 9.2, "expired"),
        (CLOUD, "demo-5", 10.1, None, "still held"),
        (OWN, "demo-5", 10.2, None, "still held"),
        (KUBE, "demo-1", -300.0, 8.9, "released"),
        (KUBE, "demo-4", 10.4, None, "still held"),
    ]
    assert load(dump(report)) == report
    assert not [each for each in report.steps if each.kind.startswith("Lock")], "they are no steps"


def test_what_was_held_before_the_operation_is_known_from_before_and_what_had_ended_is_left_out() -> None:
    mine = [each for each in locked() if each.time > ZERO + 5]
    found = build(operation(), mine, machine=MACHINE, now=STARTED, locks=locked()).locks
    assert next(each.start for each in found if each.replica == "demo-1") == -300.0
    later = with_status(operation(), started_at=STARTED + timedelta(seconds=9))
    found = build(later, mine, machine=MACHINE, now=STARTED, locks=locked()).locks
    assert [(each.replica, each.end) for each in found if each.end is not None] == [("demo-2", 0.2)]


def test_the_chart_has_a_row_for_each_lock_within_the_time_that_it_shows(report: Report, golden: Golden) -> None:
    assert [(each.row, each.start, each.end) for each in lock_spans(report.locks, 0.0, 14.2)] == [
        (CLOUD, 0.0, 9.2),
        (CLOUD, 10.1, 14.2),
        (OWN, 10.2, 14.2),
        (KUBE, 0.0, 8.9),
        (KUBE, 10.4, 14.2),
    ]
    drawn = json.loads(str(figure(report).to_json()))
    titles = [each["text"] for each in drawn["layout"]["annotations"]]
    golden(titles)
    (bars,) = [each for each in drawn["data"] if OWN in (each.get("y") or ())]
    golden(bars["text"])
    colors = legend(report)
    assert len({colors[f"{CLOUD} of demo-{number}"] for number in (2, 5)} | {colors[f"{KUBE} of demo-1"]}) == 3


def test_the_page_and_the_terminal_have_a_table_of_them(report: Report) -> None:
    page = render_html(report)
    assert "<h2>Locks of controllers</h2>" in page
    assert f"<td>{OWN}</td><td>{CLOUD} of demo-5<small>demo-5_clou</small></td>" in page
    console = Console(width=120, file=io.StringIO(), record=True)
    console.print(render_text(report))
    (line,) = [each.split() for each in console.export_text().splitlines() if each.strip().startswith(OWN)]
    assert line == [OWN, CLOUD, "of", "demo-5", "10.20", "s", "still", "held"]
