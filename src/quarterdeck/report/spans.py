"""From moments to spans: how long each state lasted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from quarterdeck.report.schema import MemberState, Moment, Role


class SpanStyle(StrEnum):
    """How a span is shown."""

    JOINING = "joining"
    LEARNER = "learner"
    VOTER = "voter"
    LEADER = "leader"
    ILL = "not healthy"
    BACKEND = "backend"
    RECORD = "record"
    LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Span:
    """A row had the state ``look`` from ``start`` to ``end``, in seconds."""

    row: str
    look: SpanStyle
    start: float
    end: float
    text: str = ""


def member_spans(moments: Sequence[Moment], until: float) -> tuple[Span, ...]:
    """One row per member, in the order of their appearance. A member that was never healthy yet does not count as
    unhealthy.
    """
    known: set[str] = set()

    def rows(moment: Moment) -> dict[str, tuple[SpanStyle, str]]:
        known.update(each.replica for each in moment.members if each.healthy or each.role is not Role.LEARNER)
        return {
            f"{each.replica} · {each.site}": (_look(each) if each.replica in known else SpanStyle.JOINING, each.site)
            for each in moment.members
        }

    return _spans(moments, until, rows)


def backend_spans(moments: Sequence[Moment], until: float) -> tuple[Span, ...]:
    """One row per load balancer and backend."""

    def rows(moment: Moment) -> dict[str, tuple[SpanStyle, str]]:
        return {
            f"{balancer.site} ▸ {backend}": (SpanStyle.BACKEND, balancer.site)
            for balancer in moment.balancers
            for backend in balancer.backends
        }

    return _spans(moments, until, rows)


def record_spans(moments: Sequence[Moment], until: float) -> tuple[Span, ...]:
    """One row: the site that the plane's name leads to."""

    def rows(moment: Moment) -> dict[str, tuple[SpanStyle, str]]:
        return {"name": (SpanStyle.RECORD, moment.record)} if moment.record is not None else {}

    return _spans(moments, until, rows)


def _look(member: MemberState) -> SpanStyle:
    if not member.healthy:
        return SpanStyle.ILL
    if member.leader:
        return SpanStyle.LEADER
    return SpanStyle.LEARNER if member.role is Role.LEARNER else SpanStyle.VOTER


def _spans(
    moments: Sequence[Moment], until: float, rows: Callable[[Moment], Mapping[str, tuple[SpanStyle, str]]]
) -> tuple[Span, ...]:
    return tuple(sorted(_walk(moments, until, rows), key=lambda span: (span.start, span.row)))


def _walk(
    moments: Sequence[Moment], until: float, rows: Callable[[Moment], Mapping[str, tuple[SpanStyle, str]]]
) -> Iterator[Span]:
    running: dict[str, tuple[float, tuple[SpanStyle, str]]] = {}
    for moment in moments:
        now = rows(moment)
        for row, (start, state) in list(running.items()):
            if now.get(row) != state:
                del running[row]
                yield Span(row, state[0], start, moment.at, state[1])
        for row, state in now.items():
            running.setdefault(row, (moment.at, state))
    for row, (start, state) in running.items():
        yield Span(row, state[0], start, max(until, start), state[1])
