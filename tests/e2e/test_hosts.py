"""Planes on machines that are reached over ssh, with real sshd and systemd: created, moved over a distance while
machines, edges, sessions and rights go away, healed, and serving when nobody can reach the machines.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest
import yaml
from support.client_view import CLIENTS, PATIENCE, probed, watched
from support.conditions import until
from support.hosts_lab import LabHost, why_not
from support.hosts_planes import HostsPlanes, edge_dies_and_comes_back, hosts_planes
from support.plane_lab import Command, PlaneLab, did, managed

from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.model.faults import Fail
from quarterdeck.model.seats import PortName
from quarterdeck.report.schema import Outcome, Report
from quarterdeck.sites.netns.layout import OUTSIDE, Cut
from quarterdeck.stores.port import EntryOutcome, JournalEntry

pytestmark = pytest.mark.timeout(900)

NAME, OWN = "demo", "own"
API = "quarterdeck.dev/v1alpha1"
SITES = ("north", "south")
EDGES = ("north-edge-1", "north-edge-2")
SPARE = "north-spare"
#: The worst that ``systemd-analyze security`` may say of a unit.
EXPOSURE = 4.0
#: Milliseconds between the sites, and back.
RTT = 80
#: Seconds until nobody waits any more for a machine that says nothing.
SILENT = 20.0


def machines() -> dict[LabHost, tuple[str, ...]]:
    """Two sites of three zones. North has two edges, which are DNS servers too, and a spare machine on the same wire:
    the edges share a floating address, and the spare machine may share a promoted one with them. The hosts of south
    are edges besides.
    """
    found: dict[LabHost, tuple[str, ...]] = {LabHost(f"north-{zone}", "north", zone): ("control",) for zone in "abc"}
    found |= {LabHost(each, "north", "a"): ("edge", "dns") for each in EDGES}
    found[LabHost(SPARE, "north", "a")] = ("control",)
    return found | {LabHost(f"south-{zone}", "south", zone): ("control", "edge") for zone in "abc"}


def edges(site: str) -> tuple[str, ...]:
    """The hosts of load balancers."""
    return EDGES if site == "north" else ("south-a", "south-b")


def floating(made: HostsPlanes) -> str:
    """The address that goes from edge to edge of north."""
    return made.on_the_wire_of(EDGES[0], 200)


def promoted(made: HostsPlanes) -> str:
    """The address that a plane of north can have to itself."""
    return made.on_the_wire_of(EDGES[0], 210)


@pytest.fixture(scope="module")
def made() -> Iterator[HostsPlanes]:
    """The plane, at site north of two that are far from each other. Programs are sent as for anybody; all machines have
    them then.
    """
    if why := why_not():
        pytest.skip(why)
    with hosts_planes(machines()) as hosts:
        led = {"floatingAddresses": [floating(hosts)], "promotedAddresses": [promoted(hosts)]}
        hosts.add_site("north", edge=led)
        hosts.add_site("south")
        hosts.planes.run("create", NAME, "--site", "north")
        hosts.share_programs()
        hosts.hosts.delay(*SITES, RTT)
        yield hosts


@pytest.fixture
def far(made: HostsPlanes) -> HostsPlanes:
    """The same, well."""
    hosts = made.hosts
    for name in hosts.names:
        if not hosts.is_on(name):
            hosts.power_on(name)
    for command in made.planes.commands:
        if command.running:
            command.kill()
    made.planes.run("wait", NAME, "--timeout", "120")
    return made


def where(planes: PlaneLab) -> tuple[str, str]:
    """The plane's site, and the other one."""
    source = planes.plane(NAME).spec.placement.site
    return source, next(each for each in SITES if each != source)


def moved_until(planes: PlaneLab, target: str, kind: str) -> Command:
    """A migration that has just taken its first step of that kind."""
    after = planes.last_entry(NAME)
    moving = planes.start("migrate", NAME, "--to", target, "--yes")
    planes.journal(NAME, lambda seen: did(seen, kind), f"a step {kind}", after=after, during=moving)
    return moving


def settled(planes: PlaneLab, moving: Command, target: str) -> None:
    """The migration ends well, at the target."""
    done = moving.end()
    assert done.code == 0, str(done)
    fact = planes.status(NAME, code=0)
    assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == target
    seats = [each.seat for each in memory_from_status(planes.plane(NAME).status.memory).replicas]
    assert {each.listen(PortName.APISERVER).port for each in seats if each is not None} == {16443}, "as at the source"


