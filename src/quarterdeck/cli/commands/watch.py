"""``status --watch``: one screen on a terminal, a line for each change where there is none."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import aclosing

from rich.live import Live

from quarterdeck.app.watching import Watched
from quarterdeck.cli.change_lines import ChangeLines
from quarterdeck.cli.context import Output, go_inside, go_inside_for_all, looking, out, run
from quarterdeck.cli.screen import screen
from quarterdeck.errors import InvalidInput

Show = Callable[[tuple[Watched, ...]], None]


def watch(name: str | None, output: Output) -> None:
    """Show a plane, or all, until the user has seen enough, or the one is gone."""
    if output is Output.YAML:
        raise InvalidInput("watching planes", "there is no end to the document", "use -o json: a line for each change")
    if name is None:
        go_inside_for_all()
    else:
        go_inside(name)
    try:
        if output is Output.JSON:
            run(_each(name, _documents()))
        elif out.is_terminal:
            with Live(console=out, auto_refresh=False, screen=True, vertical_overflow="ellipsis") as live:
                run(_each(name, lambda seen: live.update(screen(seen, one=name is not None), refresh=True)))
        else:
            run(_each(name, _lines()))
    except KeyboardInterrupt:
        return


async def _each(name: str | None, show: Show) -> None:
    async with looking() as looks, aclosing(looks.watching(name)) as moments:
        async for seen in moments:
            show(seen)


def _lines() -> Show:
    changes = ChangeLines()

    def show(seen: tuple[Watched, ...]) -> None:
        for line in changes.lines(seen):
            out.print(f"{time.strftime('%H:%M:%S')}  {line}", soft_wrap=True, highlight=False, markup=False)

    return show


def _documents() -> Show:
    told: dict[str, object] = {}

    def show(seen: tuple[Watched, ...]) -> None:
        for each in seen:
            document = {**(each.facts or {"name": each.name}), "trouble": each.trouble or None}
            if told.get(each.name) != document:
                told[each.name] = document
                out.print(json.dumps(document), soft_wrap=True, highlight=False, markup=False)

    return show
