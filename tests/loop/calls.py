"""The calls of ports, as a driver makes them, and the steps that they amount to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loop.members import cluster_at
from loop.truths import Truths
from loop.units import PLANE, owner_of, replica_of
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.clusters import ReleaseMember, RestoreMember
from quarterdeck.model.steps.members import AddLearner, Promote, ReaddressMember, RemoveMember, TransferLeadership
from quarterdeck.model.steps.placement import AttachVolumes, LeaveMachine, ReleaseReplica
from quarterdeck.model.steps.traffic import RemoveRecord, SetBackends, SetRecord, StopBalancer
from quarterdeck.model.steps.units import ReloadUnit, RestartUnit, ReviveUnit, StartUnit, StopUnit
from quarterdeck.model.units import UnitSpec


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a port, as the driver makes it. ``port`` is ``site:east``, ``balancer:east``, ``etcd``, ``dns`` ..."""

    port: str
    method: str
    args: Sequence[object]
    kwargs: Mapping[str, object]

    @property
    def site(self) -> str:
        return self.port.partition(":")[2]

    def target(self) -> str:
        """Whom it is about, in a word."""
        first = self.args[0] if self.args else ""
        second = self.args[1] if len(self.args) > 1 else ""
        if isinstance(second, UnitSpec):
            second = second.name
        if self.port == "store":
            return getattr(first, "__name__", "") or type(first).__name__
        return f"{_word(first)} {_word(second)}".strip()


def _word(value: object) -> str:
    return str(value)[:60] if isinstance(value, str | int | tuple) or hasattr(value, "host") else ""


def step_of(call: Call, truths: Truths, doing: Sequence[Step]) -> Step | None:
    """The step that a call amounts to; None for one that changes nothing that the planner knows of."""
    port, method, args = call.port.partition(":")[0], call.method, call.args
    match port, method:
        case "site", "attach_volume":
            machine, volume, source = map(str, args)
            return AttachVolumes(
                site=call.site, why="", replica=owner_of(volume), machine=machine, source=source, window=0.0
            )
        case "site", "start_unit" | "reload_unit" | "stop_unit" | "remove_unit" | "delete_volume":
            return _unit_step(call, doing, truths)
        case "balancer", "apply":
            return SetBackends(site=call.site, why="", backends=tuple(args[0]))
        case "balancer", "remove":
            return StopBalancer(site=call.site, why="")
        case "dns", "set":
            where = {each.address.ip: site for site, each in truths.world.balancers.items()}
            return SetRecord(site="", why="", to=where[args[1][0]])
        case "dns", "remove":
            return RemoveRecord(site="", why="")
        case "etcd", "add_learner":
            kind = cluster_at(args[1])
            if any(node.peer_url == args[1] for node in truths.world.clusters[kind].cluster.nodes):
                return None  # it is a member already
            return AddLearner(site="", why="", replica=truths.names(kind)[args[1]], cluster=kind)
        case "etcd", "promote" | "readdress" | "remove" | "move_leader":
            return _member_step(method, args[1], truths)
        case _:
            return None


def _is_of(step: StopUnit, unit: str) -> bool:
    return (step.replica, step.component) == replica_of(unit)


def _unit_step(call: Call, doing: Sequence[Step], truths: Truths) -> Step | None:
    what = call.args[1]
    name = what.name if isinstance(what, UnitSpec) else str(what)
    for step in doing:
        if isinstance(step, AttachVolumes) and name.startswith(f"{PLANE}-{step.replica}-"):
            return None  # what runs where its volume was taken from
        if isinstance(step, LeaveMachine) and (step.machine, step.replica) == (call.args[0], replica_of(name)[0]):
            return step
        if isinstance(step, ReleaseMember) and name.startswith(f"{PLANE}-{step.replica}-"):
            return step
        if isinstance(step, RestoreMember) and name == f"{PLANE}-{step.replica}":
            return None  # what a try that broke off left
    if call.method == "remove_unit" and any(isinstance(step, StopUnit) and _is_of(step, name) for step in doing):
        return None  # it has stopped: what it was given goes
    if call.method in ("remove_unit", "delete_volume"):
        volume = call.method == "delete_volume"
        replica = owner_of(name) if volume else replica_of(name)[0]
        known = truths.wanted()
        mine = known is not None and any(record.name == replica for record in known.memory.replicas)
        kept = {step.replica for step in doing if isinstance(step, ReleaseReplica) and step.keep}
        keep = replica in kept and (not volume or "-events-" in name)
        return ReleaseReplica(site=call.site, why="", replica=replica, keep=keep) if mine else None
    replica, component = replica_of(name)
    for step in doing:
        if isinstance(step, RestartUnit | ReviveUnit) and (step.replica, step.component) == (replica, component):
            return step
        if isinstance(step, ReloadUnit) and call.method == "reload_unit" and step.replica == replica:
            return step
    kind = StartUnit if call.method == "start_unit" else StopUnit
    return kind(site=call.site, why="", replica=replica, component=component)


def _member_step(method: str, member: int, truths: Truths) -> Step | None:
    found = ((kind, each.cluster.by_id(member)) for kind, each in truths.world.clusters.items())
    kind, node = next(((kind, node) for kind, node in found if node is not None), (Cluster.MAIN, None))
    if node is None:
        return None
    name = truths.name_of(kind, node)
    if method == "readdress":
        return ReaddressMember(site="", why="", replica=name, member=member, cluster=kind)
    if method == "promote":
        return Promote(site="", why="", replica=name, member=member, cluster=kind)
    if method == "remove":
        return RemoveMember(site="", why="", replica=name, member=member, cluster=kind)
    return TransferLeadership(site="", why="", to=name, member=member, cluster=kind)
