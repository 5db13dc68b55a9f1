"""The faults that can happen in a world, and their repair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from model.events_cluster import with_member, without_data
from model.faulty_truth import FaultyTruth
from model.kinds import Fault, Kind
from model.manual_changes import membership_by_hand, states_by_hand, stray_voters, without_stray_voters
from quarterdeck.model.clusters import MEMBER, Cluster
from quarterdeck.model.components import NAMED, Component
from quarterdeck.model.remember import remember
from quarterdeck.model.steps.members import NoteDiffering
from quarterdeck.model.steps.units import RetryRevision
from quarterdeck.planner.quorum import has_quorum
from quarterdeck.planner.simulated.parts import (
    DNS,
    ETCD,
    Fill,
    Power,
    SimMember,
    SimReplica,
    all_of,
    apiserver_of,
    edge,
    etcd_of,
    second,
)

#: Ticks until a joiner publishes itself a second time, and until a voter that lags has caught up.
UNSERVED = 3
BEHIND = 2


def faults(truth: FaultyTruth) -> Iterator[Fault]:
    """Every single fault of the world: each leaves it in a state from which it can be repaired. After one who leads no
    more, anybody leads who can.
    """
    for fault in _faults(truth):
        following = fault.truth.electable
        if truth.elected is None or truth.elected in following or len(following) < 2:
            yield fault
            continue
        for name in following:
            yield Fault(fault.kind, f"{fault.name}, {name} is elected", replace(fault.truth, leader=name))


def _faults(truth: FaultyTruth) -> Iterator[Fault]:
    yield from _machines(truth)
    yield from _units(truth)
    yield from links(truth)
    yield from _sites(truth)
    yield from _silence(truth)
    yield from _members(truth)
    yield from _checks(truth)
    yield from _room(truth)
    yield from _differs(truth)
    yield from _hangs(truth)
    yield from membership_by_hand(truth)
    yield from states_by_hand(truth)


def data_loss(truth: FaultyTruth) -> Iterator[Fault]:
    """One member's data folder is deleted under it, or all that its machine had, while all others are healthy."""
    clusters = [truth.of(each) for each in truth.memory.clusters]
    if not whole(truth) or not all(name in each.healthy for each in clusters for name in each.members):
        return
    for cluster in truth.memory.clusters:
        for name in truth.of(cluster).members:
            lost = without_data(truth.replica(name), cluster)
            of = "events of" if cluster is Cluster.EVENTS else "data of"
            yield Fault(Kind.DATA_LOST, f"{of} {name} is deleted", truth.with_replica(name, lost))
    for name in truth.members:
        was = truth.replica(name)
        blank = SimReplica(member=was.member, events=was.events)
        yield Fault(Kind.BLANK, f"machine of {name} comes back blank", truth.with_replica(name, blank))


def survivable(truth: FaultyTruth) -> bool:
    """Whether a quorum has its data. If not, the plane itself is lost, and what to do then is the user's decision."""
    return all(_survives(truth.of(each)) for each in truth.memory.clusters)


def _survives(truth: FaultyTruth) -> bool:
    return not truth.voters or has_quorum(
        replace(voter, healthy=truth.replica(voter.replica).data) for voter in truth.voters
    )


def whole(truth: FaultyTruth) -> bool:
    """Whether every machine and link works and answers, and no machine is closed to new replicas."""
    broken = truth.cuts or truth.dead_edges or truth.dead_seconds or truth.looping or truth.mute or _any_hangs(truth)
    broken = broken or truth.corrupt or truth.authenticates
    broken = broken or any(stray_voters(truth.of(each)) for each in truth.memory.clusters)
    return not broken and all(machine.power is Power.ON and not machine.cordoned for machine in truth.machines)


def spared(truth: FaultyTruth, site: str) -> bool:
    """Whether nothing that is still out of order is at ``site``, and a quorum answers."""
    hurt = {machine.site for machine in truth.machines if machine.power is not Power.ON or machine.cordoned}
    hurt |= truth.dead_edges | truth.dead_seconds | truth.looping | _sites_that_hang(truth)
    answer = all(truth.of(each).elected is not None for each in truth.memory.clusters)
    answer = answer and not any(stray_voters(truth.of(each)) for each in truth.memory.clusters)
    answer = answer and not (truth.corrupt or truth.authenticates)
    return answer and not (truth.cuts or truth.mute) and not {site, truth.front} & hurt


