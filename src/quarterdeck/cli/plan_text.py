"""What commands print before anything is changed: what a request comes to, every step, and what checks found."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape

from quarterdeck.api.operation import OperationType
from quarterdeck.api.output.operations import PlannedStep
from quarterdeck.api.output.sites import HostFindingRow, SiteCheck
from quarterdeck.app import DryRun, Examined, Finding, Verdict
from quarterdeck.app.words import needs
from quarterdeck.cli.context import UnnamedOutput, out, plain
from quarterdeck.cli.operation_rows import change_plan, check_finding, planned_steps
from quarterdeck.cli.output import Column, emit, table
from quarterdeck.model.findings import Checked, HostFinding

#: What stands in the way comes first.
_ORDER = (Verdict.REFUSE, Verdict.WARN, Verdict.OK)


def print_examined(examined: Examined, output: UnnamedOutput) -> None:
    """Print what a request comes to: what it changes, what its checks say, and every step."""
    emit(change_plan(examined), output, lambda: print_plan(examined, wide=output is UnnamedOutput.WIDE))


def print_plan(examined: Examined, *, wide: bool) -> None:
    """The same for people."""
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
        print_forecast(examined.forecast, wide=wide)


def print_findings(findings: Sequence[Finding]) -> None:
    """What checks found that is not as it should be."""
    for finding in findings:
        if finding.verdict is not Verdict.OK:
            out.print(f"[yellow]![/yellow] {finding.check}: {escape(finding.seen)}", highlight=False, soft_wrap=True)


_HOST_COLUMNS: tuple[Column[HostFindingRow], ...] = (
    Column("host", lambda row: row.host),
    Column("check", lambda row: row.check),
    Column("verdict", lambda row: row.verdict),
    Column("seen", lambda row: row.message),
    Column("next", lambda row: row.next_step),
)


def print_checked(checked: Checked, output: UnnamedOutput) -> None:
    """What was found at hosts: a line for each finding that is not well, and a summary."""
    rows = sorted(checked.findings, key=lambda each: _ORDER.index(each.finding.verdict))
    found = SiteCheck(refused=checked.refused, message=checked.summary, findings=tuple(map(_host_row, rows)))

    def text() -> None:
        if found.findings:
            table(found.findings, _HOST_COLUMNS)
        plain(found.message)

    emit(found, output, text)


def print_odd(checked: Checked | None) -> None:
    """The same for people, where there is anything to look at."""
    if checked is not None and checked.findings:
        print_checked(checked, UnnamedOutput.TABLE)


def _host_row(each: HostFinding) -> HostFindingRow:
    return HostFindingRow(host=each.host, **dict(check_finding(each.finding)))


def _print_addons(examined: Examined) -> None:
    """What changes of add-ons, by the names of objects: what they say may be secret."""
    for each in examined.addons:
        out.print(f"  add-on {each.addon}: {each.words}", highlight=False, soft_wrap=True)
        for sign, refs in (("+", each.added), ("~", each.changed), ("-", each.removed)):
            for ref in refs:
                out.print(f"    [dim]{sign} {escape(str(ref))}[/dim]", highlight=False, soft_wrap=True)


def print_forecast(forecast: DryRun, *, wide: bool = False) -> None:
    """Print a dry run."""
    steps = [*enumerate(planned_steps(forecast, all_steps=wide), start=1)]
    if not steps and not forecast.stuck_on:
        out.print("nothing to do")
        return
    quorum_sites = {each.quorum_site for each in forecast.steps}
    stays = len(quorum_sites) == 1 and None not in quorum_sites and not wide
    where: tuple[Column[_Numbered], ...] = () if stays else (Column("quorum at", lambda row: row[1].quorum_site),)
    table(steps, (*_STEP_COLUMNS, *where, *_STEP_ENDS), wide=wide)
    if stays:
        out.print(f"the quorum stays at {quorum_sites.pop()}")
    for reason in forecast.stuck_on:
        out.print(f"[yellow]then it would wait for {escape(str(reason))}[/yellow]")


_Numbered = tuple[int, PlannedStep]
_STEP_COLUMNS: tuple[Column[_Numbered], ...] = (
    Column("#", lambda row: row[0]),
    Column("step", lambda row: row[1].message),
    Column("voters", lambda row: f"{row[1].voters}+{row[1].learners}" if row[1].learners else row[1].voters),
    Column("may fail", lambda row: row[1].may_fail),
)
_STEP_ENDS: tuple[Column[_Numbered], ...] = (
    Column("undo", lambda row: "yes" if row[1].undoable else "no"),
    Column("site", lambda row: row[1].site, wide=True),
    Column("why", lambda row: row[1].reason, wide=True),
)
