"""What was found at hosts, for people and programs."""

from __future__ import annotations

from pydantic import JsonValue

from quarterdeck.cli.context import Output, out
from quarterdeck.cli.output import show_one, table
from quarterdeck.model.findings import Checked, HostFinding, Verdict

#: What stands in the way comes first.
_ORDER = (Verdict.REFUSE, Verdict.WARN, Verdict.OK)


def print_checked(checked: Checked, output: Output) -> None:
    """A line for each finding that is not well, and a summary; all there is as JSON or YAML."""
    found = sorted(checked.findings, key=lambda each: _ORDER.index(each.finding.verdict))
    rows = [_row(each) for each in found]
    if output in (Output.JSON, Output.YAML):
        show_one({"refused": checked.refused, "summary": checked.summary, "findings": [*rows]}, output)
        return
    if rows:
        table(rows, ("host", "check", "verdict", "seen", "next"))
    out.print(checked.summary, highlight=False, markup=False, soft_wrap=True)


def print_odd(checked: Checked) -> None:
    """The same, where there is anything to look at."""
    if checked.findings:
        print_checked(checked, Output.TABLE)


def _row(each: HostFinding) -> dict[str, JsonValue]:
    found = each.finding
    return {
        "host": each.host,
        "check": found.check,
        "verdict": str(found.verdict),
        "seen": found.seen,
        "next": found.next_step,
    }
