"""Another endpoint mode is taken where no client of the plane notices."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import pytest
from fakes.endpoint import FakeDns
from support.golden import Golden
from support.host_sites import host, host_site

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.plane.endpoint import Endpoint
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.api.site import Site
from quarterdeck.components.ports import seat_at
from quarterdeck.engine.preflight.admission import admit_change
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.endpoints import DnsRecord
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot

HOST = "demo.planes.test"
TSIG = {"keyName": "k.test", "secretFile": "/key"}
UPDATED = {"mode": "rfc2136", "name": HOST, "rfc2136": {"server": "192.0.2.53", "zone": "planes.test", "tsig": TSIG}}
BY_HAND = {"mode": "unmanaged", "name": HOST}
SITE = cast("Site", SimpleNamespace(spec=SimpleNamespace(space="loopback")))


def plane(endpoint: Mapping[str, object], *blocks: int) -> ControlPlane:
    """One whose replicas have the ports of these blocks."""
    made = new_control_plane("demo", site="east")
    replicas = tuple(
        Replica(
            name=f"east-{block}", slot=Slot(site="east", zone="a"), machine="m", seat=seat_at("m", "192.0.2.9", block)
        )
        for block in blocks
    )
    status = made.status.model_copy(update={"port_offset": 0, "memory": memory_to_status(Memory(replicas=replicas))})
    spec = made.spec.model_copy(update={"endpoint": Endpoint.model_validate_json(json.dumps({**endpoint}))})
    return made.model_copy(update={"spec": spec, "status": status})


def home(**answers: tuple[str, ...]) -> Home:
    """One whose DNS servers answer so, by the mode of the endpoint."""

    async def dns(wanted: ControlPlane, *_: object) -> FakeDns:
        addresses = answers[wanted.spec.endpoint.mode]
        return FakeDns(records={f"{HOST}.": DnsRecord(addresses, 5)} if addresses else {})

    return cast("Home", SimpleNamespace(dns=dns))


@pytest.mark.parametrize(("before", "after"), [(UPDATED, BY_HAND), (BY_HAND, UPDATED)])
async def test_who_keeps_the_name_changes_where_the_new_one_has_the_same_record(
    before: dict[str, object], after: dict[str, object], golden: Golden
) -> None:
    same = home(rfc2136=("192.0.2.1",), unmanaged=("192.0.2.1",))
    await admit_change(same, plane(after), plane(before), SITE)
    for other in ((), ("192.0.2.7",)):
        answers = {"rfc2136": ("192.0.2.1",), "unmanaged": ("192.0.2.1",), str(after["mode"]): other}
        with golden.raises(PreconditionFailed):
            await admit_change(home(**answers), plane(after), plane(before), SITE)


async def test_whether_an_address_is_promoted_is_decided_once(golden: Golden) -> None:
    own = {"mode": "address", "address": "100.64.64.1"}
    promoted, other = {**own, "leadsTo": "promoted"}, {**own, "address": "100.64.64.2", "leadsTo": "promoted"}
    for before, after in ((own, promoted), (promoted, own), (promoted, other), ({}, promoted)):
        with golden.raises(PreconditionFailed):
            await admit_change(home(), plane(after), plane(before), SITE)
    await admit_change(home(), plane(promoted), plane(promoted), SITE)


async def test_on_hosts_it_is_decided_once_whether_clients_come_to_apiservers(golden: Golden) -> None:
    straight = plane({"leadsTo": "apiservers"}, 0)
    for before, after in ((plane({}, 0), straight), (straight, plane({}, 0))):
        await admit_change(home(), after, before, SITE)
        with golden.raises(PreconditionFailed):
            await admit_change(home(), after, before, host_site(host("one1")))


async def test_clients_are_led_to_apiservers_only_if_all_listen_at_the_port_that_they_come_to(golden: Golden) -> None:
    before, after = plane({}, 0, 787), plane({"leadsTo": "apiservers"}, 0, 787)
    with golden.raises(PreconditionFailed):
        await admit_change(home(), after, before, SITE)
    await admit_change(home(), after, plane({}, 0), SITE)
    await admit_change(home(), after, after, SITE)
