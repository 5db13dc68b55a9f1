"""One screen with what is so of planes now."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from quarterdeck.app.plane_watch import Event, WatchedPlane
from quarterdeck.app.words import list_of, rows_of, survived
from quarterdeck.cli.output import made_table
from quarterdeck.cli.plane_text import age, health, status_lines

#: More events than this do not fit.
_EVENTS = 6
_MEMBERS = ("replica", "machine", "machineState", "member", "health", "lag", "apiserver")


def screen(seen: Sequence[WatchedPlane], *, one: bool) -> RenderableType:
    """All that is told; ``one``: of one plane everything, of several a line each."""
    ends = _line(f"[dim]{time.strftime('%H:%M:%S')}  Ctrl-C ends this[/dim]")
    if one:
        return Group(*_plane(seen[0]), "", ends)
    rows = _table([_row(each) for each in seen], ("name", "site", "state", "members", "survives", "now"))
    events = [event for each in seen for event in each.events]
    return Group(rows if seen else "no planes", "", _events(events, ("last seen", "plane", "message")), "", ends)


def _table(rows: Sequence[dict[str, JsonValue]], columns: Sequence[str]) -> Table:
    """One of which only the last column is cut short where the screen is too narrow."""
    made = made_table(rows, columns)
    made.expand, made.columns[-1].ratio = True, 1
    return made


def _line(markup: str) -> Text:
    return Text.from_markup(markup, overflow="fold")


def _plane(plane: WatchedPlane) -> Iterator[RenderableType]:
    if plane.trouble:
        yield _line(f"[red]not seen now:[/red] {escape(plane.trouble)}")
    if plane.facts is None:
        return
    yield from map(_line, status_lines(plane.facts))
    yield ""
    yield made_table(rows_of(plane.facts["members"]), _MEMBERS)
    yield ""
    yield made_table(rows_of(plane.facts["loadBalancers"]), ("site", "running", "backends", "connections"))
    yield ""
    yield _table(_conditions(plane), ("condition", "status", "since", "message"))
    yield ""
    yield _events(plane.events, ("last seen", "type", "message"))


def _conditions(plane: WatchedPlane) -> list[dict[str, JsonValue]]:
    return [
        {
            "condition": each.type,
            "status": each.status.value,
            "since": _since(each.last_transition_time),
            "message": escape(each.message or each.reason),
        }
        for each in plane.conditions
    ]


def _since(moment: datetime) -> str:
    return age(moment.timestamp())


def _events(events: Sequence[Event], columns: Sequence[str]) -> RenderableType:
    """The last ones, the newest below."""
    last = sorted(events, key=lambda event: event.last)[-_EVENTS:]
    rows: list[dict[str, JsonValue]] = [
        {"last seen": age(each.last), "plane": each.plane, "type": str(each.type), "message": escape(each.message)}
        for each in last
    ]
    return _table(rows, columns) if rows else ""


def _row(plane: WatchedPlane) -> dict[str, JsonValue]:
    fact = plane.facts
    if fact is None:
        return {"name": plane.name, "state": "[red]not seen[/red]", "now": escape(plane.trouble)}
    members = rows_of(fact["members"])
    well = sum(each["health"] == "healthy" for each in members)
    return {
        "name": plane.name,
        "site": fact["site"],
        "state": "[red]not seen now[/red]" if plane.trouble else health(fact),
        "members": f"{well}/{len(members)}",
        "survives": ", ".join(survived(fact["survives"])) or "nothing",
        "now": escape(plane.trouble or _now(fact)),
    }


def _now(fact: dict[str, JsonValue]) -> str:
    """What goes on with a plane, in a few words."""
    waiting, warnings = list_of(fact["waiting"]), list_of(fact["warnings"])
    words = [str(fact["operation"])] if fact["operation"] else []
    words += map(str, list_of(fact["doing"]))
    words += [f"waits for {waiting[0]}"] if waiting else []
    return "; ".join([*words, *map(str, warnings[:1])])
