"""The membership of etcd: joining, catching up, promotion, the voter swap, and removal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quarterdeck.model.clusters import CALLED
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.members import AddLearner, Promote, RemoveMember, Swap, TransferLeadership
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.steps.units import RestartUnit, StartUnit, StopUnit
from quarterdeck.model.units import IDLE, UnitState
from quarterdeck.planner import next_steps
from quarterdeck.planner.claims import BlockedClaims
from quarterdeck.planner.members import stray_voters, strays
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.quorum import Voter, VoterChange, has_quorum, quorum_site, shortest_swap
from quarterdeck.planner.rules.placement import waits_for_a_start
from quarterdeck.planner.view import View


def keep_running(view: View) -> RuleOutcome:
    """Every member's etcd runs as long as it is a member, wanted or not: the quorum counts on it."""
    steps: list[Step] = []
    # A seat goes to another replica only when the previous one was observed to be no longer a member.
    heirs = {record.seat or record.machine: record.name for record in view.world.memory.replicas}
    for record in view.world.memory.replicas:
        member = view.world.member(record.name)
        belongs = member is not None if view.world.membership else heirs[record.seat or record.machine] == record.name
        if not belongs or view.world.memory.is_former(record) or not record.started or view.rests(record, view.etcd):
            continue
        # Unobserved data is not deleted data: a member never starts on a folder that was not observed.
        if view.reachable(record) and view.unit(record, view.etcd) in IDLE and view.fact(record).has_data:
            steps.append(_start(view, record, "it is a member and its etcd does not run"))
    return RuleOutcome(tuple(steps))


def _start(view: View, record: Replica, why: str) -> StartUnit:
    return StartUnit(site=record.site, why=why, replica=record.name, component=view.etcd)


def removable(view: View, record: Replica) -> bool:
    """Rule 1: the voters that remain, counting only healthy ones, are a quorum of the new membership; and the
    quorum site remains the quorum site. Where that is not known, a voter that may be healthy in this cluster, and is
    lost in the other, stays.
    """
    member = view.member(record)
    dead = record.name in view.lost or (member is not None and member.health is Health.DOWN)
    if view.quorum_site is None and view.plane is not view and not dead:
        return False
    remaining = frozenset(voter for voter in view.voters if voter.replica != record.name)
    able = frozenset(voter for voter in view.up_to_date if voter.replica != record.name)
    return has_quorum(able) and (view.quorum_site is None or quorum_site(remaining) == view.quorum_site)


def remove_strays(view: View) -> RuleOutcome:
    """A learner that belongs to no replica is removed: the late call of a replaced driver added it, for a replica that
    was released since, or a person did. It has never voted. A voter is left to a person: it may hold data that no other
    member has acknowledged.
    """
    steps = tuple(
        RemoveMember(
            site="", why="it belongs to no replica", replica=member.replica, member=member.id, cluster=view.cluster
        )
        for member in strays(view.world)
        if member.learner
    )
    return RuleOutcome(steps, stray_voters(view.world, view.cluster))


def remove_dead(view: View) -> RuleOutcome:
    """Unwanted members that are dead, lost, or only learners are removed at once: they only cost fault tolerance. (A
    lost one may still lead the events' cluster.)
    """
    for record in view.unwanted:
        member = view.member(record)
        if member is None:
            continue
        if view.membership.leader == record.name:
            goes = view.plane is not view and record.name in view.lost | view.plane.lost and view.serves_nobody(record)
            step = (
                hand_over(view, view.voting, f"{record.name} leads, and its data or membership is lost")
                if goes
                else None
            )
            if step is not None:
                return RuleOutcome((step,))
            continue
        if member.learner:
            why = "it is not wanted and does not vote"
        elif record.name in view.world.memory.given_up and view.missing:
            continue  # it stays as long as it has no replacement: it may come back
        elif record.name in view.gone and view.serves_nobody(record) and removable(view, record):
            why = "it is not wanted and is dead"
        else:
            continue
        return RuleOutcome(
            (RemoveMember(site=record.site, why=why, replica=record.name, member=member.id, cluster=view.cluster),)
        )
    return RuleOutcome()


