"""What each source said becomes one world: what nobody said, or said too long ago, is not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.golden import Golden

from quarterdeck.engine.observation.assemble import TOO_OLD, Dated, EtcdFacts, ReplicaPlace, Seen, ServerFacts, assemble
from quarterdeck.model.components import NAMED, Component
from quarterdeck.model.edges import EdgeSeen
from quarterdeck.model.endpoints import BalancerStatus, NameFact
from quarterdeck.model.membership import Membership, WrongData
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.site_facts import MachineFacts, SiteFacts, VolumeFacts
from quarterdeck.model.units import Machine, MachineRole, MachineState, UnitState, UnitStatus
from quarterdeck.model.world import ReplicaFact, World

NOW = 100.0
SLOT = Slot(site="east", zone="a")
KNOWN = World(
    slots=(SLOT,),
    memory=Memory(replicas=(Replica(name="east-1", slot=SLOT, machine="east-a1"),)),
    now=5.0,
    front="east",
)
PLACE = ReplicaPlace(
    units={each: f"demo-east-1-{each}" for each in NAMED}, volume="demo-east-1", storage_class="standard"
)
UNITS = tuple(
    UnitStatus(name=name, state=UnitState.RUNNING, digest=f"{component}-digest")
    for component, name in PLACE.units.items()
)
LOG = VolumeFacts(name="demo-east-1", storage_class="standard", entries=("0.tmp", "0-0.wal"))


def machine(name: str = "east-a1", **more: object) -> Machine:
    return Machine(name=name, site="east", zone="a", address="192.0.2.1", **more)  # type: ignore[arg-type]


def edge(status: BalancerStatus | None, name: str = "east-edge", **more: bool) -> EdgeSeen:
    return EdgeSeen(name=name, address=f"192.0.2.{len(name)}", status=status, **more)


UP = MachineFacts(machine=machine(), units=UNITS, volumes=(LOG,))
SITE = SiteFacts(
    name="east",
    machines=(
        UP,
        MachineFacts(machine=machine("east-edge", role=MachineRole.EDGE), units=(), volumes=()),
        MachineFacts(machine=machine("east-b9", declared=False), units=(), volumes=()),
    ),
    storage_classes=("standard",),
)
SEEN = Seen(
    sites={"east": Dated(NOW, SITE)},
    etcd=Dated(
        NOW, EtcdFacts(membership=Membership(members=(), leader=None), wrong=(WrongData(replica="east-1", seen="no"),))
    ),
    servers={"east-1": Dated(NOW, ServerFacts(ready=True, peer_up=True))},
    balancers={"east": Dated(NOW, (edge(BalancerStatus(running=True, healthy=frozenset({"east-1"}), connections=3)),))},
    name=Dated(NOW, NameFact(site="east", stamped=False)),
)


def world(seen: Seen = SEEN, *, at: float = NOW, places: Mapping[str, ReplicaPlace] | None = None) -> World:
    return assemble(KNOWN, places or {"east-1": PLACE}, seen, at)


def with_machine(facts: MachineFacts, **site: object) -> Seen:
    changed = replace(SITE, machines=(facts, *SITE.machines[1:]), **site)  # type: ignore[arg-type]
    return replace(SEEN, sites={"east": Dated(NOW, changed)})


def test_what_was_seen_is_in_the_world() -> None:
    seen = world()
    fact = seen.replica("east-1")
    assert (fact.machine, fact.ready, fact.peer_up, fact.has_data, fact.refused) == (
        MachineState.UP,
        True,
        True,
        True,
        "",
    )
    assert {fact.unit(each) for each in NAMED} == {UnitState.RUNNING}
    assert [each.name for each in seen.machines] == ["east-a1"], "neither the edge's nor what is declared no more"
    assert (seen.membership, seen.wrong) == (
        Membership(members=(), leader=None),
        (WrongData(replica="east-1", seen="no"),),
    )
    assert (seen.record, seen.record_known, seen.stamped) == ("east", True, False)
    assert (seen.balancer("east").ready, seen.balancer("east").connections) == (True, 3)
    assert (seen.front, seen.now, seen.memory) == ("east", 5.0, KNOWN.memory)


UNKNOWN = ReplicaFact(
    name="east-1",
    machine=MachineState.UNREACHABLE,
    units=tuple((each, UnitState.UNKNOWN) for each in NAMED),
    ready=None,
)


@pytest.mark.parametrize(
    "seen",
    [
        replace(SEEN, sites={}),
        replace(SEEN, sites={"east": Dated(NOW, None)}),
        replace(SEEN, sites={"east": Dated(NOW - TOO_OLD - 1, SITE)}),
        with_machine(MachineFacts(machine=machine("east-a7"), units=UNITS, volumes=(LOG,))),
        with_machine(MachineFacts(machine=machine(state=MachineState.UNREACHABLE))),
        with_machine(MachineFacts(machine=machine())),
    ],
    ids=["not asked", "silent", "too old", "machine gone", "machine unreachable", "machine says nothing of units"],
)
def test_a_replica_of_which_nothing_was_heard_is_unknown(seen: Seen) -> None:
    """Even if its apiserver was said to be ready: it is asked only where its machine answers."""
    assert world(seen).replica("east-1") == UNKNOWN


def test_a_machine_that_is_off_is_known_to_be() -> None:
    seen = with_machine(MachineFacts(machine=machine(state=MachineState.DOWN)))
    assert world(seen).replica("east-1") == replace(UNKNOWN, machine=MachineState.DOWN)


def test_a_program_that_ends_again_and_again_is_told_of_the_replica_it_is_of() -> None:
    """Another site may have a unit of the same name."""
    name = PLACE.units[Component.APISERVER]
    seen = replace(SEEN, crash_looping=frozenset({("east", name), ("west", PLACE.units[Component.ETCD])}))
    assert world(seen).replica("east-1").crash_looping == {Component.APISERVER}


def test_a_unit_that_its_machine_does_not_know_is_absent() -> None:
    fact = world(with_machine(replace(UP, units=UNITS[:1]))).replica("east-1")
    assert [state for _, state in fact.units] == [UnitState.RUNNING, *[UnitState.ABSENT] * (len(NAMED) - 1)]


@pytest.mark.parametrize(
    ("facts", "classes", "has_data"),
    [
        (replace(UP, volumes=()), ("standard",), False),
        (replace(UP, volumes=(replace(LOG, entries=("0.tmp",)),)), ("standard",), False),
        (replace(UP, volumes=None), ("standard",), None),
        (replace(UP, volumes=(), away=("fast",)), ("standard",), None),
        (replace(UP, away=("fast",)), ("standard",), True),
        (UP, ("fast",), None),
    ],
    ids=["no volume", "no log", "disk unread", "disk not mounted", "another disk not mounted", "class gone"],
)
def test_data_is_lost_only_where_it_is_seen_not_to_be(
    facts: MachineFacts, classes: tuple[str, ...], has_data: bool | None
) -> None:
    assert world(with_machine(facts, storage_classes=classes)).replica("east-1").has_data is has_data


def test_nothing_is_concluded_from_what_was_seen_too_long_ago() -> None:
    """The observer stood still between its look and now."""
    assert world(at=NOW + TOO_OLD) == world()
    late = world(at=NOW + TOO_OLD + 1)
    assert late.replica("east-1") == UNKNOWN
    assert (late.membership, late.wrong, late.machines) == (None, (), ())
    assert not late.record_known
    assert late.record_trouble
    assert not late.balancer("east").reachable


def test_servers_and_balancers_that_were_not_heard_are_not_down() -> None:
    silent = replace(SEEN, servers={}, balancers={"east": Dated(NOW, None)})
    assert world(silent).replica("east-1").ready is None
    assert not world(silent).balancer("east").reachable
    stopped = replace(SEEN, balancers={"east": Dated(NOW, (edge(BalancerStatus(running=False)),))})
    assert (world(stopped).balancer("east").reachable, world(stopped).balancer("east").running) == (True, False)


# --- a load balancer on several edges -------------------------------------------------------------------------------

ONE, TWO = "east-edge", "east-edge-2"


def runs(*backends: str, healthy: tuple[str, ...] | None = None) -> BalancerStatus:
    return BalancerStatus(
        running=True, backends=frozenset(backends), healthy=frozenset(backends if healthy is None else healthy)
    )


def on(*edges: EdgeSeen, record: tuple[str, ...] | None = (ONE, TWO)) -> World:
    """These edges, and a name that has the addresses of these."""
    addresses = tuple(edge(None, each).address for each in record) if record is not None else None
    name = NameFact(site="east" if record else None, addresses=addresses)
    return world(replace(SEEN, balancers={"east": Dated(NOW, edges)}, name=Dated(NOW, name)))


def named(seen: World) -> set[str]:
    return {each.name for each in seen.balancer("east").edges if each.named}


def test_what_a_load_balancer_sends_to_everywhere_is_what_all_of_its_edges_send_to() -> None:
    """Who is listed by one gets new connections there; who is healthy at one alone leads nobody from the other."""
    alike = on(edge(runs("a", "b")), edge(runs("a", "b", healthy=("b",)), TWO)).balancer("east")
    assert (alike.everywhere, alike.healthy) == ({"a", "b"}, {"b"})
    for other in (runs("a"), BalancerStatus(running=False)):
        differ = on(edge(runs("a", "b")), edge(other, TWO)).balancer("east")
        assert (differ.backends, differ.everywhere, differ.reachable) == ({"a", "b"}, frozenset(), True)


def test_an_edge_to_which_no_address_can_come_leads_nobody_though_it_sends_to_all_that_others_do() -> None:
    idle = replace(runs("a", "b"), at_home=False, unrouted="keepalived does not run there")
    seen = on(edge(runs("a", "b"), floats=True), edge(idle, TWO, floats=True)).balancer("east")
    assert (seen.everywhere, seen.healthy, seen.unrouted) == ({"a", "b"}, {"a", "b"}, (TWO,))
    assert [(each.leads, each.unrouted) for each in seen.edges] == [(True, ""), (False, idle.unrouted)]
    assert named(on(edge(runs("a")), edge(idle, TWO))) == {ONE, TWO}, "another edge has its address"


def test_an_edge_that_clients_may_use_and_that_does_not_answer_may_send_to_anybody() -> None:
    dark = on(edge(runs("a")), edge(None, TWO)).balancer("east")
    assert (dark.ready, dark.reachable, dark.everywhere, dark.silent) == (True, False, frozenset(), {TWO})
    left = on(edge(runs("a")), edge(None, TWO, may_be_used=False)).balancer("east")
    assert (left.ready, left.reachable, left.everywhere, left.silent) == (True, True, {"a"}, {TWO})


def test_an_edge_that_is_given_up_leaves_the_name_and_comes_back_when_it_leads_to_all_that_others_do(
    golden: Golden,
) -> None:
    silent = edge(None, TWO)
    assert on(edge(runs("a")), silent).amiss == ""
    lost = on(edge(runs("a")), replace(silent, given_up=True))
    assert named(lost) == {ONE}
    golden(lost.amiss)
    for back in (runs("b"), runs("a", healthy=()), BalancerStatus(running=False)):
        assert on(edge(runs("a", "b")), edge(back, TWO), record=(ONE,)).amiss == ""
    well = on(edge(runs("a")), edge(runs("a"), TWO), record=(ONE,))
    assert named(well) == {ONE, TWO}
    golden(well.amiss)


def test_a_name_that_comes_to_a_site_gets_every_edge_that_leads_somewhere() -> None:
    """Whatever they send to: a name without an address would lead nowhere."""
    new = on(edge(runs("a")), edge(runs("b"), TWO), record=())
    assert named(new) == {ONE, TWO}
    assert named(on(edge(runs("a")), edge(runs("b", healthy=()), TWO), record=())) == {ONE}


def test_a_name_that_only_a_person_changes_or_that_leads_to_nobody_well_is_left_as_it_is() -> None:
    both = edge(runs("a")), edge(runs("a"), TWO)
    assert on(*both, record=(ONE, TWO)).amiss == ""
    assert on(*both, record=None).amiss == ""
    gone = edge(None, given_up=True), edge(runs("a", healthy=()), TWO)
    assert on(*gone, record=(ONE,)).amiss == ""


@pytest.mark.parametrize("arriving", [False, True])
def test_data_that_another_machine_has_is_not_gone(arriving: bool) -> None:
    moved = VolumeFacts(name="demo-east-1", storage_class="standard", entries=("0-0.wal",), arriving=arriving)
    there = MachineFacts(machine=machine("east-b1"), units=(), volumes=(moved,))
    shared = replace(SITE, machines=(replace(UP, volumes=()), there), reattachable=frozenset({"standard"}))
    fact = world(replace(SEEN, sites={"east": Dated(NOW, shared)})).replica("east-1")
    assert (fact.reattachable, fact.volume_at, fact.has_data) == (True, "east-b1", None)
    local = replace(shared, reattachable=frozenset())
    fact = world(replace(SEEN, sites={"east": Dated(NOW, local)})).replica("east-1")
    assert (fact.reattachable, fact.volume_at, fact.has_data) == (False, "", False)
