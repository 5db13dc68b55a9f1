"""The report as one page that needs no network: it contains plotly's script."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files

from plotly.offline import get_plotlyjs

from quarterdeck.probe.schema import Figures, Probe
from quarterdeck.report.chart import figure, legend
from quarterdeck.report.locks import ending, holder
from quarterdeck.report.schema import MeasurementHost, PromiseVerdict, Report, StepOutcome, StepSpan
from quarterdeck.report.words import (
    by_period,
    changes,
    count,
    headline,
    mark,
    milliseconds,
    seconds,
    summary,
    times,
    totals,
)


def render_html(report: Report) -> str:
    """The whole page (about 5 MB, nearly all of it plotly's script). Every text of the report is escaped."""
    drawn = str(figure(report).to_json())
    figure_json = drawn.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    page = files("quarterdeck.report") / "page"
    parts = [
        _header(report),
        _tiles(report),
        _claims(report.verdicts),
        _clients(report.probe) if report.probe is not None else "",
        _chart(report),
        _failures(report.probe) if report.probe is not None else "",
        _locks(report),
        _steps(report),
        _machine(report.machine),
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(headline(report))}</title>",
            f"<style>{(page / 'report.css').read_text()}</style></head>",
            f'<body class="{"right" if report.holds else "wrong"}"><main>',
            *parts,
            f"<footer>{escape(report.schema_version)}, operation {escape(report.operation)}</footer></main>",
            f'<script type="application/json" id="figure">{figure_json}</script>',
            f"<script>{get_plotlyjs()}</script>",
            f"<script>{(page / 'report.js').read_text()}</script></body></html>",
            "",
        ]
    )


def _header(report: Report) -> str:
    began = report.started.strftime("%Y-%m-%d %H:%M:%S UTC")
    notes = (*changes(report), *([report.message] if report.message else []))
    message = "".join(f'<p class="note">{escape(each)}</p>' for each in notes)
    return (
        f'<header><p class="eyebrow">{escape(report.kind)} of {escape(report.plane)}, {began}</p>'
        f'<h1><span class="mark">{"✓" if report.holds else "✗"}</span> {escape(headline(report))}</h1>'
        f'<p class="lead">{escape(summary(report))}</p>{message}</header>'
    )


def _tiles(report: Report) -> str:
    tiles = [(seconds(report.seconds), "the whole operation", False)]
    probe = report.probe
    if probe is not None:
        requests, failed = totals(probe)
        missed = probe.watches.missed
        stall = probe.during.overall.stall_ms
        ratio = times(stall, probe.quiet.overall.stall_ms)
        tiles += [
            (count(failed), f"failed of {count(requests)} requests in all", failed > 0),
            (count(probe.writes.lost), f"lost of {count(probe.writes.acknowledged)} writes", probe.writes.lost > 0),
            (count(missed), f"missed of {count(probe.watches.events + missed)} events", missed > 0),
            (milliseconds(stall), f"longest stall, {ratio} the quiet one", False),
        ]
    if report.swap_window_ms is not None:
        tiles.append((milliseconds(report.swap_window_ms), "no site had a quorum by itself", False))
    return '<div class="tiles">' + "".join(_tile(*tile) for tile in tiles) + "</div>"


def _tile(value: str, words: str, bad: bool) -> str:
    return f'<div class="tile{" bad" if bad else ""}"><b>{escape(value)}</b><span>{escape(words)}</span></div>'


_CLASSES = {"✓": "good", "✗": "bad", "!": "missed"}


def _claims(verdicts: Iterable[PromiseVerdict]) -> str:
    items = "".join(
        f'<li class="{_CLASSES[mark(each)]}"><i>{mark(each)}</i>'
        f"<span>{escape(each.claim)}:</span><em>{escape(each.measured)}</em></li>"
        for each in verdicts
    )
    return f'<section><h2>What was measured</h2><ul class="claims">{items}</ul></section>' if items else ""


def _clients(probe: Probe) -> str:
    quiet, during = probe.quiet, probe.during
    kinds = [kind for kind in probe.samples.kinds if kind in during.kinds or kind in quiet.kinds]
    rows = [_client_row(kind, quiet.kinds.get(kind), during.kinds.get(kind)) for kind in kinds]
    rows.append(_client_row("all clients", quiet.overall, during.overall, total=True))
    watches, writes = probe.watches, probe.writes
    return f"""<section><h2>Clients</h2><div class="scroll"><table>
<thead><tr><th rowspan="2">client</th><th class="group" colspan="4">requests</th>
<th class="group first" colspan="2">p50</th><th class="group first" colspan="2">p99</th>
<th class="group first" colspan="3">longest stall</th></tr><tr><th class="num">quiet</th>
<th class="num">during</th><th class="num">failed</th><th class="num">re-sent</th>
{'<th class="num first">quiet</th><th class="num">during</th>' * 3}
<th class="num">ratio</th>
</tr></thead><tbody>{"".join(rows)}</tbody></table></div>
<p class="note">{escape(by_period(probe))}. Failed and re-sent are those of '{escape(during.label)}'.
Quiet: {seconds(quiet.end - quiet.start)} before; during: {seconds(during.end - during.start)}
({escape(during.label)}). A stall is the longest time for which one client waited for a successful request, including
connecting and re-sending; for watchers, from a write's start to its event. The probe itself was delayed by at
most {milliseconds(quiet.own_lag_ms)} (quiet) and {milliseconds(during.own_lag_ms)} (during). Re-sent: an idempotent
request on a reused connection that closed before any byte of the response (RFC 9112, section 9.3.1).
{count(watches.events)} events seen, {count(watches.ended)} watches ended by the server, {count(watches.cut)} cut,
{count(watches.relists)} lists after 410 Gone; {count(writes.stale_reads)} stale reads.</p></section>"""