def join(view: View) -> RuleOutcome:
    """All needed learners are added first; then they start, each when the previous one answers its peers, or cannot be
    started.

    A starting member requests the version of every listed peer in turn: a peer that is down refuses at once, a peer
    that is just starting delays it for seconds.
    """
    absent = [record for record in view.wanted if view.member(record) is None]
    first = _depose(view) if absent or view.learners else None
    if first is not None:
        return first
    if absent:
        sick = [voter for voter in view.membership.voters if voter.health is not Health.HEALTHY]
        if sick:
            names = (
                each.description if each.replica else f"{each.description} of {CALLED[view.cluster]}" for each in sick
            )
            what = f"member {', '.join(names)} to be healthy before learners are added"
            return RuleOutcome(waiting=(_of_member(view, sick[0].key, what),))
        steps = tuple(_add(view, record) for record in absent if view.reachable(record))
        return RuleOutcome(steps) if steps else RuleOutcome(waiting=tuple(_deaf(view, each) for each in absent))
    return _start_learners(view)


def _depose(view: View) -> RuleOutcome | None:
    """Learners copy from the leader: a leader whose data differs from most transfers leadership before any joins. So
    does one that a person wants replaced, who may know more about its data; but not where all others leave as well.
    """
    world = view.world
    differ = {each.name for each in world.memory.replicas if each.differs}
    voters = [each for each in world.memory.replicas if (one := view.member(each)) is not None and not one.learner]
    named = differ.union(world.condemned)
    suspect = differ if named.issuperset(each.name for each in voters) else named
    leader = view.membership.leader
    if leader not in suspect:
        return None
    why = "has other data than most" if leader in differ else "is to be replaced"
    others = [each for each in voters if each.name not in suspect and view.is_healthy_voter(each)]
    step = hand_over(view, others, f"{leader} leads, and {why}")
    wait = next_steps.leader(view.world, f"another member than {leader} to lead")
    return RuleOutcome((step,) if step is not None else (), (wait,))


def _add(view: View, record: Replica) -> AddLearner:
    return AddLearner(
        site=record.site,
        why=f"{record.name} replicates without a vote first",
        replica=record.name,
        storage_class=view.world.storage_class if view.plane is not view else "",
        cluster=view.cluster,
    )


def _deaf(view: View, record: Replica) -> Wait:
    return next_steps.machine(view.world, record)


def _of_member(view: View, key: str, what: str) -> Wait:
    """A wait for a member, which is named by its ``MemberFact.key``."""
    record = next((each for each in view.world.memory.replicas if each.name == key), None)
    if record is None:
        remove = view.world.command("etcd remove-member", key)
        return Wait(what, f"it belongs to no replica: remove it with {remove}")
    return next_steps.member(view.world, record, view.etcd, what)


def _start_learners(view: View) -> RuleOutcome:
    aside = BlockedClaims(view.world.failing)
    steps: list[Step] = []
    waiting: list[Wait] = []
    for record in view.wanted:
        if record.started:
            continue
        if not view.reachable(record):
            waiting.append(_deaf(view, record))
        elif waits_for_a_start(view, record):
            if waiting:
                break
            steps.append(_start(view, record, "a learner joins and copies the data"))
            if aside.error_of(steps[-1]) is None:
                break
        elif not view.fact(record).peer_up:
            waiting.append(next_steps.program(view.world, record, view.etcd, "to answer its peers"))
    return RuleOutcome(tuple(steps), tuple(waiting))


def rejoin(view: View) -> RuleOutcome:
    """A learner that never received its own publication is restarted, once.

    It publishes its name through raft, and serves clients when it has applied that. If it joins by a snapshot, that
    has most often been taken after the publication and holds it already: there is nothing left to apply, and etcd
    tries again only after 5 s + 2 x election timeout (EtcdServer.publishV3, ReqTimeout). A restarted one has the data.
    """
    steps = tuple(
        RestartUnit(
            site=record.site,
            why="its own publication was part of the snapshot that it received, and etcd retries only seconds later",
            replica=record.name,
            component=view.etcd,
        )
        for record in view.learners
        if not (record.started or record.restarted)
        and view.reachable(record)
        and view.unit(record, view.etcd) is UnitState.RUNNING
        and _missed_its_publication(view, record)
    )
    return RuleOutcome(steps)


