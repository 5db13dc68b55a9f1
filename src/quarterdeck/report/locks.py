"""The holders of locks of controllers, from the journal's entries of an operation."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.handover.tenures import Tenure, tenures_of
from quarterdeck.report.schema import LockSpan
from quarterdeck.report.spans import Span, SpanStyle
from quarterdeck.stores.port import JournalEntry

_COLORS = {
    "kube-controller-manager": ("#5b8def", "#3f6fd1", "#86abf4", "#2f55a4", "#a9c3f7", "#24437f", "#c6d8fa"),
    "cloud-controller-manager": ("#f2a33a", "#d98717", "#f6bd74", "#b06c0e", "#f9d3a1", "#86520a", "#fbe2c1"),
}
_OTHER = "#9aa3b2"


def locks_of(entries: Sequence[JournalEntry], started: float, ended: float) -> tuple[LockSpan, ...]:
    """By lock, and then by their start: all that were held between these times (seconds since the epoch), the first of
    which is the zero of the report.
    """

    def seconds(time: float | None) -> float | None:
        return None if time is None else round(time - started, 4)

    def span(tenure: Tenure) -> LockSpan:
        return LockSpan(
            lock=tenure.lock,
            component=tenure.component,
            replica=tenure.replica,
            holder=tenure.holder,
            token=tenure.token,
            start=round(tenure.begins - started, 4),
            end=seconds(tenure.ends),
            released=tenure.released,
            renewed=seconds(tenure.renewed),
            unseen=tenure.unseen,
        )

    within = (each for each in tenures_of(entries) if each.begins < ended and each.until(ended) > started)
    return tuple(map(span, within))


def holder(span: LockSpan) -> str:
    """Such as ``cloud-controller-manager of demo-3``."""
    return f"{span.component} of {span.replica}" if span.component and span.replica else span.component or span.holder


def ending(span: LockSpan) -> str:
    """How it ended, as text."""
    if span.end is None:
        return "still held"
    if span.released:
        return "released"
    return "not observed" if span.unseen else "expired"


def holder_colors(locks: Sequence[LockSpan]) -> dict[str, str]:
    """The colour of each holder: those of one program have shades of one colour."""
    shades = {name: iter(colors) for name, colors in _COLORS.items()}
    holders = sorted({holder(each): each.component for each in locks}.items())
    return {name: next(shades.get(component, iter(())), _OTHER) for name, component in holders}


def lock_spans(locks: Sequence[LockSpan], since: float, until: float) -> tuple[Span, ...]:
    """One row per lock, cut to the time range."""
    ends = ((each, until if each.end is None else min(each.end, until)) for each in locks)
    return tuple(
        Span(each.lock, SpanStyle.LOCK, max(each.start, since), end, holder(each))
        for each, end in ends
        if each.start < until and end > since
    )
