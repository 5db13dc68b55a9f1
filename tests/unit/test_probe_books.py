"""The probe's books: losses, order of events, stalls, samples. No network."""

from __future__ import annotations

import math

import pytest
from support.golden import Golden

from quarterdeck.errors import InvalidInput
from quarterdeck.probe.ledger import Ledger, ObjectSlot
from quarterdeck.probe.order import EventCheck
from quarterdeck.probe.result import QUIET
from quarterdeck.probe.tally import Histogram, SampleStore, Tally
from quarterdeck.probe.target import DEFAULT_CLIENTS, ClientKind, ProbeSettings

A, B = ObjectSlot(0, 0), ObjectSlot(0, 1)


def wrote(check: EventCheck, *numbers: int, slot: ObjectSlot = A) -> None:
    for number in numbers:
        check.begun(slot, number, started=float(number))
        check.acknowledged(slot, number)


def test_an_acknowledged_write_that_reads_back_older_is_lost_once(golden: Golden) -> None:
    ledger = Ledger()
    ledger.acknowledge(A, 7)
    ledger.read_back(A, 7, 7)
    assert ledger.lost == 0
    ledger.read_back(A, 7, 3)
    ledger.audit({A: 3})
    writes = ledger.writes()
    assert (writes.lost, writes.audited) == (1, True)
    golden(writes.examples)


def test_the_audit_finds_what_nobody_read_again(golden: Golden) -> None:
    ledger = Ledger()
    ledger.acknowledge(A, 1)
    ledger.acknowledge(B, 2)
    assert not ledger.writes().audited
    ledger.audit({A: 1})
    assert ledger.writes().lost == 1
    golden(ledger.writes().examples[0])


def test_a_write_of_unknown_outcome_that_took_place_is_no_loss() -> None:
    ledger = Ledger()
    ledger.acknowledge(A, 1)
    ledger.fail()
    ledger.audit({A: 33})
    assert (ledger.writes().lost, ledger.writes().unknown) == (0, 1)


def test_a_read_older_than_what_was_acknowledged_before_it_began_is_stale() -> None:
    ledger = Ledger()
    ledger.acknowledge(A, 5)
    floor = ledger.floor(A)
    ledger.acknowledge(A, 37)  # during the read: either may be seen
    ledger.read(floor, 5)
    ledger.read(floor, 37)
    assert ledger.writes().stale_reads == 0
    ledger.read(floor, 4)
    ledger.read(floor, None)
    assert ledger.writes().stale_reads == 2


def test_events_once_and_in_order_are_all_that_is_wanted() -> None:
    check = EventCheck()
    wrote(check, 1, 2, 3)
    assert not check.caught_up
    assert [check.event(A, number, 100 + number) for number in (1, 2, 3)] == [1.0, 2.0, 3.0]
    assert check.caught_up
    check.settle()
    assert (check.events, check.missed, check.duplicated, check.out_of_order) == (3, 0, 0, 0)


def test_an_event_that_comes_before_its_acknowledgement_is_due_and_not_twice() -> None:
    check = EventCheck()
    check.begun(A, 1, 5.0)
    assert check.event(A, 1, 101) == 5.0
    check.acknowledged(A, 1)
    assert check.caught_up


def test_a_missing_event_is_missed(golden: Golden) -> None:
    check = EventCheck()
    wrote(check, 1, 2, 3)
    check.event(A, 1, 101)
    check.event(A, 3, 103)
    check.settle()
    assert check.missed == 1
    golden(check.examples)


def test_an_event_that_comes_again_is_a_duplicate_with_the_same_revision_or_another() -> None:
    for revision in (101, 109):
        check = EventCheck()
        wrote(check, 1)
        check.event(A, 1, 101)
        check.event(A, 1, revision)
        assert (check.duplicated, check.out_of_order) == (1, 0)


def test_events_that_change_places_are_out_of_order() -> None:
    check = EventCheck()
    wrote(check, 1)
    wrote(check, 2, slot=B)
    check.event(B, 2, 102)
    check.event(A, 1, 101)
    check.settle()
    assert (check.missed, check.duplicated, check.out_of_order) == (0, 0, 1)


def test_an_unacknowledged_write_may_be_seen_or_not() -> None:
    for seen in (True, False):
        check = EventCheck()
        check.begun(A, 1, 0.0)
        check.failed(A, 1)
        if seen:
            check.event(A, 1, 101)
        check.settle()
        assert (check.missed, check.duplicated, check.out_of_order) == (0, 0, 0)


def test_what_a_list_after_gone_hides_is_missed_and_what_it_shows_is_not() -> None:
    check = EventCheck()
    wrote(check, 1, 2)
    wrote(check, 3, slot=B)
    check.listed({A: 2}, 150)
    assert check.missed == 1
    assert check.revision == 150
    check.event(B, 3, 151)
    check.settle()
    assert check.missed == 1


def test_a_bookmark_moves_the_point_to_resume_from() -> None:
    check = EventCheck()
    check.bookmark(120)
    check.bookmark(110)
    assert check.revision == 120


