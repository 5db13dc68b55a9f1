"""What commands print before anything is changed: what a request comes to, every step, and what checks found."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue
from rich.markup import escape

from quarterdeck.api.operation import OperationType
from quarterdeck.app import DryRun, Examined, Finding, Verdict
from quarterdeck.app.words import needs
from quarterdeck.cli.context import Output, out, plain
from quarterdeck.cli.output import emit, show, table
from quarterdeck.model.findings import Checked, HostFinding

#: What stands in the way comes first.
_ORDER = (Verdict.REFUSE, Verdict.WARN, Verdict.OK)


def print_examined(examined: Examined, output: Output) -> None:
    """Print what a request comes to: what it changes, what its checks say, and every step."""
    emit(examined_fact(examined), output, lambda: _print_examined(examined, output))


def _print_examined(examined: Examined, output: Output) -> None:
    name, spec = examined.name, examined.wanted.spec
    if examined.kind is OperationType.CREATE:
        out.print(f"plane {name} would be created: {spec.replicas} replicas at {spec.placement.site}")
        _print_addons(examined)
        print_findings(examined.findings)
        return
    if not examined.needed:
        out.print(f"plane {name} is wanted so already: nothing would be changed")
        return
    out.print(f"plane {name} would be changed:")
    for each in examined.differences:
        out.print(
            f"  {escape(each.path)}: {escape(each.before)} → {escape(each.after)}", highlight=False, soft_wrap=True
        )
        out.print(f"    [dim]{escape(needs(each))}[/dim]", highlight=False, soft_wrap=True)
    _print_addons(examined)
    print_findings(examined.findings)
    if examined.forecast is not None:
        out.print()
        print_forecast(examined.forecast, output)


def print_findings(findings: Sequence[Finding]) -> None:
    """What checks found that is not as it should be."""
    for finding in findings:
        if finding.verdict is not Verdict.OK:
            out.print(f"[yellow]![/yellow] {finding.check}: {escape(finding.seen)}", highlight=False, soft_wrap=True)


def print_checked(checked: Checked, output: Output) -> None:
    """What was found at hosts: a line for each finding that is not well, and a summary; all there is as a document."""
    rows = [_host_row(each) for each in sorted(checked.findings, key=lambda each: _ORDER.index(each.finding.verdict))]

    def text() -> None:
        if rows:
            table(rows, ("host", "check", "verdict", "seen", "next"))
        plain(checked.summary)

    emit({"refused": checked.refused, "summary": checked.summary, "findings": [*rows]}, output, text)


def print_odd(checked: Checked | None) -> None:
    """The same for people, where there is anything to look at."""
    if checked is not None and checked.findings:
        print_checked(checked, Output.TABLE)


def _host_row(each: HostFinding) -> dict[str, JsonValue]:
    found = each.finding
    return {
        "host": each.host,
        "check": found.check,
        "verdict": str(found.verdict),
        "seen": found.seen,
        "next": found.next_step,
    }


def _print_addons(examined: Examined) -> None:
    """What changes of add-ons, by the names of objects: what they say may be secret."""
    for each in examined.addons:
        out.print(f"  add-on {each.addon}: {each.words}", highlight=False, soft_wrap=True)
        for sign, refs in (("+", each.added), ("~", each.changed), ("-", each.removed)):
            for ref in refs:
                out.print(f"    [dim]{sign} {escape(str(ref))}[/dim]", highlight=False, soft_wrap=True)


def examined_fact(examined: Examined) -> dict[str, JsonValue]:
    """The same for programs."""
    forecast = examined.forecast
    return {
        "plane": examined.name,
        "type": examined.kind.value,
        "needed": examined.needed,
        "differences": [
            {
                "path": each.path,
                "before": each.before,
                "after": each.after,
                "needs": each.needs.value,
                "restart": [str(component) for component in each.restart],
                "note": each.note or None,
                "reload": [str(component) for component in each.reload],
            }
            for each in examined.differences
        ],
        "addons": [
            {
                "name": each.addon,
                "added": [str(ref) for ref in each.added],
                "changed": [str(ref) for ref in each.changed],
                "removed": [str(ref) for ref in each.removed],
            }
            for each in examined.addons
        ],
        "findings": [
            {"check": each.check, "verdict": each.verdict.value, "seen": each.seen} for each in examined.findings
        ],
        "steps": [*_steps(forecast, Output.JSON)] if forecast is not None else None,
        "waitsFor": [*map(str, forecast.stuck_on)] if forecast is not None else None,
    }


def print_forecast(forecast: DryRun, output: Output) -> None:
    """Print a dry run."""
    rows = _steps(forecast, output)
    if not rows and not forecast.stuck_on:
        out.print("nothing to do")
        return
    quorum_sites = {each.quorum_site for each in forecast.steps}
    stays = len(quorum_sites) == 1 and None not in quorum_sites and output is Output.TABLE
    where = () if stays else ("quorum at",)
    show(rows, ("#", "step", "voters", "may fail", *where, "undo"), output, wide=("site", "why"))
    if stays:
        out.print(f"the quorum stays at {quorum_sites.pop()}")
    for reason in forecast.stuck_on:
        out.print(f"[yellow]then it would wait for {escape(str(reason))}[/yellow]")


def _steps(forecast: DryRun, output: Output) -> list[dict[str, JsonValue]]:
    rows: list[dict[str, JsonValue]] = []
    for each in forecast.steps:
        if output is Output.TABLE and not each.step.shown:
            continue
        rows.append(
            {
                "#": len(rows) + 1,
                "step": each.step.words,
                "voters": f"{each.voters}" + (f"+{each.learners}" if each.learners else ""),
                "may fail": each.margin,
                "quorum at": each.quorum_site,
                "undo": "yes" if each.step.undoable else "no",
                "site": each.step.site,
                "why": each.step.why,
            }
        )
    return rows
