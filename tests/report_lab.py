"""A migration as the journal and the probe would tell it: 3 replicas, east to west."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime

from pydantic import JsonValue

from quarterdeck.api.base import Metadata
from quarterdeck.api.operation import Operation, OperationPhase, OperationSpec, OperationStatus
from quarterdeck.probe.result import FailedRequest, ProbeResult
from quarterdeck.probe.schema import Figures, Period, Samples, Watches, Writes
from quarterdeck.probe.target import ClientKind
from quarterdeck.report.build import build
from quarterdeck.report.schema import MeasurementHost, Report
from quarterdeck.stores.port import EntryOutcome, JournalEntry

STARTED = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ZERO = STARTED.timestamp()
SECONDS = 14.2
EAST, WEST = ("demo-1", "demo-2", "demo-3"), ("demo-4", "demo-5", "demo-6")
MACHINE = MeasurementHost(
    cores=2,
    memory_bytes=8 << 30,
    kernel="6.18.5",
    python="3.11.7",
    versions={"kubernetes": "v1.36.3", "etcd": "3.6.16"},
)


def operation(phase: OperationPhase = OperationPhase.SUCCEEDED) -> Operation:
    def goal(site: str) -> dict[str, object]:
        spec = {"placement": {"site": site}}
        return {**spec, "replicas": 3, "spec": spec, "revision": "demo-1", "addonManifests": ""}

    spec = OperationSpec.model_validate(
        {"plane": "demo", "type": "Migrate", "from": goal("east"), "to": goal("west")}, strict=False
    )
    status = OperationStatus(
        phase=phase,
        started_at=STARTED,
        finished_at=datetime.fromtimestamp(ZERO + SECONDS, UTC) if phase is not OperationPhase.RUNNING else None,
    )
    return Operation(metadata=Metadata(name="demo-migrate-1a2b3c"), spec=spec, status=status)


class Journal:
    """Builds entries with growing ids."""

    def __init__(self) -> None:
        self.entries: list[JournalEntry] = []

    def add(self, at: float, kind: str, text: str, outcome: EntryOutcome, **fields: object) -> None:
        detail = fields.pop("detail", {})
        self.entries.append(
            JournalEntry(
                plane="demo", time=ZERO + at, kind=kind, text=text, outcome=outcome, id=len(self.entries) + 1,
                detail=detail, **fields,  # type: ignore[arg-type]
            )
        )  # fmt: skip

    def step(
        self, start: float, end: float, words: str, why: str, *, site: str = "", replica: str = "",
        error: str = "", detail: dict[str, JsonValue] | None = None,
    ) -> None:  # fmt: skip
        kind, text = words.split()[0], f"{words}: {why}"
        fields = {"site": site, "replica": replica}
        self.add(start, kind, text, EntryOutcome.STARTED, detail={"why": why}, **fields)
        last: dict[str, JsonValue] = {"why": why, "seconds": end - start, **(detail or {})}
        if error:
            self.add(end, kind, text, EntryOutcome.FAILED, detail={**last, "error": error}, **fields)
        else:
            self.add(end, kind, text, EntryOutcome.DONE, detail=last, **fields)

    def note(self, at: float, words: str, why: str) -> None:
        self.add(at, words.split()[0], f"{words}: {why}", EntryOutcome.NOTED, detail={"why": why})

    def saw(
        self, at: float, voters: Iterable[str], learners: Iterable[str] = (), *, leader: str | None,
        backends: dict[str, list[str]], record: str, ill: Iterable[str] = (), known: bool = True,
    ) -> None:  # fmt: skip
        def member(name: str, role: str) -> dict[str, JsonValue]:
            site = "east" if name in EAST else "west"
            return {"role": role, "health": "down" if name in ill else "healthy", "site": site}

        members = {name: member(name, "voter") for name in voters} | {
            name: member(name, "learner") for name in learners
        }
        detail = {
            "membershipKnown": known, "members": members, "leader": leader, "backends": backends, "record": record,
            "connections": dict.fromkeys(backends, 8),
        }  # fmt: skip
        self.add(at, "Observed", "", EntryOutcome.NOTED, detail=detail)


def journal() -> list[JournalEntry]:
    it = Journal()
    old = {"east": list(EAST)}
    it.saw(0.05, EAST, leader="demo-2", backends=old, record="east")
    for number, name in enumerate(WEST):
        it.note(0.1 + number / 100, f"place-replica {name} west-{number + 1}", "the plane is wanted at west")
    for number, name in enumerate(WEST):
        at = 0.2 + 0.25 * number
        it.step(at, at + 0.03, f"add-learner {name}", "a learner risks nothing", site="west", replica=name)
        it.step(at + 0.04, at + 0.2, f"start-unit etcd {name}", "the member is on the list", site="west", replica=name)
        it.saw(at + 0.05, EAST, WEST[: number + 1], leader="demo-2", backends=old, record="east")
    for number, name in enumerate(WEST[:2]):
        why = "it lags by less than 1,000 entries, and east remains the quorum site"
        it.step(3.6 + number * 0.1, 3.62 + number * 0.1, f"promote-learner {name}", why, site="west", replica=name)
        it.saw(
            3.63 + number * 0.1,
            (*EAST, *WEST[: number + 1]),
            WEST[number + 1 :],
            leader="demo-2",
            backends=old,
            record="east",
        )
    five, rest = (*EAST, *WEST[:2]), WEST[2:]
    for name in WEST[:2]:
        it.step(3.8, 4.1, f"start-unit kube-apiserver {name}", "its member votes", site="west", replica=name)
    more = {"east": [*EAST, *WEST[:2]], "west": [*WEST[:2]]}
    it.step(7.3, 7.5, "set-backends demo-4, demo-5", "they are ready", site="west")
    it.step(7.3, 7.42, "set-backends demo-1, demo-2, demo-3, demo-4, demo-5", "old clients find them too", site="east")
    it.saw(7.52, five, rest, leader="demo-2", backends=more, record="east")
    it.step(7.55, 7.6, "set-record west", "both balancers lead to ready apiservers", site="")
    it.note(7.62, "note-record west", "clients may hold the old address for 5 s more")
    fewer = {"east": [*WEST[:2]], "west": [*WEST[:2]]}
    it.saw(7.65, five, rest, leader="demo-2", backends=more, record="west")
    it.step(7.7, 7.8, "set-backends demo-4, demo-5", "the source drains", site="east")
    it.saw(7.85, five, rest, leader="demo-2", backends=fewer, record="west")
    for name in EAST:
        it.step(
            8.9, 10.8, f"stop-unit kube-apiserver {name}", "nobody is sent to it any more", site="east", replica=name
        )
    it.step(10.9, 11.02, "transfer-leadership demo-4", "a leader is never removed", site="west", replica="demo-4")
    it.saw(11.05, five, rest, leader="demo-4", backends=fewer, record="west")
    changes: list[JsonValue] = [
        ["promote-learner", "demo-6", 0.011], ["remove-member", "demo-1", 0.02], ["remove-member", "demo-2", 0.034],
        ["remove-member", "demo-3", 0.047],
    ]  # fmt: skip
    it.step(
        11.1, 11.15, "swap-voters promote demo-6 then remove demo-1 then remove demo-2 then remove demo-3",
        "the shortest way to a quorum at west", site="west",
        detail={"whole": 0.047, "homeless": 0.009, "changes": changes},
    )  # fmt: skip
    it.saw(11.2, WEST, leader="demo-4", backends=fewer, record="west")
    it.step(11.2, 11.5, "start-unit kube-apiserver demo-6", "its member votes", site="west", replica="demo-6")
    it.step(13.2, 13.3, "set-backends demo-4, demo-5, demo-6", "it is ready", site="west")
    final = {"east": [*WEST[:2]], "west": list(WEST)}
    it.saw(13.35, WEST, leader="demo-4", backends=final, record="west")
    it.step(13.6, 13.75, "stop-load-balancer", "nobody can hold its address any more", site="east")
    it.saw(13.8, WEST, leader="demo-4", backends={"west": list(WEST)}, record="west")
    for name in EAST:
        it.step(13.85, 14.1, f"release-replica {name}", "the exchange is done", site="east", replica=name)
    return it.entries


def locked() -> list[JournalEntry]:
    """The same, while a set of controllers goes from one manager to another."""
    it = Journal()
    it.entries = journal()
    kube, cloud, own = "kube-controller-manager", "cloud-controller-manager", "ipam-migration"
    for lock, component, replica, begins, ends, token, released in (
        (kube, kube, "demo-1", -300.0, 8.9, 4, True),
        (kube, kube, "demo-4", 10.4, None, 5, True),
        (cloud, cloud, "demo-2", -300.0, 9.2, 2, False),
        (cloud, cloud, "demo-5", 10.1, None, 3, True),
        (own, cloud, "demo-5", 10.2, None, 0, True),
    ):
        known: dict[str, JsonValue] = {"lock": lock, "holder": f"{replica}_{component[:4]}", "token": token}
        holder: dict[str, JsonValue] = {"component": component, "replica": replica, "acquired": ZERO + begins}
        it.add(max(begins, 0.02), "LockTaken", f"{replica} took {lock}", EntryOutcome.NOTED, detail={**known, **holder})
        if ends is not None:
            left: dict[str, JsonValue] = {"renewed": ZERO + ends - 0.5, "duration": 0.5, "released": released}
            it.add(ends, "LockLeft", f"{replica} left {lock}", EntryOutcome.NOTED, detail={**known, **left})
    return it.entries


def figures(requests: int, stall: float, at: float, failures: int = 0, resent: int = 0) -> Figures:
    return Figures(
        requests=requests, failures=failures, resent=resent, stall_ms=stall, stall_at=ZERO + at,
        p50_ms=4.1 + stall / 80, p99_ms=stall * 0.6,
    )  # fmt: skip


def probe_result(*, failing: bool = False) -> ProbeResult:
    chance = random.Random(7)
    quiet = {kind: 40 + 3 * number for number, kind in enumerate(ClientKind)}
    during = {kind: 61 + 5 * number for number, kind in enumerate(ClientKind)}
    failed = {ClientKind.PINNED: 2} if failing else {}
    rows: list[tuple[float, float, ClientKind, bool]] = []
    for kind in ClientKind:
        for number in range(20 * 29):
            at = number / 20 + chance.random() / 20
            busy = 14.4 < at < 29 and (22.2 < at < 23 or 25.5 < at < 26.4)
            ms = (
                chance.lognormvariate(1.5, 0.35)
                * (3 if busy else 1)
                * (2.2 if kind is ClientKind.NEW_CONNECTION else 1)
            )
            rows.append((at, min(ms, 38.0), kind, True))
        rows += [(5.0, float(quiet[kind]), kind, True), (25.6, float(during[kind]), kind, True)]
        rows += [(22.4 + number / 10, 3.0, kind, False) for number in range(failed.get(kind, 0))]
    rows.sort()

    def period(
        label: str, start: float, end: float, stalls: dict[ClientKind, int], at: float, failures: dict[ClientKind, int]
    ) -> Period:
        each = {
            str(kind): figures(
                150, stalls[kind], at, failures.get(kind, 0), 1 if kind is ClientKind.KEEP_ALIVE and failures else 0
            )
            for kind in ClientKind
        }
        resent = sum(f.resent for f in each.values())
        total = figures(150 * len(ClientKind), max(stalls.values()), at, sum(failures.values()), resent)
        return Period(label=label, start=ZERO + start, end=ZERO + end, own_lag_ms=6.2, overall=total, kinds=each)

    kinds = tuple(ClientKind)
    return ProbeResult(
        id="x", host="demo.quarterdeck.internal", rate=20.0, compared=("quiet", "migrate"),
        periods=(
            period("quiet", -14.4, 0.0, quiet, -9.4, {}),
            period("migrate", 0.0, 14.6, during, 11.2, failed),
        ),
        writes=Writes(acknowledged=589, unknown=0, lost=0, stale_reads=0, audited=True, examples=()),
        watches=Watches(events=1178, missed=0, duplicated=0, out_of_order=0, relists=0, ended=2, cut=0, examples=()),
        failures=tuple(
            FailedRequest(at=ZERO + 8.0 + number / 10, sent=ZERO + 8.0, kind="pinned",
                    client="pinned-0", request="GET /api/v1/x", reason="status 429",
                    address="127.20.0.1", period="migrate")
            for number in range(sum(failed.values()))
        ),
        connections={str(kind): 2 for kind in ClientKind},
        samples=Samples(
            kinds=tuple(map(str, kinds)), addresses=("127.20.0.1", "127.30.0.1"),
            at=tuple(round(ZERO - 14.4 + row[0], 4) for row in rows), ms=tuple(row[1] for row in rows),
            kind=tuple(kinds.index(row[2]) for row in rows), address=tuple(int(row[0] > 22) for row in rows),
            ok=tuple(row[3] for row in rows),
        ),
    )  # fmt: skip


def report(*, failing: bool = False) -> Report:
    return build(operation(), journal(), machine=MACHINE, now=STARTED, probe=probe_result(failing=failing))
