"""What commands print of planes: rows of a list, a status."""

from __future__ import annotations

import time
from collections.abc import Mapping

from pydantic import JsonValue
from rich.markup import escape

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.app.words import components, leading, list_of, quorum_of, rows_of, survival
from quarterdeck.cli.context import Output, out
from quarterdeck.cli.output import table
from quarterdeck.model.components import Component
from quarterdeck.model.units import IDLE, UnitState


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
    for line in status_lines(fact):
        out.print(line, soft_wrap=True)
    out.print()
    print_members(rows_of(fact["members"]), output)
    out.print()
    table(rows_of(fact["loadBalancers"]), ("site", "running", "backends", "connections"))


def status_lines(fact: dict[str, JsonValue]) -> list[str]:
    """What ``summary`` says of a plane as a whole, in lines with markup."""
    lines = [f"[bold]{fact['name']}[/bold] at {fact['site']}: {health(fact)}, Kubernetes {fact['kubernetesVersion']}"]
    lines += [f"[yellow]warning:[/yellow] {escape(str(each))}" for each in list_of(fact["warnings"])]
    if fact["paused"]:
        lines.append(f"[yellow]paused[/yellow] until {fact['pausedUntil'] or 'it is resumed'}: nothing is changed")
    if fact["stalled"]:
        lines.append(f"[yellow]stalled:[/yellow] {escape(str(fact['stalled']))}")
    lines += [escape(str(each)) for each in list_of(fact["cordoned"])]
    if fact["voters"] is not None:
        lines.append(f"etcd: {quorum_of(fact['voters'], fact['mayFail'], fact['quorumAt'])}")
    lines += [escape(each) for each in survival(fact["survives"])]
    lines.append(f"{fact['endpoint']} leads to {fact['nameLeadsTo'] or 'nothing'}")
    for title, key in (("waiting for", "waiting"), ("left over", "leftovers")):
        lines += [f"{title}: {escape(str(each))}" for each in list_of(fact[key])]
    if fact["operation"]:
        lines.append(f"under way: {fact['operation']}, driven by {fact['driver'] or 'nobody (see wait)'}")
    lines += [_addon(each) for each in rows_of(fact["addons"])]
    return [*lines, *map(escape, leading(fact))]


def _addon(row: dict[str, JsonValue]) -> str:
    """An add-on: how many objects it has, or why it is not as wanted."""
    so = row["why"] or f"{row['objects']} objects are up to date"
    return f"add-on {row['name']}: {escape(str(so))}"


def health(fact: dict[str, JsonValue]) -> str:
    """Whether a plane is well, in a word with markup."""
    return f"[{'green' if fact['healthy'] else 'yellow'}]{state(fact)}[/]"


def state(fact: Mapping[str, JsonValue]) -> str:
    """The same without markup. A plane on which nothing is left to do may be ill all the same."""
    if fact["healthy"]:
        return "healthy"
    return "not as wanted" if fact["waiting"] or fact["doing"] else "not healthy"


def print_members(members: list[dict[str, JsonValue]], output: Output) -> None:
    """A line for each replica; what it is in the events' etcd only where there is one."""
    separate = any(each["events"] is not None for each in members)
    columns = (
        "replica",
        "machine",
        "machineState",
        "member",
        "health",
        "apiserver",
        *(("events",) if separate else ()),
    )
    programs = tuple(each for each in components() if _shown(each, members)) if output is Output.WIDE else ()
    table([{**each, "events": _in_events(each["events"])} for each in members], (*columns, *programs))


def _shown(component: Component, members: list[dict[str, JsonValue]]) -> bool:
    """Whether any replica has a program; of an optional one that is told by what is seen."""
    if component == Component.EVENTS_ETCD:
        return any(each["events"] is not None for each in members)
    unseen = (*IDLE, UnitState.UNKNOWN)
    return not component.optional or any(each[component] not in unseen for each in members)


def _in_events(member: JsonValue) -> str:
    if not isinstance(member, dict):
        return ""
    return " ".join(str(each) for each in (member["member"], member["health"]) if each)
