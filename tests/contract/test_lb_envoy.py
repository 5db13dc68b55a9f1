"""What Envoy in particular promises: faults of backends, its own restart, its status listener, changes under load."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import stat
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from support.endpoint_lab import EDGE, MANAGER, Authority, Backend, connect, crash, eventually, free_port, loopback
from support.lb_lab import UNIT, EnvoyLab, envoy_lab

from quarterdeck.components.traffic.envoy import backends_file, balancer_unit, tls_files
from quarterdeck.endpoint.balancers.envoy import issue_balancer_tls
from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.http import Http
from quarterdeck.model.endpoints import BackendAddress


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[EnvoyLab]:
    async with envoy_lab(tmp_path) as lab:
        yield lab


async def running(lab: EnvoyLab, *names: str) -> dict[str, BackendAddress]:
    backends = {name: await lab.add(name) for name in names}
    await lab.balancer.apply(backends)
    await lab.healthy(*names)
    return backends


async def ask_once(lab: EnvoyLab) -> str:
    client = await connect(lab.ip, lab.balancer.settings.port, lab.trust)
    try:
        return await client.ask()
    finally:
        await client.close()


async def test_no_new_connection_fails_while_the_set_changes_twenty_times_under_load(lab: EnvoyLab) -> None:
    backends = await running(lab, "r1", "r2", "r3", "t1", "t2", "t3")
    await lab.balancer.apply({"r1": backends["r1"]})
    done = asyncio.Event()
    failures: list[BaseException] = []
    answers = 0

    async def client() -> None:
        nonlocal answers
        while not done.is_set():
            try:
                await ask_once(lab)
                answers += 1
            except (OSError, asyncio.IncompleteReadError) as error:
                failures.append(error)

    clients = [asyncio.create_task(client()) for _ in range(2)]
    names = list(backends)
    for turn in range(20):
        now = {names[(turn + step) % 6] for step in range(turn % 3 + 1)}
        await lab.balancer.apply({name: backends[name] for name in now})
        assert {await ask_once(lab) for _ in range(5)} <= now
    done.set()
    await asyncio.gather(*clients)
    assert failures == []
    assert answers > 100


async def test_a_backend_that_refuses_is_no_clients_trouble_even_before_the_check_notices(lab: EnvoyLab) -> None:
    await running(lab, "r1", "r2")
    await lab.stop("r1")
    assert {await ask_once(lab) for _ in range(20)} == {"r2"}


async def test_a_backend_that_fails_three_checks_is_out(lab: EnvoyLab) -> None:
    await running(lab, "r1", "r2")
    checks = lab.backends["r1"].checks
    await lab.set_ready("r1", False)
    await lab.healthy("r2")
    assert checks + 3 <= lab.backends["r1"].checks <= checks + 6, "three failed, and no more than it took to look"


async def test_a_backend_that_hangs_is_out_and_its_clients_reconnect(lab: EnvoyLab) -> None:
    await running(lab, "r1", "r2")
    clients = [client for client in [await lab.connect() for _ in range(2)] if client]
    led_to = [await client.ask() for client in clients]
    checks = lab.backends["r1"].checks
    lab.backends["r1"].hang = True
    await lab.healthy("r2")
    assert lab.backends["r1"].checks <= checks + 5, "it was given up after three checks that waited, or a few more"
    assert [await client.ask() for client in clients] == [None if backend == "r1" else backend for backend in led_to]


async def test_a_backend_that_answers_no_check_for_four_seconds_keeps_its_clients(lab: EnvoyLab) -> None:
    await running(lab, "r1")
    backend = lab.backends["r1"]
    client = await lab.connect()
    assert client is not None
    seen, backend.hang = backend.checks, True
    hung = time.monotonic()
    while time.monotonic() < hung + 4.0:  # an election, and a split vote
        assert await client.ask() == "r1"
        await asyncio.sleep(0.05)
    assert backend.checks > seen, "it was checked meanwhile"
    backend.hang = False
    await checked(backend, 3)
    assert (await client.ask(), await ask_once(lab)) == ("r1", "r1")


async def test_a_backend_taken_out_keeps_its_clients_though_it_would_fail_its_check(lab: EnvoyLab) -> None:
    backends = await running(lab, "r1", "r2")
    await lab.balancer.apply({"r1": backends["r1"]})
    old = await lab.connect()
    assert old is not None
    await lab.balancer.apply({"r2": backends["r2"]})
    await lab.set_ready("r1", False)
    checks = lab.backends["r1"].checks
    health = lab.balancer.settings.health
    end = time.monotonic() + 3 * health.failures * health.interval
    while time.monotonic() < end:
        assert await old.ask() == "r1"
        await asyncio.sleep(0.01)
    assert lab.backends["r1"].checks == checks


async def test_while_it_is_held_clients_wait_and_nobody_is_refused(lab: EnvoyLab) -> None:
    await running(lab, "r1")
    client = await lab.connect()
    assert client is not None
    await lab.balancer.hold(30.0)
    kept, new = asyncio.create_task(client.ask()), asyncio.create_task(ask_once(lab))
    done, _ = await asyncio.wait({kept, new}, timeout=0.3)
    assert not done
    await lab.balancer.let_go()
    assert (await kept, await new) == ("r1", "r1")
    assert (await lab.balancer.observe()).healthy == {"r1"}


async def test_a_hold_ends_by_itself(lab: EnvoyLab) -> None:
    await running(lab, "r1")
    client = await lab.connect()
    assert client is not None
    await lab.balancer.hold(0.3)
    assert await asyncio.wait_for(client.ask(), 10) == "r1"


async def test_two_failed_checks_in_a_row_take_nobody_out(lab: EnvoyLab) -> None:
    await running(lab, "r1")
    backend = lab.backends["r1"]
    client = await lab.connect()
    assert client is not None
    for _ in range(2):
        backend.fail_next = 2
        await checked(backend, 4)
    assert await client.ask() == "r1"


async def test_a_backend_with_a_certificate_of_another_ca_is_never_healthy(lab: EnvoyLab, tmp_path: Path) -> None:
    ip = loopback()
    stranger = Backend("stranger", ip, free_port(ip), Authority(tmp_path).server(ip=ip))
    await stranger.start()
    lab.backends["stranger"] = stranger
    await lab.balancer.apply({"stranger": BackendAddress(ip, stranger.port)})
    assert (await lab.balancer.observe()).healthy == set()
    with pytest.raises(OSError):  # noqa: PT011 - whichever way the connection is cut
        await ask_once(lab)


async def test_after_a_crash_it_serves_the_same_backends(lab: EnvoyLab) -> None:
    backends = await running(lab, "r1", "r2")
    await lab.balancer.apply({"r2": backends["r2"]})
    client = await lab.connect()
    assert client is not None
    await crash(lab.balancer.site, UNIT)
    assert await client.ask() is None
    await eventually(lambda: serves_again(lab))
    assert {await ask_once(lab) for _ in range(4)} == {"r2"}


async def serves_again(lab: EnvoyLab) -> bool:
    client = await lab.connect()
    return client is not None and await client.ask() is not None


async def test_new_certificates_are_taken_without_a_cut(lab: EnvoyLab) -> None:
    backends = await running(lab, "r1")
    client = await lab.connect()
    assert client is not None
    tls = issue_balancer_tls(lab.authority.authorities, MANAGER, (lab.ip,), lab.authority.now)
    await replace(lab.balancer, tls=lambda: tls).apply(backends)
    wanted = ssl.PEM_cert_to_DER_cert(tls.serving.certificate.decode())
    await eventually(lambda: serves(lab, wanted))
    assert await client.ask() == "r1"


async def checked(backend: Backend, times: int) -> None:
    """Wait until it was checked so many times more."""
    wanted = backend.checks + times

    async def seen() -> bool:
        return backend.checks >= wanted

    await eventually(seen)


async def serves(lab: EnvoyLab, certificate: bytes) -> bool:
    """Whether the status listener shows this certificate."""
    _, writer = await asyncio.open_connection(lab.ip, lab.balancer.settings.status_port, ssl=lab.authority.manager())
    try:
        return bool(writer.get_extra_info("ssl_object").getpeercert(binary_form=True) == certificate)
    finally:
        writer.close()
        await writer.wait_closed()


async def test_its_status_is_for_the_manager_alone_and_read_only(lab: EnvoyLab) -> None:
    await running(lab, "r1")
    where = f"https://{lab.ip}:{lab.balancer.settings.status_port}"
    for context in (lab.trust, lab.authority.manager(name="somebody"), lab.authority.manager(name="manager,O=x")):
        async with httpx2.AsyncClient(verify=context, trust_env=False) as stranger:
            with pytest.raises((httpx2.TransportError, ssl.SSLError)):
                await stranger.get(f"{where}/clusters?format=json")
    async with httpx2.AsyncClient(verify=lab.authority.manager(), trust_env=False) as manager:
        assert (await manager.get(f"{where}/clusters?format=json")).status_code == 200
        assert (await manager.post(f"{where}/clusters?format=json")).status_code == 404
        assert (await manager.post(f"{where}/quitquitquit")).status_code == 404
        assert (await manager.get(f"{where}/config_dump")).status_code == 404


async def test_its_admin_socket_is_a_file_that_only_its_owner_can_reach(lab: EnvoyLab) -> None:
    await running(lab, "r1")
    folder = Path(lab.balancer.settings.folder)
    (pid,) = [each.pid for each in await lab.balancer.site.units(EDGE) if each.name == UNIT]
    assert stat.S_ISSOCK((folder / "admin.sock").stat().st_mode)
    assert stat.S_IMODE((folder / "admin.sock").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    inodes = {str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()}
    rows = [row.split() for row in Path(f"/proc/{pid}/net/unix").read_text().splitlines()]
    own = [row[7:] for row in rows if f"socket:[{row[6]}]" in inodes and len(row) > 7]
    assert ["admin.sock"] in own
    assert not [path for (path, *_) in own if path.startswith("@")], "nothing that everybody on the host can reach"


async def test_a_balancer_of_an_older_unit_goes_on_serving_and_being_observed(lab: EnvoyLab) -> None:
    spec = balancer_unit(lab.balancer.settings, MANAGER)
    (bootstrap,) = spec.files
    content = json.loads(bootstrap.content)
    old = {"pipe": {"path": f"@quarterdeck-test-{os.getpid()}"}}
    content["admin"]["address"] = old
    admin = next(each for each in content["static_resources"]["clusters"] if each["name"] == "admin")
    admin["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"] = old
    status = content["static_resources"]["listeners"][1]["filter_chains"][0]
    status["filters"] = status["filters"][1:]
    older = replace(spec, files=(replace(bootstrap, content=json.dumps(content).encode()),))
    r1 = await lab.add("r1")
    live = (*tls_files(lab.balancer.settings, lab.balancer.tls()), backends_file(lab.balancer.settings, {"r1": r1}))
    await lab.balancer.site.write_files(EDGE, live)
    await lab.balancer.site.start_unit(EDGE, older)
    await eventually(lambda: serves_again(lab))
    client = await lab.connect()
    assert client is not None
    assert await client.ask() == "r1"
    await lab.balancer.apply({"r1": r1, "r2": await lab.add("r2")})
    await lab.healthy("r1", "r2")
    assert await client.ask() == "r1", "its clients were not cut by a restart"


async def test_a_port_that_another_balancer_has_is_a_clear_error_and_never_shared(lab: EnvoyLab) -> None:
    await running(lab, "r1")
    settings = replace(
        lab.balancer.settings,
        unit="lb-other",
        folder=lab.balancer.site.folder(EDGE, "lb-other"),
        status_port=free_port(lab.ip),
    )
    other = replace(lab.balancer, settings=settings, patience=2.0)
    with pytest.raises(TimedOut, match="check its logs"):
        await other.apply({"r2": await lab.add("r2")})
    assert "in use" in await lab.balancer.site.logs(EDGE, "lb-other")
    assert {await ask_once(lab) for _ in range(6)} == {"r1"}


async def test_a_balancer_that_gives_no_answer_is_unknown_not_stopped(lab: EnvoyLab) -> None:
    await running(lab, "r1")
    stranger = replace(lab.balancer, client=Http(lab.trust))  # no certificate: it gets no answer
    with pytest.raises(Unavailable):
        await stranger.observe()