def test_a_plane_is_spread_over_hosts_and_its_units_are_confined(far: HostsPlanes) -> None:
    source, _ = where(far.planes)
    assert {*far.planes.machines(source)} <= {f"{source}-{zone}" for zone in ("a", "b", "c", "spare")}
    for name in (f"{source}-b", edges(source)[0]):
        table = far.hosts.sh(name, "systemd-analyze security --no-pager | grep quarterdeck-")
        exposures = {line.split()[0]: float(line.split()[1]) for line in table.splitlines()}
        print(f"\n{exposures}")
        assert max(exposures.values()) <= EXPOSURE, table
        owners = far.hosts.sh(name, "ps -eo user:32,cgroup | grep quarterdeck.slice | cut -d' ' -f1 | sort -u").split()
        assert owners
        assert "root" not in owners


def test_clients_at_a_host_of_the_other_site_see_no_failure(far: HostsPlanes) -> None:
    _, other = where(far.planes)
    done = far.planes.run("probe", NAME, "--from", f"{other}-b", "--for", "3", "-o", "json")
    seen = probed(done.out)
    failed = (seen.failures, seen.writes.lost, seen.watches.missed)
    assert (seen.source, failed) == (f"{other}/{other}-b", ((), 0, 0)), str(done)
    assert seen.writes.acknowledged > 0
    assert seen.periods[0].overall.p50_ms > RTT, "the sites are that far apart"


@pytest.mark.soak  # the next one is worse, and fails no request either
def test_no_client_sees_a_failure_in_a_migration_80_ms_away(far: HostsPlanes) -> None:
    source, target = where(far.planes)
    watcher = edges(source)[0]
    done = far.planes.run("migrate", NAME, "--to", target, "--yes", "--probe-from", watcher, "--baseline", "3")
    report = Report.model_validate_json(far.planes.run("report", NAME, "-o", "json").out)
    assert report.outcome is Outcome.SUCCEEDED
    assert report.probe is not None
    assert report.probe.source == f"{source}/{watcher}"
    failed = [f"{each.kind} {each.request}: {each.reason}" for each in report.probe.failures]
    assert (failed, report.probe.writes.lost, report.probe.watches.missed) == ([], 0, 0), str(done)
    left = far.hosts.sh(f"{source}-a", "systemctl list-units --all --plain --no-legend 'quarterdeck-demo-*'")
    assert left == "", "nothing of it is left there"


@pytest.mark.soak  # contract/test_hosts_sessions.py cuts sessions; tests/loop has failing calls in each kind of step
def test_sessions_are_cut_in_each_kind_of_step_and_a_user_loses_his_rights_and_nobody_notices(far: HostsPlanes) -> None:
    """Which host it is that he may not become root on any more is said, with the reason, and it is waited for."""
    planes, hosts = far.planes, far.hosts
    _, target = where(planes)
    after, refuses = planes.last_entry(NAME), f"{target}-b"
    with watched(planes, NAME, "cut-sessions") as clients:
        moving = planes.start("migrate", NAME, "--to", target, "--yes")
        cut: set[str] = set()

        def more(seen: Sequence[JournalEntry]) -> bool:
            new = {each.kind for each in seen if each.outcome is EntryOutcome.STARTED} - cut
            cut.update(new)
            if "promote-learner" in new:
                hosts.set_sudo(refuses, allowed=False)
            for name in hosts.names if new else ():
                hosts.kill_ssh(name)
            if "promote-learner" in new:
                until(lambda: f"machine {refuses}" in moving.output and "sudo" in moving.output, "it is said")
                clients.goes_on("meanwhile")
                hosts.set_sudo(refuses, allowed=True)
            return not moving.running

        try:
            planes.journal(NAME, more, "it ends", after=after)
        finally:
            hosts.set_sudo(refuses, allowed=True)
        settled(planes, moving, target)
        clients.goes_on("at the target")
    assert len(cut) > 8, cut


@pytest.mark.soak  # test_migrate_netns.py has one that falls silent
def test_a_migration_completes_though_a_source_machine_falls_silent(far: HostsPlanes) -> None:
    planes, hosts = far.planes, far.hosts
    source, target = where(planes)
    leader = next(each["machine"] for each in planes.status(NAME)["members"] if each["member"] == "leader")
    with watched(planes, NAME, "silent") as clients:
        moving = moved_until(planes, target, "promote-learner")
        since = time.time()
        hosts.power_off(leader)
        clients.goes_on("after the machine fell silent")
        settled(planes, moving, target)
        clients.excuse("the leader's machine fell silent", since=since, until=time.time(), most=CLIENTS)
        clients.goes_on("at the target")
    hosts.power_on(leader)
    planes.run("wait", NAME)
    assert planes.machines(source) == ()


