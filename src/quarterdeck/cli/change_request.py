"""A change, as commands ask for it: checked, shown, agreed to, and brought about."""

from __future__ import annotations

from quarterdeck.api.operation import Operation
from quarterdeck.app import Examined, Quarterdeck, Request, Verdict
from quarterdeck.cli.context import Output, err
from quarterdeck.cli.open_home import call
from quarterdeck.cli.operation_rows import changed, operation_result
from quarterdeck.cli.output import done, emit
from quarterdeck.cli.plan_text import print_forecast
from quarterdeck.cli.work import confirm, detach, follow, write_report


def change(examined: Examined, action: str, question: str, *, yes: bool, detached: bool, output: Output) -> None:
    """Show what a request comes to, ask, and bring it about. ``action``: see ``ChangeResult``."""
    show_examined(examined, output)
    confirm(question, yes=yes)
    bring_about(examined, action, detached=detached, output=output)


def bring_about(examined: Examined, action: str, *, detached: bool, output: Output) -> None:
    """Ask for what was examined, and drive the plane: here, to the report, or by a process of its own."""
    operation = call(lambda face: asked(face, examined))
    if detached:
        emit(changed(examined.name, action, operation_result(operation)), output, lambda: None)
        detach(examined.name, output)
        return
    follow(examined.name)
    write_report(operation, action, output)


def nothing_to_do(examined: Examined, action: str, text: str, output: Output) -> None:
    """Say that a request changes nothing."""
    done(changed(examined.name, action, news=False), output, text)


def planned(request: Request, *, trial: bool = True) -> Examined:
    """A request, checked and simulated."""
    return call(lambda face: face.plan(request), trial=trial)


async def asked(face: Quarterdeck, examined: Examined) -> Operation:
    """Put down what was examined."""
    operation = await face.ask(examined)
    assert operation is not None, "something is to be done"
    return operation


def show_examined(examined: Examined, output: Output) -> None:
    """Print what every check found, and the plan. Raises PreconditionFailed for what must not be. For programs the plan
    is not printed: they read the result alone.
    """
    if not examined.refused:
        for each in examined.findings:
            mark = "[green]✓[/green]" if each.verdict is Verdict.OK else "[yellow]![/yellow]"
            err.print(f"{mark} {each.check}: {each.seen}", highlight=False)
    examined.require()
    if examined.forecast is not None and output.for_people:
        print_forecast(examined.forecast, wide=output is Output.WIDE)
