"""Migrations between sites that are networks of their own: they can be cut off, and machines fall silent."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator

import httpx2
import pytest
from support.client_view import ANY, CLIENTS, Watched, watched
from support.conditions import until
from support.plane_lab import Command, Done, PlaneLab, did
from support.planes import KeptPlane

from quarterdeck.report.schema import Outcome, Report
from quarterdeck.sites.netns.enter import enter_argv
from quarterdeck.sites.netns.lab import Lab, available
from quarterdeck.sites.netns.layout import Cut, inside

pytestmark = [pytest.mark.netns, pytest.mark.timeout(900)]

NAME = "far"
#: A network that is no site of the home's: from where somebody drives.
DESK = "desk"
#: Seconds until nobody waits any more for a machine that says nothing: failed checks of a load balancer, then clients'
#: own deadlines.
SILENT = 20.0
#: Seconds that a driver is cut off: longer than any grace (8 s).
CUT_OFF = 12.0
SITES = """
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: n1}
spec: {isolation: netns}
---
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: n2}
spec: {isolation: netns}
"""


@pytest.fixture(scope="module")
def kept() -> Iterator[KeptPlane]:
    allowed, reason = asyncio.run(available())
    if not allowed:
        pytest.skip(f"this host does not allow network namespaces: {reason}")
    made = KeptPlane(NAME, between_networks, quick=False)
    try:
        yield made
    finally:
        made.close()


def between_networks(lab: PlaneLab, name: str, replicas: int) -> Done:
    lab.run("apply", "-f", str(lab.file(SITES)))
    return lab.run("create", name, "--site", "n1", "--replicas", str(replicas))


@pytest.fixture
def far(kept: KeptPlane) -> PlaneLab:
    """A home with a plane of three replicas at one of two sites in network namespaces."""
    return kept.ready()


def sites(far: PlaneLab) -> tuple[str, str]:
    """Where the plane is, and the other site."""
    source = far.plane(NAME).spec.placement.site
    return source, "n2" if source == "n1" else "n1"


def moved_until(far: PlaneLab, target: str, kind: str, text: str = "") -> Command:
    """A migration that has just taken its first step of that kind, with that in its text."""
    after = far.last_entry(NAME)
    moving = far.start("migrate", NAME, "--to", target, "--yes")
    far.journal(NAME, lambda seen: did(seen, kind, text=text), f"a step {kind} {text}", after=after, during=moving)
    return moving


def settled(far: PlaneLab, moving: Command, target: str) -> None:
    """The migration ends well, at the target."""
    done = moving.end()
    assert done.code == 0, str(done)
    fact = far.status(NAME, code=0)
    assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == target


def link(far: PlaneLab, cut: Cut) -> None:
    """Cut the two sites from each other, or heal that."""
    asyncio.run(Lab(far.home).set_link("n1", "n2", cut=cut))


@pytest.mark.soak  # worse migrations fail no request either
def test_no_client_sees_a_failure_in_a_migration_between_networks(far: PlaneLab) -> None:
    _, target = sites(far)
    done = far.run("migrate", NAME, "--to", target, "--yes", "--probe", "--baseline", "5")
    report = Report.model_validate_json(far.run("report", NAME, "-o", "json").out)
    assert report.outcome is Outcome.SUCCEEDED
    assert report.probe is not None
    failed = [f"{each.kind} {each.request}: {each.reason}" for each in report.probe.failures]
    assert (failed, report.probe.writes.lost, report.probe.watches.missed) == ([], 0, 0), str(done)


@pytest.mark.soak  # tests/loop has cuts at any call; the next one has them before the traffic moves
def test_the_name_goes_back_to_the_source_when_the_sites_are_cut_after_the_traffic_moved(far: PlaneLab) -> None:
    source, target = sites(far)
    with watched(far, NAME, "cut-late") as clients:
        moving = moved_until(far, target, "stop-unit", "kube-apiserver")
        moved = far.last_entry(NAME)
        since = time.time()
        link(far, Cut.BOTH)
        try:
            far.journal(
                NAME,
                lambda seen: did(seen, "set-record", text=source),
                "the name leads to the source again",
                after=moved,
                during=moving,
            )
            until(lambda: ready(far), "a client with a new connection is served")
            # the site that the name led to has no quorum, and clients ask for it again when its time to live has passed
            clients.excuse("the traffic was at the target", since=since, until=time.time() + SILENT, most=ANY)
            clients.excuse_lists()
            clients.goes_on("at the source")
        finally:
            link(far, Cut.NONE)
        settled(far, moving, target)
        clients.goes_on("after it was healed")


@pytest.fixture
def desk(far: PlaneLab) -> Iterator[tuple[str, ...]]:
    """What to put before a command that is to run at a network of its own, from where every site can be reached."""

    async def plug() -> None:
        lab = Lab(far.home)
        await lab.add_site(DESK, 200)
        await lab.add_machine(DESK, DESK, 1)

    async def unplug() -> None:
        lab = Lab(far.home)
        for pid in await lab.processes(inside(DESK, DESK)):
            os.kill(pid, signal.SIGKILL)
        await lab.remove_machine(DESK, DESK)

    asyncio.run(plug())
    try:
        yield enter_argv(far.home, inside(DESK, DESK))
    finally:
        asyncio.run(unplug())


@pytest.mark.soak  # tests/loop has cuts at any call; a machine that falls silent is in the next one
def test_a_plane_serves_on_while_its_sites_are_cut_from_each_other_and_then_its_driver_from_each(
    far: PlaneLab, desk: tuple[str, ...]
) -> None:
    """And it moves on after. The driver takes nothing away that clients use, though for twelve seconds, longer than any
    grace, it alone does not see a site: clients and the other site do.
    """
    source, target = sites(far)
    after = far.last_entry(NAME)
    migrate = (sys.executable, "-m", "quarterdeck", "migrate", NAME, "--to", target, "--yes")
    with watched(far, NAME, "cut") as clients:
        moving = far.start_program(*desk, *migrate, QUARTERDECK_INSIDE_LAB="1")
        far.journal(NAME, lambda seen: did(seen, "promote-learner"), "a promotion", after=after, during=moving)
        sites_are_cut(far, clients)
        for site in (source, target):
            set_desk(far, site, Cut.BOTH)
            try:
                before = members(far)  # what was under way when it was cut off has ended
                end = time.monotonic() + CUT_OFF  # the fault itself
                while time.monotonic() < end:
                    clients.goes_on(f"while the driver is cut off from {site}")
                    now = members(far)
                    assert now >= before, f"cut off from {site}, it took away {before - now}: {tale(far, after)}"
                assert moving.running, moving.output
            finally:
                set_desk(far, site, Cut.NONE)
        settled(far, moving, target)
        clients.goes_on("after it was healed")


def sites_are_cut(far: PlaneLab, clients: Watched) -> None:
    """From each other, both ways and each way."""
    try:
        for cut in (Cut.BOTH, Cut.A_TO_B, Cut.B_TO_A):
            link(far, cut)
            clients.goes_on(f"while the sites are cut from each other: {cut}", writes=20)
    finally:
        link(far, Cut.NONE)


def tale(far: PlaneLab, after: int) -> str:
    """What the driver did, one line a step."""
    entries = far.journal(NAME, lambda _: True, "the journal can be read", after=after)
    return "\n".join(f"{each.time:.1f} {each.outcome} {each.kind} {each.text}" for each in entries if each.text)


def set_desk(far: PlaneLab, site: str, cut: Cut) -> None:
    asyncio.run(Lab(far.home).set_link(DESK, site, cut=cut))


def members(far: PlaneLab) -> set[str]:
    """The members that etcd lists, as somebody sees them who is not cut off."""
    return {each["replica"] for each in far.status(NAME)["members"] if each["member"] in ("voter", "leader")}


def ready(far: PlaneLab) -> bool:
    """Whether a client that resolves the name now is served."""
    try:
        with far.client(NAME).http(timeout=2.0) as http:
            return http.get("/readyz").status_code == 200
    except httpx2.HTTPError:
        return False


def test_a_migration_completes_though_a_source_machine_falls_silent(far: PlaneLab) -> None:
    source, target = sites(far)
    leader = next(each["machine"] for each in far.status(NAME)["members"] if each["member"] == "leader")
    with watched(far, NAME, "silent") as clients:
        moving = moved_until(far, target, "promote-learner")
        since = time.time()
        far.kill_machine(source, leader)
        clients.goes_on("after the machine fell silent")
        settled(far, moving, target)
        # Who has a connection to its apiserver waits until the load balancer cuts it; and as long as a voter is
        # missing, another one that stands still costs an election, and whoever writes just then a write.
        clients.excuse("the leader's machine fell silent", since=since, until=time.time(), most=CLIENTS)
        clients.goes_on("at the target")
    far.boot_machine(source, leader)
    far.run("wait", NAME)
    assert far.machines(source) == ()