@pytest.mark.soak  # contract/test_site_contract.py has the free space, and unit tests the refusal
def test_a_full_disk_is_named_before_anything_is_changed(far: HostsPlanes) -> None:
    planes, hosts = far.planes, far.hosts
    _, target = where(planes)
    after = planes.last_entry(NAME)
    hosts.limit_disk(f"{target}-b", "/var/lib/quarterdeck/volumes", 100 * 2**20)
    try:
        planes.refused("migrate", NAME, "--to", target, "--yes", code=5, says=[f"{target}-b"])
    finally:
        hosts.lift_limit(f"{target}-b", "/var/lib/quarterdeck/volumes")
    assert planes.last_entry(NAME) == after


def test_units_come_back_by_themselves_when_a_host_boots(far: HostsPlanes) -> None:
    planes, hosts = far.planes, far.hosts
    site, _ = where(planes)
    voter = next(each for each in planes.status(NAME)["members"] if each["member"] == "voter")
    with watched(planes, NAME, "boot") as clients:
        since = time.time()
        hosts.reboot(voter["machine"])
        until(lambda: whole(planes), "all members are well again", pause=1.0)
        clients.excuse("its host booted", since=since, until=since + SILENT, most=CLIENTS)
        clients.goes_on("afterwards")
    assert site == where(planes)[0]


def whole(planes: PlaneLab) -> bool:
    """Whether all members and apiservers are well."""
    fact = planes.status(NAME)
    return all((each["health"], each["apiserver"]) == ("healthy", "ready") for each in fact["members"])


@pytest.mark.soak  # tests/loop cuts the driver off from each site at any call
def test_a_plane_serves_on_when_its_managers_host_is_cut_off(far: HostsPlanes) -> None:
    """As whoever is at a site himself sees."""
    planes, hosts = far.planes, far.hosts
    site, other = where(planes)
    asks = f"for i in $(seq 20); do curl -skf -m 2 https://{hosts.address(edges(site)[0])}:6443/readyz || exit 1; done"
    with managed(planes):
        for name in SITES:
            hosts.cut_sites(OUTSIDE, name, Cut.BOTH)
        try:
            end = time.monotonic() + 20.0  # longer than any grace
            while time.monotonic() < end:
                assert hosts.sh(edges(other)[1], asks) == "ok" * 20
        finally:
            for name in SITES:
                hosts.cut_sites(OUTSIDE, name, Cut.NONE)
    planes.run("wait", NAME)
    events = {each["reason"] for each in planes.run("events", NAME, "-o", "json").json}
    assert "ReplicaMarkedForReplacement" not in events, events


@pytest.mark.soak  # test_drills has drills, and the contract suite of sites each fault
@pytest.mark.timeout(2400)
def test_all_that_may_fail_on_hosts_is_drilled_and_nothing_of_it_stays_behind(far: HostsPlanes) -> None:
    """No manager stands by here, no host has a clock of its own, and a lost quorum has to be asked for."""
    planes, hosts = far.planes, far.hosts
    hosts.delay(*SITES, 0)
    at_north(far)
    planes.refused(
        "drill", NAME, "--fail", "clock", "--yes", code=5, says=["the clock of a host is shared by all that runs on it"]
    )
    planes.refused("drill", NAME, "--fail", "quorum", "--yes", code=5, says=["would not survive it", "--dangerous"])
    came = {}
    with managed(planes):
        until(lambda: planes.status(NAME)["driver"], "it keeps the plane")
        for fail in Fail:
            if fail in (Fail.CLOCK, Fail.MANAGER, Fail.TOTAL_LOSS):  # the last one is shown by test_backups
                continue
            more = ["--dangerous"] if fail is Fail.QUORUM else []
            done = planes.start("drill", NAME, "--fail", fail.value, "--yes", "-o", "json", *more).end(480)
            assert done.out, str(done)
            status = done.json
            came[fail] = [status[each] for each in ("phase", "lost", "missed", "left")]
            shown = {name: value for name, value in status.items() if name not in ("phase", "lost", "missed", "left")}
            print(f"\n{fail}: {came[fail]} {shown}")
    (aside,) = came[Fail.DATA_LOSS].pop()
    assert "the former content of volume" in aside["message"], "it is kept, and reported"
    came[Fail.DATA_LOSS].append([])
    assert {fail for fail, seen in came.items() if seen != ["Passed", 0, 0, []]} == set(), came
    hosts.delay(*SITES, RTT)
    planes.status(NAME, code=0)
    for name in hosts.names:
        left = hosts.sh(name, "systemctl list-units --plain --no-legend 'quarterdeck-undo*'; pgrep -x strace || true")
        assert left == "", f"{name}: {left}"


