"""Trying the commands of a storage class."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.cli.arguments import SiteName
from quarterdeck.cli.context import out, run
from quarterdeck.cli.opening import opened
from quarterdeck.errors import PreconditionFailed

ClassName = Annotated[str, typer.Argument(metavar="CLASS", help="The storage class.", show_default=False)]
Machines = Annotated[list[str] | None, typer.Option("--machine", help="Two, to try it on; else any that answer.")]


def try_storage(name: SiteName, storage_class: ClassName, machine: Machines = None) -> None:
    """Try the commands of a storage class with a volume of its own: a line for each thing that they must promise."""

    async def ask() -> int:
        broken = 0
        async with opened() as quarterdeck:
            async for each in quarterdeck.sites.test_storage(name, storage_class, tuple(machine or ())):
                broken += not each.kept
                line = f"kept    {each.words}" if each.kept else f"BROKEN  {each.words}: {each.seen}"
                out.print(line, highlight=False, markup=False, soft_wrap=True)
        return broken

    if broken := run(ask()):
        words = "1 promise is" if broken == 1 else f"{broken} promises are"
        raise PreconditionFailed(f"trying storage class {storage_class}", f"{words} not kept", "see docs/storage.md")
    out.print("not tried: detach while a host does not answer", highlight=False)
