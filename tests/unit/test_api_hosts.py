"""Sites of hosts: what a document may say of them, and what follows from it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.golden import Golden

from quarterdeck.api.apply import applied_site
from quarterdeck.api.documents import dump_yaml, load
from quarterdeck.api.hosts import Host
from quarterdeck.api.site import AddressSpace, Isolation, Site, SshSpec
from quarterdeck.errors import InvalidInput
from quarterdeck.model.units import MachineRole

THREE = [
    {"name": "one", "address": "192.0.2.1", "zone": "b", "roles": ["control", "edge"]},
    {"name": "two", "address": "192.0.2.2", "zone": "a", "role": "control", "ssh": {"port": 2222, "user": "admin"}},
    {"name": "three", "address": "192.0.2.3", "zone": "b", "roles": ["control", "dns"]},
]


LOCAL = {"name": "standard"}


OWN_EDGES = [
    {"name": f"own{at}", "address": f"192.0.2.{at}", "zone": "a", "roles": [role]}
    for at, role in ((5, "control"), (6, "edge"), (7, "edge"))
]
TWO_EDGES = [*THREE, {"name": "five", "address": "192.0.2.5", "zone": "a", "role": "edge"}]


def document(**spec: Any) -> str:
    head = {"apiVersion": "quarterdeck.dev/v1alpha1", "kind": "Site", "metadata": {"name": "rack"}}
    return json.dumps({**head, "spec": {"driver": "ssh", "hosts": THREE, **spec}})


def spec_of(**spec: Any) -> SshSpec:
    (found,) = load(document(**spec), "x")
    assert isinstance(found, Site)
    assert isinstance(found.spec, SshSpec)
    return found.spec


def refusal_of(**spec: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        load(document(**spec), "x")
    return caught.value.seen


def host(**changed: Any) -> dict[str, Any]:
    return {"name": "four", "address": "192.0.2.4", "zone": "c", "role": "control", **changed}


def test_zones_are_those_of_its_hosts_in_their_order() -> None:
    spec = spec_of()
    assert spec.zones == ("b", "a")
    assert (spec.machines_in(("b",)), spec.machines_in(("a", "b")), spec.machines_in(("c",))) == (2, 3, 0)


def test_it_is_reached_from_this_hosts_own_network_and_reaches_other_hosts_alone() -> None:
    spec = spec_of()
    assert (spec.network, spec.space) == (Isolation.LOOPBACK, AddressSpace.HOSTS)


def test_a_host_is_a_machine_for_each_of_its_roles() -> None:
    one, two, three = spec_of().hosts
    assert one.machines == {MachineRole.CONTROL: "one", MachineRole.EDGE: "one-edge"}
    assert two.machines == {MachineRole.CONTROL: "two"}
    assert three.machines == {MachineRole.CONTROL: "three", MachineRole.DNS: "three-dns"}
    (edge,) = spec_of(hosts=[*THREE, host(name="five", role="edge")]).hosts[3:]
    assert edge.machines == {MachineRole.EDGE: "five"}, "alone on its host"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"address": "192.0.2.4"}, "192-0-2-4"),
        ({"address": "2001:db8::4"}, "2001-db8--4"),
        ({"ssh": {"host": "cp-4.Example.com"}}, "cp-4"),
        ({"ssh": {"host": "192.0.2.9"}}, "192-0-2-9"),
    ],
)
def test_a_host_without_a_name_is_called_as_it_is_reached(given: dict[str, Any], name: str) -> None:
    unnamed = {key: value for key, value in host(**given).items() if key != "name"}
    assert spec_of(hosts=[*THREE, unnamed]).hosts[3].name == name


def test_what_is_printed_is_read_back_as_it_was() -> None:
    (found,) = load(document(), "x")
    assert load(dump_yaml([found]), "y") == (found,)
    assert Site.model_validate_json(found.model_dump_json(by_alias=True)) == found


@pytest.mark.parametrize(
    "spec",
    [
        {"hosts": []},
        {"zones": ["a"]},
        {"machinesPerZone": 2},
        {"driver": "local"},
        {"hosts": [host(adress="x")]},
        {"hosts": [host(ssh={"hots": "x"})]},
        {"hosts": [host(roles=["edge"])]},
        {"hosts": [host(role="worker")]},
        {"hosts": [host(role="edge")]},
        {"hosts": [host(address="node-1")]},
        {"hosts": [host(address="0.0.0.0")]},
        {"hosts": [host(address="127.0.0.1")]},
        {"hosts": [host(address="::1")]},
        {"hosts": [host(address="fe80::1")]},
        {"hosts": [*THREE, host(name="one")]},
        {"hosts": [*THREE, host(address="192.0.2.2")]},
        {"hosts": [*THREE, host(ssh={"host": "192.0.2.1"})]},
        {"hosts": [*THREE, host(name="one-edge")]},
        {"hosts": [host(ssh={"host": "-oProxyCommand=x"})]},
        {"hosts": [host(ssh={"user": "a b"})]},
        {"hosts": [host(ssh={"port": 0})]},
        {"hosts": [host(ssh={"identityFile": "id"})]},
        {"storageClasses": [{"name": "san", "reattachable": True}]},
        {"storageClasses": [LOCAL, {"name": "san", "attach": ["a"]}]},
        {"storageClasses": [LOCAL, {"name": "san", "snapshot": ["a"]}]},
        {"storageClasses": [LOCAL, {"name": "san", "attach": [], "detach": ["a"]}]},
        {"storageClasses": [LOCAL, {"name": "san", "attach": ["a", "x{node}"], "detach": ["a"]}]},
        {"storageClasses": [{"name": "san", "attach": ["a"], "detach": ["a"]}]},
        {"edge": {"floatingAddresses": ["192.0.2.9"]}},
        {"hosts": TWO_EDGES, "edge": {"floatingAddresses": ["192.0.2.7", "192.0.2.8", "192.0.2.9"]}},
        {"hosts": TWO_EDGES, "edge": {"floatingAddresses": ["192.0.2.9", "192.0.2.9"]}},
        {"hosts": TWO_EDGES, "edge": {"floatingAddresses": ["192.0.2.5"]}},
        {"hosts": TWO_EDGES, "edge": {"floatingAddresses": ["2001:db8::9"]}},
        {"hosts": [host()], "edge": {"promotedAddresses": ["192.0.2.9"]}},
        {"hosts": TWO_EDGES, "edge": {"promotedAddresses": ["192.0.2.9"]}},
        {"hosts": OWN_EDGES, "edge": {"floatingAddresses": ["192.0.2.9"], "promotedAddresses": ["192.0.2.9"]}},
        {"hosts": TWO_EDGES, "edge": {"external": {"addresses": ["198.51.100.1"]}}},
        {"hosts": [host()], "edge": {"external": {"addresses": []}}},
        {"hosts": [host()], "edge": {"external": {"addresses": ["198.51.100.1"], "command": ["lb"]}}},
    ],
)  # fmt: skip
def test_hosts_that_cannot_be_are_refused_by_the_path_of_the_field(spec: dict[str, Any], golden: Golden) -> None:
    golden(refusal_of(**spec))


def test_a_class_with_commands_is_reattachable() -> None:
    commands = {"attach": ["san", "attach", "{volume}", "{host}:{path}"], "detach": ["san", "detach", "{volume}"]}
    local, san = spec_of(storageClasses=[LOCAL, {"name": "san", **commands}]).storage_classes
    assert (local.reattachable, san.reattachable) == (False, True)
    assert san.attach == ("san", "attach", "{volume}", "{host}:{path}")


def test_a_local_site_takes_no_hosts_and_says_so_by_the_field(golden: Golden) -> None:
    head = "apiVersion: quarterdeck.dev/v1alpha1\nkind: Site\nmetadata: {name: north}\n"
    with golden.raises(InvalidInput):
        load(f"{head}spec: {{hosts: []}}", "x")


def test_a_site_does_not_become_one_of_another_kind(golden: Golden) -> None:
    (hosts,) = load(document(), "x")
    local = Site.model_validate_json('{"metadata": {"name": "rack"}}')
    assert isinstance(hosts, Site)
    for before, after in ((local, hosts), (hosts, local)):
        with golden.raises(InvalidInput):
            applied_site(before, after)


def test_zones_keep_their_order_when_a_host_goes() -> None:
    spec = spec_of()
    left = spec.with_hosts(each for each in spec.hosts if each.name != "one")
    assert left.zones == ("b", "a")
    more = Host.model_validate_json(json.dumps(host(zone="a")))
    assert [each.name for each in spec.with_hosts((more, *spec.hosts)).hosts] == ["one", "three", "four", "two"]


def test_a_site_keeps_what_leads_clients_to_it_when_its_hosts_change() -> None:
    spec = spec_of(hosts=TWO_EDGES, edge={"floatingAddresses": ["198.51.100.1"]})
    assert spec.with_hosts(spec.hosts).edge.floating_addresses == ("198.51.100.1",)
    external = spec_of(hosts=[host()], edge={"external": {"addresses": ["198.51.100.1"], "command": ["/lb", "set"]}})
    assert external.edge.external is not None
    assert external.edge.external.command == ("/lb", "set")
