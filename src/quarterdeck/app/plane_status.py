"""The status of a plane as it is printed, and its leaders in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from quarterdeck.api.base import instant
from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.output.base import Message, messages
from quarterdeck.api.output.status import (
    ClusterMember,
    FailureSurvival,
    LeaseStatus,
    PlaneAddon,
    PlaneBackup,
    PlaneBalancer,
    PlaneEtcd,
    PlaneReplica,
    PlaneStatus,
    PlaneUpgrade,
)
from quarterdeck.api.plane.backup import BackupStatus
from quarterdeck.api.plane.upgrade import UpgradeSettings
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.minors import dotted
from quarterdeck.components.transitions.etcd_path import settings_of
from quarterdeck.components.transitions.upgrade_windows import behaviour
from quarterdeck.components.version_rules import flaws
from quarterdeck.engine.notices.conditions import why_stalled
from quarterdeck.engine.notices.events import warnings
from quarterdeck.engine.status import Leader, Status
from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.leadership import Leadership
from quarterdeck.model.membership import Membership
from quarterdeck.model.world import World
from quarterdeck.planner import quorum
from quarterdeck.planner.members import voters
from quarterdeck.planner.survival import survivals
from quarterdeck.planner.view import view


def summary(status: Status) -> PlaneStatus:
    """What ``status`` prints."""
    plane, world, membership = status.plane, status.world, status.world.membership
    now = voters(world) if membership is not None else frozenset()
    paused, stalled = plane.spec.paused_at(datetime.now(UTC)), why_stalled(plane)
    return PlaneStatus(
        name=plane.name,
        site=plane.spec.placement.site,
        replicas=plane.spec.replicas,
        kubernetes_version=plane.spec.kubernetes_version,
        upgrade=_upgrade(plane.spec),
        etcd=_etcd(plane.spec, world.membership),
        endpoint=plane.host,
        healthy=status.plan.done and not world.unled and not any(each.alarms for each in world.memberships),
        paused=paused,
        paused_until=plane.spec.paused_until if paused else None,
        doing=tuple(step.kind for step in status.plan.now),
        waiting=messages([str(each) for each in status.plan.waiting]),
        leftovers=messages(status.plan.leftovers),
        operation=status.operation.name if status.operation else None,
        driver=status.driver or None,
        stalled=Message(message=stalled) if stalled else None,
        cordoned=messages(status.cordoned),
        addons=tuple(
            PlaneAddon(name=each.name, objects=each.objects, message=each.why or None) for each in plane.status.addons
        ),
        voters=len(now) if membership is not None else None,
        may_fail=quorum.margin(now) if membership is not None else None,
        quorum_at=quorum.quorum_site(now) if membership is not None else None,
        alarms=tuple(membership.alarms) if membership is not None else None,
        survives=_survives(world),
        name_leads_to=world.record if world.record_known else "unknown",
        backup=_backup(plane.status.backup),
        warnings=messages([*warnings(world), *flaws(plane.spec)]),
        leaders={str(kind): leader.replica for kind, leader in status.leaders.items()},
        leader_identities={str(kind): leader.identity for kind, leader in status.leaders.items()},
        controller_leases={str(each.component): lease_status(each) for each in world.leading},
        members=tuple(_replicas(world)),
        load_balancers=tuple(map(_balancer, world.balancers)),
    )


def _upgrade(spec: ControlPlaneSpec) -> PlaneUpgrade:
    settings = spec.upgrade or UpgradeSettings()
    return PlaneUpgrade(window=settings.window, behaves_as=dotted(behaviour(spec).emulated), to=settings.to)


def _etcd(spec: ControlPlaneSpec, seen: Membership | None) -> PlaneEtcd:
    settings = settings_of(spec)
    works_as, downgrade = (seen.works_as, seen.downgrade) if seen is not None else (None, None)
    return PlaneEtcd(
        version=spec.etcd.version,
        works_as=dotted(works_as) if works_as is not None else None,
        downgrade=dotted(downgrade) if downgrade is not None else None,
        keeps_one=settings.keep_one,
        to=settings.to,
    )


def _backup(stored: BackupStatus | None) -> PlaneBackup | None:
    if stored is None:
        return None
    return PlaneBackup(
        revision=stored.revision,
        restorable_at=stored.restorable_at,
        fulls=stored.fulls,
        size_bytes=stored.size_bytes,
        verified_revision=stored.verified_revision,
        verified_at=stored.verified_at,
    )


def lease_status(seen: Leadership) -> LeaseStatus:
    """A lease of controllers."""
    return LeaseStatus(
        lease=seen.lease,
        led=seen.led,
        holder=seen.holder or None,
        renewed_seconds_ago=round(seen.idle_s, 1) if seen.idle_s is not None else None,
        expires_at=instant(seen.expires_at) if seen.expires_at is not None else None,
        expired=seen.expired,
        message=seen.trouble or None,
    )


def leading(
    leaders: Mapping[str, str | None], identities: Mapping[str, str | None], leases: Mapping[str, LeaseStatus]
) -> list[str]:
    """The leaders of a status in words, a line each."""
    return [
        f"{kind} led by {_leader_words(Leader(replica, identities[kind]), leases.get(kind))}"
        for kind, replica in leaders.items()
    ]


def _leader_words(leader: Leader, lease: LeaseStatus | None) -> str:
    """The leader and, as far as it is known, when its lease was last renewed, and until when a lost one lasts."""
    if lease is None:
        return str(leader)
    idle = lease.renewed_seconds_ago
    renewed = [f"last renewed {idle:.0f} s ago"] if idle is not None else []
    if lease.led is not False:
        return ", ".join([str(leader), *renewed])
    if not lease.holder:
        return "nobody: nobody holds its lease"
    held = f"nobody: its lease {'was' if lease.expired else 'is'} held by '{lease.holder}'"
    until = [f"until {lease.expires_at:%Y-%m-%dT%H:%M:%SZ}"] if lease.expires_at is not None else []
    return ", ".join([held, *renewed, *until])


def _balancer(seen: BalancerFact) -> PlaneBalancer:
    return PlaneBalancer(
        site=seen.site,
        running=seen.running or (False if seen.reachable else None),
        backends=tuple(sorted(seen.backends)),
        connections=seen.connections,
    )


def _survives(world: World) -> tuple[FailureSurvival, ...]:
    """Which failures it survives now; none for a plane that is being deleted."""
    if world.deleting:
        return ()
    return tuple(
        FailureSurvival(failure=str(each.failure), answer=str(each.answer), reasons=each.why)
        for each in survivals(view(world))
    )


def _replicas(world: World) -> list[PlaneReplica]:
    rows: list[PlaneReplica] = []
    for record in world.memory.replicas:
        fact = world.replica(record.name)
        own = _member(world, record.name)
        rows.append(
            PlaneReplica(
                replica=record.name,
                site=record.site,
                zone=record.slot.zone,
                machine=record.machine,
                machine_state=str(fact.machine),
                member=own.member,
                health=own.health,
                lag_entries=own.lag_entries,
                events=_member(world.of(Cluster.EVENTS), record.name) if record.events is not None else None,
                apiserver="ready" if fact.ready else str(fact.unit(Component.APISERVER)),
                components={str(component): str(fact.unit(component)) for component in CATALOGUE},
            )
        )
    return rows


def _member(world: World, name: str) -> ClusterMember:
    """What a replica is in a cluster, and how it is there."""
    membership, member = world.membership, world.member(name)
    role = "unknown" if membership is None else "none"
    if member is not None and membership is not None:
        standing = any(each.name == name for each in world.memory.standbys)
        listens = "standby" if standing else "learner"
        role = listens if member.learner else "leader" if membership.leader == name else "voter"
    return ClusterMember(
        member=role,
        health=str(member.health) if member is not None else None,
        lag_entries=member.lag if member is not None else None,
    )
