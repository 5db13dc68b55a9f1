"""Commands that exchange replicas of planes: migrate, scale, wait, abort."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from quarterdeck.api.differences import differences, shown
from quarterdeck.app import Abort, Examined, Migrate, Scale
from quarterdeck.cli.arguments import Detach, Name, OutputOption, ProbeFrom, ProbeOption, Yes
from quarterdeck.cli.change_request import asked, bring_about, change, nothing_to_do, planned, show_examined
from quarterdeck.cli.context import Output, out
from quarterdeck.cli.durations import duration_option
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import go_inside_to_drive
from quarterdeck.cli.work import confirm, follow, probed_drive
from quarterdeck.errors import InvalidInput

app = group()


@command(app, "migrate alpha --to west", "migrate alpha --to west --replicas 5 --probe")
def migrate(
    name: Name,
    to: Annotated[str, typer.Option("--to", help="The site to migrate to.", show_default=False)],
    replicas: Annotated[
        int | None, typer.Option(help="The number of replicas there (default: as many as now).")
    ] = None,
    allow_distance: Annotated[
        bool, typer.Option("--allow-distance", help="Allow sites more than 180 ms of round-trip time apart.")
    ] = False,
    probe: ProbeOption = False,
    probe_from: ProbeFrom = None,
    baseline: Annotated[
        float, duration_option("--baseline", "How long --probe measures before the migration (default: 10s).")
    ] = 10.0,
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Migrate a plane live to another site."""
    go_inside_to_drive(name)
    probe = probe or probe_from is not None
    if probe and detached:
        raise InvalidInput(f"migrating plane {name}", "--probe and --detach exclude each other", "use one of them")

    examined = planned(Migrate(name, to, replicas, allow_distance))
    if not examined.needed:
        nothing_to_do(examined, "migrate", f"plane {name} is at {to} already and settled: nothing to do", output)
        return
    show_examined(examined, output)
    confirm(f"move plane {name} to {to}?", yes=yes)
    if probe:
        ask = partial(asked, examined=examined)
        probed_drive(name, baseline=baseline, ask=ask, host=probe_from, output=output)
    else:
        bring_about(examined, "migrate", detached=detached, output=output)


@command(app, "scale alpha --replicas 5")
def scale(
    name: Name,
    replicas: Annotated[int, typer.Option(help="The new number of replicas: 1, 3, 5 or 7.", show_default=False)],
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Change the number of replicas of a plane while it serves."""
    go_inside_to_drive(name)
    examined = planned(Scale(name, replicas))
    if not examined.needed:
        count = f"{replicas} replica{'s' if replicas > 1 else ''}"
        nothing_to_do(examined, "scale", f"plane {name} has {count} already: nothing to do", output)
        return
    change(examined, "scale", f"scale plane {name} to {replicas}?", yes=yes, detached=detached, output=output)


@command(app, "wait alpha", "wait alpha --timeout 5m")
def wait(
    name: Name,
    timeout: Annotated[float | None, duration_option("--timeout", "Give up after this time (default: never).")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing at the end.")] = False,
) -> None:
    """Wait until a plane is settled: follow the process that drives it, or drive it here."""
    go_inside_to_drive(name)
    follow(name, timeout=timeout)
    if not quiet:
        out.print(f"plane {name} is settled")


@command(app, "abort alpha")
def abort(name: Name, yes: Yes = False, detached: Detach = False, output: OutputOption = Output.TABLE) -> None:
    """Undo the operation in progress. Safe at any moment."""
    go_inside_to_drive(name)
    examined = planned(Abort(name))
    if examined.needed:
        assert examined.under_way is not None
        undone = examined.under_way.metadata.name
        confirm(f"abort {undone} and go back to {_taken_back(examined)}?", yes=yes)
    bring_about(examined, "abort", detached=detached, output=output)
    if not detached and output.for_people:
        out.print(f"plane {name} is back")


def _taken_back(examined: Examined) -> str:
    """What an abort brings back: the site, else the fields that it changes."""
    assert examined.current is not None
    if examined.current.spec.placement.site != (site := examined.wanted.spec.placement.site):
        return site
    found = differences(examined.current.spec, examined.wanted.spec)
    return ", ".join(f"{each.path} {shown(each.after)}" for each in found) or "what it was"