def healable(truth: FaultyTruth) -> bool:
    """Whether nothing is out of order but machines of the site that has the plane, and enough of them are left; and at
    most one member of a cluster never catches up: of several none is to blame.
    """
    site, healing = truth.slots[0].site, truth.settings.healing
    if truth.deleting or not (healing.budget and healing.other_zones) or truth.cuts or truth.dead_edges or truth.mute:
        return False
    if truth.looping or truth.corrupt or truth.authenticates:
        return False
    here = [each for each in truth.machines if each.site == site]
    well = [each for each in here if each.power is Power.ON]
    if any(sum(map(of.lags, of.members)) > 1 or stray_voters(of) for of in map(truth.of, truth.memory.clusters)):
        return False
    at_home = all(truth.of(each).quorum_site == site for each in truth.memory.clusters)
    return at_home and len(well) >= len(truth.slots) and not any(each.cordoned for each in here)


def repaired(truth: FaultyTruth) -> FaultyTruth:
    """Every machine, program and link is back, and a person opens what was cordoned, removes the voters that belong to
    no replica, and turns off what keeps etcd from being used; data that was deleted is not back.
    """
    machines = truth.machines
    if any(machine.power is not Power.ON or machine.cordoned for machine in machines):
        machines = tuple(replace(each, power=Power.ON, cordoned=False) for each in machines)
    none = frozenset[str]()
    whole = truth
    if _any_hangs(truth):
        nothing = frozenset[Component]()
        well = tuple(
            (name, replace(each, hung=nothing, slow=nothing) if each.hung | each.slow else each)
            for name, each in truth.replicas
        )
        whole = replace(truth, machines=machines, replicas=well, sick=frozenset(), lame=frozenset())
    whole = replace(without_stray_voters(whole), looping=none, corrupt=False, authenticates=False)
    links = replace(whole, machines=machines, cuts=frozenset(), mute=none)
    return replace(links, dead_edges=none, dead_seconds=none, away=none)


def _any_hangs(truth: FaultyTruth) -> bool:
    return bool(truth.sick | truth.lame) or any(each.hung | each.slow for _, each in truth.replicas)


def _sites_that_hang(truth: FaultyTruth) -> set[str]:
    """Where a program hangs, or will when it is started."""
    sick = {machine for machine, _ in truth.sick | truth.lame}
    hung = {truth.site_of(name) for name, each in truth.replicas if each.hung | each.slow}
    return hung | {each.site for each in truth.machines if each.name in sick}


def _hangs(truth: FaultyTruth) -> Iterator[Fault]:
    """A program runs, and does nothing any more until it is killed."""
    for record in truth.memory.replicas:
        replica = truth.replica(record.name)
        for component in truth.programs.every:
            if not replica.runs(component) or not truth.up(record.name) or component in replica.hung:
                continue
            warm = replica.warm and component != Component.APISERVER
            after = truth.with_replica(record.name, replace(replica, hung=replica.hung | {component}, warm=warm))
            yield Fault(Kind.HANGS, f"{component} of {record.name} hangs", after)
            by_hand = replace(replica, altered=replica.altered | {component})
            if component not in replica.altered:
                words = f"somebody changes the files of {component} of {record.name}"
                yield Fault(Kind.ALTERED, words, truth.with_replica(record.name, by_hand))
            sick = replace(after, sick=after.sick | {(record.machine, component)})
            yield Fault(Kind.SICK, f"{component} of {record.name} hangs again and again", sick)


def mends(truth: FaultyTruth) -> Iterator[tuple[str, FaultyTruth]]:
    """Everything that can come back by itself, one by one."""
    for machine in truth.machines:
        if machine.power is not Power.ON:
            yield f"{machine.name} is back", _power(truth, {machine.name}, Power.ON)
    if truth.cuts:
        yield "sites see each other again", replace(truth, cuts=frozenset())
    for site in sorted(truth.dead_edges):
        yield from _back(edge(site), truth, replace(truth, dead_edges=truth.dead_edges - {site}))
    for site in sorted(truth.dead_seconds):
        yield from _back(second(site), truth, replace(truth, dead_seconds=truth.dead_seconds - {site}))
    for site in sorted(truth.looping):
        yield f"{edge(site)} goes on running", replace(truth, looping=truth.looping - {site})
    for name in sorted(truth.away):
        yield f"the address of the {name} is back", replace(truth, away=truth.away - {name})
    for name in sorted(truth.mute):
        yield f"{name} answers again", replace(truth, mute=truth.mute - {name})


