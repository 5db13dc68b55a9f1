"""The probe as a command."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from quarterdeck.cli.arguments import HOST_HELP, Name, UnnamedOption
from quarterdeck.cli.context import UnnamedOutput, err, go_inside, out
from quarterdeck.cli.durations import duration_option
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call
from quarterdeck.cli.output import emit
from quarterdeck.cli.work import tell_failure

if TYPE_CHECKING:
    from quarterdeck.app import ProbeResult, Quarterdeck, Summary

app = group()


@command(app, "probe alpha --for 1m", "probe alpha --from rack/cp-1")
def probe(
    name: Name,
    seconds: Annotated[float | None, duration_option("--for", "How long to measure (default: until Ctrl-C).")] = None,
    rate: Annotated[float, typer.Option(help="Requests per second of each client.")] = 20.0,
    host: Annotated[str | None, typer.Option("--from", help=HOST_HELP, show_default=False)] = None,
    output: UnnamedOption = UnnamedOutput.TABLE,
) -> None:
    """Measure a plane with real clients from outside.

    Exits 1 if a client saw a failure or a loss.
    """
    go_inside(name)
    result = call(lambda face: _probe(face, name, seconds, rate, host))
    emit(result.without_samples(), output, lambda: _print(result))
    if result.failed or result.writes.lost or result.watches.missed:
        raise typer.Exit(1)


async def _probe(face: Quarterdeck, name: str, seconds: float | None, rate: float, host: str | None) -> ProbeResult:
    with err.status("starting clients") as line:

        def tell(summary: Summary) -> None:
            line.update(
                f"{summary.requests:,} requests, {summary.failures} failed, {summary.lost} writes lost, "
                f"longest stall {summary.stall_ms:.0f} ms, {summary.per_second:.0f}/s"
            )

        async with face.probing(name, rate=rate, host=host, on_summary=tell, on_failure=tell_failure) as session:
            try:
                await session.look(seconds)
            except asyncio.CancelledError:  # Ctrl-C ends the probe, not its result
                task = asyncio.current_task()
                assert task is not None
                task.uncancel()
            return await session.stop()


def _print(result: ProbeResult) -> None:
    from quarterdeck.report.text import clients_table

    out.print(clients_table(result.since(result.started)))
    writes, watches = result.writes, result.watches
    if result.source:
        out.print(f"from host {result.source}", highlight=False)
    out.print(
        f"writes: {writes.acknowledged:,} acknowledged, {writes.lost} lost, {writes.stale_reads} stale reads; "
        f"watch events: {watches.events:,}, {watches.missed} missed, {watches.duplicated} twice, "
        f"{watches.out_of_order} out of order"
    )
