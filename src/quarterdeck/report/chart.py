"""The timeline chart: everything over one axis of seconds, as a plotly figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import plotly.graph_objects as go

from quarterdeck.model.steps.members import Swap
from quarterdeck.probe.schema import Probe
from quarterdeck.report.downsample import downsampled, of_kind
from quarterdeck.report.locks import holder_colors, lock_spans
from quarterdeck.report.schema import Phase, Report, StepOutcome
from quarterdeck.report.spans import Span, SpanStyle, backend_spans, member_spans, record_spans
from quarterdeck.report.words import milliseconds, seconds

_LOOKS = {
    SpanStyle.JOINING: "#e2e7ef",
    SpanStyle.LEARNER: "#b9c6dc",
    SpanStyle.VOTER: "#5b8def",
    SpanStyle.LEADER: "#f2a33a",
    SpanStyle.ILL: "#d5556a",
}
_SITES = ("#8b7ce6", "#36a38f", "#c98a4b", "#6b9fd8")
_NO_SITE = "#9aa3b2"
_KINDS = ("#5b8def", "#3fae9a", "#f2a33a", "#a77be0", "#6cc0e5", "#d98ac0", "#9aa65a")
_FAILED = "#e5484d"
_ROW = 24  # pixels for a row of bars
_GAP = 46  # pixels between two parts of the chart
_LEFT = 128  # pixels for the names of rows
_LATENCY = 300  # pixels
_BOTTOM = 90  # pixels: time axis and legend
_NAMED = (SpanStyle.RECORD, SpanStyle.LOCK)
_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)  # milliseconds


@dataclass(slots=True)
class _Band:
    """A part of the chart: one y axis, ``height`` pixels high."""

    title: str
    height: int
    traces: list[go.Bar | go.Scatter] = field(default_factory=list)
    rows: tuple[str, ...] = ()


def figure(report: Report) -> go.Figure:
    """The figure, in transparent colours that read on light and dark. Its texts are escaped."""
    start, end = _whole(report)
    bands = [
        band for band in (*_plane_bands(report, start, end), _phase_band(report), _latency_band(report.probe)) if band
    ]
    drawn = go.Figure()
    total = sum(band.height for band in bands) + _GAP * max(len(bands) - 1, 0)
    top = total
    for number, band in enumerate(bands, start=1):
        axis = "y" if number == 1 else f"y{number}"
        domain = [max((top - band.height) / total, 0), top / total]
        drawn.update_layout({axis.replace("y", "yaxis"): _axis(band, domain)})
        drawn.add_annotation(
            text=f"<b>{band.title}</b>", x=0, xref="paper", xanchor="left", xshift=8 - _LEFT, y=domain[1], yref="paper",
            yanchor="bottom", showarrow=False, font={"size": 12},
        )  # fmt: skip
        for trace in band.traces:
            trace.yaxis = axis
            drawn.add_trace(trace)
        if report.probe is not None and not band.rows:
            _point_at_stall(drawn, report.probe, axis)
        top -= band.height + _GAP
    drawn.update_layout(_layout(total, start, end))
    _mark_swaps(drawn, report)
    if report.probe is not None and len(report.probe.periods) > 1:
        _shade_quiet(drawn, report.probe)
    return drawn


def legend(report: Report) -> dict[str, str]:
    """The meaning of the colours of bars."""
    sites = {f"at {site}": color for site, color in _site_colors(report).items()}
    return {look.value: color for look, color in _LOOKS.items()} | sites | holder_colors(report.locks)


def _whole(report: Report) -> tuple[float, float]:
    """The time range of the chart, in seconds: the operation, and all samples of the probe."""
    periods = report.probe.periods if report.probe is not None else ()
    start = min([0.0, *(period.start for period in periods)])
    steps = (step.end or step.start for step in report.steps)
    return start, max([report.seconds, *steps, *(period.end for period in periods)])


def _plane_bands(report: Report, start: float, end: float) -> list[_Band | None]:
    # The first observation also describes the time before it: only the operation changes the plane.
    first = [moment.model_copy(update={"at": start}) for moment in report.timeline[:1]]
    moments = [*first, *report.timeline[1:]]
    sites, holders = _site_colors(report), holder_colors(report.locks)
    return [
        _bars("etcd members", member_spans(moments, end)),
        _bars("load balancers ▸ apiservers that get new connections", backend_spans(moments, end), sites),
        _bars("the plane's name leads to", record_spans(moments, end), sites),
        _bars("locks of controllers, and their holders", lock_spans(report.locks, start, end), holders),
    ]


def _bars(title: str, spans: Sequence[Span], sites: Mapping[str, str] | None = None) -> _Band | None:
    """Bars in the colours of their looks, or of their texts (sites, or lock holders) if those are given."""
    if not spans:
        return None
    rows = tuple(dict.fromkeys(span.row for span in spans))
    colors = [_LOOKS[span.look] if sites is None else sites.get(span.text, _NO_SITE) for span in spans]
    trace = go.Bar(
        orientation="h",
        y=[escape(span.row) for span in spans],
        base=[span.start for span in spans],
        x=[span.end - span.start for span in spans],
        marker={"color": colors, "line": {"width": 0}},
        text=[escape(span.text) if span.look in _NAMED else "" for span in spans],
        textposition="inside",
        insidetextanchor="middle",
        insidetextfont={"color": "white"},
        width=0.62,
        showlegend=False,
        hovertext=[_span_words(span) for span in spans],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    return _Band(title, _ROW * len(rows) + 6, [trace], tuple(map(escape, rows)))


def _span_words(span: Span) -> str:
    what = span.text if span.look in _NAMED else f"{span.look.value}{f' at {span.text}' if span.text else ''}"
    return f"<b>{escape(span.row)}</b>: {escape(what)}<br>{span.start:.2f} – {span.end:.2f} s"


def _phase_band(report: Report) -> _Band | None:
    steps = [step for step in report.steps if step.outcome is not StepOutcome.NOTED]
    if not steps:
        return None
    colors = _site_colors(report)
    wrong = (StepOutcome.FAILED, StepOutcome.UNFINISHED)
    length = max(report.seconds, 1e-3)
    trace = go.Bar(
        orientation="h",
        y=[step.phase.value for step in steps],
        base=[step.start for step in steps],
        # A bar without a duration could not be pointed at.
        x=[max((step.end or step.start) - step.start, length / 400) for step in steps],
        marker={
            "color": [_FAILED if step.outcome in wrong else colors.get(step.site, _NO_SITE) for step in steps],
            "opacity": 0.72,
            "line": {"width": 1, "color": "rgba(128,128,128,0.35)"},
        },
        width=0.62,
        showlegend=False,
        hovertext=[
            f"<b>{escape(step.text)}</b><br>{escape(step.why)}<br>{step.start:.2f} s, took "
            f"{seconds((step.end or step.start) - step.start)}{f', at {escape(step.site)}' if step.site else ''}, "
            f"{step.outcome.value}{f'<br>{escape(step.error)}' if step.error else ''}"
            for step in steps
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    rows = tuple(phase.value for phase in Phase if any(step.phase is phase for step in steps))
    return _Band("steps, by their purpose", _ROW * len(rows) + 6, [trace], rows)


def _latency_band(probe: Probe | None) -> _Band | None:
    if probe is None or not probe.samples.at:
        return None
    samples = probe.samples
    rows = downsampled(samples)
    band = _Band("clients' waiting time, in ms", _LATENCY)
    for number, kind in enumerate(samples.kinds):
        dots = list(of_kind(samples, rows, kind, ok=True))
        if dots:
            band.traces.append(
                go.Scatter(
                    name=kind,
                    mode="markers",
                    x=[samples.at[row] for row in dots],
                    y=[max(samples.ms[row], 0.1) for row in dots],
                    marker={"size": 4, "opacity": 0.6, "color": _KINDS[number % len(_KINDS)]},
                    text=[escape(samples.addresses[samples.address[row]]) for row in dots],
                    hovertemplate=f"{kind} %{{y:.1f}} ms<br>%{{x:.2f}} s, %{{text}}<extra></extra>",
                )
            )
    failed = [row for row in rows if not samples.ok[row]]
    if failed:
        reasons = {round(failure.at, 3): f"{failure.client}: {failure.reason}" for failure in probe.failures}
        band.traces.append(
            go.Scatter(
                name="failed",
                mode="markers",
                x=[samples.at[row] for row in failed],
                y=[max(samples.ms[row], 0.1) for row in failed],
                marker={"size": 10, "symbol": "x", "color": _FAILED, "line": {"width": 1, "color": "white"}},
                text=[
                    escape(reasons.get(round(samples.at[row], 3), samples.kinds[samples.kind[row]])) for row in failed
                ],
                hovertemplate="<b>failed</b> %{text}<br>%{x:.2f} s, after %{y:.1f} ms<extra></extra>",
            )
        )
    return band


def _axis(band: _Band, domain: list[float]) -> dict[str, object]:
    if band.rows:
        return {
            "domain": domain,
            "type": "category",
            "categoryorder": "array",
            "categoryarray": list(reversed(band.rows)),
            "range": [-0.5, len(band.rows) - 0.5],
            "fixedrange": True,
            "showgrid": False,
            "ticklabelstandoff": 6,
        }
    return {
        "domain": domain,
        "type": "log",
        "tickvals": list(_TICKS),
        "ticktext": [str(tick) for tick in _TICKS],
        "ticklabelstandoff": 6,
        "zeroline": False,
    }


def _layout(total: int, start: float, end: float) -> dict[str, object]:
    margin = {"l": _LEFT, "r": 16, "t": 52, "b": _BOTTOM}
    return {
        "height": total + margin["t"] + margin["b"],
        "margin": margin,
        "barmode": "overlay",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 12},
        "hoverlabel": {"align": "left", "font": {"size": 12}},
        "hovermode": "closest",
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "rgba(128,128,128,0.7)", "activecolor": "#5b8def"},
        "uniformtext": {"mode": "hide", "minsize": 9},
        "legend": {"orientation": "h", "x": 0, "y": -44 / max(total, 1), "yanchor": "top", "itemsizing": "constant"},
        "xaxis": {
            "range": [start - 0.01 * (end - start), end + 0.01 * (end - start)],
            "anchor": "free",
            "position": 0,
            "title": {"text": "seconds since the operation started", "standoff": 6},
            "showspikes": True,
            "spikemode": "across",
            "spikethickness": 1,
            "spikedash": "dot",
            "spikecolor": "rgba(128,128,128,0.8)",
            "zeroline": False,
        },
    }


def _mark_swaps(drawn: go.Figure, report: Report) -> None:
    for step in report.steps:
        if step.kind == Swap.kind and step.outcome is StepOutcome.DONE:
            drawn.add_shape(
                type="line", x0=step.start, x1=step.start, y0=0, y1=1, yref="paper", layer="below",
                line={"width": 1, "dash": "dot", "color": "rgba(128,128,128,0.9)"},
            )  # fmt: skip
            drawn.add_annotation(
                text="swap", x=step.start, y=1, yref="paper", yanchor="bottom", showarrow=False, font={"size": 12}
            )


def _shade_quiet(drawn: go.Figure, probe: Probe) -> None:
    quiet = probe.quiet
    drawn.add_shape(
        type="rect", x0=quiet.start, x1=quiet.end, y0=0, y1=1, yref="paper", fillcolor="rgba(128,128,128,0.10)",
        line_width=0, layer="below",
    )  # fmt: skip
    drawn.add_annotation(
        text=escape(quiet.label), x=(quiet.start + quiet.end) / 2, y=1, yref="paper", yanchor="bottom",
        showarrow=False, font={"size": 12},
    )  # fmt: skip


def _point_at_stall(drawn: go.Figure, probe: Probe, axis: str) -> None:
    longest = max((period.overall for period in probe.judged), key=lambda figures: figures.stall_ms)
    if longest.stall_ms > 0:
        drawn.add_annotation(
            text=f"longest stall {milliseconds(longest.stall_ms)}", x=longest.stall_at, yref=axis,
            y=math.log10(longest.stall_ms), ax=0, ay=-26, arrowhead=0, arrowwidth=1, font={"size": 12},
        )  # fmt: skip


def _site_colors(report: Report) -> dict[str, str]:
    """The source's colour first, then the target's."""
    places = [place.site for place in (report.source, report.target) if place is not None]
    seen = sorted({step.site for step in report.steps if step.site})
    return {site: _SITES[number % len(_SITES)] for number, site in enumerate(dict.fromkeys([*places, *seen]))}