def _back(name: str, before: FaultyTruth, after: FaultyTruth) -> Iterator[tuple[str, FaultyTruth]]:
    """An edge is back; where another one has its address, that may stay there, as clients are connected to it."""
    yield f"{name} is back", after
    its_own = name not in map(second, before.shared)
    if its_own and before.holder(name) != name and name not in after.away:
        yield f"{name} is back without its address", replace(after, away=after.away | {name})


def new_driver(truth: FaultyTruth) -> FaultyTruth:
    """Another driver takes over: it does not know for how long members have been silent."""
    replicas = tuple((name, _heard(replica)) for name, replica in truth.replicas)
    return replace(truth, replicas=replicas) if replicas != truth.replicas else truth


def unfit(truth: FaultyTruth) -> Component | None:
    """The program that does not run as the first revision of a plane has it, while that is wanted."""
    if truth.memory.proven or truth.deleting:
        return None
    return next((each for revision, each in truth.broken | truth.hanging if revision == truth.revision), None)


def given_up(truth: FaultyTruth) -> bool:
    """Whether the first revision of a plane was given up, which then is still wanted."""
    rejected, memory = truth.memory.rejected, truth.memory
    return not (memory.proven or truth.deleting) and rejected is not None and rejected.revision == truth.revision


def retried(truth: FaultyTruth) -> FaultyTruth:
    """Somebody drives the plane again: a first revision that was given up is tried once more."""
    if not given_up(truth):
        return truth
    step = RetryRevision(site="", why="the plane is driven again", revision=truth.revision)
    return replace(truth, memory=remember(truth.memory, step, truth.now))


def _heard(replica: SimReplica) -> SimReplica:
    for cluster, member in ((Cluster.MAIN, replica.member), (Cluster.EVENTS, replica.events)):
        if member is not None and member.silent:
            replica = with_member(replica, cluster, replace(member, silent=0))
    return replica


def _power(truth: FaultyTruth, names: set[str], power: Power) -> FaultyTruth:
    machines = tuple(
        replace(each, power=power) if each.name in names and each.power is not power else each
        for each in truth.machines
    )
    return replace(truth, machines=machines)


def _off(truth: FaultyTruth, names: set[str]) -> FaultyTruth:
    """Power lost: nothing of the machines is warm any more."""
    for record in truth.memory.replicas:
        if record.machine in names and truth.replica(record.name).warm:
            truth = truth.with_replica(record.name, replace(truth.replica(record.name), warm=False))
    return _power(truth, names, Power.OFF)


def _machines(truth: FaultyTruth) -> Iterator[Fault]:
    for record in truth.memory.replicas:
        if truth.up(record.name):
            yield Fault(Kind.MACHINE_DIES, f"{record.machine} dies", _off(truth, {record.machine}))
            frozen = _power(truth, {record.machine}, Power.FROZEN)
            yield Fault(Kind.MACHINE_FREEZES, f"{record.machine} freezes", frozen)


def _units(truth: FaultyTruth) -> Iterator[Fault]:
    for record in truth.memory.replicas:
        replica = truth.replica(record.name)
        for component in NAMED:
            if replica.runs(component) and truth.up(record.name):
                warm = replica.warm and component != Component.APISERVER
                crashed = replace(replica, crashed=replica.crashed | {component}, warm=warm)
                after = truth.with_replica(record.name, crashed)
                yield Fault(Kind.CRASH, f"{component} of {record.name} crashes", after)
        for component in MEMBER.values():
            if replica.runs(component) and truth.up(record.name):
                stopped = replace(replica, units=replica.units - {component})
                after = truth.with_replica(record.name, stopped)
                yield Fault(Kind.STOPPED, f"somebody stops {component} of {record.name}", after)


def _places(truth: FaultyTruth) -> list[str]:
    return sorted({record.site for record in truth.memory.replicas} | {site for site, _ in truth.balancers})


