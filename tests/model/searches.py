"""What is searched: where a search starts, and how much may come between."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from model.explorer import Explorer, Sample
from model.faults import Kind
from model.walk import Planner, State, Walker, Wish
from model.worlds import FORMER, NEW, changing, empty, moving, moving_apart, settled, wanted
from quarterdeck.model.components import Component
from quarterdeck.model.revisions import Change
from quarterdeck.planner.planner import plan as real_plan
from quarterdeck.planner.truth import Truth


@dataclass(frozen=True, kw_only=True)
class Search:
    """``replicas`` at east, of which ``to`` (None: the plane is created, 0: deleted) are asked for at west.
    ``front``: the site of the fixed address that the plane is behind, if it has no name; ``kinds``: the classes of
    faults that may happen (None: all); ``change``: all stays at east, ``to`` replicas of another revision are asked for
    there, which this is what it takes; ``broken``: the program that ends again and again as that has it, ``hangs``: the
    one that runs and is never ready; ``per_zone``: how many machines a zone has; ``apart``: the revisions that keep
    events apart; ``mended``: whether what broke may be repaired; ``sample``: how much of it is searched (None: all).
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
    change: Change | None = None
    broken: Component | None = None
    hangs: Component | None = None
    per_zone: int = 2
    apart: frozenset[str] = frozenset()

    def __str__(self) -> str:
        between = f"{self.faults} faults{' and data loss' * self.data_loss}, {self.wishes} wishes"
        between += f", a fixed address at {self.front}" if self.front else ""
        between += f", but only {', '.join(sorted(self.kinds))}" if self.kinds is not None else ""
        if self.change is not None:
            programs = sorted(self.change.restart | self.change.reload)
            what = "an exchange" if self.change.exchange else " and ".join(programs) or "nothing"
            how = "reloaded" if self.change.reload else "changed"
            broken = f", {self.broken} broken" if self.broken else f", {self.hangs} hangs" if self.hangs else ""
            between += f", {what} {how}{broken}, {self.per_zone} a zone"
        between += f", events apart as {' and '.join(sorted(self.apart))} has it" if self.apart else ""
        between += f", a sample with seed {self.sample.seed}" if self.sample else ""
        match self.to:
            case None:
                return f"create {self.replicas}, {between}"
            case 0:
                return f"delete {self.replicas}, {between}"
            case _:
                return f"{self.replicas} to {self.to}, {between}"

    def start(self) -> State:
        return State(self._truth(), faults=self.faults, wishes=self.wishes)

    def _truth(self) -> Truth:
        match self.to:
            case None:
                return empty("east", self.replicas, front=self.front)
            case 0:
                return replace(settled(empty("east", self.replicas, front=self.front)), deleting=True)
            case _ if self.change is not None:
                return changing(
                    self.replicas,
                    self.to,
                    self.change,
                    broken=self.broken,
                    hangs=self.hangs,
                    per_zone=self.per_zone,
                    front=self.front,
                    apart=self.apart,
                )
            case _ if self.apart:
                return moving_apart(self.replicas, self.to)
            case _:
                return moving(self.replicas, self.to, front=self.front)

    def wish_for(self) -> tuple[Wish, ...]:
        """Abort, and a third site; of a plane that is being created, that it goes."""
        match self.to:
            case None:
                return Wish("it gone"), Wish("north", wanted("north", self.replicas))
            case 0:
                return ()
            case _ if self.change is not None:
                back = Wish("to go back", wanted("east", self.replicas), FORMER)
                stays = self.per_zone == 1 or self.broken or self.hangs
                return (back,) if stays else (back, Wish("north", wanted("north", self.to)))
            case _:
                return Wish("to go back", wanted("east", self.replicas)), Wish("north", wanted("north", self.to))

    def explorer(self, planner: Planner = real_plan) -> Explorer:
        """What searches from the start."""
        walker = Walker(planner, self.wish_for(), self.data_loss, self.kinds, self.mended)
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


def _restarts(*components: Component) -> Change:
    return Change(restart=frozenset(components))


