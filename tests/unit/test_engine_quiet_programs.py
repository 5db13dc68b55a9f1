"""Programs that run, are not well, and of which nothing new is seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from support.golden import Golden

from quarterdeck.actions.plane import Plane
from quarterdeck.components.ports import seat_at
from quarterdeck.engine.observation.assemble import Dated, ReplicaPlace, ServerFacts, UnhealthyPrograms
from quarterdeck.engine.observation.quiet_programs import EVERY, QUIET, Complaints, Heard, Quiet
from quarterdeck.errors import NotFound, PreconditionFailed, QuarterdeckError, Unavailable
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health, MemberFact, Membership
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.units import Machine, UnitState, UnitStatus

ETCD, APISERVER, SCHEDULER = Component.ETCD, Component.APISERVER, Component.SCHEDULER
SEAT = seat_at("east-a1", "127.0.1.1", 0)
RECORD = Replica(name="east-1", slot=Slot(site="east", zone="a"), machine="east-a1", seat=SEAT)
MACHINE = Machine(name="east-a1", site="east", zone="a", address="127.0.1.1")
TIMEOUT = "dial tcp 10.0.0.2:2380: i/o timeout"
PEER = f'{{"level":"warn","msg":"prober detected unhealthy status","rtt":"%s","error":"{TIMEOUT}"}}'


class Lab:
    """One replica of which ``components`` run; ``output`` is what they have written."""

    def __init__(self, *components: Component, noted: tuple[tuple[str, float], ...] = ()) -> None:
        self.now, self.pid, self.output, self.reads = 1000.0, 7, "it starts\n", 0
        self.ready, self.unready = False, "connection refused"
        self.health, self.lag = Health.UNREACHABLE, 50_000
        self.founded = True
        self.refuses: type[QuarterdeckError] | None = None
        self.silent: frozenset[Component] = frozenset()
        self.components = components
        self.memory = Memory(replicas=(RECORD,), unready=noted)
        plane = SimpleNamespace(steady=lambda: self.now, now=lambda: self.now, site=lambda _: self)
        self.quiet = Quiet(plane=cast("Plane", plane))

    async def logs(self, machine: str, unit: str, *, lines: int) -> str:
        self.reads += 1
        if self.refuses is not None:
            raise self.refuses("reading logs", f"{machine} does not tell")
        return self.output

    async def look(self, later: float = EVERY) -> Complaints:
        self.now += later
        names = {each: f"demo-east-1-{each}" for each in self.components}
        units = tuple(UnitStatus(name=each, state=UnitState.RUNNING, pid=self.pid) for each in names.values())
        there = MachineFacts(machine=MACHINE, units=units)
        member = MemberFact(id=1, replica="east-1", learner=True, health=self.health, lag=self.lag)
        found = await self.quiet.observe(
            self.memory,
            {"east-1": ReplicaPlace(units=names, volume="", storage_class="")},
            {"east": Dated(self.now, SiteFacts(name="east", machines=(there,), storage_classes=()))},
            Heard(
                servers={"east-1": Dated(self.now, ServerFacts(ready=self.ready, unready=self.unready))},
                memberships=dict.fromkeys(
                    Cluster, Membership(members=(member,), leader=None) if self.founded else None
                ),
                silent={"east-1": UnhealthyPrograms(all=self.silent)},
            ),
        )
        return found.get("east-1", ())

    async def until_quiet(self, most: float = 60.0) -> Complaints:
        began = self.now
        while not (found := await self.look(1.0)):
            assert self.now - began <= most
        return found


async def test_a_founder_that_repeats_itself_is_named_within_a_minute_with_what_it_complains_of(golden: Golden) -> None:
    lab = Lab(ETCD)
    lab.founded = False
    for second in range(20):
        lab.output += PEER % f"{second}ms" + "\n"
        assert await lab.look(1.0) == ()
    ((component, complaint),) = await lab.until_quiet(most=40.0)
    assert component == ETCD
    golden(complaint)


@pytest.mark.parametrize("moves", ["checks", "output", "process"])
async def test_one_that_gets_on_is_not_quiet(moves: str) -> None:
    lab = Lab(APISERVER)
    for step in range(40):
        name = chr(ord("a") + step % 26) * (1 + step // 26)
        match moves:
            case "checks":
                lab.unready = f"500: [-]poststarthook/{name} failed"
            case "output":
                lab.output += f"I1125 21:42:59.747271    9192 options.go:263] {name} is done\n"
            case _:
                lab.pid += 1
        assert await lab.look() == ()
    assert await lab.until_quiet(most=QUIET + EVERY), "and then it hangs"


async def test_a_member_that_copies_is_not_quiet_and_one_that_comes_no_nearer_is() -> None:
    lab = Lab(ETCD)
    for _ in range(20):
        lab.lag -= 1_000
        assert await lab.look() == ()
    assert await lab.until_quiet(most=QUIET + EVERY)


async def test_an_apiserver_is_named_with_the_checks_that_fail_and_two_that_alternate_are_nothing_new(
    golden: Golden,
) -> None:
    lab = Lab(APISERVER)
    for step in range(20):
        lab.unready = f"500: [-]{'etcd' if step % 2 else 'informer-sync'} failed"
        last = await lab.look()
    ((_, complaint),) = last
    assert complaint.startswith("500: [-]")
    golden(complaint)


async def test_who_is_well_is_not_asked_and_who_starts_only_after_a_moment() -> None:
    lab = Lab(ETCD, APISERVER, SCHEDULER)
    lab.ready, lab.health = True, Health.HEALTHY
    for _ in range(20):
        assert await lab.look() == ()
    assert lab.reads == 0
    starts = Lab(APISERVER)
    for _ in range(int(EVERY) - 1):
        await starts.look(1.0)
    assert starts.reads == 0


async def test_a_controller_that_says_nothing_good_is_quiet() -> None:
    lab = Lab(SCHEDULER)
    lab.silent = frozenset({SCHEDULER})
    assert await lab.until_quiet() == ((SCHEDULER, "it starts"),)


async def test_what_was_noted_before_is_quiet_for_one_who_has_just_begun_to_look() -> None:
    """``status`` makes one look, and another driver goes on where the last one ended."""
    lab = Lab(APISERVER, noted=(("kube-apiserver of east-1", 999.0),))
    assert await lab.look(0.0) == ((APISERVER, "connection refused; it starts"),)
    lab.output += "it has got on\n"
    assert await lab.look() == (), "until something new is seen of it"


@pytest.mark.parametrize("refuses", [NotFound, PreconditionFailed, Unavailable])
async def test_a_machine_that_does_not_tell_what_it_wrote_makes_nobody_well(refuses: type[QuarterdeckError]) -> None:
    lab = Lab(APISERVER)
    lab.refuses = refuses
    assert await lab.until_quiet() == ((APISERVER, ""),)
