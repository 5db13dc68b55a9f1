"""What is searched: where a search starts, and how much may come between."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from model.explorer import Explorer, Sample
from model.faulty_truth import FaultyTruth
from model.kinds import MEMBERSHIP_BY_HAND, STATES_BY_HAND, STRANGERS, Kind
from model.walk import Planner, State, Walker, Wish
from model.worlds import (
    BETWEEN,
    FORMER,
    NEW,
    NEW_ETCD,
    NEWEST_ETCD,
    ZONES,
    Endpoint,
    beside,
    changing,
    creating,
    empty,
    moving,
    moving_apart,
    promoted,
    settled,
    still,
    wanted,
)
from quarterdeck.model.bounds import HealingBounds
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.membership import EtcdMinor
from quarterdeck.planner.planner import plan as real_plan

#: What a user may want: that the name leads to apiservers themselves, or not, and to go back to what was before.
OTHERWISE = "clients led otherwise"


@dataclass(frozen=True, kw_only=True)
class Search:
    """``replicas`` at east, of which ``to`` (None: the plane is created, 0: deleted) are asked for at west.
    ``front``: the site of the fixed address that the plane is behind, if it has no name; ``kinds``: the classes of
    faults that may happen (None: all); ``change``: all stays at east, ``to`` replicas of another revision are asked
    for there, which this is what it takes; ``broken``: the program that exits repeatedly as that has it, or as the
    first revision of a plane that is created has it, ``hangs``: the one that runs and is never ready; ``per_zone``:
    how many machines a zone has; ``apart``: the revisions that keep events apart, ``cloud`` those that have a cloud
    controller manager; ``handed``: its controllers must not run beside those of the former one, ``together``: all
    of them may stop at once; ``upgraded``: its programs are of a newer minor version; ``roomy``: with it etcd has a
    larger quota, without which it lacks room; ``twins``: the sites with two edges, ``floating``: whose addresses
    float, ``shared``: those of them that share one; ``direct``: the name leads to apiservers themselves;
    ``promoted``: all stays at east, behind an address that leads to the only replica itself; ``mended``: whether
    what broke may be repaired; ``sample``: how much of it is searched (None: all); ``wish``: the only thing that
    the user may want instead (None: anything). ``healing``: the bounds of healing (None: there is none), ``still``:
    all stays at east and nothing is asked for, ``there``: the machines of east then (none: two a zone); ``named``:
    the replicas of which a person wants others; ``standby``: the site of the standby, which is in place when the
    search begins ("": none); ``newer_etcd``: its etcd is of this minor version, the former one of the one before;
    ``keeps_one``: one replica does not get it.
    """

    replicas: int
    to: int | None
    faults: int = 0
    wishes: int = 0
    data_loss: bool = False
    front: str | None = None
    kinds: frozenset[Kind] | None = None
    mended: bool = True
    sample: Sample | None = None
    change: ReplicaChange | None = None
    broken: Component | None = None
    hangs: Component | None = None
    per_zone: int = 2
    apart: frozenset[str] = frozenset()
    cloud: frozenset[str] = frozenset()
    handed: bool = False
    together: bool = False
    upgraded: bool = False
    roomy: bool = False
    twins: frozenset[str] = frozenset()
    floating: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    direct: bool = False
    promoted: bool = False
    wish: str | None = None
    healing: HealingBounds | None = None
    still: bool = False
    there: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()
    standby: str = ""
    newer_etcd: EtcdMinor | None = None
    keeps_one: bool = False

    def __str__(self) -> str:
        between = f"{self.faults} faults{' and data loss' * self.data_loss}, {self.wishes} wishes"
        between += f" ({self.wish})" if self.wish is not None else ""
        between += f", a fixed address at {self.front}" if self.front else ""
        between += f", two edges at {' and '.join(sorted(self.twins))}" if self.twins else ""
        between += ", whose addresses float" if self.floating else ""
        between += f", one at {' and '.join(sorted(self.shared))}" if self.shared else ""
        between += ", round robin" if self.direct else ""
        between += ", a promoted address" if self.promoted else ""
        between += f", but only {', '.join(sorted(self.kinds))}" if self.kinds is not None else ""
        between += f", instead of {' and '.join(sorted(self.named))}" if self.named else ""
        if self.change is not None:
            programs = sorted(self.change.restart | self.change.reload)
            what = "an exchange" if self.change.exchange else " and ".join(programs) or "nothing"
            how = "reloaded" if self.change.reload else "changed"
            between += f", {what} {how}{self._unfit}, {self.per_zone} a zone"
        elif self.to is None:
            between += self._unfit
        between += f", events apart as {' and '.join(sorted(self.apart))} has it" if self.apart else ""
        between += f", a cloud controller manager as {' and '.join(sorted(self.cloud))} has it" if self.cloud else ""
        between += ", with a larger quota" if self.roomy else ""
        between += f", handed on{' at once' * self.together}" if self.handed else ""
        between += ", of a newer minor version" if self.upgraded else ""
        if self.newer_etcd is not None:
            between += f", of etcd {self.newer_etcd[0]}.{self.newer_etcd[1]}{' but for one' * self.keeps_one}"
        between += f", healed {self.healing.budget} times at most" if self.healing else ""
        between += f" on {' '.join(self.there)}" if self.there else ""
        between += "" if self.mended or not self.healing else ", for good"
        between += f", a standby at {self.standby}" if self.standby else ""
        between += f", a sample with seed {self.sample.seed}" if self.sample else ""
        match self.to:
            case _ if self.still:
                return f"{self.replicas} as they are, {between}"
            case None:
                return f"create {self.replicas}, {between}"
            case 0:
                return f"delete {self.replicas}, {between}"
            case _:
                return f"{self.replicas} to {self.to}, {between}"

    @property
    def _unfit(self) -> str:
        return f", {self.broken} broken" if self.broken else f", {self.hangs} hangs" if self.hangs else ""

    def start(self) -> State:
        truth = self._truth()
        if self.standby:
            truth = beside(truth, self.standby)
        if self.healing is not None:
            truth = replace(truth, settings=replace(truth.settings, healing=self.healing))
        return State(truth, faults=self.faults, wishes=self.wishes)

    @property
    def _endpoint(self) -> Endpoint:
        return Endpoint(
            front=self.front, twins=self.twins, floating=self.floating, shared=self.shared, direct=self.direct
        )

    def _truth(self) -> FaultyTruth:
        match self.to:
            case _ if self.promoted:
                return promoted(self.replicas, self.to)
            case _ if self.still:
                return still(self.replicas, self.there, direct=self.direct, apart=self.apart)
            case None if program := self.broken or self.hangs:
                return creating(self.replicas, program, hangs=self.hangs is not None)
            case None:
                return empty("east", self.replicas, **self._endpoint)
            case 0:
                there = empty("east", self.replicas, **self._endpoint)
                return replace(settled(there), deleting=True)
            case _ if self.change is not None:
                return changing(
                    self.replicas,
                    self.to,
                    self.change,
                    broken=self.broken,
                    hangs=self.hangs,
                    per_zone=self.per_zone,
                    front=self.front,
                    condemned=tuple(sorted(self.named)),
                    apart=self.apart,
                    cloud=self.cloud,
                    handed=self.handed,
                    together=self.together,
                    upgraded=self.upgraded,
                    direct=self.direct,
                    roomy=self.roomy,
                    newer_etcd=self.newer_etcd,
                    keeps_one=self.keeps_one,
                )
            case _ if self.apart:
                return moving_apart(self.replicas, self.to)
            case _:
                return moving(self.replicas, self.to, **self._endpoint)

    def wish_for(self) -> tuple[Wish, ...]:
        """Abort, and a third site; of a plane that is being created, that it goes."""
        if self.wish == OTHERWISE:
            site = "east" if self.still or self.change is not None or self.to is None else "west"
            there = wanted(site, self.to or self.replicas)
            return tuple(Wish(OTHERWISE, there, direct=each) for each in (not self.direct, self.direct))
        match self.to:
            case _ if self.still and self.standby:
                there = wanted("east", self.replicas)
                return Wish("no standby", there, standby=""), Wish("another standby", there, standby="north")
            case _ if self.still:
                return Wish("west", wanted("west", self.replicas)), Wish("two more", wanted("east", self.replicas + 2))
            case None if self.broken or self.hangs:
                return Wish("it gone"), Wish("another spec", wanted("east", self.replicas), NEW)
            case None:
                return Wish("it gone"), Wish("north", wanted("north", self.replicas))
            case 0:
                return ()
            case _ if self.change is not None:
                back = Wish("to go back", wanted("east", self.replicas), FORMER)
                stays = self.per_zone == 1 or self.broken or self.hangs
                if self.keeps_one:
                    return back, Wish("to finish", wanted("east", self.replicas), NEW, keeps_one=False)
                if self.upgraded or (self.newer_etcd and self.wish != "north"):
                    return back, Wish("to go on", wanted("east", self.replicas), NEW)
                return (back,) if stays else (back, Wish("north", wanted("north", self.to)))
            case _:
                return Wish("to go back", wanted("east", self.replicas)), Wish("north", wanted("north", self.to))

    def explorer(self, planner: Planner = real_plan) -> Explorer:
        """What searches from the start."""
        wishes = tuple(each for each in self.wish_for() if self.wish in (None, each.name))
        walker = Walker(planner, wishes, self.data_loss, self.kinds, self.mended)
        return Explorer(walker, self.sample)

    def run(self) -> Explorer:
        """Search everything with the planner as it is; raises Broken."""
        explorer = self.explorer()
        explorer.explore(self.start())
        return explorer


SHAPES = ((5, 3), (3, 3), (3, 1), (1, 3), (1, 1))
BIRTHS = ((3, None), (1, None), (3, 0), (1, 0))

#: The seed of the samples: the first in every run of the tests, another where QUARTERDECK_SEED says so.
FIRST_SEED = 1
SEED = int(os.environ.get("QUARTERDECK_SEED", FIRST_SEED))
#: What is too much to be searched whole: two things that go wrong, or one and another wish, with three replicas.
MORE = (
    Search(replicas=3, to=3, faults=1, wishes=1, data_loss=True),
    Search(replicas=3, to=3, faults=2, data_loss=True),
    Search(replicas=3, to=1, faults=2, wishes=1, data_loss=True),
    Search(replicas=1, to=3, faults=2, wishes=1, data_loss=True),
    Search(replicas=1, to=1, faults=2, wishes=1, data_loss=True),
    Search(replicas=3, to=None, faults=2, wishes=1, data_loss=True),
    Search(replicas=5, to=3, faults=2, wishes=1, data_loss=True),
    Search(replicas=3, to=3, faults=2, wishes=1, data_loss=True, front="north"),
)


def sampled(search: Search, seed: int) -> Search:
    """Some thousand states of a search, others for each seed."""
    return replace(search, sample=Sample(seed, at=0.25, of=0.04, most=5_000))


def denser(search: Search, seed: int) -> Search:
    """The same of one in which less goes wrong: two clusters have more moments at which it may."""
    return replace(search, sample=Sample(seed, at=0.5, of=0.1, most=4_000))


def struck(search: Search) -> Search:
    """The same of one that begins at rest: whatever may come between must do so at its first state."""
    return replace(search, sample=Sample(SEED, at=1.0, of=0.15, most=1_500))


def often(search: Search) -> Search:
    """The same of one that is over after a few rounds: whatever may come between must do so early."""
    return replace(search, sample=Sample(SEED, at=1.0, of=0.2, most=2_000))


def fewer(search: Search) -> Search:
    """Some hundred moments of one that takes long to end well."""
    return replace(search, sample=Sample(SEED, at=0.5, of=0.2, most=1_000))


def rarely(search: Search) -> Search:
    """A few hundred moments of one in which what goes wrong first is followed for long."""
    return replace(search, sample=Sample(SEED, at=0.2, of=0.1, most=150))


def _restarts(*components: Component) -> ReplicaChange:
    return ReplicaChange(restart=frozenset(components))


EXCHANGED = ReplicaChange(exchange=True)
CLOUD = _restarts(Component.CLOUD_CONTROLLER_MANAGER, Component.CONTROLLER_MANAGER)
RELOADED = ReplicaChange(reload=frozenset({Component.APISERVER}))
#: What changes inside a site: a program is restarted, replicas are exchanged (also with no spare machine), there are
#: more or fewer of them, or what is asked for does not run.
INSIDE = (
    Search(replicas=3, to=3, change=_restarts(Component.APISERVER)),
    Search(replicas=3, to=3, change=_restarts(Component.ETCD)),
    Search(replicas=3, to=3, change=_restarts(Component.CONTROLLER_MANAGER)),
    Search(replicas=1, to=1, change=_restarts(Component.APISERVER)),
    Search(replicas=3, to=3, change=_restarts(Component.APISERVER), broken=Component.APISERVER),
    Search(replicas=3, to=3, change=_restarts(Component.ETCD), broken=Component.ETCD),
    Search(replicas=3, to=3, change=_restarts(Component.SCHEDULER), broken=Component.SCHEDULER),
    Search(replicas=3, to=3, change=CLOUD, cloud=frozenset({NEW}), broken=Component.CLOUD_CONTROLLER_MANAGER),
    Search(replicas=3, to=3, change=CLOUD, cloud=frozenset({FORMER})),
    Search(replicas=1, to=1, change=_restarts(Component.APISERVER), broken=Component.APISERVER),
    Search(replicas=3, to=3, change=RELOADED),
    Search(replicas=1, to=1, change=RELOADED),
    Search(replicas=3, to=3, change=RELOADED, broken=Component.APISERVER),
    Search(replicas=3, to=3, change=EXCHANGED, per_zone=1),
    Search(replicas=1, to=1, change=EXCHANGED, per_zone=1),
    Search(replicas=1, to=3, change=ReplicaChange()),
    Search(replicas=3, to=1, change=ReplicaChange()),
)


HAND_OVER = Search(replicas=3, to=3, change=CLOUD, cloud=frozenset({FORMER, BETWEEN, NEW}), handed=True)
AT_ONCE = replace(HAND_OVER, together=True)
HALF_SEEN = frozenset({Kind.SOME_STEPS, Kind.UNSEEN_SUPERVISOR})
#: Controllers go from one manager to the other, one replica after the other or all at once; something goes wrong
#: meanwhile, or is wanted otherwise. What is sampled here is searched whole in a soak.
HANDED = (
    replace(HAND_OVER, faults=1, data_loss=True),
    replace(HAND_OVER, wishes=2),
    replace(AT_ONCE, faults=1, data_loss=True),
    replace(AT_ONCE, wishes=2),
    often(replace(AT_ONCE, faults=2, wishes=1, kinds=HALF_SEEN)),
    *(often(replace(each, replicas=1, to=1, faults=1, wishes=1)) for each in (HAND_OVER, AT_ONCE)),
    replace(HAND_OVER, broken=Component.CLOUD_CONTROLLER_MANAGER),
    *(often(replace(each, faults=1, wishes=1)) for each in (HAND_OVER, AT_ONCE)),
    often(replace(HAND_OVER, replicas=1, faults=1)),
)


#: The programs of Kubernetes.
_KUBERNETES = _restarts(Component.APISERVER, Component.CONTROLLER_MANAGER, Component.SCHEDULER)
UPGRADE = Search(replicas=3, to=3, change=_KUBERNETES, upgraded=True)
#: Kubernetes goes to the next minor version by a revision between, and back: also after it arrived, amid another change
#: of mind, and where the new version does not run.
UPGRADED = (
    replace(UPGRADE, wishes=3),
    replace(UPGRADE, faults=1, data_loss=True),
    replace(UPGRADE, broken=Component.APISERVER),
    replace(UPGRADE, hangs=Component.APISERVER),
    often(replace(UPGRADE, faults=1, wishes=2)),
    replace(UPGRADE, replicas=1, to=1, wishes=2),
    often(replace(UPGRADE, replicas=1, to=1, wishes=2, faults=1)),
)


#: All programs trust another authority by a revision between, which trusts both; and back.
ROTATE = Search(replicas=3, to=3, change=_restarts(Component.ETCD, *_KUBERNETES.restart), handed=True)
ROTATED = (
    replace(ROTATE, wishes=3, wish="to go back"),
    replace(ROTATE, faults=1, data_loss=True),
    replace(ROTATE, broken=Component.ETCD),
    replace(ROTATE, hangs=Component.APISERVER),
    often(replace(ROTATE, faults=1, wishes=2)),
    replace(ROTATE, replicas=1, to=1, wishes=2),
)


#: The next minor version of etcd, of one cluster and of two.
ETCD = Search(replicas=3, to=3, change=_restarts(Component.ETCD), newer_etcd=NEW_ETCD)
ETCDS = replace(ETCD, change=_restarts(Component.ETCD, Component.EVENTS_ETCD), apart=frozenset({FORMER, NEW}))
#: It comes, and goes: also after the cluster works as that version, amid another change of mind, where it does not run,
#: and where one replica keeps the older one.
NEWER_ETCD = (
    replace(ETCD, wishes=3),
    replace(ETCD, faults=1, data_loss=True),
    replace(ETCD, broken=Component.ETCD, wishes=1),
    replace(ETCD, hangs=Component.ETCD, wishes=1),
    fewer(replace(ETCD, faults=1, wishes=2)),
    replace(ETCD, keeps_one=True, wishes=2),
    often(replace(ETCD, keeps_one=True, faults=1, wishes=1, data_loss=True)),
    replace(ETCD, replicas=1, to=1, wishes=2),
    replace(ETCD, wishes=1, wish="north"),
    replace(ETCD, newer_etcd=NEWEST_ETCD, wishes=2),
    often(replace(ETCD, newer_etcd=NEWEST_ETCD, faults=1, wishes=1, data_loss=True)),
    replace(ETCDS, wishes=2),
    fewer(replace(ETCDS, faults=1, wishes=1)),
    fewer(replace(ETCD, standby="west", faults=1, wishes=2)),
)


#: Events get a cluster of their own, or lose it; or move with it. What may come between is multiplied by the second
#: cluster, so that of three replicas only some is searched.
APART = (
    Search(replicas=1, to=1, change=_restarts(Component.APISERVER), apart=frozenset({NEW})),
    Search(replicas=1, to=1, change=_restarts(Component.APISERVER), apart=frozenset({FORMER})),
    Search(replicas=1, to=1, apart=frozenset({FORMER})),
    Search(replicas=3, to=3, change=_restarts(Component.APISERVER), apart=frozenset({NEW})),
    Search(replicas=3, to=3, change=_restarts(Component.APISERVER), apart=frozenset({FORMER})),
    Search(replicas=3, to=3, change=_restarts(Component.ETCD, Component.EVENTS_ETCD), apart=frozenset({FORMER, NEW})),
    Search(replicas=3, to=3, apart=frozenset({FORMER})),
)


#: What runs without ever being ready. (A member that does not join leaves no room for the loss of another one's data.)
HANGS = (
    Search(replicas=3, to=3, change=_restarts(Component.APISERVER), hangs=Component.APISERVER, data_loss=True),
    Search(replicas=1, to=1, change=_restarts(Component.APISERVER), hangs=Component.APISERVER, data_loss=True),
    Search(replicas=3, to=3, change=_restarts(Component.ETCD), hangs=Component.ETCD),
)


#: What goes wrong while a plane is created, beside a first revision that does not run.
BORN_AMID = frozenset({Kind.MACHINE_DIES, Kind.CRASH, Kind.UNSEEN_MACHINE, Kind.TAKEOVER, Kind.SOME_STEPS})
FIRST_PROGRAMS = (Component.ETCD, Component.APISERVER, Component.SCHEDULER)
#: A first revision, which there is no former one of, does not run: its creation fails, and goes on with another spec.
FIRST = (
    *(Search(replicas=3, to=None, broken=each, wishes=1) for each in FIRST_PROGRAMS),
    *(Search(replicas=1, to=None, broken=each, faults=1, kinds=BORN_AMID) for each in FIRST_PROGRAMS),
    *(fewer(Search(replicas=3, to=None, broken=each, faults=1, kinds=BORN_AMID, wishes=1)) for each in FIRST_PROGRAMS),
    *(Search(replicas=each, to=None, hangs=Component.ETCD, wishes=1) for each in (1, 3)),
    *(Search(replicas=each, to=None, hangs=Component.APISERVER, wishes=1) for each in (1, 3)),
    # Nothing is wrong with the revision: whatever else is in the way, it comes up once that is mended.
    Search(replicas=3, to=None, faults=1, kinds=BORN_AMID | {Kind.HANGS}),
)


#: No room is left in etcd at any moment of a move, of a change, or of a birth; and something else goes wrong meanwhile.
FULL = frozenset({Kind.FULL})
AND_MORE = FULL | {
    Kind.MACHINE_DIES,
    Kind.CRASH,
    Kind.LEADER_MOVES,
    Kind.VOTER_LAGS,
    Kind.UNSEEN_MEMBER,
    Kind.TAKEOVER,
    Kind.LATE,
    Kind.OLD_LOOK,
    Kind.REFUSED,
}
#: A larger quota is asked for, and nothing else makes room.
LARGER_QUOTA = (
    Search(replicas=1, to=1, change=_restarts(Component.ETCD), roomy=True, faults=1, kinds=FULL),
    Search(replicas=1, to=3, change=_restarts(Component.ETCD), roomy=True, faults=1, kinds=FULL),
    Search(replicas=3, to=3, change=_restarts(Component.ETCD), roomy=True, faults=1, kinds=FULL),
)
NO_ROOM = (
    Search(replicas=3, to=3, faults=1, kinds=FULL),
    Search(replicas=3, to=3, change=_restarts(Component.ETCD), faults=1, kinds=FULL),
    Search(replicas=1, to=1, faults=1, kinds=FULL),
    Search(replicas=3, to=None, faults=1, kinds=FULL),
    sampled(Search(replicas=3, to=3, faults=2, kinds=AND_MORE), SEED),
    replace(APART[6], faults=1, kinds=FULL),
    *LARGER_QUOTA,
)


LEADS = frozenset({Kind.LEADER_MOVES})
#: Who leads at east, and all replicas there.
FIRST_LEADS, ALL_THREE = frozenset({"east-1"}), frozenset({"east-1", "east-2", "east-3"})
#: A voter is found to have other data than most.
DIFFERS = (
    Search(replicas=3, to=3, faults=1, kinds=frozenset({Kind.DIFFERS})),
    Search(replicas=3, to=3, change=ReplicaChange(), faults=1, kinds=frozenset({Kind.DIFFERS})),
    Search(replicas=3, to=3, change=_restarts(Component.ETCD), faults=1, kinds=frozenset({Kind.DIFFERS})),
    sampled(Search(replicas=3, to=3, faults=2, kinds=AND_MORE - FULL - {Kind.MACHINE_DIES} | {Kind.DIFFERS}), SEED),
    replace(APART[6], faults=1, kinds=frozenset({Kind.DIFFERS})),
    # A person has found out, or has other reasons: it is all the same who is to go.
    *(
        Search(replicas=3, to=3, change=ReplicaChange(), faults=1, kinds=LEADS, named=each)
        for each in (FIRST_LEADS, ALL_THREE)
    ),
)


#: Clients are led to apiservers themselves, and back, at any moment of a move in which something goes wrong.
LED_OTHERWISE = Search(replicas=1, to=1, faults=1, wishes=1, wish=OTHERWISE)
#: The name leads to apiservers themselves, or comes to do so, or does not any more, at any moment of all else.
ROUND_ROBIN = (
    Search(replicas=1, to=1, faults=1, data_loss=True, direct=True),
    Search(replicas=1, to=None, faults=1, direct=True),
    Search(replicas=1, to=0, faults=1, direct=True),
    Search(replicas=3, to=3, change=_restarts(Component.APISERVER), faults=1, direct=True),
    Search(replicas=3, to=3, wishes=2, wish=OTHERWISE, direct=True),
    Search(replicas=3, to=3, wishes=2, wish=OTHERWISE),
    denser(LED_OTHERWISE, SEED),
)


#: An address that leads to the only replica goes to the load balancer when others come, and back when they leave.
PROMOTED = (
    *(Search(replicas=each, to=to, faults=1, promoted=True) for each, to in ((1, 3), (3, 1), (1, None), (1, 0))),
    *(Search(replicas=each, to=to, wishes=1, promoted=True) for each, to in ((1, 3), (3, 1))),
)


#: Two edges at a site, each of which fails by itself, at any moment of a move, a birth and a deletion.
EDGES = frozenset({Kind.EDGE_DIES, Kind.UNSEEN_EDGE, Kind.UNSEEN_SITE, Kind.SITE_DIES, Kind.UNSEEN_DNS, Kind.OLD_LOOK})
BOTH = frozenset({"east", "west"})
TWINS = (
    Search(replicas=1, to=1, faults=1, data_loss=True, twins=BOTH),
    Search(replicas=3, to=3, faults=1, kinds=EDGES, twins=BOTH),
    Search(replicas=1, to=None, faults=1, kinds=EDGES, twins=BOTH),
    Search(replicas=1, to=0, faults=1, kinds=EDGES, twins=BOTH),
    sampled(Search(replicas=1, to=1, faults=2, data_loss=True, twins=BOTH), SEED),
)
#: The same where edges take over each other's addresses: one that only we do not see may have any of its site.
FLOATS = frozenset({Kind.EDGE_DIES, Kind.UNSEEN_EDGE, Kind.UNSEEN_DNS, Kind.ADDRESS_GOES, Kind.ROUTER_STOPS})
FLOATING = (
    Search(replicas=3, to=3, faults=1, kinds=FLOATS, twins=BOTH, floating=BOTH),
    Search(replicas=1, to=1, faults=2, kinds=FLOATS - {Kind.EDGE_DIES, Kind.UNSEEN_DNS}, twins=BOTH, floating=BOTH),
)
#: The same where the edges of a site share one address: whoever stands by need not be seen.
SHARED = (
    Search(replicas=3, to=3, faults=1, kinds=FLOATS, twins=BOTH, floating=BOTH, shared=frozenset({"east"})),
    Search(replicas=1, to=1, faults=1, kinds=FLOATS, twins=BOTH, floating=BOTH, shared=BOTH),
)


#: A person changes the membership at any moment of a move, of a change, of an exchange, of a birth, and at rest.
#: (Where nobody is to join there is no learner to be promoted.)
NOBODY_JOINS = MEMBERSHIP_BY_HAND - {Kind.LEARNER_PROMOTED}
PEOPLE = (
    Search(replicas=3, to=3, faults=1, kinds=MEMBERSHIP_BY_HAND),
    Search(replicas=3, to=1, faults=1, kinds=MEMBERSHIP_BY_HAND),
    Search(replicas=1, to=1, faults=1, kinds=MEMBERSHIP_BY_HAND),
    Search(replicas=3, to=3, change=_restarts(Component.ETCD), faults=1, kinds=NOBODY_JOINS),
    Search(replicas=3, to=3, change=EXCHANGED, faults=1, kinds=MEMBERSHIP_BY_HAND),
    Search(replicas=3, to=None, faults=1, kinds=NOBODY_JOINS),
    Search(replicas=3, to=3, still=True, faults=2, kinds=MEMBERSHIP_BY_HAND),
    replace(APART[5], faults=1, kinds=NOBODY_JOINS),
    denser(replace(APART[6], faults=1, kinds=MEMBERSHIP_BY_HAND), SEED),
    sampled(Search(replicas=3, to=3, faults=2, kinds=AND_MORE - FULL | MEMBERSHIP_BY_HAND), SEED),
    # A person adds a member, and there is no room left, in whatever order.
    Search(replicas=3, to=3, still=True, faults=2, kinds=FULL | {Kind.VOTER_ADDED, Kind.LEARNER_ADDED}),
)


#: Voters that run somewhere else, and members that have each other's peer URLs, at any moment of the same.
STRANGE = (
    *(Search(replicas=each, to=to, faults=1, kinds=STRANGERS) for each, to in ((1, 1), (3, 1), (3, None))),
    *(
        Search(replicas=3, to=3, change=each, faults=1, kinds=STRANGERS)
        for each in (_restarts(Component.ETCD), EXCHANGED)
    ),
    Search(replicas=3, to=3, still=True, faults=2, kinds=STRANGERS | {Kind.FULL}),
)
#: A person turns etcd's authentication on, or an alarm on or off.
DISABLED = (
    *(Search(replicas=each, to=to, faults=1, kinds=STATES_BY_HAND) for each, to in ((1, 1), (3, None), (3, 0))),
    Search(replicas=3, to=3, change=EXCHANGED, faults=1, kinds=STATES_BY_HAND),
    Search(replicas=3, to=3, still=True, faults=2, kinds=STATES_BY_HAND | {Kind.FULL}),
)
#: A load balancer exits repeatedly, from its first moment on or later.
LOOPS = frozenset({Kind.EDGE_LOOPS})
LOOPING = (
    *(Search(replicas=each, to=to, faults=1, kinds=LOOPS) for each, to in ((1, 1), (3, 1), (3, 0))),
    Search(replicas=1, to=None, faults=1, wishes=1, wish="it gone", kinds=LOOPS),
)


#: What may go wrong besides what was asked for.
BESIDES = frozenset({Kind.CRASH, Kind.STOPPED, Kind.LEADER_MOVES, Kind.VOTER_LAGS, Kind.TAKEOVER, Kind.SOME_STEPS})

#: What of an old driver comes late, and what is seen late.
LATER = frozenset({Kind.LATE, Kind.OLD_LOOK, Kind.MIXED_LOOK})
#: The only revision of a plane of which nothing is asked.
ALIKE = frozenset({""})

#: The bounds of healing, in ticks: a member is down after two.
HEALED = HealingBounds(budget=2, window=5.0, after=1.0, later=3.0, hung=1.0, lagging=2.0)
#: With time and budget enough for a machine on which programs do not get well to be known as such, and cordoned.
WATCHED = replace(HEALED, budget=9, window=40.0)
DEATHS = frozenset({Kind.MACHINE_DIES, Kind.MACHINE_FREEZES})
HANGS_ONCE = frozenset({Kind.HANGS})
HUNG = HANGS_ONCE | {Kind.SICK}
UNSEEN = frozenset(kind for kind in Kind if kind.name.startswith("UNSEEN_")) | {Kind.UNREAD}
#: A machine dies for good, or until it is repaired at whatever moment: with spare machines, with none, with one in
#: another zone alone; two of five die; a second one dies in the middle of it; there is only one; we alone do not see.
HEALS = (
    Search(replicas=3, to=3, still=True, healing=HEALED, faults=1, kinds=DEATHS, mended=False),
    Search(replicas=3, to=3, still=True, healing=HEALED, faults=1, kinds=DEATHS, there=("a1", "b1", "c1")),
    Search(replicas=3, to=3, still=True, healing=HEALED, faults=1, kinds=DEATHS, there=("a1", "b1", "c1", "c2")),
    struck(
        Search(
            replicas=5,
            to=5,
            still=True,
            healing=HEALED,
            faults=2,
            kinds=frozenset({Kind.MACHINE_DIES}),
            mended=False,
            there=tuple(f"{zone}{number}" for zone in ZONES for number in (1, 2, 3)),
        )
    ),
    struck(
        Search(replicas=3, to=3, still=True, healing=replace(HEALED, budget=1), faults=2, kinds=DEATHS, mended=False)
    ),
    Search(replicas=1, to=1, still=True, healing=HEALED, faults=1, kinds=DEATHS),
    Search(replicas=3, to=3, still=True, healing=HEALED, faults=1, kinds=UNSEEN),
)
#: A program hangs, once or whenever it is started there.
HEALS_PROGRAMS = (
    Search(replicas=3, to=3, still=True, healing=HEALED, faults=1, kinds=HUNG, mended=False),
    Search(replicas=1, to=1, still=True, healing=HEALED, faults=1, kinds=HANGS_ONCE),
    struck(Search(replicas=3, to=3, still=True, healing=HEALED, faults=2, kinds=DEATHS | UNSEEN | HANGS_ONCE)),
    rarely(Search(replicas=3, to=3, still=True, healing=WATCHED, faults=2, kinds=DEATHS | HUNG)),
)
#: The same in a move, in a roll and in an exchange, and beside what else goes wrong or is asked for meanwhile.
HEALS_AMID = (
    fewer(Search(replicas=3, to=3, healing=HEALED, faults=1, kinds=DEATHS | HANGS_ONCE)),
    fewer(
        Search(
            replicas=3,
            to=3,
            healing=HEALED,
            change=_restarts(Component.ETCD),
            faults=1,
            kinds=DEATHS | HANGS_ONCE,
        )
    ),
    fewer(Search(replicas=3, to=3, healing=HEALED, change=EXCHANGED, faults=2, kinds=DEATHS)),
    struck(Search(replicas=3, to=3, still=True, healing=HEALED, faults=2, kinds=DEATHS | UNSEEN)),
    struck(Search(replicas=3, to=3, still=True, healing=HEALED, faults=1, wishes=1, kinds=DEATHS)),
    fewer(Search(replicas=3, to=3, still=True, healing=HEALED, faults=2, data_loss=True)),
)
EVENTS_AND_MORE = Search(
    replicas=3,
    to=3,
    still=True,
    healing=HEALED,
    faults=2,
    kinds=DEATHS | HUNG | BESIDES | LATER,
    data_loss=True,
    apart=ALIKE,
)
#: The same where events are kept apart, of whose cluster members hang, die, and lose their data.
HEALS_EVENTS = (
    Search(replicas=3, to=3, still=True, healing=HEALED, faults=1, kinds=DEATHS | HUNG, mended=False, apart=ALIKE),
    Search(replicas=3, to=3, still=True, healing=HEALED, faults=1, data_loss=True, apart=ALIKE),
)
#: A member does not catch up before it is restarted, or whenever it is started on that machine: one that votes, one
#: that joins, and one of the events' cluster.
SLOW = frozenset({Kind.LAGS, Kind.LAME})
#: A member does not catch up, and another one is behind as well, or is not heard of.
AND_OTHERS = frozenset({Kind.LAGS, Kind.VOTER_LAGS, Kind.UNSEEN_MEMBER, Kind.LEADER_MOVES, Kind.TAKEOVER})
#: With time for a joiner to be restarted, and to go, before it is forgotten that the one before it did.
LAGGED = replace(HEALED, budget=4, window=20.0)
HEALS_SLOW = (
    Search(replicas=3, to=3, still=True, healing=LAGGED, faults=1, kinds=SLOW, mended=False),
    fewer(Search(replicas=3, to=3, healing=LAGGED, change=EXCHANGED, faults=1, kinds=frozenset({Kind.LAGS}))),
    fewer(Search(replicas=3, to=3, healing=LAGGED, faults=1, kinds=SLOW)),
    Search(replicas=3, to=3, still=True, healing=LAGGED, faults=2, kinds=AND_OTHERS),
    Search(replicas=3, to=3, still=True, healing=LAGGED, faults=1, kinds=SLOW, mended=False, apart=ALIKE),
)
#: What takes longer: a part of it for each seed that a soak has.
HEALS_MORE = (
    Search(replicas=3, to=3, healing=HEALED, faults=2, kinds=DEATHS | HANGS_ONCE),
    Search(replicas=3, to=3, still=True, healing=HEALED, faults=2, wishes=1, data_loss=True),
    Search(replicas=3, to=3, healing=HEALED, faults=2, wishes=1, data_loss=True),
    replace(APART[6], healing=HEALED, faults=2, data_loss=True),
    EVENTS_AND_MORE,
)


#: Somebody changes what a program is started with, in a plane that is as wanted, in a move, and beside other faults.
BY_HAND = (
    Search(replicas=3, to=3, still=True, faults=1, kinds=frozenset({Kind.ALTERED})),
    struck(Search(replicas=3, to=3, faults=1, kinds=frozenset({Kind.ALTERED}))),
    struck(Search(replicas=3, to=3, still=True, faults=2, kinds=BESIDES | {Kind.ALTERED})),
)


#: Something goes wrong, and the user wants something else: before it or after it, at any moment. Searched whole in
#: a soak.
CHANGED = Search(replicas=1, to=1, faults=1, wishes=1)
BACK, NORTH = (replace(CHANGED, wish=each.name) for each in CHANGED.wish_for())
#: What every run of the tests searches: the biggest first, so that two workers end at about the same time.
#: A standby at another site, which a move, a roll, a replacement, healing or an alarm neither waits for nor loses; and
#: which moves where the plane goes to its site (west), or where the user wants it elsewhere.
STANDBY = (
    Search(replicas=3, to=3, wishes=1, standby="north"),
    Search(replicas=1, to=1, faults=1, data_loss=True, standby="west"),
    sampled(Search(replicas=3, to=3, faults=1, wishes=1, data_loss=True, standby="west"), SEED),
    Search(replicas=3, to=3, change=_restarts(Component.ETCD), wishes=1, standby="west"),
    sampled(Search(replicas=3, to=3, change=_restarts(Component.ETCD), faults=1, data_loss=True, standby="west"), SEED),
    fewer(Search(replicas=3, to=3, change=EXCHANGED, faults=1, data_loss=True, standby="west")),
    fewer(Search(replicas=1, to=3, change=ReplicaChange(), faults=1, wishes=1, data_loss=True, standby="west")),
    fewer(Search(replicas=3, to=None, faults=1, wishes=1, standby="north")),
    Search(replicas=3, to=0, faults=1, standby="north"),
    Search(replicas=3, to=3, still=True, healing=HEALED, faults=1, kinds=DEATHS, standby="west"),
    struck(Search(replicas=3, to=3, still=True, healing=HEALED, faults=2, data_loss=True, standby="west")),
    struck(Search(replicas=3, to=3, still=True, healing=HEALED, faults=2, kinds=DEATHS | HANGS_ONCE, standby="west")),
    Search(replicas=3, to=3, still=True, healing=LAGGED, faults=1, kinds=SLOW, mended=False, standby="west"),
    Search(replicas=3, to=3, faults=1, kinds=FULL, standby="west"),
    sampled(Search(replicas=3, to=3, faults=1, kinds=MEMBERSHIP_BY_HAND, standby="north"), SEED),
    Search(replicas=3, to=3, faults=1, kinds=frozenset({Kind.REFUSED}), standby="west"),
    Search(replicas=3, to=3, still=True, wishes=1, faults=1, data_loss=True, standby="west"),
)


SEARCHES = (
    denser(BACK, SEED),
    denser(NORTH, SEED),
    *(Search(replicas=each, to=to, faults=1, data_loss=True) for each, to in SHAPES),
    *(sampled(search, SEED) for search in MORE),
    *(replace(search, faults=1, data_loss=True) for search in INSIDE),
    *(replace(search, wishes=1) for search in INSIDE),
    *FIRST,
    *(replace(search, faults=1) for search in HANGS),
    *(replace(search, wishes=1) for search in HANGS),
    *(sampled(replace(search, faults=2, wishes=1, data_loss=True), SEED) for search in INSIDE[:2]),
    *(replace(search, faults=1, data_loss=True) for search in APART[:2]),
    *(replace(search, wishes=1) for search in APART),
    *(denser(replace(search, faults=1, data_loss=True), SEED) for search in APART[2:6]),
    sampled(replace(APART[6], faults=1, data_loss=True), SEED),
    sampled(Search(replicas=1, to=3, change=EXCHANGED, faults=2, wishes=1, data_loss=True), SEED),
    sampled(Search(replicas=3, to=3, change=EXCHANGED, faults=2, wishes=1, data_loss=True), SEED),
    *(Search(replicas=each, to=to, faults=1, data_loss=True) for each, to in BIRTHS),
    *(Search(replicas=each, to=to, wishes=1) for each, to in (*SHAPES, *BIRTHS[:2])),
    *(Search(replicas=1, to=to, faults=1, data_loss=True, front="north") for to in (1, None, 0)),
    Search(replicas=3, to=3, faults=1, data_loss=True, front="north"),
    Search(replicas=3, to=1, wishes=1, front="east"),
    *HANDED,
    *UPGRADED,
    *ROTATED,
    *NEWER_ETCD,
    *HEALS,
    *HEALS_PROGRAMS,
    *HEALS_AMID,
    *HEALS_EVENTS,
    *HEALS_SLOW,
    *BY_HAND,
    *STANDBY,
    Search(replicas=3, to=3, faults=1, kinds=frozenset({Kind.REFUSED})),
    Search(replicas=1, to=1, faults=1, wishes=1, kinds=frozenset({Kind.REFUSED}), mended=False),
    *NO_ROOM,
    *DIFFERS,
    *PEOPLE,
    *STRANGE,
    *DISABLED,
    *LOOPING,
    *TWINS,
    *FLOATING,
    *SHARED,
    *ROUND_ROBIN,
    *PROMOTED,
)
#: What the smoke tier searches: changes of mind, one move whole with a fault, and a short search of each family.
SMOKE = frozenset(
    {
        *(Search(replicas=each, to=to, wishes=1) for each, to in (*SHAPES, *BIRTHS[:2])),
        Search(replicas=1, to=1, faults=1, data_loss=True),
        Search(replicas=3, to=None, faults=1, data_loss=True),
        Search(replicas=1, to=0, faults=1, data_loss=True),
        Search(replicas=3, to=3, faults=1, kinds=frozenset({Kind.REFUSED})),
        replace(INSIDE[0], faults=1, data_loss=True),
        replace(APART[0], faults=1, data_loss=True),
        replace(HANGS[0], faults=1),
        *(family[0] for family in (FIRST, HANDED, HEALS, HEALS_PROGRAMS, HEALS_EVENTS, HEALS_SLOW, BY_HAND)),
        *(family[0] for family in (NO_ROOM, DIFFERS, PEOPLE, STRANGE, DISABLED, LOOPING, FLOATING, PROMOTED)),
        HEALS_AMID[3],
        STANDBY[0],
        TWINS[2],
        SHARED[1],
        ROUND_ROBIN[1],
    }
)
#: What only a soak searches: minutes each, the last ones most of an hour.
DEEP = (
    LED_OTHERWISE,
    *(replace(each, faults=1, wishes=1) for each in (HAND_OVER, AT_ONCE)),
    *(replace(each, replicas=1, to=1, faults=1, wishes=1) for each in (HAND_OVER, AT_ONCE)),
    replace(AT_ONCE, faults=2, wishes=1, kinds=HALF_SEEN),
    Search(replicas=1, to=1, faults=2),
    Search(replicas=1, to=None, faults=1, wishes=1, data_loss=True),
    Search(replicas=3, to=None, faults=1, wishes=1, data_loss=True),
    Search(replicas=1, to=1, faults=1, wishes=1, data_loss=True),
    Search(replicas=1, to=1, faults=2, data_loss=True),
    Search(replicas=3, to=1, faults=1, wishes=1, data_loss=True),
    Search(replicas=1, to=3, faults=1, wishes=1, data_loss=True),
    Search(replicas=3, to=3, faults=1, wishes=1, data_loss=True),
    Search(replicas=3, to=1, faults=2, data_loss=True),
)
#: What a soak has: those, and of what is searched in each run what takes longest where another search has the same with
#: fewer replicas, or fewer things that go wrong.
LONG = (
    Search(replicas=5, to=3, faults=1, data_loss=True),
    HANDED[8],
    HEALS_PROGRAMS[3],
    FLOATING[1],
    PEOPLE[7],
    *DEEP,
)
