"""What commands print of planes: rows of a list, a status, a dry run."""

from __future__ import annotations

import time

from pydantic import JsonValue
from rich.markup import escape

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import OperationType
from quarterdeck.app import DryRun, Examined, Verdict
from quarterdeck.app.words import leading, needs, quorum_of, what
from quarterdeck.cli.context import Output, out
from quarterdeck.cli.output import show, show_one, table
from quarterdeck.model.components import Component


def row(plane: ControlPlane) -> dict[str, JsonValue]:
    """A plane in a list of planes."""
    ready = next((each for each in plane.status.conditions if each.type == "Ready"), None)
    created = plane.metadata.creation_timestamp
    current = ready is not None and plane.status.observed_generation == plane.metadata.generation
    return {
        "name": plane.metadata.name,
        "site": plane.spec.placement.site,
        "replicas": plane.spec.replicas,
        "version": plane.spec.kubernetes_version,
        "ready": str(ready.status.value) if ready is not None and current else "Unknown",
        "age": age(created.timestamp()) if created is not None else None,
        "endpoint": plane.host,
        "etcd": plane.spec.etcd.version,
    }


def age(since: float) -> str:
    """How long ago a moment was (seconds since the epoch), as kubectl has it: 5d, 3h, 2m, 7s."""
    seconds = max(0, int(time.time() - since))
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def print_status(fact: dict[str, JsonValue], output: Output) -> None:
    """Print what ``summary`` says of a plane."""
    word = "[green]healthy[/green]" if fact["healthy"] else "[yellow]not as wanted[/yellow]"
    out.print(f"[bold]{fact['name']}[/bold] at {fact['site']}: {word}, Kubernetes {fact['kubernetesVersion']}")
    for line in _list(fact["warnings"]):
        out.print(f"[yellow]warning:[/yellow] {escape(str(line))}", soft_wrap=True)
    if fact["stalled"]:
        out.print(f"[yellow]stalled:[/yellow] {escape(str(fact['stalled']))}", soft_wrap=True)
    if fact["voters"] is not None:
        out.print(f"etcd: {quorum_of(fact['voters'], fact['mayFail'], fact['quorumAt'])}")
    out.print(f"{fact['endpoint']} leads to {fact['nameLeadsTo'] or 'nothing'}")
    for title, key in (("waiting for", "waiting"), ("left over", "leftovers")):
        for line in _list(fact[key]):
            out.print(f"{title}: {escape(str(line))}")
    if fact["operation"]:
        out.print(f"under way: {fact['operation']}, driven by {fact['driver'] or 'nobody (see wait)'}")
    for line in leading(fact):
        out.print(line)
    out.print()
    columns = ("replica", "machine", "machineState", "member", "health", "apiserver")
    components = tuple(str(component) for component in Component) if output is Output.WIDE else ()
    table([each for each in _list(fact["members"]) if isinstance(each, dict)], (*columns, *components))
    out.print()
    balancers = [each for each in _list(fact["loadBalancers"]) if isinstance(each, dict)]
    table(balancers, ("site", "running", "backends", "connections"))


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def print_examined(examined: Examined, output: Output) -> None:
    """Print what a request comes to: what it changes, what its checks say, and every step."""
    if output in (Output.JSON, Output.YAML):
        show_one(examined_fact(examined), output)
        return
    name, spec = examined.name, examined.wanted.spec
    if examined.kind is OperationType.CREATE:
        out.print(f"plane {name} would be created: {spec.replicas} replicas at {spec.placement.site}")
        return
    if not examined.needed:
        out.print(f"plane {name} is wanted so already: nothing would be changed")
        return
    out.print(f"plane {name} would be changed:")
    for each in examined.differences:
        out.print(
            f"  {escape(each.path)}: {escape(each.before)} → {escape(each.after)}", highlight=False, soft_wrap=True
        )
        out.print(f"    [dim]{escape(needs(each))}[/dim]", highlight=False, soft_wrap=True)
    for finding in examined.findings:
        if finding.verdict is not Verdict.OK:
            out.print(f"[yellow]![/yellow] {finding.check}: {escape(finding.seen)}", highlight=False, soft_wrap=True)
    if examined.forecast is not None:
        out.print()
        print_forecast(examined.forecast, output)


def examined_fact(examined: Examined) -> dict[str, JsonValue]:
    """The same for programs."""
    forecast = examined.forecast
    return {
        "plane": examined.name,
        "type": examined.kind.value,
        "needed": examined.needed,
        "differences": [
            {
                "path": each.path,
                "before": each.before,
                "after": each.after,
                "needs": each.needs.value,
                "restart": [str(component) for component in each.restart],
            }
            for each in examined.differences
        ],
        "findings": [
            {"check": each.check, "verdict": each.verdict.value, "seen": each.seen} for each in examined.findings
        ],
        "steps": [*_steps(forecast, Output.JSON)] if forecast is not None else None,
        "waitsFor": [*forecast.stuck_on] if forecast is not None else None,
    }


def print_forecast(forecast: DryRun, output: Output) -> None:
    """Print a dry run."""
    rows = _steps(forecast, output)
    if not rows and not forecast.stuck_on:
        out.print("nothing to do")
        return
    homes = {each.home for each in forecast.steps}
    stays = len(homes) == 1 and None not in homes and output is Output.TABLE
    where = () if stays else ("quorum at",)
    show(rows, ("#", "step", "voters", "may fail", *where, "undo"), output, wide=("site", "why"))
    if stays:
        out.print(f"the quorum stays at {homes.pop()}")
    for reason in forecast.stuck_on:
        out.print(f"[yellow]then it would wait for {escape(reason)}[/yellow]")


def _steps(forecast: DryRun, output: Output) -> list[dict[str, JsonValue]]:
    rows: list[dict[str, JsonValue]] = []
    for each in forecast.steps:
        if output is Output.TABLE and type(each.step).__name__.startswith(("Note", "Decide")):
            continue
        rows.append(
            {
                "#": len(rows) + 1,
                "step": what(each.step),
                "voters": f"{each.voters}" + (f"+{each.learners}" if each.learners else ""),
                "may fail": each.margin,
                "quorum at": each.home,
                "undo": "yes" if each.step.undoable else "no",
                "site": each.step.site,
                "why": each.step.why,
            }
        )
    return rows
