"""A plane with an address that goes from machine to machine: where its apiservers listen, and what is left of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography import x509
from pydantic import SecretStr
from support.resources import with_spec
from support.small_plane import SmallPlane, small_plane

from quarterdeck.actions.addresses import elsewhere
from quarterdeck.actions.certificates import certificates_of
from quarterdeck.actions.placement import forget_address
from quarterdeck.actions.volumes import replica_settings
from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.plane.endpoint import Endpoint
from quarterdeck.components.ports import ports_of, seat_with
from quarterdeck.engine.workspace.settings import front_site, planner_settings
from quarterdeck.model.components import Component
from quarterdeck.model.units import UnitSpec
from quarterdeck.pki.codec import encode

A = "100.64.64.1"


@pytest.fixture
async def small() -> SmallPlane:
    made = await small_plane(replicas=1)
    resource = made.plane.resource
    endpoint = Endpoint.model_validate({"mode": "address", "address": A, "leadsTo": "promoted"}, strict=False)
    made.plane.resource = with_spec(resource, endpoint=endpoint)
    return made


async def test_an_apiserver_listens_at_the_address_as_well_and_its_certificate_has_it(small: SmallPlane) -> None:
    (record,) = small.plane.memory.replicas
    assert (
        await replica_settings(
            small.plane, replace(record, started=False, storage_class="standard"), Component.APISERVER
        )
    ).everywhere
    stored = await small.plane.store.get(PlaneSecrets, small.plane.name)
    data = SecretStr(encode(small.plane.secrets))
    await small.plane.store.update(stored.model_copy(update={"data": data}), lease=small.plane.lease)
    issued = x509.load_pem_x509_certificate((await certificates_of(small.plane, record)).pairs["apiserver"].certificate)
    names = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert A in map(str, names.get_values_for_type(x509.IPAddress))


async def test_one_that_sits_beside_another_or_at_another_site_is_not_reached_at_it(small: SmallPlane) -> None:
    (record,) = small.plane.memory.replicas
    assert elsewhere(small.plane, 6443, "east") == frozenset()
    assert elsewhere(small.plane, 6443, "west") == {record.name}
    beside = replace(
        record, started=False, storage_class="standard", seat=seat_with(record.machine, "100.64.65.1", ports_of(0))
    )
    assert not (await replica_settings(small.plane, beside, Component.APISERVER)).everywhere


async def test_nobody_remembers_an_address_that_the_network_leads_to_where_it_is(small: SmallPlane) -> None:
    assert planner_settings(small.plane.resource).ttl == 0
    assert front_site(small.plane.resource, small.plane.sites) == "east"


async def test_what_could_have_it_is_left_on_no_machine_without_a_replica(small: SmallPlane) -> None:
    (record,) = small.plane.memory.replicas
    site, unit = small.sites[record.site], f"{small.plane.name}-keepalived"
    await site.start_unit(record.machine, UnitSpec(name=unit, argv=("/bin/true",)))
    await forget_address(small.plane, record.site, record.machine, "another")
    assert unit in {each.name for each in await site.units(record.machine)}
    await forget_address(small.plane, record.site, record.machine, record.name)
    assert unit not in {each.name for each in await site.units(record.machine)}


async def test_all_machines_are_its_own_as_far_as_its_address_is_concerned(small: SmallPlane) -> None:
    assert {each.address for each in small.plane.machines.values()} <= small.plane.claim.addresses
