"""The report for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from quarterdeck.probe.schema import Figures, Probe
from quarterdeck.report.locks import ending, holder
from quarterdeck.report.schema import Report
from quarterdeck.report.words import changes, count, headline, mark, milliseconds, seconds, summary, times, totals

_COLORS = {"✓": "green", "✗": "red", "!": "yellow"}


def render_text(report: Report) -> RenderableType:
    """Headline, promises, clients' results, and the duration of each phase."""
    color = "green" if report.holds else "red"
    parts: list[RenderableType] = [
        Text.assemble(("✓ " if report.holds else "✗ ", f"bold {color}"), (headline(report), "bold")),
        Text(f"  {summary(report)}", style="dim"),
    ]
    parts += [Text(f"  {each}") for each in changes(report)]
    if report.message:
        parts.append(Text(f"  {report.message}"))
    if report.verdicts:
        parts += [Text(), _verdicts(report)]
    if report.probe is not None:
        parts += [Text(), clients_table(report.probe)]
        parts += [
            Text(f"  {failure.at:8.2f} s  {failure.client}: {failure.reason} ({failure.request})", style="red")
            for failure in report.probe.failures[:10]
        ]
    if report.phases:
        parts += [Text(), _phases(report)]
    if report.locks:
        parts += [Text(), _locks(report)]
    return Group(*parts)


def _verdicts(report: Report) -> Table:
    table = Table.grid(padding=(0, 2))
    for verdict in report.verdicts:
        color = _COLORS[mark(verdict)]
        measured = Text(verdict.measured, style="dim" if verdict.holds else color)
        table.add_row(Text(f"  {mark(verdict)}", style=f"bold {color}"), f"{escape(verdict.claim)}:", measured)
    return table


def clients_table(probe: Probe) -> Table:
    """The results of each kind of client, compared with the quiet period."""
    quiet, during = probe.quiet, probe.during
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0), caption_justify="left")
    if len(probe.periods) > 1:
        table.caption = f"  of '{probe.during.label}'; {count(totals(probe)[0])} requests in all"
    table.add_column("  client", no_wrap=True, min_width=18)
    for name in ("requests", "failed", "re-sent", "p50", "p99", "stall", "quiet", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    for kind in probe.samples.kinds:
        if kind in during.kinds:
            _row(table, kind, quiet.kinds.get(kind), during.kinds[kind])
    _row(table, "all", quiet.overall, during.overall, style="bold")
    return table


def _row(table: Table, kind: str, quiet: Figures | None, during: Figures, style: str = "") -> None:
    table.add_row(
        f"  {escape(kind)}",
        count(during.requests),
        Text(count(during.failures), style="bold red" if during.failures else ""),
        count(during.resent),
        milliseconds(during.p50_ms),
        milliseconds(during.p99_ms),
        milliseconds(during.stall_ms),
        Text(milliseconds(quiet.stall_ms) if quiet is not None else "–", style="dim"),
        times(during.stall_ms, quiet.stall_ms) if quiet is not None else "–",
        style=style,
    )


def _locks(report: Report) -> Table:
    """The holders of locks, in seconds of the operation."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("  lock", "held by", "from", "to", "end"):
        table.add_column(name, no_wrap=True, justify="right" if name in ("from", "to") else "left")
    for each in report.locks:
        ended = "" if each.end is None else f"{each.end:.2f} s"
        table.add_row(f"  {escape(each.lock)}", escape(holder(each)), f"{each.start:.2f} s", ended, ending(each))
    return table


def _phases(report: Report) -> Table:
    table = Table.grid(padding=(0, 2))
    for span in report.phases:
        left = round(30 * span.start / report.seconds) if report.seconds else 0
        width = max(1, round(30 * (span.end - span.start) / report.seconds)) if report.seconds else 1
        bar = Text(" " * left + "━" * min(width, 31 - left), style="blue")
        table.add_row(f"  {span.phase.value}", Text(seconds(span.end - span.start), style="dim"), bar)
    if report.swap_window_ms is not None:
        words = f"no site had a quorum by itself for {milliseconds(report.swap_window_ms)}"
        table.add_row("", "", Text(words, style="dim"))
    return table
