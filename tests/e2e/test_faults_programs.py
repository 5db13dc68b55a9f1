"""Programs that are killed, and a machine that stands still, in the middle of a move: what that costs."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable

import psutil
import pytest
from support.client_view import ANY, CLIENTS, Watched, watched
from support.conditions import until
from support.plane_lab import Command, PlaneLab, did

from quarterdeck.api.site import AddressSpace
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.access import probe_target
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.settings import endpoint_port
from quarterdeck.errors import Unavailable
from quarterdeck.probe.network import Direct
from quarterdeck.probe.resolve import resolver_for
from quarterdeck.probe.target import ProbeTarget

pytestmark = pytest.mark.timeout(900)

#: Seconds that a client may take to notice that its connection is gone.
NOTICE = 0.5
#: Seconds within which a supervisor has started again what was killed: many times what it takes on a quiet host.
AGAIN = 20.0
#: Seconds until a load balancer has found out that an apiserver cannot serve: three checks, and their pauses.
CHECKS = 10.0


def begun(demo: PlaneLab, kind: str, after: int, moving: Command, text: str = "") -> None:
    demo.journal("demo", lambda seen: did(seen, kind, text=text), f"a step {kind}", after=after, during=moving)


def killed(pid: int, back: Callable[[], bool], what: str) -> tuple[float, float]:
    """kill -9; from when until when it was not there (Unix seconds)."""
    since = time.time()
    os.kill(pid, signal.SIGKILL)
    until(back, f"{what} is back", seconds=AGAIN, pause=0.01)
    return since, time.time() + NOTICE


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def accepts(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=0.5).close()
    except OSError:
        return False
    return True


def kill_apiserver(demo: PlaneLab, clients: Watched, site: str) -> None:
    """Whoever has a request under way in it loses that one; all others are served by others: its connections are closed
    at once, and new ones find another apiserver. But it is started again at once, and takes connections long before it
    serves: who is led there waits, and is cut when the load balancer's checks have failed.
    """
    machine = demo.machines(site)[0]
    pid = demo.pid(site, machine, "apiserver")
    since, _ = killed(pid, lambda: not runs(pid), "nobody")
    clients.excuse("an apiserver was killed", since=since, until=since + CHECKS, most=CLIENTS)


def kill_balancer(demo: PlaneLab, clients: Watched, site: str) -> None:
    """Its connections are cut, and its address takes none until its machine's supervisor has started it again."""
    pid, edge = demo.pid(site, f"{site}-edge", "envoy"), f"{site}-edge"
    address = next(each.address for each in demo.on_site(site, lambda it: it.machines()) if each.name == edge)
    port = endpoint_port(demo.plane("demo"))
    assert accepts(address, port)
    since, back = killed(pid, lambda: not runs(pid) and accepts(address, port), "the load balancer")
    clients.excuse("a load balancer was killed", since=since, until=back, most=ANY)


def kill_dns(demo: PlaneLab, clients: Watched) -> None:
    """Who resolves the name while it is away gets no answer, and waits for one for two seconds at most."""
    units = demo.read(lambda home: home.sites.hub(AddressSpace.LOOPBACK).units("hub-loopback-a1"))
    pid = next(unit.pid for unit in units if unit.pid is not None)
    target = demo.read(asked)
    since, back = killed(pid, lambda: not runs(pid) and resolves(target), "the DNS server")
    clients.excuse("the DNS server was killed", since=since, until=back + 2.0, most=ANY)


async def asked(home: Home) -> ProbeTarget:
    return await probe_target(home, await recorded.existing(home.store, "demo"))


def resolves(target: ProbeTarget) -> bool:
    try:
        return bool(asyncio.run(resolver_for(target, time.monotonic, Direct()).resolve()))
    except Unavailable:
        return False


def test_a_killed_apiserver_balancer_or_dns_server_costs_what_was_under_way_in_it_and_the_move_goes_on(
    demo: PlaneLab,
) -> None:
    source, target = demo.plane("demo").spec.placement.site, demo.other("demo")
    after = demo.last_entry("demo")
    with watched(demo, "demo", "programs") as clients:
        moving = demo.start("migrate", "demo", "--to", target, "--yes")
        begun(demo, "promote-learner", after, moving)
        kill_apiserver(demo, clients, source)
        begun(demo, "set-record", after, moving)
        kill_balancer(demo, clients, target)
        kill_dns(demo, clients)
        done = moving.end()
        assert done.code == 0, str(done)
        clients.goes_on("at the target")
    fact = demo.status("demo", code=0)
    assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == target


@pytest.mark.soak  # tests/loop has it at any call; here one that dies is in test_faults_machines.py
def test_a_target_machine_that_stands_still_while_it_catches_up_fails_no_request(demo: PlaneLab) -> None:
    target, after = demo.other("demo"), demo.last_entry("demo")
    with watched(demo, "demo", "still") as clients:
        moving = demo.start("migrate", "demo", "--to", target, "--yes")
        begun(demo, "start-unit", after, moving, "etcd")
        machine = demo.machines(target)[0]
        demo.on_site(target, lambda site: site.freeze_machine(machine))
        try:
            # longer than a member may be silent before it counts as down
            clients.goes_on("while it stands still", writes=160)
            assert moving.running, moving.output
        finally:
            demo.on_site(target, lambda site: site.thaw_machine(machine))
        done = moving.end()
        assert done.code == 0, str(done)
    fact = demo.status("demo", code=0)
    assert (fact["site"], fact["quorumAt"], fact["voters"]) == (target, target, 3)
