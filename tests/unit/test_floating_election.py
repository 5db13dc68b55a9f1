"""Which of the edges of a site has which address: two or three that hear each other, on a clock of their own."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from quarterdeck.endpoint.addresses.floating.election import BEAT, PATIENCE, SILENCE, Election, Word

OWNERS = {"x1": "e1", "x2": "e2", "x3": "e3"}


@dataclass
class Site:
    """Edges that beat in turn. ``off`` do nothing, ``deaf`` hear nothing, who is ``cut`` off hears the router alone,
    ``unfit`` serve nobody; ``used`` are the addresses that clients are connected to.
    """

    edges: tuple[str, ...] = ("e1", "e2")
    now: float = 100.0
    off: set[str] = field(default_factory=set)
    deaf: set[str] = field(default_factory=set)
    unfit: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    elections: dict[str, Election] = field(default_factory=dict)
    router: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in self.edges:
            self.begin(each)

    def begin(self, edge: str, holds: frozenset[str] = frozenset()) -> None:
        owners = {address: owner for address, owner in OWNERS.items() if owner in self.edges}
        self.elections[edge] = Election(me=edge, owners=owners, since=self.now, holds=holds)
        self.router[edge] = self.now

    def beat(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += BEAT
            for each in self.edges:
                if each not in self.off:
                    self.turn(each)

    def turn(self, edge: str) -> None:
        election = self.elections[edge]
        if edge not in self.deaf:
            self.router[edge] = self.now
        free = OWNERS.keys() - self.used
        election.rule(self.now, fit=edge not in self.unfit, router=self.router[edge], left=lambda each: each in free)
        for other in self.edges:
            if election.hears and other not in self.off | self.deaf | self.cut and edge not in self.cut:
                self.elections[other].hear(Word(edge, edge not in self.unfit, election.holds), self.now)

    @property
    def holds(self) -> dict[str, str]:
        """What each edge that is on has, as one word."""
        return {each: " ".join(sorted(self.elections[each].holds)) for each in self.edges if each not in self.off}


@pytest.fixture
def site() -> Site:
    made = Site()
    made.beat(2 * SILENCE)
    assert made.holds == {"e1": "x1", "e2": "x2"}
    return made


def test_nobody_takes_anything_before_it_has_listened() -> None:
    site = Site()
    site.beat(SILENCE - 2 * BEAT)
    assert site.holds == {"e1": "", "e2": ""}


def test_what_a_silent_edge_had_is_with_another_within_a_second(site: Site) -> None:
    site.off.add("e1")
    site.beat(SILENCE - 2 * BEAT)
    assert site.holds == {"e2": "x2"}, "it may have been slow"
    site.beat(3 * BEAT)
    assert site.holds == {"e2": "x1 x2"}
    assert SILENCE + 2 * BEAT <= 1.0


def test_an_address_goes_back_only_when_nobody_is_connected_to_it(site: Site) -> None:
    site.off.add("e1")
    site.used.add("x1")
    site.beat(2 * SILENCE)
    site.off.clear()
    site.begin("e1")
    site.beat(60.0)
    assert site.holds == {"e1": "", "e2": "x1 x2"}
    site.used.clear()
    site.beat(3 * BEAT)
    assert site.holds == {"e1": "x1", "e2": "x2"}


def test_who_serves_nobody_lets_go_of_what_another_can_serve(site: Site) -> None:
    site.used |= {"x1", "x2"}
    site.unfit.add("e1")
    site.beat(3 * BEAT)
    assert site.holds == {"e1": "", "e2": "x1 x2"}
    site.unfit.add("e2")
    site.beat(2 * SILENCE)
    assert site.holds == {"e1": "", "e2": "x1 x2"}, "nobody is any better"
    site.unfit.remove("e1")
    site.beat(3 * BEAT)
    assert site.holds == {"e1": "x1 x2", "e2": ""}


def test_where_nobody_is_fit_each_has_its_own_all_the_same() -> None:
    site = Site(unfit={"e1", "e2"})
    site.beat(2 * SILENCE)
    assert site.holds == {"e1": "x1", "e2": "x2"}


def test_who_hears_nothing_keeps_nothing_and_takes_nothing(site: Site) -> None:
    site.used |= {"x1", "x2"}
    site.deaf.add("e1")
    site.beat(2 * SILENCE)
    assert site.holds == {"e1": "", "e2": "x1 x2"}
    site.off.add("e2")
    site.beat(4 * SILENCE)
    assert site.holds == {"e1": ""}


def test_who_was_just_unplugged_does_not_take_what_the_others_have(site: Site) -> None:
    site.deaf.add("e1")
    for _ in range(20):
        site.beat(BEAT)
        assert "x2" not in site.holds["e1"]


def test_after_edges_could_not_hear_each_other_each_has_its_own(site: Site) -> None:
    site.used |= {"x1", "x2"}
    site.cut.add("e1")
    site.beat(2 * SILENCE)
    assert site.holds == {"e1": "x1 x2", "e2": "x1 x2"}, "the network shows clients to one of them"
    site.cut.clear()
    site.beat(2 * BEAT)
    assert site.holds == {"e1": "x1", "e2": "x2"}


def test_who_was_stopped_for_too_long_begins_anew_before_it_says_that_it_has_anything(site: Site) -> None:
    site.off.add("e1")
    site.beat(2 * SILENCE)
    site.off.clear()
    site.used.add("x1")
    site.turn("e1")
    assert site.holds == {"e1": "", "e2": "x1 x2"}
    site.beat(2 * SILENCE)
    assert site.holds == {"e1": "", "e2": "x1 x2"}


def test_who_comes_again_after_it_has_died_goes_on_with_what_is_still_here(site: Site) -> None:
    site.begin("e1", frozenset({"x1"}))
    site.beat(2 * SILENCE)
    assert site.holds == {"e1": "x1", "e2": "x2"}


def test_of_two_who_have_an_address_its_own_edge_keeps_it(site: Site) -> None:
    site.used |= {"x1", "x2"}
    site.elections["e2"].holds = frozenset({"x1", "x2"})
    site.beat(2 * BEAT)
    assert site.holds == {"e1": "x1", "e2": "x2"}


def test_of_three_edges_the_next_one_takes_what_two_had() -> None:
    site = Site(("e1", "e2", "e3"))
    site.beat(2 * SILENCE)
    site.off.add("e2")
    site.beat(2 * SILENCE)
    assert site.holds == {"e1": "x1", "e3": "x2 x3"}
    site.off.add("e3")
    site.beat(2 * SILENCE)
    assert site.holds == {"e1": "x1 x2 x3"}


def test_a_stranger_has_no_say(site: Site) -> None:
    site.elections["e1"].hear(Word("e9", True, frozenset({"x1"})), site.now)
    site.turn("e1")
    assert site.holds["e1"] == "x1"


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happened_each_address_is_with_exactly_one_who_can_serve_it(seed: int) -> None:
    chance = random.Random(seed)
    site = Site(("e1", "e2", "e3"))
    for _ in range(40):
        state = chance.choice([site.off, site.deaf, site.unfit])
        edge = chance.choice(site.edges)
        if edge in state:
            state.remove(edge)
            if state is site.off and chance.random() < 0.5:
                site.begin(edge)
        else:
            state.add(edge)
        site.used = {each for each in OWNERS if chance.random() < 0.5}
        site.beat(chance.choice([BEAT, SILENCE, 4 * SILENCE]))
    site.beat(4 * SILENCE)
    hearing = [each for each in site.edges if each not in site.off | site.deaf]
    able = [each for each in hearing if each not in site.unfit] or hearing
    found = {each: [edge for edge in hearing if each in site.elections[edge].holds] for each in OWNERS}
    assert all(len(there) == bool(able) and {*there} <= {*able} for there in found.values()), (site, found)
    for each in hearing:
        assert each in able or not site.elections[each].holds


# --- an address that is led from machine to machine by orders -------------------------------------------------------


@dataclass
class Led:
    """Machines of which some have orders, each as new as they are: the number, and whom they name."""

    now: float = 100.0
    off: set[str] = field(default_factory=set)
    unfit: set[str] = field(default_factory=set)
    elections: dict[str, Election] = field(default_factory=dict)
    number: int = 0

    def lead(self, *machines: str) -> None:
        self.number += 1
        for each in machines:
            known = self.elections.get(each) or Election(me=each, owners={"x": machines[0]}, since=self.now)
            known.number, known.order = (1, self.number), machines
            self.elections[each] = known

    def beat(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += BEAT
            for each in sorted(self.elections.keys() - self.off):
                self.turn(each)
            assert sum("x" in each.holds for name, each in self.elections.items() if name not in self.off) <= 1

    def turn(self, machine: str) -> None:
        election = self.elections[machine]
        fit = machine not in self.unfit and election.has_listened(self.now)
        election.rule(self.now, fit=fit, router=self.now, left=lambda _: True)
        word = Word(machine, fit, election.holds, election.number)
        for other in self.elections.keys() - self.off - {machine}:
            self.elections[other].hear(word, self.now)

    @property
    def at(self) -> str:
        return " ".join(sorted(name for name in self.elections.keys() - self.off if self.elections[name].holds))


def led(*machines: str) -> Led:
    made = Led()
    made.lead(*machines)
    made.beat(2 * SILENCE)
    assert made.at == machines[0]
    return made


def test_an_address_goes_where_the_newest_orders_have_it_though_nobody_tells_who_has_it() -> None:
    site = led("m1")
    site.lead("e1", "e2")
    site.beat(SILENCE - 2 * BEAT)
    assert site.at == "m1", "who has not listened yet could not take it"
    site.beat(4 * BEAT)
    assert site.at == "e1"
    site.lead("m1")
    site.beat(4 * BEAT)
    assert site.at == "m1"


def test_it_stays_where_it_is_until_somebody_can_serve_it() -> None:
    site = led("m1")
    site.unfit.add("e1")
    site.lead("e1")
    site.beat(4 * SILENCE)
    assert site.at == "m1"
    site.unfit.clear()
    site.beat(4 * BEAT)
    assert site.at == "e1"


def test_who_has_older_orders_serves_it_only_as_long_as_nobody_else_can() -> None:
    site = led("m1")
    site.lead("e1", "e2")
    site.beat(2 * SILENCE)
    site.off.add("e1")
    site.beat(2 * SILENCE)
    assert site.at == "e2"
    site.off.add("e2")
    site.beat(PATIENCE - 2 * BEAT)
    assert site.at == "", "they may only stand still"
    site.beat(4 * BEAT)
    assert site.at == "m1"
    site.off.remove("e2")
    site.elections["e2"].holds, site.elections["e2"].since = frozenset(), site.now
    site.beat(2 * SILENCE)
    assert site.at == "e2"


def test_who_was_stopped_for_a_while_keeps_it_unless_somebody_else_has_it_by_then() -> None:
    site = led("m1")
    site.now += 5 * SILENCE
    site.turn("m1")
    assert site.at == "m1"
    site.lead("e1", "e2")
    site.beat(2 * SILENCE)
    site.off.add("e1")
    site.beat(2 * SILENCE)
    site.off.clear()
    site.turn("e2")
    site.turn("e1")
    assert site.at == "e2"


def test_a_machine_that_comes_back_with_older_orders_takes_nothing() -> None:
    site = led("m1")
    site.off.add("m1")
    site.elections.pop("m1")
    site.lead("m2")
    site.beat(2 * SILENCE)
    assert site.at == "m2"
    site.off.clear()
    site.elections["m1"] = Election(me="m1", owners={"x": "m1"}, since=site.now, number=(1, 1), order=("m1",))
    site.beat(4 * SILENCE)
    assert site.at == "m2"