@pytest.mark.soak  # test_healing.py has it; a host that boots, and an edge that dies, are above and below
def test_a_machine_that_dies_is_replaced_by_a_manager(far: HostsPlanes) -> None:
    planes, hosts = far.planes, far.hosts
    at_north(far)
    lost = next(each for each in planes.status(NAME)["members"] if each["zone"] == "a")  # which has a machine to spare
    with managed(planes), watched(planes, NAME, "dies") as clients:
        since = time.time()
        hosts.power_off(lost["machine"])
        until(lambda: replaced(planes, lost["replica"]), "another one serves", pause=1.0)
        clients.excuse("its machine died", since=since, until=since + SILENT, most=CLIENTS)
        clients.goes_on("after it was replaced")
    hosts.power_on(lost["machine"])
    planes.run("wait", NAME)


def replaced(planes: PlaneLab, replica: str) -> bool:
    """Whether the plane is whole, without that replica."""
    members = planes.status(NAME)["members"]
    votes = {
        each["replica"] for each in members if each["member"] in ("voter", "leader") and each["apiserver"] == "ready"
    }
    return len(votes) == 3 and replica not in votes


def at_north(hosts: HostsPlanes) -> None:
    """Have the plane there."""
    if where(hosts.planes)[0] != "north":
        hosts.planes.run("migrate", NAME, "--to", "north", "--yes")


def test_a_floating_address_goes_over_when_its_edge_dies(far: HostsPlanes) -> None:
    """That edge is a DNS server too."""
    at_north(far)
    with watched(far.planes, NAME, "floating") as clients:
        edge_dies_and_comes_back(far, NAME, floating(far), clients)


@pytest.mark.soak  # test_promoted_address_netns.py has it on networks of this host
def test_a_promoted_address_goes_to_load_balancers_with_the_second_replica_and_back_with_the_last_but_one(
    far: HostsPlanes,
) -> None:
    planes, address = far.planes, promoted(far)
    planes.run("site", "cordon", "north", "north-a")  # the other plane has a replica there
    planes.run("apply", "-f", str(planes.file(yaml.safe_dump(own(address)))))
    planes.run("site", "uncordon", "north", "north-a")
    assert planes.status(OWN, code=0)["nameLeadsTo"] == "the apiservers"
    assert far.holders(address) == [SPARE], "clients come to the only replica's own machine"
    with watched(planes, OWN, "promoted") as clients:
        planes.run("scale", OWN, "--replicas", "3", "--yes")
        assert planes.status(OWN, code=0)["nameLeadsTo"] == "north"
        assert far.holders(address) == [SPARE], "it stays there as long as clients are connected there"
        clients.goes_on("with a load balancer that stands by")
        since = time.time()
        far.hosts.power_off(SPARE)
        until(lambda: planes.client(OWN).answers(), "a new client is served", seconds=30, pause=0.01)
        over = time.time() + PATIENCE
        clients.excuse("under way when the machine fell silent", since=since, until=over, most=2 * CLIENTS)
        clients.excuse_lists()  # they wait 10 s for the silent machine; apiservers forget when etcd loses its leader
        (edge,) = until(lambda: far.holders(address), "an edge has the address", seconds=30)
        assert edge in EDGES
        clients.goes_on("through the load balancer", writes=20)
        far.hosts.power_on(SPARE)
        planes.run("wait", OWN)
        planes.run("scale", OWN, "--replicas", "1", "--yes")
        assert planes.status(OWN, code=0)["nameLeadsTo"] == "the apiservers"
        until(lambda: far.holders(address) == [SPARE], "it is back at the only replica's machine", seconds=30)
        clients.goes_on("at the only replica")
    planes.run("delete", OWN, "--yes")
    assert far.holders(address) == []


def own(address: str) -> dict[str, object]:
    """A plane of one replica that has an address to itself."""
    spec = {
        "replicas": 1,
        "placement": {"site": "north"},
        "endpoint": {"mode": "address", "address": address, "leadsTo": "promoted"},
    }
    return {"apiVersion": API, "kind": "ControlPlane", "metadata": {"name": OWN}, "spec": spec}
