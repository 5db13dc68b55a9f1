"""What the DNS servers say of a plane's name, as the planner is told it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from fakes.endpoint import FakeBalancer, FakeDns
from support.golden import Golden

from quarterdeck.actions.plane import Plane
from quarterdeck.components.ports import seat_at
from quarterdeck.endpoint.dns.unmanaged import FixedAddress
from quarterdeck.endpoint.port import UnusableDns
from quarterdeck.engine.observation.observe_traffic import see_name
from quarterdeck.errors import InvalidInput
from quarterdeck.model.endpoints import APISERVERS, BackendAddress, DnsRecord, NameFact, Ownership, RecordClaim
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot

NAME = "demo.planes.test"
OWN = {"east-1": "192.0.2.11", "east-2": "192.0.2.12"}
EAST, WEST, THEIRS = "192.0.2.1", "192.0.2.2", "198.51.100.7"


def claim(token: int = 7, *, take_over: bool = False) -> RecordClaim:
    return RecordClaim(owner="demo/1", token=token, addresses=frozenset({EAST, WEST}), take_over=take_over)


def plane(dns: object, claim: RecordClaim = claim(), *, driven: bool = True) -> Plane:  # noqa: B008 - frozen
    balancers = {
        "east": {"east-edge": FakeBalancer(address=BackendAddress(EAST, 6443))},
        "west": {"west-edge": FakeBalancer(address=BackendAddress(WEST, 6443))},
    }
    resource = SimpleNamespace(host=NAME, spec=SimpleNamespace(endpoint=SimpleNamespace(ttl=5)))
    guard = object() if driven else None
    slot = Slot(site="east", zone="a")
    own = tuple(
        Replica(name=name, slot=slot, machine=f"m-{name}", seat=seat_at(f"m-{name}", address, 0))
        for name, address in OWN.items()
    )
    memory = Memory(replicas=own)
    there = SimpleNamespace(
        dns=dns, claim=claim, balancers=balancers, resource=resource, guard=guard, memory=memory, machines={}
    )
    return cast("Plane", there)


def servers(address: str | None, owner: Ownership | None = None, **other: DnsRecord | None) -> FakeDns:
    full = f"{NAME}."
    return FakeDns(
        records={full: DnsRecord((address,), 5)} if address else {},
        owners={full: owner} if owner else {},
        lagging={full: other["other"]} if "other" in other else {},
    )


async def test_the_name_leads_to_a_site_by_its_load_balancers_address() -> None:
    assert await see_name(plane(servers(WEST, claim().ownership))) == NameFact(
        site="west", addresses=(WEST,), handed_out=frozenset({WEST}), servers=2
    )


async def test_the_name_leads_to_apiservers_by_their_own_addresses_and_a_stray_one_is_told() -> None:
    dns = servers(None, claim().ownership)
    for addresses, replicas, stray in (
        ((OWN["east-1"], OWN["east-2"]), {"east-1", "east-2"}, False),
        ((OWN["east-2"], THEIRS), {"east-2"}, True),
    ):
        dns.records[f"{NAME}."] = DnsRecord(addresses, 5)
        seen = await see_name(plane(dns))
        assert (seen.site, seen.replicas, seen.stray) == (APISERVERS, frozenset(replicas), stray)


async def test_no_record_is_no_record_and_anybodys() -> None:
    assert await see_name(plane(servers(None))) == NameFact(
        addresses=(), handed_out=frozenset(), stamped=False, servers=2
    )


async def test_a_record_with_somebody_elses_address_is_not_no_record(golden: Golden) -> None:
    seen = await see_name(plane(servers(THEIRS)))
    assert (seen.known, seen.site) == (True, None)
    golden(seen.foreign)
    assert "spec.endpoint.takeOver: true" in seen.foreign
    own = await see_name(plane(servers(THEIRS, claim().ownership)))
    assert own.foreign, "also if somebody has only changed where it leads"
    assert not (await see_name(plane(servers(THEIRS), claim(take_over=True)))).foreign


async def test_a_name_that_another_plane_claims_is_that_planes(golden: Golden) -> None:
    seen = await see_name(plane(servers(EAST, Ownership("demo/2", 1))))
    assert (seen.site, seen.stamped) == ("east", False)
    golden(seen.foreign)


@pytest.mark.parametrize(("token", "stamped"), [(7, True), (6, False)])
async def test_a_record_that_an_older_driver_changed_last_is_not_stamped(token: int, stamped: bool) -> None:
    assert (await see_name(plane(servers(EAST, Ownership("demo/1", token))))).stamped is stamped


async def test_who_only_looks_asks_for_no_stamp() -> None:
    assert (await see_name(plane(servers(EAST), driven=False))).stamped


async def test_what_other_servers_still_answer_is_told_with_where_it_leads() -> None:
    seen = await see_name(plane(servers(WEST, other=DnsRecord((EAST,), 5))))
    assert (seen.site, seen.also) == ("west", ("east",))
    assert "answers otherwise" in seen.torn
    assert (await see_name(plane(servers(WEST, other=None)))).also == ()


async def test_whatever_is_wrong_makes_the_name_unknown_with_the_reason(golden: Golden) -> None:
    deaf = await see_name(plane(FakeDns(reachable=False)))
    assert (deaf.known, deaf.site) == (False, None)
    golden(deaf.trouble)
    broken = UnusableDns(InvalidInput("reading the TSIG secret /key", "No such file", "put the key there, 0600"))
    seen = await see_name(plane(broken))
    golden(seen.trouble)
    with pytest.raises(InvalidInput):
        await broken.check(NAME)


async def test_a_fixed_address_is_the_planes_whatever_else() -> None:
    assert await see_name(plane(FixedAddress(EAST))) == NameFact(site="east", handed_out=frozenset({EAST}), servers=0)
    assert await see_name(plane(FixedAddress(THEIRS))) == NameFact(handed_out=frozenset({THEIRS}), servers=0)


async def test_another_time_to_live_than_wanted_is_told_the_longest_that_a_server_hands_out() -> None:
    wanted = plane(servers(WEST, claim().ownership))
    assert (await see_name(wanted)).ttl is None
    for ttl in (60, 1):
        dns = servers(WEST, claim().ownership)
        dns.records[f"{NAME}."] = DnsRecord((WEST,), ttl)
        assert (await see_name(plane(dns))).ttl == ttl
    longer = servers(WEST, claim().ownership, other=DnsRecord((WEST,), 600))
    assert (await see_name(plane(longer))).ttl == 600