def _client_row(kind: str, quiet: Figures | None, during: Figures | None, *, total: bool = False) -> str:
    def ms(figures: Figures | None, name: str) -> str:
        return milliseconds(getattr(figures, name)) if figures is not None else "–"

    bad = ' class="num bad"' if during is not None and during.failures else ' class="num"'
    cells = "".join(
        f'<td class="num first was">{ms(quiet, name)}</td><td class="num">{ms(during, name)}</td>'
        for name in ("p50_ms", "p99_ms", "stall_ms")
    )
    ratio = times(during.stall_ms, quiet.stall_ms) if quiet is not None and during is not None else "–"
    before = quiet.requests if quiet is not None else 0
    counts = (during.requests, during.failures, during.resent) if during is not None else (0, 0, 0)
    return (
        f'<tr{" class=total" if total else ""}><td>{escape(kind)}</td><td class="num was">{count(before)}</td>'
        f'<td class="num">{count(counts[0])}</td>'
        f'<td{bad}>{count(counts[1])}</td><td class="num">{count(counts[2])}</td>{cells}'
        f'<td class="num">{ratio}</td></tr>'
    )


def _chart(report: Report) -> str:
    keys = "".join(f'<span style="--key:{color}">{escape(name)}</span>' for name, color in legend(report).items())
    return (
        f'<section><h2>Timeline</h2><div class="keys">{keys}</div><div id="chart" class="chart"></div>'
        '<p class="note">Drag to zoom into a stretch of time, double-click to see all of it again; point at a bar or a '
        "dot to read it; click a kind of client to hide or show it.</p></section>"
    )


def _failures(probe: Probe) -> str:
    if not probe.failures:
        return ""
    rows = "".join(
        f'<tr><td class="num">{each.at:.2f} s</td><td>{escape(each.client)}</td><td>{escape(each.reason)}</td>'
        f'<td class="muted">{escape(each.request)}</td><td class="muted">{escape(each.address)}</td></tr>'
        for each in probe.failures[:100]
    )
    failed = sum(period.overall.failures for period in probe.periods)
    more = f'<p class="note">The first {len(probe.failures[:100])} of {count(failed)}.</p>' if failed > 100 else ""
    return (
        '<section><h2>Failed requests</h2><div class="scroll"><table><thead><tr><th class="num">when</th>'
        f"<th>client</th><th>reason</th><th>request</th><th>address</th></tr></thead><tbody>{rows}</tbody></table></div>{more}</section>"
    )


def _locks(report: Report) -> str:
    if not report.locks:
        return ""
    rows = "".join(
        f"<tr><td>{escape(each.lock)}</td><td>{escape(holder(each))}<small>{escape(each.holder)}</small></td>"
        f'<td class="num">{each.start:.3f} s</td><td class="num">{"" if each.end is None else f"{each.end:.3f} s"}</td>'
        f'<td class="muted">{ending(each)}</td></tr>'
        for each in report.locks
    )
    return (
        '<section><h2>Locks of controllers</h2><div class="scroll"><table><thead><tr><th>lock</th><th>held by</th>'
        f'<th class="num">from</th><th class="num">to</th><th>end</th></tr></thead><tbody>{rows}</tbody></table></div>'
        '<p class="note">By the clocks of the holders. Whether two managers ever acted for one set of'
        " controllers at once: quarterdeck controllers verify.</p></section>"
    )


def _steps(report: Report) -> str:
    if not report.steps:
        return ""
    length = max([report.seconds, *(step.end or step.start for step in report.steps)]) or 1.0
    rows = "".join(_step_row(step, length) for step in report.steps)
    return (
        '<section><h2>Steps</h2><div class="scroll"><table><thead><tr><th class="num">at</th><th class="num">took</th>'
        f"<th></th><th>site</th><th>step</th><th>for</th></tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def _step_row(step: StepSpan, length: float) -> str:
    end = step.end if step.end is not None else length
    left, width = 100 * min(max(step.start / length, 0), 1), 100 * max(end - step.start, 0) / length
    note = step.outcome is StepOutcome.NOTED
    bad = step.outcome in (StepOutcome.FAILED, StepOutcome.UNFINISHED)
    kind = ' class="note-row"' if note else ' class="bad-row bad"' if bad else ""
    style = f"left:{left:.2f}%;width:{min(width, 100 - left):.2f}%"
    gantt = "" if note else f'<span class="bar"><i style="{style}"></i></span>'
    took = "note" if note else seconds(end - step.start) if step.end is not None else "no end"
    error = f'<small class="error">{escape(step.error)}</small>' if step.error else ""
    site = f'<span class="pill">{escape(step.site)}</span>' if step.site else ""
    return (
        f'<tr{kind}><td class="num">{step.start:.2f} s</td><td class="num">{took}</td><td class="gantt">{gantt}</td>'
        f"<td>{site}</td><td>{escape(step.text)}<small>{escape(step.why)}</small>{error}</td>"
        f'<td class="muted">{step.phase.value}</td></tr>'
    )


def _machine(machine: MeasurementHost) -> str:
    facts = {
        "cores": str(machine.cores),
        "memory": f"{machine.memory_bytes / 2**30:.1f} GiB",
        "kernel": machine.kernel,
        "Python": machine.python,
        **machine.versions,
    }
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    return f"<section><h2>Measured on</h2><dl>{items}</dl></section>"