def links(truth: FaultyTruth) -> Iterator[Fault]:
    """Two sites no longer see each other, or only one of them hears the other."""
    sites = _places(truth)
    if truth.cuts:
        return
    for index, one in enumerate(sites):
        for other in sites[index + 1 :]:
            both = frozenset({(one, other), (other, one)})
            yield Fault(Kind.CUT, f"{one} and {other} are cut", replace(truth, cuts=both))
            for way in sorted(both):
                cut = replace(truth, cuts=frozenset({way}))
                yield Fault(Kind.CUT_ONE_WAY, f"{way[1]} no longer hears {way[0]}", cut)


def _sites(truth: FaultyTruth) -> Iterator[Fault]:
    for site in _places(truth):
        dark = replace(truth, dead_edges=truth.dead_edges | {site})
        if site not in truth.dead_edges:
            yield Fault(Kind.EDGE_DIES, f"{edge(site)} dies", dark)
            if site not in truth.twins and not truth.looping:  # a driver of the model puts one refused step aside
                checked = tuple(each for each in truth.checked if each[0] != site)
                loops = replace(truth, looping=truth.looping | {site}, checked=checked)
                yield Fault(Kind.EDGE_LOOPS, f"{edge(site)} exits repeatedly", loops)
        if site in truth.twins - truth.dead_seconds:
            lost = replace(truth, dead_seconds=truth.dead_seconds | {site})
            yield Fault(Kind.EDGE_DIES, f"{second(site)} dies", lost)
            dark = replace(dark, dead_seconds=lost.dead_seconds)
        for name in truth.addresses(site) if site in truth.floating else ():
            if truth.holder(name) == name and (gone := replace(truth, away=truth.away | {name})).holder(name) != name:
                yield Fault(Kind.ADDRESS_GOES, f"the address of the {name} goes to the other one", gone)
        for name in _routed(truth, site):
            alone = replace(truth, unrouted=truth.unrouted | {name})
            yield Fault(Kind.ROUTER_STOPS, f"somebody stops what has addresses at the {name}", alone)
        there = {machine.name for machine in truth.machines if machine.site == site}
        if any(machine.name in there and machine.power is not Power.OFF for machine in truth.machines):
            yield Fault(Kind.SITE_DIES, f"site {site} dies", _off(dark, there))


def _routed(truth: FaultyTruth, site: str) -> Iterator[str]:
    """The edges of a site to which addresses can come that float, and a load balancer is there."""
    first, other = site in dict(truth.balancers), site in dict(truth.seconds)
    there = {edge(site): first and site not in truth.dead_edges, second(site): other and site not in truth.dead_seconds}
    yield from (name for name, runs in there.items() if site in truth.floating and runs and name not in truth.unrouted)


def _silence(truth: FaultyTruth) -> Iterator[Fault]:
    """What goes on working, but does not answer the manager: clients, and the members among each other, see it."""
    for kind, name, mute in _unseen(truth):
        if not mute <= truth.mute:
            yield Fault(kind, f"{name} does not answer us", replace(truth, mute=truth.mute | mute))


def _unseen(truth: FaultyTruth) -> Iterator[tuple[Kind, str, frozenset[str]]]:
    for record in truth.memory.replicas:
        if truth.answers(record.name):
            member, apiserver = etcd_of(record.name), apiserver_of(record.name)
            yield Kind.UNSEEN_SUPERVISOR, record.machine, frozenset({record.machine})
            if record.name in truth.members:
                yield Kind.UNSEEN_MEMBER, member, frozenset({member})
                whole_machine = frozenset({record.machine, member, apiserver})
                yield Kind.UNSEEN_MACHINE, f"all of {record.machine}", whole_machine
            if record.name in truth.serving:
                yield Kind.UNSEEN_APISERVER, apiserver, frozenset({apiserver})
    for site, _ in truth.balancers:
        if truth.edge_answers(site):
            yield Kind.UNSEEN_EDGE, edge(site), frozenset({edge(site)})
        if truth.second_answers(site):
            yield Kind.UNSEEN_EDGE, second(site), frozenset({second(site)})
    for site in _places(truth):
        yield Kind.UNSEEN_SITE, all_of(site), frozenset({all_of(site)})
    yield Kind.UNSEEN_DNS, DNS, frozenset({DNS})
    yield Kind.UNREAD, ETCD, frozenset({ETCD})


def _members(truth: FaultyTruth) -> Iterator[Fault]:
    """A joiner gets its own publication in the snapshot that it joins by, and does not serve until the next one; any
    voter that can lead does; and one that follows falls behind.
    """
    for cluster in truth.memory.clusters:
        seen = truth.of(cluster)
        for name, member in seen.members.items():
            yield from _member(truth, cluster, name, member)


