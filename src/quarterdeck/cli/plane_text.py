"""What commands print of planes: columns of a list, a status."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape

from quarterdeck.api.output.status import (
    ClusterMember,
    PlaneAddon,
    PlaneBackup,
    PlaneBalancer,
    PlaneEtcd,
    PlaneReplica,
    PlaneStatus,
)
from quarterdeck.app.components import components
from quarterdeck.app.plane_status import leading
from quarterdeck.app.words import quorum_of, survival
from quarterdeck.cli.context import Output, out
from quarterdeck.cli.output import Column, table
from quarterdeck.cli.readable import size, when
from quarterdeck.model.components import Component
from quarterdeck.model.units import IDLE, UnitState

BALANCER_COLUMNS: tuple[Column[PlaneBalancer], ...] = (
    Column("site", lambda row: row.site),
    Column("running", lambda row: row.running),
    Column("backends", lambda row: row.backends),
    Column("connections", lambda row: row.connections),
)


_MEMBER_COLUMNS: tuple[Column[PlaneReplica], ...] = (
    Column("replica", lambda row: row.replica),
    Column("machine", lambda row: row.machine),
    Column("machineState", lambda row: row.machine_state),
    Column("member", lambda row: row.member),
    Column("health", lambda row: row.health),
)
LAG: Column[PlaneReplica] = Column("lag", lambda row: row.lag_entries)
_APISERVER: Column[PlaneReplica] = Column("apiserver", lambda row: row.apiserver)
_EVENTS: Column[PlaneReplica] = Column("events", lambda row: _in_events(row.events))
#: Those of a screen that is shown as long as somebody watches.
WATCHED_COLUMNS = (*_MEMBER_COLUMNS, LAG, _APISERVER)


def print_status(status: PlaneStatus, output: Output) -> None:
    """Print the status of a plane."""
    for line in status_lines(status):
        out.print(line, soft_wrap=True)
    out.print()
    print_members(status.members, output)
    out.print()
    table(status.load_balancers, BALANCER_COLUMNS)


def status_lines(status: PlaneStatus) -> list[str]:
    """The status of a plane as a whole, in lines with markup."""
    lines = [f"[bold]{status.name}[/bold] at {status.site}: {health(status)}, Kubernetes {_version(status)}"]
    lines += [f"[yellow]warning:[/yellow] {escape(each.message)}" for each in status.warnings]
    if status.paused:
        until = status.paused_until.isoformat() if status.paused_until is not None else "it is resumed"
        lines.append(f"[yellow]paused[/yellow] until {until}: nothing is changed")
    if status.stalled is not None:
        lines.append(f"[yellow]stalled:[/yellow] {escape(status.stalled.message)}")
    lines += [escape(each.message) for each in status.cordoned]
    if status.voters is not None:
        lines.append(f"etcd: {quorum_of(status.voters, status.may_fail, status.quorum_at)}")
    lines += [escape(each) for each in survival(status.survives)]
    lines += _etcd(status.etcd)
    lines.append(f"{status.endpoint} leads to {status.name_leads_to or 'nothing'}")
    for title, found in (("waiting for", status.waiting), ("left over", status.leftovers)):
        lines += [f"{title}: {escape(each.message)}" for each in found]
    if status.backup is not None:
        lines.append(_backup(status.backup))
    if status.operation:
        lines.append(f"under way: {status.operation}, driven by {status.driver or 'nobody (see wait)'}")
    lines += map(_addon, status.addons)
    return [*lines, *map(escape, leading(status.leaders, status.leader_identities, status.controller_leases))]


def _version(status: PlaneStatus) -> str:
    """The version of Kubernetes and, where it is not the usual one, its window."""
    upgrade = status.upgrade
    words = {"emulating": f" (emulating {upgrade.behaves_as})", "final": " (final)"}.get(upgrade.window, "")
    return f"{status.kubernetes_version}{words}" + (f", going on to {upgrade.to}" if upgrade.to else "")


def _etcd(etcd: PlaneEtcd) -> list[str]:
    """How far an upgrade of etcd is, while one is under way."""
    words: list[str] = []
    if etcd.keeps_one:
        words.append(
            "one member keeps the former minor version, so that the way back is free ('upgrade --finish' ends it)"
        )
    if etcd.downgrade is not None:
        words.append(f"it is being taken back to {etcd.downgrade}")
    if etcd.works_as is not None:
        words.append(f"the members work as {etcd.works_as}")
    if etcd.to is not None:
        words.append(f"going on to {etcd.to}")
    return [f"etcd {etcd.version}: {'; '.join(words)}"] if words else []


def _backup(stored: PlaneBackup) -> str:
    verified = f"verified {when(stored.verified_at)}" if stored.verified_at is not None else "not verified yet"
    return f"backup: restorable up to {when(stored.restorable_at)}, {size(stored.size_bytes)}, {verified}"


def _addon(row: PlaneAddon) -> str:
    """An add-on: how many objects it has, or why it is not up to date."""
    state = row.message or f"{row.objects} objects are up to date"
    return f"add-on {row.name}: {escape(state)}"


def health(status: PlaneStatus) -> str:
    """Whether a plane is well, in a word with markup."""
    return f"[{'green' if status.healthy else 'yellow'}]{state(status)}[/]"


def state(status: PlaneStatus) -> str:
    """The same without markup. A plane on which nothing is left to do may be ill all the same."""
    if status.healthy:
        return "healthy"
    return "not up to date" if status.waiting or status.doing else "not healthy"


def print_members(members: Sequence[PlaneReplica], output: Output) -> None:
    """A line for each replica; what it is in the events' etcd only where there is one."""
    separate = any(each.events is not None for each in members)
    programs = tuple(_program(each) for each in components() if _shown(each, members))
    columns = (*_MEMBER_COLUMNS, _APISERVER, *((_EVENTS,) if separate else ()), *programs)
    table(members, columns, wide=output is Output.WIDE)


def _program(component: Component) -> Column[PlaneReplica]:
    return Column(component, lambda row: row.components[component], wide=True)


def _shown(component: Component, members: Sequence[PlaneReplica]) -> bool:
    """Whether any replica has a program. An optional one is shown where it was observed."""
    if component == Component.EVENTS_ETCD:
        return any(each.events is not None for each in members)
    unseen = (*IDLE, UnitState.UNKNOWN)
    return not component.optional or any(each.components[component] not in unseen for each in members)


def _in_events(member: ClusterMember | None) -> str:
    return " ".join(filter(None, (member.member, member.health))) if member is not None else ""
