"""Commands that exchange replicas of planes: migrate, scale, wait, abort."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.api.differences import differences, shown
from quarterdeck.app import Abort, Examined, Migrate, Scale
from quarterdeck.cli.arguments import Detach, Name, OutputOption, ProbeFrom, ProbeOption, Yes
from quarterdeck.cli.change_request import asked, bring_about, change, planned, show_examined
from quarterdeck.cli.context import Output, out
from quarterdeck.cli.groups import group
from quarterdeck.cli.open_home import go_inside_to_drive
from quarterdeck.cli.work import confirm, follow, probed_drive
from quarterdeck.errors import InvalidInput

app = group()


@app.command()
def migrate(
    name: Name,
    to: Annotated[str, typer.Option("--to", help="The site to move to.", show_default=False)],
    replicas: Annotated[
        int | None, typer.Option(help="With this many replicas there; as many as now without it.")
    ] = None,
    allow_distance: Annotated[
        bool, typer.Option("--allow-distance", help="Go over more than 180 ms of round trip.")
    ] = False,
    probe: ProbeOption = False,
    probe_from: ProbeFrom = None,
    quiet: Annotated[float, typer.Option(help="Seconds that the probe looks at the quiet plane before.")] = 10.0,
    yes: Yes = False,
    detached: Detach = False,
) -> None:
    """Move a plane live to another site: plan, question, progress, report."""
    go_inside_to_drive(name)
    probe = probe or probe_from is not None
    if probe and detached:
        raise InvalidInput(f"migrating plane {name}", "--probe and --detach exclude each other", "use one of them")

    examined = planned(Migrate(name, to, replicas, allow_distance))
    if not examined.needed:
        out.print(f"plane {name} is at {to} already, and as wanted: nothing to do")
        return
    show_examined(examined)
    confirm(f"move plane {name} to {to}?", yes=yes)
    if probe:
        probed_drive(name, quiet=quiet, ask=lambda face: asked(face, examined), host=probe_from)
    else:
        bring_about(examined, detached=detached)


@app.command()
def scale(
    name: Name,
    replicas: Annotated[int, typer.Option(help="How many it is to have: 1, 3, 5 or 7.", show_default=False)],
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Give a plane another number of replicas, where it is, while it serves: plan, question, progress, report."""
    go_inside_to_drive(name)
    examined = planned(Scale(name, replicas))
    if not examined.needed:
        count = f"{replicas} replica{'s' if replicas > 1 else ''}"
        out.print(f"plane {name} has {count}, as wanted: nothing to do")
        return
    change(examined, f"scale plane {name} to {replicas}?", yes=yes, detached=detached, output=output)


@app.command()
def wait(
    name: Name,
    timeout: Annotated[float | None, typer.Option(help="Give up after this many seconds.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing at the end.")] = False,
) -> None:
    """Be there until a plane is as wanted: follow the process that drives it, or drive it if none does."""
    go_inside_to_drive(name)
    follow(name, timeout=timeout)
    if not quiet:
        out.print(f"plane {name} is as wanted")


@app.command()
def abort(name: Name, yes: Yes = False, detached: Detach = False) -> None:
    """Take back the operation that is under way, whatever it changes. Possible at any moment."""
    go_inside_to_drive(name)
    examined = planned(Abort(name))
    if examined.needed:
        assert examined.under_way is not None
        undone = examined.under_way.metadata.name
        confirm(f"abort {undone} and go back to {_taken_back(examined)}?", yes=yes)
    bring_about(examined, detached=detached)
    if not detached:
        out.print(f"plane {name} is back")


def _taken_back(examined: Examined) -> str:
    """What an abort brings back: the site, else the fields that it changes."""
    assert examined.current is not None
    if examined.current.spec.placement.site != (site := examined.wanted.spec.placement.site):
        return site
    found = differences(examined.current.spec, examined.wanted.spec)
    return ", ".join(f"{each.path} {shown(each.after)}" for each in found) or "what it was"
