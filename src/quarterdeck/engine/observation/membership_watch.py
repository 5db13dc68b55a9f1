"""Changes of etcd's membership, leadership and alarms that no step of this driver made, for example with etcdctl."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from quarterdeck.api.events import EventReason
from quarterdeck.engine.notices.events import Happening
from quarterdeck.model.clusters import CALLED, Cluster
from quarterdeck.model.membership import Health, MemberFact, Membership
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.members import AddLearner, Promote, ReaddressMember, RemoveMember, Swap, TransferLeadership
from quarterdeck.model.world import World
from quarterdeck.planner.members import NOSPACE, raised
from quarterdeck.planner.space import has_no_room
from quarterdeck.stores.port import EventType

#: A change of one member: the command of etcdctl, and the member's id, or the replica of a new one.
_Change = tuple[Cluster, str, int | str]
_ADD, _REMOVE, _PROMOTE, _UPDATE = "member add", "member remove", "member promote", "member update"
_LEAD = "move-leader"


@dataclass(kw_only=True)
class MembershipWatch:
    """Compares each observation with the previous one, without the changes that this driver's steps tried since. A step
    whose reply was lost may take effect later: it explains one such change, whenever that is observed.
    """

    _before: dict[Cluster, Membership] = field(default_factory=dict)
    _tried: set[_Change] = field(default_factory=set)

    def tried(self, step: Step) -> None:
        """Record a step, whose effect is the driver's own, whether it succeeds or not."""
        self._tried.update(_changes_of(step))

    def news(self, world: World) -> tuple[Happening, ...]:
        """Foreign changes since the previous observation; none for a cluster that was unknown then."""
        found: list[Happening] = []
        for cluster in Cluster:
            membership, before = world.membership_of(cluster), self._before.get(cluster)
            if membership is None:
                continue  # changes are noticed once a quorum answers again
            self._before[cluster] = membership
            if before is not None and before.cluster_id == membership.cluster_id:
                found += self._compared(cluster, before, membership)
                found += self._led(cluster, before, membership)
                found += _unexplained(cluster, before, membership)
        return tuple(found)

    def _led(self, cluster: Cluster, before: Membership, now: Membership) -> Iterator[Happening]:
        """That a healthy leader lost leadership, unless a step transferred it. Elections happen by themselves, and
        background tasks transfer leadership as well: the event names no cause.
        """
        if None in (before.leader, now.leader) or before.leader == now.leader:
            return
        mine = {(cluster, _LEAD, member.id) for member in now.members if member.replica == now.leader} & self._tried
        self._tried -= mine
        former = [each for each in (before.of(before.leader or ""), now.of(before.leader or "")) if each is not None]
        healthy = len(former) == 2 and all(each.health is Health.HEALTHY for each in former)
        if healthy and not mine:
            message = f"{now.leader} leads {CALLED[cluster]} instead of {before.leader}, which is healthy"
            yield Happening(EventReason.LEADER_MOVED, message, EventType.NORMAL)

    def _compared(self, cluster: Cluster, before: Membership, now: Membership) -> Iterator[Happening]:
        for what, of, member in _differences(_by_id(before), _by_id(now)):
            mine = {(cluster, what, of.id), (cluster, what, of.replica)} & self._tried
            self._tried -= mine
            if not mine:
                message = f"{what} of {member} in {CALLED[cluster]} was not done by quarterdeck"
                yield Happening(EventReason.MEMBERSHIP_CHANGED, message)


def _unexplained(cluster: Cluster, before: Membership, now: Membership) -> Iterator[Happening]:
    """That NOSPACE is on since the previous observation, although each voter is known to have room."""
    if NOSPACE in raised(before) or NOSPACE not in raised(now):
        return
    if all(each.space is not None and not has_no_room(each.space) for each in now.voters):
        message = f"{CALLED[cluster]} has raised NOSPACE, although every member has room"
        yield Happening(EventReason.ALARM_UNEXPLAINED, message)


def _by_id(membership: Membership) -> Mapping[int, MemberFact]:
    return {member.id: member for member in membership.members}


def _changes_of(step: Step) -> Iterator[_Change]:
    match step:
        case AddLearner():
            yield step.cluster, _ADD, step.replica
        case RemoveMember():
            yield step.cluster, _REMOVE, step.member
        case TransferLeadership():
            yield step.cluster, _LEAD, step.member
        case Promote():
            yield step.cluster, _PROMOTE, step.member
        case ReaddressMember():
            yield step.cluster, _UPDATE, step.member
        case Swap():
            for change in step.changes:
                yield from _changes_of(change)
        case _:
            pass


def _differences(
    before: Mapping[int, MemberFact], now: Mapping[int, MemberFact]
) -> Iterator[tuple[str, MemberFact, str]]:
    """The changes: the command, the member, and the member in words."""
    for number, member in now.items():
        was = before.get(number)
        if was is None:
            yield _ADD, member, f"{_role(member)} {member.description}"
            continue
        if was.learner and not member.learner:
            yield _PROMOTE, member, f"learner {member.description}"
        if was.peer_urls != member.peer_urls:
            yield _UPDATE, member, f"{_role(member)} {member.description} from {_urls(was)} to {_urls(member)}"
    for number, was in before.items():
        if number not in now and was.replica:
            yield _REMOVE, was, f"{_role(was)} {number:x} of replica {was.replica}"


def _role(member: MemberFact) -> str:
    return "learner" if member.learner else "voter"


def _urls(member: MemberFact) -> str:
    return ", ".join(member.peer_urls) or "no URL"
