"""Two edges and two DNS servers on networks of their own: each may fall silent, and clients go on by the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
from httpx2 import HTTPError
from support.client_view import CLIENTS, PATIENCE, TAKEOVER, Watched, watched
from support.conditions import until
from support.plane_lab import Command, PlaneLab, plane_lab

from quarterdeck.api.site import AddressSpace
from quarterdeck.engine.workspace.home import Home
from quarterdeck.sites.local.site import LocalSite
from quarterdeck.sites.netns.lab import available
from quarterdeck.sites.vrrp import why_not_here
from quarterdeck.stores.port import EntryOutcome, JournalEntry

pytestmark = [pytest.mark.netns, pytest.mark.timeout(300)]

NAME = "two"
SITE = """
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: n1}
spec: {isolation: netns, machinesPerZone: 1, edges: 2, floatingAddresses: true}
"""
FIRST, SECOND = "n1-edge", "n1-edge-2"
#: Seconds within which the Service has no address of a machine that died.
FOLLOWS = 15.0


@dataclass(frozen=True)
class Two:
    """A home with a plane behind two edges, which ``manager`` keeps."""

    lab: PlaneLab
    manager: Command

    def named(self, after: int, *edges: str) -> int:
        """The name has been led to exactly these edges since that entry of the journal; the newest entry by then."""
        why = f"it must lead to {' and '.join(edges)} only"

        def led(seen: Sequence[JournalEntry]) -> bool:
            done = (each for each in seen if each.kind == "set-record" and each.outcome is EntryOutcome.DONE)
            return any(each.detail.get("why") == why for each in done)

        return self.lab.journal(NAME, led, why, after=after, during=self.manager, seconds=60)[-1].id

    def first_dns_server(self, act: Callable[[LocalSite, str], Awaitable[None]]) -> None:
        """Do something to the machine of the one that is asked first."""

        async def work(home: Home) -> None:
            hub = home.sites.hub(AddressSpace.NETNS)
            assert isinstance(hub, LocalSite)
            await act(hub, (await hub.machines())[0].name)

        self.lab.read(work)


@pytest.fixture(scope="module")
def two() -> Iterator[Two]:
    allowed, reason = asyncio.run(available())
    if not allowed:
        pytest.skip(f"this host does not allow network namespaces: {reason}")
    if missing := why_not_here():
        pytest.skip(missing)
    with plane_lab() as lab:
        lab.run("apply", "-f", str(lab.file(SITE)))
        lab.run("create", NAME, "--site", "n1", "--replicas", "3")
        manager = lab.start("serve", "--log-format", "json")
        until(lambda: '"serving"' in manager.output, "it serves")
        yield Two(lab, manager)


def serves_on(clients: Watched, what: str, seconds: float) -> None:
    """For so long that whoever were to fail would have."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        clients.goes_on(what)


@pytest.mark.soak  # test_hosts.py has an edge that is a DNS server too, and dies
def test_an_edge_and_a_dns_server_die_without_a_word_and_come_back(two: Two) -> None:
    lab = two.lab
    with watched(lab, NAME, "two") as clients:
        before, since = lab.last_entry(NAME), time.time()
        lab.kill_machine("n1", FIRST)
        # What was under way through it is lost, and nobody says so: clients give it up.
        clients.excuse("an edge fell silent", since=since, until=since + PATIENCE, most=2 * CLIENTS)
        until(lambda: lab.client(NAME).answers(), "a new client is served", seconds=TAKEOVER)
        after = two.named(before, SECOND)
        serves_on(clients, "through the other edge", since + PATIENCE - time.time())

        lab.boot_machine("n1", FIRST)
        two.named(after, FIRST, SECOND)
        clients.goes_on("with both edges")

        two.first_dns_server(lambda hub, machine: hub.kill_machine(machine))
        serves_on(clients, "by the other DNS server", 6.0)
        two.first_dns_server(lambda hub, machine: hub.boot_machine(machine))
        clients.goes_on("with both DNS servers")
    lab.run("wait", NAME, deadline=60)


@pytest.mark.soak  # unit tests have which addresses a Service has; how soon is measured here
def test_the_service_kubernetes_leads_to_no_machine_that_died_without_a_word(two: Two) -> None:
    lab = two.lab
    every = served_by(lab)
    assert len(every) == 3, every
    machine = next(each["machine"] for each in lab.status(NAME)["members"] if each["member"] == "voter")
    since = time.monotonic()
    lab.kill_machine("n1", machine)
    left = until(lambda: (now := served_by(lab)) < every and now, "the dead one is no address", seconds=60)
    took = time.monotonic() - since
    assert len(left) == 2, left
    assert took <= FOLLOWS, f"it took {took:.1f} s"
    print(f"the Service follows after {took:.1f} s")
    lab.boot_machine("n1", machine)
    until(lambda: served_by(lab) == every, "it is back")


def served_by(lab: PlaneLab) -> set[str]:
    """The addresses of the Service ``kubernetes``, if a client can ask for them."""
    try:
        with lab.client(NAME).http(timeout=2.0) as http:
            found = http.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes").json()
    except HTTPError:
        return set()
    return {host for each in found["endpoints"] for host in each["addresses"]}