def test_what_is_pending_is_bounded() -> None:
    check = EventCheck()
    for number in range(1, 100_101):
        check.begun(A, number, 0.0)
    assert check.missed == 100


def test_quantiles_are_exact_to_two_percent() -> None:
    histogram = Histogram()
    values = [0.5 * 1.01**power for power in range(1000)]
    for value in values:
        histogram.add(value)
    for share in (0.01, 0.5, 0.99):
        exact = values[math.ceil(share * 1000) - 1]
        assert exact <= histogram.quantile(share) * 1.000001 <= exact * 1.021
    assert histogram.quantile(1.0) == values[-1]
    assert Histogram().quantile(0.5) == 0.0


def success(tally: Tally, started: float, ended: float, client: str = "c") -> None:
    tally.success(client, ClientKind.READER, started, ended, address="a")


def failure(tally: Tally, started: float, ended: float, client: str = "c") -> None:
    tally.failure(client, ClientKind.READER, started, ended, request="GET /x", reason="status 429", address="a")


def test_a_stall_lasts_from_the_first_failure_to_the_next_success() -> None:
    tally = Tally(0.0)
    success(tally, 1.0, 1.1)
    failure(tally, 2.0, 2.1)
    success(tally, 2.2, 2.3, client="another")
    failure(tally, 3.0, 3.1)
    success(tally, 4.0, 4.5)
    figures = tally.overall()
    assert figures.stall_ms == pytest.approx(2500)
    assert figures.stall_at == 4.5
    assert (figures.requests, figures.failures) == (5, 2)
    assert figures.p99_ms == pytest.approx(500, rel=0.02)  # the request itself was no slower than that


def test_a_stall_that_no_success_ended_counts_until_the_mark_and_goes_on() -> None:
    tally = Tally(0.0)
    failure(tally, 1.0, 1.1)
    assert tally.mark("migrate", 5.0).overall.stall_ms == pytest.approx(4000)
    success(tally, 6.0, 6.1)
    assert tally.finish(7.0)[1].overall.stall_ms == pytest.approx(5100)


def test_a_request_belongs_to_the_period_in_which_it_ends() -> None:
    tally = Tally(0.0)
    success(tally, 0.1, 0.2)
    tally.mark("migrate", 1.0)
    success(tally, 0.9, 1.4)
    failure(tally, 1.5, 1.6)
    quiet, migrate = tally.finish(2.0)
    assert (quiet.label, quiet.overall.requests, quiet.overall.stall_ms) == (QUIET, 1, pytest.approx(100))
    assert (migrate.label, migrate.overall.requests, migrate.overall.failures) == ("migrate", 2, 1)
    assert (migrate.start, migrate.end) == (1.0, 2.0)
    assert tally.failures[0].period == "migrate"
    assert tally.totals() == (3, 1, 0)


def test_the_probes_own_lag_is_told_per_period() -> None:
    tally = Tally(0.0)
    tally.lag(3.0)
    tally.lag(1.0)
    assert tally.mark("x", 1.0).own_lag_ms == 3.0
    assert tally.finish(2.0)[1].own_lag_ms == 0.0


def test_news_is_a_wait_but_no_request() -> None:
    tally = Tally(0.0)
    tally.news("w", ClientKind.WATCHER, 1.0, 1.25, address="a")
    figures = tally.overall()
    assert (figures.requests, figures.stall_ms) == (0, pytest.approx(250))


def test_samples_are_bounded_and_keep_maxima_and_failures() -> None:
    store = SampleStore(limit=100)
    for number in range(5_000):
        worst, failed = number == 1_234, number == 2_345
        store.add(number / 10, ClientKind.READER, 900.0 if worst else 1.0, "a", ok=not failed)
        store.add(number / 10, ClientKind.WRITER, 2.0, f"address {number % 3}", ok=True)
    samples = store.samples()
    assert len(samples.at) < 100
    assert max(samples.ms) == 900.0
    assert samples.ok.count(False) == 1
    assert list(samples.at) == sorted(samples.at)
    assert {samples.kinds[kind] for kind in samples.kind} == {ClientKind.READER, ClientKind.WRITER}
    assert len(samples.addresses) == 4


def test_failures_are_counted_beyond_those_that_are_kept() -> None:
    tally = Tally(0.0)
    for number in range(1_500):
        failure(tally, number, number + 0.5)
    assert len(tally.failures) == 1_000
    assert tally.overall().failures == 1_500


@pytest.mark.parametrize(
    "changes",
    [
        {"id": ""},
        {"id": "Upper"},
        {"id": "x" * 40},
        {"rate": 0},
        {"rate": 1e9},
        {"rate": float("nan")},
        {"clients": ()},
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        ProbeSettings(**{"id": "x", **changes})  # type: ignore[arg-type]


def test_the_default_load_measures_and_does_not_weigh() -> None:
    settings = ProbeSettings(id="x")
    requests = settings.rate * sum(count for kind, count in DEFAULT_CLIENTS if kind is not ClientKind.WATCHER)
    assert 100 <= requests <= 200
    assert {kind for kind, _ in DEFAULT_CLIENTS} == set(ClientKind)