ANEW = Change(exchange=True)
RELOADED = Change(reload=frozenset({Component.APISERVER}))
#: What changes inside a site: a program is started anew, replicas are exchanged (also with no spare machine), there are
#: more or fewer of them, or what is asked for does not run.
INSIDE = (
    Search(replicas=3, to=3, change=_restarts(Component.APISERVER)),
    Search(replicas=3, to=3, change=_restarts(Component.ETCD)),
    Search(replicas=3, to=3, change=_restarts(Component.CONTROLLER_MANAGER)),
    Search(replicas=1, to=1, change=_restarts(Component.APISERVER)),
    Search(replicas=3, to=3, change=_restarts(Component.APISERVER), broken=Component.APISERVER),
    Search(replicas=3, to=3, change=_restarts(Component.ETCD), broken=Component.ETCD),
    Search(replicas=3, to=3, change=_restarts(Component.SCHEDULER), broken=Component.SCHEDULER),
    Search(replicas=1, to=1, change=_restarts(Component.APISERVER), broken=Component.APISERVER),
    Search(replicas=3, to=3, change=RELOADED),
    Search(replicas=1, to=1, change=RELOADED),
    Search(replicas=3, to=3, change=RELOADED, broken=Component.APISERVER),
    Search(replicas=3, to=3, change=ANEW, per_zone=1),
    Search(replicas=1, to=1, change=ANEW, per_zone=1),
    Search(replicas=1, to=3, change=Change()),
    Search(replicas=3, to=1, change=Change()),
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
NO_ROOM = (
    Search(replicas=3, to=3, faults=1, kinds=FULL),
    Search(replicas=3, to=3, change=_restarts(Component.ETCD), faults=1, kinds=FULL),
    Search(replicas=1, to=1, faults=1, kinds=FULL),
    Search(replicas=3, to=None, faults=1, kinds=FULL),
    sampled(Search(replicas=3, to=3, faults=2, kinds=AND_MORE), SEED),
    replace(APART[6], faults=1, kinds=FULL),
)


#: A voter is found to have other data than most.
DIFFERS = (
    Search(replicas=3, to=3, faults=1, kinds=frozenset({Kind.DIFFERS})),
    Search(replicas=3, to=3, change=Change(), faults=1, kinds=frozenset({Kind.DIFFERS})),
    Search(replicas=3, to=3, change=_restarts(Component.ETCD), faults=1, kinds=frozenset({Kind.DIFFERS})),
    sampled(Search(replicas=3, to=3, faults=2, kinds=AND_MORE - FULL - {Kind.MACHINE_DIES} | {Kind.DIFFERS}), SEED),
    replace(APART[6], faults=1, kinds=frozenset({Kind.DIFFERS})),
)


#: What every run of the tests searches: the biggest first, so that two workers end at about the same time.
SEARCHES = (
    Search(replicas=1, to=1, faults=1, wishes=1),
    *(Search(replicas=each, to=to, faults=1, data_loss=True) for each, to in SHAPES),
    *(sampled(search, SEED) for search in MORE),
    *(replace(search, faults=1, data_loss=True) for search in INSIDE),
    *(replace(search, wishes=1) for search in INSIDE),
    *(replace(search, faults=1) for search in HANGS),
    *(replace(search, wishes=1) for search in HANGS),
    *(sampled(replace(search, faults=2, wishes=1, data_loss=True), SEED) for search in INSIDE[:2]),
    *(replace(search, faults=1, data_loss=True) for search in APART[:2]),
    *(replace(search, wishes=1) for search in APART),
    *(denser(replace(search, faults=1, data_loss=True), SEED) for search in APART[2:6]),
    sampled(replace(APART[6], faults=1, data_loss=True), SEED),
    sampled(Search(replicas=1, to=3, change=ANEW, faults=2, wishes=1, data_loss=True), SEED),
    sampled(Search(replicas=3, to=3, change=ANEW, faults=2, wishes=1, data_loss=True), SEED),
    *(Search(replicas=each, to=to, faults=1, data_loss=True) for each, to in BIRTHS),
    *(Search(replicas=each, to=to, wishes=1) for each, to in (*SHAPES, *BIRTHS[:2])),
    *(Search(replicas=1, to=to, faults=1, data_loss=True, front="north") for to in (1, None, 0)),
    Search(replicas=3, to=3, faults=1, data_loss=True, front="north"),
    Search(replicas=3, to=1, wishes=1, front="east"),
    Search(replicas=3, to=3, faults=1, kinds=frozenset({Kind.REFUSED})),
    Search(replicas=1, to=1, faults=1, wishes=1, kinds=frozenset({Kind.REFUSED}), mended=False),
    *NO_ROOM,
    *DIFFERS,
)
#: What is searched besides with ``QUARTERDECK_DEEP=1``: minutes each, the last ones most of an hour.
DEEP = (
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
