"""One screen with the current state of planes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from quarterdeck.api.base import Condition
from quarterdeck.api.output.status import PlaneStatus
from quarterdeck.app.plane_watch import Event, WatchedPlane
from quarterdeck.app.words import survived
from quarterdeck.cli.ages import age, since
from quarterdeck.cli.output import Column, made_table
from quarterdeck.cli.plane_text import BALANCER_COLUMNS, WATCHED_COLUMNS, health, status_lines

R = TypeVar("R")

#: More events than this do not fit.
_EVENTS = 6


_LAST_SEEN: Column[Event] = Column("last seen", lambda event: age(event.last))
_MESSAGE: Column[Event] = Column("message", lambda event: event.message)
_EVENTS_OF_ONE: tuple[Column[Event], ...] = (_LAST_SEEN, Column("type", lambda event: event.type), _MESSAGE)
_EVENTS_OF_ALL: tuple[Column[Event], ...] = (_LAST_SEEN, Column("plane", lambda event: event.plane), _MESSAGE)
_CONDITIONS: tuple[Column[Condition], ...] = (
    Column("condition", lambda row: row.type),
    Column("status", lambda row: row.status.value),
    Column("since", lambda row: since(row.last_transition_time)),
    Column("message", lambda row: row.message or row.reason),
)


def _state(plane: WatchedPlane) -> Text:
    if plane.facts is None:
        return Text("not seen", "red")
    return Text("not seen now", "red") if plane.trouble else Text.from_markup(health(plane.facts))


_PLANES: tuple[Column[WatchedPlane], ...] = (
    Column("name", lambda plane: plane.name),
    Column("site", lambda plane: plane.facts.site if plane.facts is not None else None),
    Column("state", _state),
    Column("members", lambda plane: _well(plane.facts) if plane.facts is not None else None),
    Column("survives", lambda plane: _survives(plane.facts) if plane.facts is not None else None),
    Column("now", lambda plane: plane.trouble or (_now(plane.facts) if plane.facts is not None else None)),
)


def screen(seen: Sequence[WatchedPlane], *, one: bool) -> RenderableType:
    """The screen: everything of ``one`` plane, or a line for each of several."""
    ends = _line(f"[dim]{time.strftime('%H:%M:%S')}  Ctrl-C ends this[/dim]")
    if one:
        return Group(*_plane(seen[0]), "", ends)
    rows = _table(seen, _PLANES)
    events = [event for each in seen for event in each.events]
    return Group(rows if seen else "no planes", "", _events(events, _EVENTS_OF_ALL), "", ends)


def _table(rows: Sequence[R], columns: Sequence[Column[R]]) -> Table:
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
    yield made_table(plane.facts.members, WATCHED_COLUMNS)
    yield ""
    yield made_table(plane.facts.load_balancers, BALANCER_COLUMNS)
    yield ""
    yield _table(plane.conditions, _CONDITIONS)
    yield ""
    yield _events(plane.events, _EVENTS_OF_ONE)


def _events(events: Sequence[Event], columns: Sequence[Column[Event]]) -> RenderableType:
    """The last ones, the newest below."""
    last = sorted(events, key=lambda event: event.last)[-_EVENTS:]
    return _table(last, columns) if last else ""


def _well(status: PlaneStatus) -> str:
    return f"{sum(each.health == 'healthy' for each in status.members)}/{len(status.members)}"


def _survives(status: PlaneStatus) -> str:
    return ", ".join(survived(status.survives)) or "nothing"


def _now(status: PlaneStatus) -> str:
    """What goes on with a plane, in a few words."""
    words = [status.operation] if status.operation else []
    words += status.doing
    words += [f"waits for {each.message}" for each in status.waiting[:1]]
    return "; ".join([*words, *(each.message for each in status.warnings[:1])])
