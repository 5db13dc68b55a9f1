"""A change, as commands ask for it: checked, shown, agreed to, and brought about."""

from __future__ import annotations

from quarterdeck.api.operation import Operation
from quarterdeck.app import Examined, Quarterdeck, Request, Verdict
from quarterdeck.cli.context import Output, err, out
from quarterdeck.cli.open_home import call
from quarterdeck.cli.output import document
from quarterdeck.cli.plan_text import print_forecast
from quarterdeck.cli.work import confirm, detach, follow, write_report


def change(examined: Examined, question: str, *, yes: bool, detached: bool, output: Output) -> None:
    """Show what a request comes to, ask, and bring it about."""
    show_examined(examined, output)
    confirm(question, yes=yes)
    bring_about(examined, detached=detached, output=output)


def bring_about(examined: Examined, *, detached: bool, output: Output = Output.TABLE) -> None:
    """Ask for what was examined, and drive the plane: here, to the report, or by a process of its own."""
    operation = call(lambda face: asked(face, examined))
    if detached:
        if output.is_document:
            document((operation,), output)
        detach(examined.name, tell=err if output.is_document else out)
        return
    follow(examined.name)
    write_report(operation, output)


def planned(request: Request, *, trial: bool = True) -> Examined:
    """A request, checked and simulated."""
    return call(lambda face: face.plan(request), trial=trial)


async def asked(face: Quarterdeck, examined: Examined) -> Operation:
    """Put down what was examined."""
    operation = await face.ask(examined)
    assert operation is not None, "something is to be done"
    return operation


def show_examined(examined: Examined, output: Output = Output.TABLE) -> None:
    """Print what every check found, and the plan. Raises PreconditionFailed for what must not be. Where documents are
    wanted, the plan is not printed: the report is the only one.
    """
    if not examined.refused:
        for each in examined.findings:
            mark = "[green]✓[/green]" if each.verdict is Verdict.OK else "[yellow]![/yellow]"
            err.print(f"{mark} {each.check}: {each.seen}", highlight=False)
    examined.require()
    if examined.forecast is not None and not output.is_document:
        print_forecast(examined.forecast, output)
