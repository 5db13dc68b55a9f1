"""The hosts of ssh sites: what may come, go and change, and what of it a plane stands on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.golden import Golden
from support.host_sites import HostSites, HubOfHosts, host, host_site
from support.resources import with_spec, with_status

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.hosts import Host, SshLogin
from quarterdeck.api.plane.memory import (
    KeptDataStatus,
    LeftBehindStatus,
    MemoryStatus,
    MomentStatus,
    ReplicaStatus,
    SlotStatus,
)
from quarterdeck.api.site import AddressSpace, Site, SshSpec
from quarterdeck.app import Quarterdeck, Requester
from quarterdeck.app.site.sites import Sites
from quarterdeck.drivers.local import LocalSites
from quarterdeck.drivers.sites import OpenSites
from quarterdeck.engine.workspace import routing
from quarterdeck.errors import Conflict, InvalidInput, NotFound, PreconditionFailed, Unavailable
from quarterdeck.model.findings import Finding, HostFinding, Verdict

RACK = host_site(
    host("one1", roles=["control", "edge"]),
    host("two2", zone="b"),
    host("three3", zone="b", roles=["control", "dns"]),
)


@pytest.fixture
def hosts() -> HostSites:
    return HostSites()


@dataclass
class NameServers:
    """The DNS servers of all sites: ``joined`` has which were started with which names, as which others said.
    ``why``: why none starts.
    """

    joined: list[tuple[list[str], list[str], list[str]]] = field(default_factory=list)
    why: str = ""

    def at(self, hub: HubOfHosts, space: AddressSpace, program: Path | None = None) -> NameServersAtHub:
        return NameServersAtHub(self, hub, program)


@dataclass
class NameServersAtHub:
    """Those of the sites of one moment."""

    all: NameServers
    hub: HubOfHosts
    program: Path | None

    async def dns(self) -> NameServersAtHub:
        return self

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(self.hub.addresses)

    async def join(self, machines: Sequence[str], names: Sequence[str], others: Sequence[str]) -> None:
        assert self.program == Path("/coredns")
        if self.all.why:
            raise Unavailable("installing coredns", self.all.why)
        self.all.joined.append(([*machines], [*names], sorted(others)))


@pytest.fixture(autouse=True)
def servers(monkeypatch: pytest.MonkeyPatch) -> NameServers:
    made = NameServers()

    async def seen(hub: HubOfHosts, _: AddressSpace) -> tuple[str, ...]:
        return tuple(hub.addresses)

    monkeypatch.setattr(routing, "Hub", made.at)
    monkeypatch.setattr(routing, "name_servers", seen)
    return made


@pytest.fixture
async def face(tmp_path: Path, hosts: HostSites) -> AsyncIterator[Quarterdeck]:
    async with Quarterdeck.open(tmp_path / "home", requester=Requester(name="ann@desk")) as made:
        opened = {"local": lambda folder, _: LocalSites(folder), "ssh": lambda _, __: hosts}
        made._home.sites = OpenSites(made._home.folder, opened)
        made.sites._name_server = coredns
        await made.sites.add(RACK)
        yield made


async def coredns() -> Path:
    return Path("/coredns")


async def plane(face: Quarterdeck, *, at: str = "rack", name: str = "demo", **memory: object) -> None:
    made = new_control_plane(name, site=at)
    await face._home.store.create(with_status(made, memory=MemoryStatus.model_validate(memory)))


def replica(machine: str, zone: str = "b") -> ReplicaStatus:
    slot = SlotStatus(site="rack", zone=zone)
    return ReplicaStatus(name=f"rack-{machine}", slot=slot, machine=machine)


def parsed(**given: object) -> Host:
    return Host.model_validate_json(json.dumps(given))


async def names(sites: Sites) -> list[str]:
    spec = (await sites.get("rack")).spec
    assert isinstance(spec, SshSpec)
    return [each.name for each in spec.hosts]


async def test_hosts_are_added_in_the_zones_that_there_are(face: Quarterdeck) -> None:
    await face.sites.add_hosts("rack", (parsed(**host("four4")), parsed(**host("five5", zone="c"))))
    assert await names(face.sites) == ["one1", "four4", "two2", "three3", "five5"]


async def test_a_host_is_of_one_site_alone(face: Quarterdeck, golden: Golden) -> None:
    with golden.raises(Conflict):
        await face.sites.add(host_site(host("other2"), name="annex"))
    aliased = host("other9", ssh={"host": "192.0.2.1"})
    with golden.raises(Conflict):
        await face.sites.apply(host_site(aliased, name="annex"))
    await face.sites.add(host_site(host("other9"), name="annex"))
    with golden.raises(Conflict):
        await face.sites.add_hosts("rack", (parsed(**host("four9")),))


async def test_a_site_that_is_applied_is_checked_as_one_that_is_added(
    face: Quarterdeck, hosts: HostSites, golden: Golden
) -> None:
    hosts.findings = [refused("other9"), odd("two2")]
    for dry_run in (True, False):
        with golden.raises(PreconditionFailed):
            await face.sites.apply(host_site(host("other9"), name="annex"), dry_run=dry_run)
    assert "annex" not in await face.sites.list()
    more = host_site(
        host("one1", roles=["control", "edge"]),
        host("two2", zone="b"),
        host("three3", zone="b", roles=["control", "dns"]),
        host("four9", zone="b"),
    )
    hosts.findings = [refused("four9", "files", "programs in /var/lib cannot be executed"), refused("one1")]
    with golden.raises(PreconditionFailed):
        await face.sites.apply(more)
    assert await names(face.sites) == ["one1", "two2", "three3"]
    hosts.findings = [refused("one1"), odd("four9")]
    applied = await face.sites.apply(more)
    assert applied.checked is not None
    assert applied.checked.findings == (odd("four9"),), "how the others are is no matter"


async def test_a_storage_class_that_is_applied_is_checked_on_the_hosts_there_are(
    face: Quarterdeck, hosts: HostSites, golden: Golden
) -> None:
    declared = json.loads(RACK.model_dump_json(by_alias=True))["spec"]
    classes = [*declared["storageClasses"], {"name": "fast", "path": "/srv/fast"}]
    wanted = host_site(*declared["hosts"], storageClasses=classes)
    hosts.findings = [refused("two2", "disk", "storage class fast (/srv/fast): the folder does not exist")]
    with golden.raises(PreconditionFailed):
        await face.sites.apply(wanted)
    hosts.findings = [refused("two2", "memory"), refused("one1")]
    applied = await face.sites.apply(wanted)
    assert applied.checked is not None
    (found,) = applied.checked.findings
    assert (found.host, found.finding.verdict) == ("one1", Verdict.WARN), "it may be dead for now, and is named"
    golden(found.finding.seen)


async def test_hosts_are_compared_with_those_of_all_other_sites(face: Quarterdeck, hosts: HostSites) -> None:
    await face.sites.add(host_site(host("other9"), name="annex"))
    assert "rack" in hosts.compared
    await face.sites.add_hosts("rack", (parsed(**host("four4")),))
    assert {"annex", "rack"} & {*hosts.compared} == {"annex"}, "a site is not compared with what it was before"


def refused(host: str, check: str = "login", seen: str = "nobody answers", next_step: str = "see why") -> HostFinding:
    return HostFinding(host, Finding(check, Verdict.REFUSE, seen, next_step))


def odd(host: str) -> HostFinding:
    return HostFinding(host, Finding("clock", Verdict.WARN, "it is off by 3 s", "set it"))


@pytest.mark.parametrize(
    "found",
    [
        refused("four4"),
        refused("four4", "architecture", "it is arm64", "take another"),
        refused("four4 -> two2", "firewall", "port 2380", "open it"),
        refused("two2 -> four4", "mtu", "64 KiB do not", "see MTU"),
    ],
)
async def test_a_host_that_planes_cannot_be_on_is_not_added(
    face: Quarterdeck, hosts: HostSites, found: HostFinding, golden: Golden
) -> None:
    hosts.findings = [found, odd("four4")]
    before = await face.sites.get("rack")
    with golden.raises(PreconditionFailed):
        await face.sites.add_hosts("rack", (parsed(**host("four4")), parsed(**host("five5"))))
    assert await face.sites.get("rack") == before


async def test_what_is_odd_at_new_hosts_is_told_and_the_others_may_be_dead(
    face: Quarterdeck, hosts: HostSites, golden: Golden
) -> None:
    between = HostFinding("three3 -> four4", Finding("distance", Verdict.WARN, "30 ms for a round trip", "see"))
    hosts.findings = [
        refused("two2"),
        refused("one1", "network", "the connection broke"),
        refused("one1 -> four4", "firewall", "not tried: port 2380", "make both hosts answer first"),
        odd("three3"),
        odd("four4"),
        between,
    ]
    checked = await face.sites.add_hosts("rack", (parsed(**host("four4")),))
    assert checked.findings == (odd("four4"), between)
    golden(checked.summary)
    assert "four4" in await names(face.sites)


async def test_edges_are_told_nothing_of_one_that_cannot_be_had(
    floats: Quarterdeck, hosts: HostSites, golden: Golden
) -> None:
    hosts.findings = [refused("four4", "keepalived", "it is not installed", "install it")]
    with golden.raises(PreconditionFailed):
        await floats.sites.add_hosts("floats", (parsed(**host("four4", roles=["edge"])),))
    assert hosts.known_hosts == {}


async def test_a_host_is_not_reached_otherwise_than_it_answers(
    face: Quarterdeck, hosts: HostSites, golden: Golden
) -> None:
    hosts.findings = [refused("two2"), refused("three3")]
    before = await face.sites.get("rack")
    with golden.raises(PreconditionFailed):
        await face.sites.replace_host("rack", "two2", login=SshLogin(user="admin"))
    with golden.raises(PreconditionFailed):
        await face.sites.replace_host("rack", "two2", address="192.0.2.99", login=SshLogin())
    assert await face.sites.get("rack") == before
    assert await face.sites.replace_host("rack", "two2", address="192.0.2.2", login=SshLogin()) is None
    hosts.findings = [odd("two2"), refused("three3")]
    checked = await face.sites.replace_host("rack", "two2", login=SshLogin(user="admin"))
    assert checked is not None
    assert checked.findings == (odd("two2"),)


async def test_hosts_that_are_there_already_are_refused_in_a_line(face: Quarterdeck, golden: Golden) -> None:
    with golden.raises(InvalidInput):
        await face.sites.add_hosts("rack", (parsed(**host("two2", address="192.0.2.9")),))
    with golden.raises(InvalidInput):
        await face.sites.add_hosts("east", (parsed(**host("four4")),))


async def test_a_host_that_goes_is_cleared_first_and_gets_nothing_meanwhile(
    face: Quarterdeck, hosts: HostSites
) -> None:
    await plane(face, replicas=(replica("three3"),))
    await face.sites.remove_host("rack", "two2")
    assert await names(face.sites) == ["one1", "three3"]
    assert hosts.cleared == ["two2"]
    assert (await face.sites.get("rack")).spec.cordons == (), "its cordon goes with it"


async def test_a_host_that_does_not_answer_stays_cordoned_unless_it_is_to_be_forgotten(
    face: Quarterdeck, hosts: HostSites, golden: Golden
) -> None:
    hosts.silent = {"two2"}
    with golden.raises(Unavailable):
        await face.sites.remove_host("rack", "two2")
    site = await face.sites.get("rack")
    assert site.spec.cordon_of("two2") is not None
    await face.sites.remove_host("rack", "two2", forget=True)
    assert await names(face.sites) == ["one1", "three3"]
    assert hosts.cleared == []


@pytest.mark.parametrize(
    "memory",
    [
        {"replicas": (replica("two2"),)},
        {"kept": (KeptDataStatus(site="rack", machine="two2", replica="old"),)},
        {"left": (LeftBehindStatus(site="rack", machine="two2", replica="old"),)},
    ],
)
async def test_a_host_of_which_a_plane_has_anything_stays(
    face: Quarterdeck, memory: dict[str, object], golden: Golden
) -> None:
    await plane(face, **memory)
    with golden.raises(Conflict):
        await face.sites.remove_host("rack", "two2")
    assert await names(face.sites) == ["one1", "two2", "three3"]


async def test_the_host_of_load_balancers_stays_while_a_plane_uses_the_site(face: Quarterdeck, golden: Golden) -> None:
    await plane(face, replicas=(replica("three3"),))
    with golden.raises(Conflict):
        await face.sites.remove_host("rack", "one1")


async def test_the_last_host_of_a_zone_stays_while_a_plane_uses_the_site(face: Quarterdeck, golden: Golden) -> None:
    await face.sites.add_hosts("rack", (parsed(**host("five5", zone="c")),))
    await plane(face, replicas=(replica("three3"),))
    with golden.raises(Conflict):
        await face.sites.remove_host("rack", "five5")


async def test_the_last_dns_server_stays_while_names_are_kept_there_also_of_planes_elsewhere(
    face: Quarterdeck,
    golden: Golden,
) -> None:
    await face.sites.add(host_site(host("other9"), name="annex"))
    await plane(face, at="annex")
    with golden.raises(Conflict):
        await face.sites.remove_host("rack", "three3")
    with golden.raises(Conflict):
        await face.sites.remove("rack")
    with golden.raises(Conflict):
        await face.sites.forget("rack")
    await face.sites.add_hosts("annex", (parsed(**host("name8", roles=["dns"])),))
    await face.sites.remove_host("rack", "three3")
    assert await names(face.sites) == ["one1", "two2"]


async def test_a_new_dns_server_has_the_names_of_all_planes_before_it_is_one_of_theirs(
    face: Quarterdeck, servers: NameServers
) -> None:
    await face.sites.add_hosts("rack", (parsed(**host("four4", roles=["dns"])),))
    assert servers.joined == [], "the first plane starts it"
    await plane(face)
    await plane(face, name="here", at="east")
    await face.sites.add_hosts("rack", (parsed(**host("five5")),))
    assert servers.joined == [], "it is no DNS server"
    await face.sites.add_hosts("rack", (parsed(**host("six6", roles=["control", "dns"])),))
    others = ["192.0.2.3", "192.0.2.4"]
    demo = "demo.quarterdeck.internal"
    assert servers.joined == [(["rack-six6"], [demo], others)]
    both = host("name7", roles=["control", "dns"])
    await face.sites.add(host_site(both, name="annex"))
    assert servers.joined[1] == (["annex-name7"], [demo], [*others, "192.0.2.6"])
    more = host_site(both, host("name8", roles=["dns"]), name="annex")
    await face.sites.apply(more, dry_run=True)
    assert len(servers.joined) == 2
    await face.sites.apply(more)
    assert (servers.joined[2][0], len(servers.joined[2][2])) == (["annex-name8"], 4)
    await face.sites.replace_host("annex", "name8", address="192.0.2.88", login=SshLogin())
    assert (servers.joined[3][0], len(servers.joined[3][2])) == (["annex-name8"], 5)


async def test_a_host_whose_dns_server_cannot_be_started_is_not_added(
    face: Quarterdeck, servers: NameServers, golden: Golden
) -> None:
    await plane(face)
    before = await face.sites.get("rack")
    servers.why = "the disk of host four4 is full"
    with golden.raises(Unavailable):
        await face.sites.add_hosts("rack", (parsed(**host("four4", roles=["dns"])),))
    assert await face.sites.get("rack") == before


async def test_a_host_may_be_logged_in_to_otherwise_at_any_time(face: Quarterdeck) -> None:
    await plane(face, replicas=(replica("two2"),))
    assert await face.sites.replace_host("rack", "two2", login=SshLogin(user="admin", port=2222)) is not None
    assert await face.sites.replace_host("rack", "two2", login=SshLogin(user="admin")) is None, "it was so already"
    spec = (await face.sites.get("rack")).spec
    assert isinstance(spec, SshSpec)
    assert spec.host("two2") == parsed(**host("two2", zone="b", ssh={"user": "admin", "port": 2222}))


async def test_a_host_keeps_its_address_while_a_plane_has_something_there(face: Quarterdeck, golden: Golden) -> None:
    await plane(face, replicas=(replica("two2"),))
    with golden.raises(Conflict):
        await face.sites.replace_host("rack", "two2", address="192.0.2.99", login=SshLogin())
    await face.sites.add_hosts("rack", (parsed(**host("four4")),))
    assert await face.sites.replace_host("rack", "four4", address="192.0.2.99", login=SshLogin()) is not None
    with golden.raises(InvalidInput):
        await face.sites.replace_host("rack", "four4", address="rack4", login=SshLogin())


async def test_a_host_that_is_not_there_is_named_with_those_that_are(face: Quarterdeck, golden: Golden) -> None:
    with golden.raises(NotFound):
        await face.sites.remove_host("rack", "four4")
    with golden.raises(NotFound):
        await face.sites.replace_host("rack", "four4", login=SshLogin(user="x"))


async def test_a_site_is_forgotten_with_its_hosts_left_alone(
    face: Quarterdeck, hosts: HostSites, golden: Golden
) -> None:
    await face.sites.forget("rack")
    assert "rack" not in await face.sites.list()
    assert hosts.cleared == []
    with golden.raises(InvalidInput):
        await face.sites.forget("east")


@pytest.mark.parametrize(
    "memory",
    [{"replicas": (replica("two2"),)}, {"served_site": "rack"}, {"held": (MomentStatus(name="rack", time=1.0),)}],
)
async def test_a_site_where_a_plane_runs_or_clients_may_come_is_not_forgotten(
    face: Quarterdeck, memory: dict[str, object], golden: Golden
) -> None:
    await plane(face, at="east", **memory)
    with golden.raises(Conflict):
        await face.sites.forget("rack")


async def test_what_a_plane_left_at_a_site_that_is_gone_is_named_and_forgotten(
    face: Quarterdeck, golden: Golden
) -> None:
    left = (LeftBehindStatus(site="rack", machine="two2", replica="old"),)
    await plane(face, at="east", left=left)
    golden(await face.sites.require_forgettable("rack"))
    await face.sites.forget("rack")
    assert [each.name for each in await face._home.store.list(ControlPlane)] == ["demo"]


async def test_a_site_goes_with_what_is_on_its_hosts(face: Quarterdeck, hosts: HostSites) -> None:
    await face.sites.remove("rack")
    assert hosts.cleared == ["one1", "two2", "three3"]
    assert [each.name for each in await face._home.store.list(Site)] == ["east", "west"]


FLOATS = host_site(
    host("one1", roles=["edge"]),
    host("two2", roles=["edge"]),
    host("three3"),
    name="floats",
    edge={"floatingAddresses": ["192.0.2.100"]},
)


@pytest.fixture
async def floats(face: Quarterdeck, hosts: HostSites) -> Quarterdeck:
    """Two edges that share an address, on which keepalived runs, whether planes are there or not."""
    await face.sites.remove("rack")
    await face.sites.add(FLOATS)
    hosts.cleared.clear()
    hosts.routed.update({"one1", "two2"})
    return face


async def of_floats(face: Quarterdeck) -> list[str]:
    spec = (await face.sites.get("floats")).spec
    assert isinstance(spec, SshSpec)
    return [each.name for each in spec.hosts]


async def test_edges_know_of_one_more_before_it_comes(floats: Quarterdeck, hosts: HostSites, golden: Golden) -> None:
    await plane(floats, at="floats")
    hosts.silent = {"two2"}
    with golden.raises(Unavailable):
        await floats.sites.add_hosts("floats", (parsed(**host("four4", roles=["edge"])),))
    assert "four4" not in await of_floats(floats), "it would hear nobody of two2, and take its addresses"
    hosts.silent = set()
    await floats.sites.add_hosts("floats", (parsed(**host("four4", roles=["edge"])),))
    assert "four4" in await of_floats(floats)
    assert hosts.known_hosts == {"one1": ["two2", "four4"], "two2": ["one1", "four4"]}
    assert hosts.routed == {"one1", "two2"}, "it comes with the planes' load balancers"


async def test_hosts_without_that_role_are_nothing_to_edges(floats: Quarterdeck, hosts: HostSites) -> None:
    hosts.silent = {"one1", "two2"}
    await floats.sites.add_hosts("floats", (parsed(**host("four4")),))
    assert hosts.known_hosts == {}


async def test_two_edges_at_least_have_addresses_that_float(floats: Quarterdeck, golden: Golden) -> None:
    await plane(floats, at="floats")
    with golden.raises(InvalidInput):
        await floats.sites.remove_host("floats", "one1")


async def test_an_edge_that_goes_gives_its_addresses_away_before_it_is_cleared(
    floats: Quarterdeck, hosts: HostSites, golden: Golden
) -> None:
    await floats.sites.add_hosts("floats", (parsed(**host("four4", roles=["edge"])),))
    hosts.known_hosts.clear()
    hosts.silent = {"one1"}
    with golden.raises(Unavailable):
        await floats.sites.remove_host("floats", "one1")
    assert "one1" in await of_floats(floats)
    hosts.silent = set()
    await floats.sites.remove_host("floats", "one1")
    assert (hosts.routed, hosts.cleared, hosts.known_hosts) == ({"two2"}, ["one1"], {})
    await floats.sites.add_hosts("floats", (parsed(**host("five5", roles=["edge"])),))
    hosts.silent = {"two2"}
    await floats.sites.remove_host("floats", "two2", forget=True)
    assert (hosts.routed, hosts.cleared) == ({"two2"}, ["one1"])


async def test_an_edge_that_is_elsewhere_now_need_not_answer_where_it_was(
    floats: Quarterdeck, hosts: HostSites, golden: Golden
) -> None:
    hosts.silent = {"192.0.2.1"}
    assert await floats.sites.replace_host("floats", "one1", address="192.0.2.91", login=SshLogin()) is not None
    spec = (await floats.sites.get("floats")).spec
    assert isinstance(spec, SshSpec)
    assert {each.name: each.address for each in spec.hosts}["one1"] == "192.0.2.91"
    assert hosts.routed == {"two2"}, "what it may have there has the addresses of before"
    assert hosts.known_hosts == {"two2": ["one1"]}
    hosts.silent = {"192.0.2.92"}
    with golden.raises(Unavailable):
        await floats.sites.replace_host("floats", "one1", address="192.0.2.92", login=SshLogin())
    hosts.silent = {"two2"}
    with golden.raises(Unavailable):
        await floats.sites.replace_host("floats", "one1", address="192.0.2.93", login=SshLogin())
    await plane(floats, at="floats")
    hosts.silent = set()
    with golden.raises(Conflict):
        await floats.sites.replace_host("floats", "one1", address="192.0.2.94", login=SshLogin())


async def test_addresses_that_float_and_edges_go_by_a_file_only_while_no_plane_is_there(
    floats: Quarterdeck, hosts: HostSites, golden: Golden
) -> None:
    other = host_site(*_three(), name="floats", edge={"floatingAddresses": ["192.0.2.101"]})
    fewer = host_site(*_three()[1:], host("four4", roles=["edge"]), name="floats", edge=_EDGE)
    await plane(floats, at="floats")
    with golden.raises(Conflict):
        await floats.sites.apply(other)
    with golden.raises(Conflict):
        await floats.sites.apply(fewer)
    assert hosts.routed == {"one1", "two2"}
    demo = await floats._home.store.get(ControlPlane, "demo")
    await floats._home.store.update(demo.model_copy(update={"spec": _elsewhere(demo).spec}))
    await floats.sites.apply(fewer, dry_run=True)
    assert hosts.routed == {"one1", "two2"}
    await floats.sites.apply(fewer)
    assert (hosts.routed, hosts.known_hosts) == ({"two2"}, {"two2": ["four4"]})
    await floats.sites.apply(other)
    assert hosts.routed == set(), "it comes with the next plane, by the addresses of then"


_EDGE = {"floatingAddresses": ["192.0.2.100"]}


def _three() -> list[dict[str, object]]:
    return [host("one1", roles=["edge"]), host("two2", roles=["edge"]), host("three3")]


def _elsewhere(found: ControlPlane) -> ControlPlane:
    place = found.spec.placement.model_copy(update={"site": "east"})
    return with_spec(found, placement=place)