def _missed_its_publication(view: View, record: Replica) -> bool:
    member = view.member(record)
    assert member is not None
    return member.published and member.health is not Health.HEALTHY and view.has_the_data(record)


def promote(view: View) -> RuleOutcome:
    """Learners that have caught up become voters as long as the quorum site keeps the quorum."""
    waiting: list[Wait] = []
    for record in view.learners:
        member = view.member(record)
        assert member is not None
        if not view.may_be_promoted(record):
            continue
        if view.caught_up(record):
            why = f"{record.name} has caught up, and site {view.quorum_site} remains the quorum site"
            return RuleOutcome(
                (Promote(site=record.site, why=why, replica=record.name, member=member.id, cluster=view.cluster),)
            )
        waiting.append(_behind(view, record))
    return RuleOutcome(waiting=tuple(waiting))


def _behind(view: View, record: Replica) -> Wait:
    member = view.member(record)
    name = f"{'learner' if member is None or member.learner else 'voter'} {record.name}"
    if member is None or member.lag is None or member.health is not Health.HEALTHY:
        return next_steps.member(view.world, record, view.etcd, f"{name} to join")
    what = f"{name} to catch up: {member.lag:,} entries behind"
    return next_steps.member(view.world, record, view.etcd, what)


def lead(view: View) -> RuleOutcome:
    """Leadership goes to a wanted voter once no unwanted apiserver serves."""
    leader = next((record for record in view.unwanted if record.name == view.membership.leader), None)
    if leader is None or not view.plane.takeover:
        return RuleOutcome()
    if any(not view.apiserver_off(record) for record in view.unwanted if view.is_healthy_voter(record)):
        return RuleOutcome()
    step = hand_over(view, view.voting, f"{leader.name} leads and will be removed")
    if step is None:
        what = f"a voter at {view.heading} that has the data, to lead"
        return RuleOutcome(waiting=(next_steps.leader(view.world, what),))
    return RuleOutcome((step,))


def hand_over(view: View, to: Iterable[Replica], why: str) -> TransferLeadership | None:
    """Leadership goes to the first voter that has the data and where no transfer has failed; None if there is none."""
    aside = BlockedClaims(view.world.failing)
    steps = [
        TransferLeadership(site=each.site, why=why, to=each.name, member=member.id, cluster=view.cluster)
        for each in to
        if view.has_the_data(each) and (member := view.member(each)) is not None
    ]
    return min(steps, key=lambda step: aside.error_of(step) is not None, default=None)


def swap(view: View) -> RuleOutcome:
    """The quorum moves from one site to another in the fewest changes, back to back. Where members must be removed for
    it, the events' cluster follows the main one.
    """
    if view.quorum_site == view.heading:
        return RuleOutcome()
    if view.quorum_site is None and view.likely_quorum_site is not None:
        # Only this process does not see the quorum site: that is no swap to be finished.
        return RuleOutcome(waiting=tuple(_unseen(view, name) for name in view.doubtful))
    blockers = () if view.quorum_site is None else _swap_blockers(view)
    if blockers:
        return RuleOutcome(waiting=blockers)
    changes = _swap_changes(view)
    if not changes:
        what = f"a safe way to give site {view.heading} the quorum"
        return RuleOutcome(waiting=(Wait(what, next_steps.status(view.world)),))
    if view.plane.quorum_site != view.heading and view.plane is not view and any(change.remove for change in changes):
        return RuleOutcome()
    steps = tuple(_as_step(view, change) for change in changes)
    why = f"site {view.heading} becomes the quorum site"
    return RuleOutcome((Swap(site=view.heading, why=why, changes=steps, cluster=view.cluster),))


def _unseen(view: View, name: str) -> Wait:
    return _of_member(view, name, f"member {name} to answer, or to be reported down by the cluster")


