"""From the journal and the probe to a report: nothing that went wrong may look right."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

import pytest
from pages.report_schema import document
from pydantic import BaseModel
from report_lab import MACHINE, SECONDS, STARTED, ZERO, Journal, journal, operation, probe_result, report
from support.golden import Golden
from support.resources import with_status

from quarterdeck.api.operation import OperationPhase, OperationType
from quarterdeck.errors import Corrupt, NotFound
from quarterdeck.probe.result import ProbeResult
from quarterdeck.report.build import build, this_machine
from quarterdeck.report.journal import moments_of, phases_of, steps_of, swap_window
from quarterdeck.report.schema import Outcome, Phase, Place, Role, StepOutcome, dump, load
from quarterdeck.report.verdicts import Limits, verdicts
from quarterdeck.report.words import VERBS, headline, milliseconds, seconds, summary, times

M = TypeVar("M", bound=BaseModel)


def test_a_good_migration_holds_all_that_must_hold(golden: Golden) -> None:
    made = report()
    assert made.holds
    assert made.outcome is Outcome.SUCCEEDED
    assert [verdict.holds for verdict in made.verdicts] == [True] * 6
    golden(headline(made))
    golden(summary(made))


def changed(part: M, **changes: object) -> M:
    return part.model_copy(update=changes)


def during(result: ProbeResult, **changes: object) -> ProbeResult:
    quiet, migrate = result.periods
    return changed(result, periods=(quiet, changed(migrate, overall=changed(migrate.overall, **changes))))


def quiet(result: ProbeResult, **changes: object) -> ProbeResult:
    first, migrate = result.periods
    return changed(result, periods=(changed(first, overall=changed(first.overall, **changes)), migrate))


def writes(result: ProbeResult, **changes: object) -> ProbeResult:
    return changed(result, writes=changed(result.writes, **changes))


def watches(result: ProbeResult, **changes: object) -> ProbeResult:
    return changed(result, watches=changed(result.watches, **changes))


WRONG: dict[str, tuple[int, Callable[[ProbeResult], ProbeResult]]] = {
    "a failed request": (0, lambda it: during(it, failures=1)),
    "a failed request in the quiet": (0, lambda it: quiet(it, failures=1)),
    "no requests": (0, lambda it: during(quiet(it, requests=0), requests=0)),
    "a lost write": (1, lambda it: writes(it, lost=1)),
    "no audit": (1, lambda it: writes(it, audited=False)),
    "no writes": (1, lambda it: writes(it, acknowledged=0)),
    "a stale read": (2, lambda it: writes(it, stale_reads=1)),
    "a missed event": (3, lambda it: watches(it, missed=1)),
    "a doubled event": (3, lambda it: watches(it, duplicated=1)),
    "events out of order": (3, lambda it: watches(it, out_of_order=1)),
    "no events": (3, lambda it: watches(it, events=0)),
    "a stall over the ratio": (4, lambda it: during(it, stall_ms=58 * 4.01)),
    "a stall over the bound": (4, lambda it: during(it, stall_ms=401.0)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_each_thing_that_goes_wrong_breaks_its_own_verdict_only(wrong: str) -> None:
    number, change = WRONG[wrong]
    part = change(probe_result()).since(ZERO)
    found = verdicts(part, 9.0, Limits(stall_ratio=100.0 if wrong == "a stall over the bound" else 4.0))
    assert [verdict.holds for verdict in found] == [each != number for each in range(6)]


def test_a_window_over_its_limit_breaks_the_last_verdict(golden: Golden) -> None:
    assert not verdicts(None, 50.1, Limits())[-1].holds
    missed = verdicts(None, 62.0, Limits())[-1]
    assert (missed.holds, missed.promised) == (False, False)
    golden(f"{missed.claim}: {missed.measured}")
    assert verdicts(None, 0.0, Limits())[-1].holds
    assert verdicts(None, None, Limits()) == ()


def test_a_stall_after_the_migration_counts_too() -> None:
    it = probe_result()
    last = it.periods[1]
    after = changed(last, label="after", overall=changed(last.overall, stall_ms=5000.0))
    part = changed(it, periods=(*it.periods, after)).since(ZERO, "migrate")
    assert not verdicts(part, None, Limits())[-1].holds


def test_a_stall_in_which_the_probe_itself_stood_still_says_so(golden: Golden) -> None:
    it = probe_result()
    frozen = changed(it.periods[1], own_lag_ms=60.0)
    part = changed(it, periods=(it.periods[0], frozen)).since(ZERO, "migrate")
    golden(verdicts(part, None, Limits())[-1].measured)
    assert "itself" not in verdicts(it.since(ZERO, "migrate"), None, Limits())[-1].measured


def test_an_operation_that_failed_never_holds(golden: Golden) -> None:
    for phase, outcome in ((OperationPhase.FAILED, Outcome.FAILED), (OperationPhase.ABORTED, Outcome.ABORTED)):
        made = build(operation(phase), journal(), machine=MACHINE, now=STARTED, probe=probe_result())
        assert (made.outcome, made.holds) == (outcome, False)
        golden(headline(made))


def test_an_operation_that_runs_is_reported_so_far(golden: Golden) -> None:
    made = build(operation(OperationPhase.RUNNING), journal()[:20], machine=MACHINE, now=STARTED + timedelta(seconds=3))
    golden(headline(made))
    golden(summary(made))
    assert not made.holds


def test_a_report_says_where_clients_were_unless_they_were_here(golden: Golden) -> None:
    seen = changed(probe_result(), source="rack/cp-1")
    made = build(operation(), journal(), machine=MACHINE, now=STARTED, probe=seen)
    golden(summary(made))
    document = json.loads(dump(made))
    assert document["probe"].pop("from") == "rack/cp-1"
    here = build(operation(), journal(), machine=MACHINE, now=STARTED, probe=changed(seen, source=None))
    assert " from host" not in summary(here)


def test_an_operation_that_has_not_begun_has_no_report() -> None:
    pending = operation(OperationPhase.PENDING)
    pending = with_status(pending, started_at=None)
    with pytest.raises(NotFound):
        build(pending, (), machine=MACHINE, now=STARTED)


def test_steps_have_their_times_words_reasons_and_phases(golden: Golden) -> None:
    steps = steps_of(journal(), ZERO)
    assert [step.start for step in steps] == sorted(step.start for step in steps)
    by_text = {step.text: step for step in steps}
    learner = by_text["add-learner demo-4"]
    assert (learner.site, learner.phase) == ("west", Phase.JOIN)
    golden(learner.why)
    assert learner.end is not None
    assert learner.end - learner.start == pytest.approx(0.03, abs=1e-3)
    assert by_text["start-unit etcd demo-4"].phase is Phase.JOIN
    assert by_text["start-unit kube-apiserver demo-4"].phase is Phase.SERVE
    assert by_text["stop-unit kube-apiserver demo-1"].phase is Phase.DRAIN
    assert by_text["note-record west"].outcome is StepOutcome.NOTED
    spans = phases_of(steps)
    assert [span.phase for span in spans] == [Phase.JOIN, Phase.SERVE, Phase.DRAIN, Phase.SWAP, Phase.RELEASE]
    assert all(0 <= span.start <= span.end <= SECONDS for span in spans)


def test_a_step_that_failed_and_was_taken_again_is_two_steps(golden: Golden) -> None:
    it = Journal()
    it.step(1, 2, "promote-learner demo-4", "why", error="too far behind")
    it.step(3, 4, "promote-learner demo-4", "why")
    first, second = steps_of(it.entries, ZERO)
    assert first.outcome == StepOutcome.FAILED
    golden(first.error)
    assert (second.outcome, second.error) == (StepOutcome.DONE, "")


def test_a_step_that_a_crash_cut_off_has_no_end() -> None:
    it = Journal()
    it.step(1, 2, "promote-learner demo-4", "why")
    crashed = [it.entries[0], *it.entries]
    steps = steps_of(crashed, ZERO)
    assert sorted(step.outcome for step in steps) == [StepOutcome.DONE, StepOutcome.UNFINISHED]
    assert steps_of(it.entries[:1], ZERO)[0].end is None


def test_the_members_between_the_changes_of_a_swap_are_shown_though_nobody_observed_them() -> None:
    moments = moments_of(journal(), ZERO)
    swap = [moment for moment in moments if 11.1 < moment.at < 11.19]
    assert [sorted(m.replica[-1] for m in moment.members if m.role is Role.VOTER) for moment in swap] == [
        list("123456"), list("23456"), list("3456"), list("456"),
    ]  # fmt: skip
    assert swap[0].at == pytest.approx(11.15 - 0.047 + 0.011, abs=1e-3)


def test_the_swap_window_is_what_the_swap_measured() -> None:
    entries = journal()
    assert swap_window(entries, moments_of(entries, ZERO)) == pytest.approx(0.009)


def test_a_swap_of_the_events_etcd_is_no_swap_of_the_planes_quorum() -> None:
    entries = journal()
    events = [
        replace(each, detail={**each.detail, "cluster": "events"}) for each in entries if each.kind == "swap-voters"
    ]
    twice = [*entries, *events]
    assert moments_of(twice, ZERO) == moments_of(entries, ZERO)
    assert swap_window(twice, moments_of(twice, ZERO)) == pytest.approx(0.009)


def test_where_the_plane_stays_at_one_site_there_is_no_window() -> None:
    it = Journal()
    it.saw(0, ["demo-1"], leader="demo-1", backends={}, record="east")
    it.saw(1, ["demo-1"], leader="demo-1", backends={}, record="east")
    assert swap_window(it.entries, moments_of(it.entries, ZERO)) is None


def test_without_a_swap_the_window_is_what_was_observed() -> None:
    it = Journal()
    it.saw(0, ["demo-1"], leader="demo-1", backends={}, record="east")
    it.saw(1, ["demo-1", "demo-4"], leader="demo-1", backends={}, record="east")
    it.saw(3.5, ["demo-4"], leader="demo-4", backends={}, record="east")
    assert swap_window(it.entries, moments_of(it.entries, ZERO)) == pytest.approx(2.5)


def test_a_membership_that_could_not_be_read_shows_the_last_known_one() -> None:
    it = Journal()
    it.saw(0, ["demo-1"], leader="demo-1", backends={}, record="east")
    it.saw(1, [], leader=None, backends={}, record="east", known=False)
    _, second = moments_of(it.entries, ZERO)
    assert not second.membership_known
    assert [member.replica for member in second.members] == ["demo-1"]


def test_an_unhealthy_member_is_not_shown_as_healthy() -> None:
    it = Journal()
    it.saw(0, ["demo-1", "demo-2"], leader="demo-1", backends={"east": ["demo-1"]}, record="east", ill=["demo-2"])
    (moment,) = moments_of(it.entries, ZERO)
    assert [(member.replica, member.healthy) for member in moment.members] == [("demo-1", True), ("demo-2", False)]
    assert (moment.balancers[0].backends, moment.balancers[0].connections) == (("demo-1",), 8)


def test_times_of_the_probe_are_those_of_the_operation() -> None:
    part = probe_result(failing=True).since(ZERO)
    assert (part.quiet.start, part.quiet.end) == (-14.4, 0.0)
    assert part.failures[0].at == 8.0
    failed = [part.samples.at[row] for row, ok in enumerate(part.samples.ok) if not ok]
    assert failed[0] == pytest.approx(8.0)
    assert part.during.overall.stall_at == 11.2


def test_a_probe_without_a_mark_is_compared_with_itself_and_an_unknown_period_is_refused(golden: Golden) -> None:
    it = probe_result()
    part = changed(it, periods=it.periods[:1], compared=("quiet", "quiet")).since(ZERO)
    assert part.compared == ("quiet", "quiet")
    assert len(part.judged) == 1
    with golden.raises(NotFound):
        it.since(ZERO, "lunch")


def test_a_report_comes_back_from_its_json_as_it_was() -> None:
    made = report(failing=True)
    assert load(dump(made)) == made
    assert json.loads(dump(made))["schemaVersion"] == "quarterdeck.dev/report/v1"


def test_a_report_of_a_later_version_or_a_broken_one_is_refused_with_what_to_do(golden: Golden) -> None:
    document = json.loads(dump(report()))
    with golden.raises(Corrupt):
        load(json.dumps({**document, "schemaVersion": "quarterdeck.dev/report/v2"}).encode())
    with pytest.raises(Corrupt, match="damaged"):
        load(dump(report())[:1000])
    with pytest.raises(Corrupt, match="seconds"):
        load(json.dumps({**document, "seconds": "long"}).encode())
    assert load(json.dumps({**document, "addedLater": 1}).encode()) == report()


def test_the_documentation_says_something_of_every_field() -> None:
    rows = [line for line in document().splitlines() if line.startswith("| `")]
    assert len(rows) > 90
    assert all(len(line.split("|")[3].strip()) > 3 and len(line.split("|")[2].strip()) > 3 for line in rows)


def test_numbers_are_written_for_people(golden: Golden) -> None:
    assert [milliseconds(value) for value in (0.84, 9.96, 92.4, 1310)] == ["0.8 ms", "10.0 ms", "92 ms", "1.31 s"]
    golden([seconds(value) for value in (0.009, 14.21, 125.4)])
    assert [times(92, 61), times(1, 0)] == ["1.5 x", "–"]


@pytest.mark.parametrize(
    ("kind", "source", "target"),
    [
        ("Create", None, ("east", 3)),
        ("Scale", ("east", 1), ("east", 3)),
        ("Apply", ("east", 3), ("east", 3)),
        ("Replace", ("east", 3), ("east", 3)),
        ("Delete", None, None),
    ],
)
def test_each_operation_has_its_headline(
    kind: str, source: tuple[str, int] | None, target: tuple[str, int] | None, golden: Golden
) -> None:
    def place(at: tuple[str, int] | None) -> Place | None:
        return None if at is None else Place(site=at[0], replicas=at[1])

    made = report().model_copy(update={"kind": kind, "source": place(source), "target": place(target)})
    golden(headline(made))


def test_the_machine_is_described() -> None:
    machine = this_machine({"etcd": "3.6.16"})
    assert machine.cores >= 1
    assert machine.memory_bytes > 1 << 26
    assert machine.versions == {"etcd": "3.6.16"}


def test_every_kind_of_operation_has_a_verb() -> None:
    assert set(VERBS) == {each.value for each in OperationType}
