"""The command that says whether two managers ever ran the same controllers: verify, of the group controllers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from quarterdeck.api.base import instant
from quarterdeck.api.output.controllers import (
    HolderSpan,
    LockGap,
    LockOverlap,
    SetVerdictRow,
    UnguardedAct,
    VerificationResult,
)
from quarterdeck.cli.arguments import Name, UnnamedOption, operations
from quarterdeck.cli.context import UnnamedOutput, err, go_inside, look, out, plain
from quarterdeck.cli.durations import duration_option
from quarterdeck.cli.output import Column, emit, table
from quarterdeck.errors import InvalidInput, Unavailable
from quarterdeck.handover.judgement import Judgement, SetTenure, SetVerdict, UnguardedWrite

if TYPE_CHECKING:
    from quarterdeck.app.verification import Verification

#: What the command ends with.
_CODES = {Judgement.PROVEN: 0, Judgement.BROKEN: 1, Judgement.UNKNOWN: Unavailable.exit_code}
_STYLES = {Judgement.PROVEN: "green", Judgement.BROKEN: "red", Judgement.UNKNOWN: "yellow"}
#: Of writes and overlaps so many are named.
_NAMED = 10

Since = Annotated[float | None, duration_option("--since", "How far back to check.")]
During = Annotated[
    str | None,
    typer.Option(
        "--operation",
        help="Check the time of this operation (default: the last one that moved a set, else the last hour).",
        autocompletion=operations,
        show_default=False,
    ),
]

Slack = Annotated[
    float, duration_option("--slack", "The most that the clocks of two machines may differ (default: 50ms).")
]


def verify(
    name: Name,
    since: Since = None,
    operation: During = None,
    slack: Slack = 0.05,
    output: UnnamedOption = UnnamedOutput.TABLE,
) -> None:
    """Check in locks and audit logs whether two processes ever ran the same controller set at the same time.

    Exits 0 if it is proven that none did, 1 if two did or one acted without a lock, 6 if the records do not tell.
    """
    doing = f"verifying controllers of plane {name}"
    if since is not None and operation is not None:
        raise InvalidInput(doing, "both --since and --operation", "give one of them")
    back = timedelta(seconds=since) if since is not None else None
    go_inside(name)
    found = look(lambda looks: looks.verify(name, since=back, operation=operation, slack=slack))
    emit(_result(found), output, lambda: _print(found))
    if code := _CODES[found.finding]:
        raise typer.Exit(code)


def _print(found: Verification) -> None:
    during = f"operation {found.operation}, " if found.operation else ""
    out.print(f"{during}{found.since:%F %T} to {found.until:%F %T} UTC", highlight=False, soft_wrap=True)
    for each in found.verdicts:
        out.print()
        out.print(f"[bold]{each.name}[/] (lock {each.lock}): {', '.join(each.controllers)}", highlight=False)
        if each.holders:
            table(each.holders, _COLUMNS)
        out.print(f"[{_STYLES[each.finding]}]{sentence(each)}[/]", highlight=False, soft_wrap=True)
        for line in _details(each):
            plain(f"  {line}", err)


def sentence(verdict: SetVerdict) -> str:
    """Such as ``no overlap; 1.3 s without a holder; 14 acts, all under a held lock``."""
    findings = {
        Judgement.PROVEN: "no overlap",
        Judgement.BROKEN: "overlap" if verdict.overlaps else "acts without a lock",
        Judgement.UNKNOWN: "undecided",
    }
    parts = [findings[verdict.finding]]
    if verdict.overlaps:
        parts.append(_count(len(verdict.overlaps), "time"))
    gaps = verdict.gaps
    if gaps:
        free, at_most = sum(each.seconds for each in gaps), sum(each.at_most for each in gaps)
        silent = f" ({at_most:.1f} s since it was last renewed)" if at_most - free > verdict.slack else ""
        parts.append(f"{free:.1f} s without a holder{silent}")
    outside = len(verdict.outside)
    under = "all under a held lock" if not outside else f"{outside} outside of any"
    if not outside and sum(each.acts for each in verdict.holders) < verdict.acts:
        under = "not all of them known to be under a held lock"
    parts.append(f"{_count(verdict.acts, 'act')}, {under}" if verdict.acts else "no acts")
    if verdict.perhaps:
        parts.append(f"{_count(verdict.perhaps, 'act')} that may be of it")
    return "; ".join(parts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _details(verdict: SetVerdict) -> Iterator[str]:
    """What was found to be wrong, and what is not known."""
    for overlap in verdict.overlaps[:_NAMED]:
        length = f" for {overlap.ends - overlap.begins:.3f} s" if overlap.ends > overlap.begins else ""
        yield f"{_clock(overlap.begins)}{length}: {overlap.what}"
    for each in verdict.outside[:_NAMED]:
        after = f", after {each.after} had taken over" if each.after else ""
        act = each.act
        yield f"{_clock(act.at)}: {act.description} wrote {act.object} ({act.verb}) without a lock{after}"
    yield from verdict.unknown
    yield f"clocks of two machines are taken to differ by up to {1000 * verdict.slack:.0f} ms"


_COLUMNS: tuple[Column[SetTenure], ...] = (
    Column("lock", lambda row: row.tenure.lock),
    Column("process", lambda row: row.tenure.description),
    Column("from", lambda row: _clock(row.begins)),
    Column("to", lambda row: _clock(row.ends) if row.ends is not None else "goes on"),
    Column("acts", lambda row: row.acts),
)


def _clock(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%H:%M:%S.%f")[:-3]


def _result(found: Verification) -> VerificationResult:
    return VerificationResult(
        plane=found.plane,
        operation=found.operation or None,
        from_at=found.since,
        to_at=found.until,
        finding=found.finding.value,
        sets=tuple(map(_of_set, found.verdicts)),
    )


def _of_set(verdict: SetVerdict) -> SetVerdictRow:
    return SetVerdictRow(
        name=verdict.name,
        lock=verdict.lock,
        controllers=tuple(verdict.controllers),
        finding=verdict.finding.value,
        message=sentence(verdict),
        slack_seconds=verdict.slack,
        acts=verdict.acts,
        perhaps=verdict.perhaps,
        holders=tuple(map(_of_holder, verdict.holders)),
        gaps=tuple(
            LockGap(
                from_at=instant(each.begins),
                to_at=instant(each.ends),
                duration_seconds=each.seconds,
                at_most_seconds=each.at_most,
            )
            for each in verdict.gaps
        ),
        overlaps=tuple(
            LockOverlap(
                from_at=instant(each.begins),
                to_at=instant(each.ends),
                first=each.first,
                second=each.second,
                message=each.what,
            )
            for each in verdict.overlaps
        ),
        outside=tuple(map(_of_act, verdict.outside)),
        reasons=tuple(verdict.unknown),
    )


def _of_holder(holder: SetTenure) -> HolderSpan:
    return HolderSpan(
        lock=holder.tenure.lock,
        component=holder.tenure.component,
        replica=holder.tenure.replica,
        holder=holder.tenure.holder,
        from_at=instant(holder.begins),
        to_at=instant(holder.ends) if holder.ends is not None else None,
        released=holder.tenure.released,
        acts=holder.acts,
    )


def _of_act(outside: UnguardedWrite) -> UnguardedAct:
    return UnguardedAct(
        at=instant(outside.act.at),
        component=outside.act.component.value,
        replica=outside.act.replica,
        verb=outside.act.verb,
        object=outside.act.object,
        after=outside.after,
    )
