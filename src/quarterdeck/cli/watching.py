"""Driving a plane while real clients watch, and the report of what they saw."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from quarterdeck.api.operation import Operation
from quarterdeck.cli.context import Output, err, out
from quarterdeck.cli.opening import opened
from quarterdeck.cli.output import show_one
from quarterdeck.cli.work import drive_alone
from quarterdeck.errors import QuarterdeckError

if TYPE_CHECKING:
    from quarterdeck.app import Failure, ProbeResult
    from quarterdeck.report.schema import Report


async def probed_drive(
    name: str, *, quiet: float, ask: Callable[[], Awaitable[Operation]], host: str | None = None
) -> Report:
    """Watch the quiet plane for ``quiet`` seconds, have the change asked for, drive it, and report. ``host``: see
    ``Quarterdeck.probing``.

    Where the probe ends meanwhile the change goes on; then the report has none, and what ended it is raised.
    """
    from quarterdeck.app import Onlookers

    async with opened() as quarterdeck, quarterdeck.probing(name, host=host, on_failure=tell) as probe:
        onlookers = Onlookers(probe)
        where = f" from host {host}" if host is not None else ""
        err.print(f"clients run{where}; looking at the quiet plane for {quiet:.0f} s", highlight=False)
        await onlookers.quiet(quiet)
        operation = await drive_alone(name, (onlookers,), ask)
        try:
            result = await onlookers.result()
        except QuarterdeckError:
            await write_report(operation)
            raise
    return await write_report(operation, probe=result)


def tell(failure: Failure) -> None:
    """Print what a client saw fail."""
    err.print(f"[red]failed[/red] {failure.kind} {failure.request}: {failure.reason}", highlight=False)


async def write_report(
    operation: Operation, *, probe: ProbeResult | None = None, output: Output = Output.TABLE
) -> Report:
    """Have the report's files made, and print the summary, or all of it as a document."""
    from quarterdeck.report.text import render_text

    async with opened() as quarterdeck:
        kept = await quarterdeck.keep_report(operation.metadata.name, probe=probe)
    if output in (Output.JSON, Output.YAML):
        show_one(kept.report.model_dump(mode="json"), output)
        return kept.report
    out.print(render_text(kept.report))
    out.print(f"report: {kept.folder / 'report.html'}", highlight=False, soft_wrap=True)
    return kept.report
