"""The passing of time in a simulated world."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.planner.simulated.members import agreed, found, raised
from quarterdeck.planner.simulated.parts import SimMember, SimReplica
from quarterdeck.planner.simulated.traffic import by_site
from quarterdeck.planner.simulated.truth import AnyTruth, Truth

#: Ticks that a member may be silent before it counts as down.
GRACE = 2


def tick(truth: AnyTruth, seconds: float = 1.0) -> AnyTruth:
    """One tick passes: learners copy, apiservers start, supervisors restart crashed programs, silence grows, and then
    load balancers check what they send to.
    """
    apart = truth.memory.events.exists
    truth = found(truth)
    if apart:
        truth = truth.with_events(found(truth.of(Cluster.EVENTS)))
    restarted = tuple((name, _restarted(truth, name, replica)) for name, replica in truth.replicas)
    truth = replace(truth, now=truth.now + seconds, replicas=restarted)
    later = tuple((name, _later(truth, name, replica)) for name, replica in truth.replicas)
    leads_events = truth.of(Cluster.EVENTS).elected if apart else None
    truth = agreed(raised(replace(truth, leader=truth.elected, events_leader=leads_events, replicas=later)))
    if apart:
        truth = truth.with_events(agreed(truth.of(Cluster.EVENTS))) if truth.etcd_minors else truth
        truth = replace(truth, events_full=raised(truth.of(Cluster.EVENTS)).full)
    checked = by_site(dict(truth.checked) | truth.well_behind)
    return truth if checked == truth.checked else replace(truth, checked=checked)


def _restarted(truth: Truth, name: str, replica: SimReplica) -> SimReplica:
    """The work of a supervisor. A listed member that was never active may start on an empty folder."""
    if not truth.up(name):
        return replica  # nor does anything restart what no record names
    record = truth.memory.replica(name)
    data = replica.data or (Component.ETCD in replica.units and not record.started)
    had = record.events is not None and record.events.started
    events_data = replica.events_data or (Component.EVENTS_ETCD in replica.units and not had)
    if not replica.crashed and (data, events_data) == (replica.data, replica.events_data):
        return replica
    return replace(replica, crashed=truth.ended(replica), data=data, events_data=events_data)


def _aged(truth: Truth, name: str, member: SimMember | None) -> SimMember | None:
    """A member after one tick."""
    if member is None:
        return None
    follows = name in truth.following
    behind = member.behind - (follows and member.behind > 0 and not truth.lags(name))
    unserved = member.unserved - (follows and member.unserved > 0)
    silent = 0 if follows else min(member.silent + 1, GRACE)
    if (behind, unserved, silent) == (member.behind, member.unserved, member.silent):
        return member
    copied = member.learner and member.behind and not behind and truth.elected is not None
    fill = truth.members[truth.elected].fill if copied and truth.elected is not None else member.fill
    return replace(member, behind=behind, unserved=unserved, silent=silent, fill=fill)


def _later(truth: Truth, name: str, replica: SimReplica) -> SimReplica:
    """The content of a replica's machine after one tick. An apiserver starts when all clusters that it needs answer."""
    member, events = _aged(truth, name, replica.member), replica.events
    if events is not None:
        events = _aged(truth.of(Cluster.EVENTS), name, events)
    warm = Component.APISERVER in replica.units and (replica.warm or _starts(truth, name))
    warm = warm and not truth.hangs(replica, Component.APISERVER)
    if member is replica.member and events is replica.events and warm == replica.warm:
        return replica
    return replace(replica, member=member, events=events, warm=warm)


def _starts(truth: Truth, name: str) -> bool:
    needs = [truth, *([truth.of(Cluster.EVENTS)] if truth.keeps_events_apart(name) else [])]
    return all(name in each.healthy and not each.members[name].learner for each in needs)
