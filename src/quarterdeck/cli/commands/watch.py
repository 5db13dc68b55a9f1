"""``status --watch``: one screen on a terminal, a line for each change where there is none."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import aclosing

from rich.live import Live

from quarterdeck.api.output.status import WatchedStatus
from quarterdeck.app.looks import Looks
from quarterdeck.app.plane_watch import WatchedPlane
from quarterdeck.cli.change_lines import ChangeLines
from quarterdeck.cli.context import Output, go_inside, go_inside_for_all, look, out, plain
from quarterdeck.cli.screen import screen
from quarterdeck.errors import InvalidInput

Show = Callable[[tuple[WatchedPlane, ...]], None]


def watch(name: str | None, output: Output) -> None:
    """Show a plane, or all, until the user has seen enough, or the one is gone."""
    if output in (Output.YAML, Output.NAME):
        seen = f"-o {output} prints one document, and watching has no end"
        raise InvalidInput("watching planes", seen, "use -o json, which prints a line for each change")
    if name is None:
        go_inside_for_all()
    else:
        go_inside(name)
    try:
        if output is Output.JSON:
            _each(name, _documents())
        elif out.is_terminal:
            with Live(console=out, auto_refresh=False, screen=True, vertical_overflow="ellipsis") as live:
                _each(name, lambda seen: live.update(screen(seen, one=name is not None), refresh=True))
        else:
            _each(name, _lines())
    except KeyboardInterrupt:
        return


def _each(name: str | None, show: Show) -> None:
    async def watched(looks: Looks) -> None:
        async with aclosing(looks.watching(name)) as moments:
            async for seen in moments:
                show(seen)

    look(watched)


def _lines() -> Show:
    changes = ChangeLines()

    def show(seen: tuple[WatchedPlane, ...]) -> None:
        for line in changes.lines(seen):
            plain(f"{time.strftime('%H:%M:%S')}  {line}")

    return show


def _documents() -> Show:
    printed: dict[str, WatchedStatus] = {}

    def show(seen: tuple[WatchedPlane, ...]) -> None:
        for each in seen:
            document = WatchedStatus(name=each.name, status=each.facts, message=each.trouble or None)
            if printed.get(each.name) != document:
                printed[each.name] = document
                plain(document.model_dump_json())

    return show