def _member(truth: FaultyTruth, cluster: Cluster, name: str, member: SimMember) -> Iterator[Fault]:
    seen, what = truth.of(cluster), " the events' cluster" * (cluster is Cluster.EVENTS)
    if not member.learner:
        if name in seen.electable and name != seen.elected:
            leads = {"leader": name} if cluster is Cluster.MAIN else {"events_leader": name}
            yield Fault(Kind.LEADER_MOVES, f"{name} leads{what}", replace(truth, **leads))
        if name in seen.following and name in truth.recorded and name != seen.elected and not member.behind:
            late = with_member(truth.replica(name), cluster, replace(member, behind=BEHIND))
            yield Fault(Kind.VOTER_LAGS, f"{name} lags{' in' * bool(what)}{what}", truth.with_replica(name, late))
            yield from _never_catches_up(truth.with_replica(name, late), cluster, name, what)
    elif member.behind and name in seen.following and name in truth.recorded and not seen.lags(name):
        yield from _never_catches_up(truth, cluster, name, what)
    if member.learner and name in truth.recorded and not member.unserved and not seen.memory.replica(name).started:
        unserved = with_member(truth.replica(name), cluster, replace(member, unserved=UNSERVED))
        after = truth.with_replica(name, unserved)
        yield Fault(Kind.SNAPSHOT, f"the publication of {name} is in its snapshot{what}", after)


def _never_catches_up(truth: FaultyTruth, cluster: Cluster, name: str, what: str) -> Iterator[Fault]:
    """A member that is behind, and hears the leader, comes no nearer."""
    replica, component = truth.replica(name), MEMBER[cluster]
    after = truth.with_replica(name, replace(replica, slow=replica.slow | {component}))
    yield Fault(Kind.LAGS, f"{name} does not catch up{' in' * bool(what)}{what}", after)
    machine = truth.memory.replica(name).machine
    lame = replace(after, lame=after.lame | {(machine, component)})
    yield Fault(Kind.LAME, f"nobody on {machine} catches up{' in' * bool(what)}{what}", lame)


def _checks(truth: FaultyTruth) -> Iterator[Fault]:
    """A load balancer's check does not get through to an apiserver that serves."""
    for site, names in truth.checked:
        for name in sorted(names & truth.serving):
            checked = tuple((each, those - {name} if each == site else those) for each, those in truth.checked)
            yield Fault(Kind.CHECK_ERRS, f"{edge(site)} fails to check {name}", replace(truth, checked=checked))


def _room(truth: FaultyTruth) -> Iterator[Fault]:
    """Clients have written over the same keys until no member has room; a member that copies has what it copied. Where
    a larger quota is asked for they have written other keys: nothing else makes room.
    """
    fill = Fill.DATA if truth.revision in truth.roomy else Fill.HISTORY
    for cluster in truth.memory.clusters:
        seen, then = truth.of(cluster), truth
        if seen.full or seen.elected is None:
            continue
        for name, member in seen.members.items():
            if name in seen.following and not member.behind:
                stuffed = replace(member, fill=fill)
                then = then.with_replica(name, with_member(then.replica(name), cluster, stuffed))
        full = {"full": True} if cluster is Cluster.MAIN else {"events_full": True}
        what = " in the events' cluster" * (cluster is Cluster.EVENTS)
        yield Fault(Kind.FULL, f"etcd has no room{what}", replace(then, **full))


def _differs(truth: FaultyTruth) -> Iterator[Fault]:
    """A voter is found to have other data than most voters, which are all well."""
    for cluster in truth.memory.clusters:
        seen = truth.of(cluster)
        votes = [voter.replica for voter in seen.voters]
        if len(votes) < 3 or not all(name in seen.healthy and name in seen.recorded for name in votes):
            continue
        if any(record.differs for record in seen.memory.replicas):
            continue
        for name in sorted(votes):
            found = NoteDiffering(site="", why="", replicas=(name,), cluster=cluster)
            of = "events of" if cluster is Cluster.EVENTS else "data of"
            noted = replace(truth, memory=remember(truth.memory, found, truth.now))
            yield Fault(Kind.DIFFERS, f"{of} {name} differs", noted)