def _swap_changes(view: View) -> tuple[VoterChange, ...] | None:
    promotable = tuple(view.voter(record) for record in view.learners if view.caught_up(record))
    removable = tuple(
        view.voter(record)
        for record in view.unwanted
        if (member := view.member(record)) is not None
        and not member.learner
        and view.serves_nobody(record)
        and view.membership.leader != record.name
    )
    return shortest_swap(view.up_to_date, view.heading, promotable, _dead_first(removable))


def _dead_first(removable: tuple[Voter, ...]) -> tuple[Voter, ...]:
    return tuple(sorted(removable, key=lambda voter: voter.healthy))


def _swap_blockers(view: View) -> tuple[Wait, ...]:
    """Why a swap must not begin yet (one that has begun must only be finished)."""
    if view.missing:
        return (_every_slot(view),)
    behind = tuple(_behind(view, record) for record in view.wanted if not view.caught_up(record))
    if behind:
        return behind
    changes = _swap_changes(view)
    if changes and not any(change.remove for change in changes):
        return ()
    if not view.plane.takeover:
        return (Wait(f"apiservers at {view.heading} to carry the traffic", next_steps.status(view.world)),)
    serving = [each for each in view.unwanted if view.is_healthy_voter(each) and not view.apiserver_off(each)]
    return (_stopped(view, serving),) if serving else ()


def _stopped(view: View, serving: Sequence[Replica]) -> Wait:
    """A wait for apiservers to stop: quarterdeck stops them once they are drained, where their machines answer."""
    what = f"apiserver of {', '.join(each.name for each in serving)} to stop"
    return next_steps.on_machine(
        view.world, serving[0], Wait(what, next_steps.once(view.world, "their clients have left"))
    )


def _every_slot(view: View) -> Wait:
    what = f"every slot at {view.heading} to have a replica"
    return Wait(what, next_steps.once(view.world, "machines are free"))


def _as_step(view: View, change: VoterChange) -> Promote | RemoveMember:
    member = view.membership.of(change.voter.replica)
    assert member is not None
    kind = RemoveMember if change.remove else Promote
    why = "one voter less at the source" if change.remove else "one voter more at the target"
    return kind(site=change.voter.site, why=why, replica=change.voter.replica, member=member.id, cluster=view.cluster)


def remove(view: View) -> RuleOutcome:
    """Unwanted voters are removed one by one once every wanted replica is a voter."""
    leaving = [record for record in view.unwanted if (member := view.member(record)) is not None and not member.learner]
    if not leaving or view.quorum_site != view.heading:
        return RuleOutcome()
    waiting = tuple(
        next_steps.voter(view.world, record, view.cluster)
        for record in view.wanted
        if not view.is_healthy_voter(record)
    )
    if waiting or view.missing:
        return RuleOutcome(waiting=waiting or (_every_slot(view),))
    for record in leaving:
        member = view.member(record)
        assert member is not None
        if record.name in view.doubtful and not view.reachable(record):
            waiting = (*waiting, _unseen(view, record.name))
        elif not view.serves_nobody(record):
            waiting = (*waiting, _stopped(view, [record]))
        elif view.membership.leader == record.name:
            waiting = (*waiting, next_steps.leader(view.world, f"{record.name} to transfer leadership"))
        elif not removable(view, record):
            spare = Wait(f"enough voters to spare {record.name}", next_steps.status(view.world))
            waiting = (*waiting, spare)
        else:
            why = "it is not wanted, and every wanted replica votes"
            return RuleOutcome(
                (RemoveMember(site=record.site, why=why, replica=record.name, member=member.id, cluster=view.cluster),)
            )
    return RuleOutcome(waiting=waiting)


def stop_removed(view: View) -> RuleOutcome:
    """A removed member's etcd exits by itself, repeatedly: its unit is stopped, its data kept."""
    steps = tuple(
        StopUnit(site=record.site, why="it is no longer a member", replica=record.name, component=view.etcd)
        for record in view.unwanted
        if view.member(record) is None
        and view.reachable(record)
        and view.unit(record, view.etcd) not in (*IDLE, UnitState.UNKNOWN)
    )
    return RuleOutcome(steps)
