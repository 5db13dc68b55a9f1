"""What Prometheus is told of planes."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from asyncio.subprocess import Process
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from fakes.store import MemoryStore
from model.stories import serving, with_balancers, with_member, with_membership
from pages import dashboard
from prometheus_client.parser import text_string_to_metric_families
from support.golden import Golden
from support.small_plane import small_plane

from quarterdeck.api.site import Isolation
from quarterdeck.app import pipes
from quarterdeck.app.pipes import Parent, PipedMetrics, attended
from quarterdeck.app.service import measured
from quarterdeck.engine.reconcile.manager import PlaneManager
from quarterdeck.errors import InvalidInput, PreconditionFailed, Unavailable
from quarterdeck.etcd.facts import Durations
from quarterdeck.metrics import catalogue
from quarterdeck.metrics.catalogue import METRICS, MetricKind
from quarterdeck.metrics.measures import EVERY, Measures
from quarterdeck.metrics.merge import merged
from quarterdeck.metrics.metrics import Metrics
from quarterdeck.metrics.server import ListenAddress, serve_metrics
from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.components import Component
from quarterdeck.model.leadership import Leadership
from quarterdeck.model.membership import Health, Space
from quarterdeck.model.memory import Timeline
from quarterdeck.model.steps.plan import Plan, Wait
from quarterdeck.model.steps.traffic import SetRecord
from quarterdeck.model.steps.units import StartUnit
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan

DOCS = Path(__file__).parents[2] / "docs"
WELL = serving()
STEP = StartUnit(site="east", why="", replica="east-1", component=Component.ETCD)


def numbers_of(metrics: Metrics) -> dict[str, dict[tuple[str, ...], float]]:
    """All numbers, by metric and the values of its labels in their order; of histograms how many there are."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    labels = {each.name: each.labels for each in METRICS}
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            name = sample.name.removesuffix("_count")
            if name in labels and set(sample.labels) == set(labels[name]):
                found.setdefault(name, {})[tuple(sample.labels[label] for label in labels[name])] = sample.value
            else:
                assert family.type == "histogram", f"{sample} is no metric of the catalogue"
    return found


def of(world: World) -> dict[str, dict[tuple[str, ...], float]]:
    metrics = Metrics(clock=lambda: 1000.0)
    metrics.observed("demo", world, plan(world))
    return numbers_of(metrics)


def test_controllers_are_led_or_not_and_absent_where_nobody_knows() -> None:
    led = Leadership(component=Component.SCHEDULER, lease="kube-scheduler", holder="host_1", led=True)
    unled = replace(led, component=Component.CONTROLLER_MANAGER, led=False)
    found = of(replace(WELL, leading=(led, unled)))
    assert found["quarterdeck_plane_controllers_led"] == {
        ("demo", "kube-scheduler"): 1,
        ("demo", "kube-controller-manager"): 0,
    }
    assert found["quarterdeck_plane_warnings"]["demo", "NoLeader"] == 1
    assert found["quarterdeck_plane_settled"] == {("demo",): 1}, "nothing is done about it"
    assert "quarterdeck_plane_controllers_led" not in of(replace(WELL, leading=(replace(led, led=None),)))


def test_a_plane_that_is_well_says_so() -> None:
    found = of(WELL)
    assert found["quarterdeck_plane_settled"] == {("demo",): 1}
    assert found["quarterdeck_plane_available"] == {("demo",): 1}
    assert found["quarterdeck_plane_failure_survived"]["demo", "machine", "yes"] == 1
    assert found["quarterdeck_plane_failure_survived"]["demo", "machine", "no"] == 0
    assert found["quarterdeck_plane_failure_survived"]["demo", "edge", "no"] == 1
    assert found["quarterdeck_etcd_members"]["demo", "main", "voter", "healthy"] == 3
    assert found["quarterdeck_etcd_members"]["demo", "main", "voter", "down"] == 0
    assert found["quarterdeck_etcd_quorum_margin"] == {("demo", "main"): 1}
    assert found["quarterdeck_etcd_member_lag_entries"]["demo", "main", "east-2"] == 0
    assert found["quarterdeck_load_balancer_backends"]["demo", "east", "healthy"] == 3
    assert found["quarterdeck_plane_look_timestamp_seconds"] == {("demo",): 1000}
    assert "quarterdeck_plane_warnings" not in found


def test_databases_are_told_with_their_quota() -> None:
    space = Space(size=30, in_use=20, quota=100)
    found = of(with_member(WELL, "east-1", lambda each: replace(each, space=space)))
    for name, size in (("bytes", 30), ("in_use_bytes", 20), ("quota_bytes", 100)):
        assert found[f"quarterdeck_etcd_member_database_{name}"]["demo", "main", "east-1"] == size


def test_whether_a_member_lags_is_told_where_it_is_known() -> None:
    for lagging, value in ((True, 1), (False, 0)):
        found = of(with_member(WELL, "east-2", lambda each, lags=lagging: replace(each, lagging=lags)))
        assert found["quarterdeck_etcd_member_lagging"]["demo", "main", "east-2"] == value
    unknown = of(with_member(WELL, "east-2", lambda each: replace(each, lagging=None)))
    assert ("demo", "main", "east-2") not in unknown["quarterdeck_etcd_member_lagging"]
    found = of(with_member(WELL, "east-2", lambda each: replace(each, lagging=True)))
    assert found["quarterdeck_plane_warnings"]["demo", "MemberLagging"] == 1


def test_what_ails_a_plane_is_a_number() -> None:
    down = with_member(WELL, "east-3", lambda each: replace(each, health=Health.DOWN, lag=None))
    alarm = with_membership(down, alarms=("memberID:1 alarm:NOSPACE ",))
    found = of(alarm)
    assert found["quarterdeck_plane_warnings"]["demo", "MemberDown"] == 1
    assert found["quarterdeck_etcd_members"]["demo", "main", "voter", "down"] == 1
    alarms = {alarm: value for (_, _, alarm), value in found["quarterdeck_etcd_alarm"].items()}
    assert alarms == {"NOSPACE": 1, "CORRUPT": 0, "AUTHENTICATION": 0}
    assert ("demo", "main", "east-3") not in found["quarterdeck_etcd_member_lag_entries"]
    dark = with_balancers(WELL, BalancerFact(site="east", running=True))
    assert of(dark)["quarterdeck_plane_available"] == {("demo",): 0}


@pytest.mark.parametrize(
    ("world", "unknown"),
    [
        (replace(WELL, membership=None), "quarterdeck_etcd_quorum_margin"),
        (replace(WELL, record_known=False), "quarterdeck_plane_available"),
        (
            with_balancers(WELL, BalancerFact(site="east", running=False, reachable=False)),
            "quarterdeck_plane_available",
        ),
        (with_balancers(WELL, BalancerFact(site="east", running=False, reachable=False)), "quarterdeck_load_balancer_"),
    ],
)
def test_what_is_not_known_is_absent(world: World, unknown: str) -> None:
    assert any(name.startswith(unknown) for name in of(WELL))
    assert not any(name.startswith(unknown) for name in of(world))


def test_that_nothing_serves_is_no_news_of_a_plane_that_never_did() -> None:
    young = replace(WELL, membership=None, memory=replace(WELL.memory, served_site=None, created=False))
    assert not {"quarterdeck_plane_available", "quarterdeck_etcd_membership_known"} & of(young).keys()
    assert of(replace(WELL, membership=None))["quarterdeck_etcd_membership_known"] == {("demo", "main"): 0}


async def test_steps_and_troubles_are_counted_and_a_plane_that_is_gone_leaves_nothing_behind() -> None:
    metrics = Metrics()
    watcher = metrics.of("demo")
    await watcher.observed(WELL, plan(WELL))
    metrics.asked({("demo", "Succeeded"): 2, ("gone", "Succeeded"): 7})
    assert numbers_of(metrics)["quarterdeck_operations"] == {("demo", "Succeeded"): 2}
    for seconds in (0.2, 400.0):
        await watcher.ended(STEP, seconds, None)
    await watcher.ended(STEP, 1.0, Unavailable("starting", "no"))
    await watcher.troubled(Unavailable("looking", "no"))
    found = numbers_of(metrics)
    assert found["quarterdeck_steps_total"] == {("demo", "start-unit", "done"): 2, ("demo", "start-unit", "failed"): 1}
    assert found["quarterdeck_troubles_total"] == {("demo",): 1}
    assert found["quarterdeck_step_duration_seconds"] == {("start-unit",): 2}
    assert 'quarterdeck_step_duration_seconds_bucket{le="300.0",step="start-unit"} 1.0' in metrics.text().decode()
    await watcher.observed(replace(WELL, deleting=True), Plan())
    assert not any(labels[0] == "demo" for rows in numbers_of(metrics).values() for labels in rows)


def test_a_look_is_as_long_as_the_hosts_own_clock_says() -> None:
    metrics = Metrics(steady=lambda: 100.5, boot=lambda: "now")
    for boot, expected in (("now", {("demo",): 0.5}), ("before", None)):
        memory = replace(WELL.memory, timeline=Timeline(boot=boot, ahead=1_000.0))
        metrics.observed("demo", replace(WELL, memory=memory, now=1_100.0), Plan())
        assert numbers_of(metrics).get("quarterdeck_plane_look_duration_seconds") == expected


# --- what is read now and then --------------------------------------------------------------------------------------


async def test_disks_and_certificates_are_read_once_a_minute_of_members_that_answer() -> None:
    small, metrics, now = await small_plane(), Metrics(), [0.0]
    measures = Measures(metrics=metrics, steady=lambda: now[0])
    world = with_member(small.world, "east-3", lambda each: replace(each, health=Health.DOWN))
    metrics.observed("alpha", world, Plan())
    await measures.turn(small.plane, replace(world, membership=None))
    assert "quarterdeck_etcd_member_wal_fsync_p99_seconds" not in numbers_of(metrics), "nobody could be asked"
    await measures.turn(small.plane, world)
    found = numbers_of(metrics)
    took = found["quarterdeck_etcd_member_wal_fsync_p99_seconds"]
    assert set(took) == {("alpha", "main", f"east-{each}") for each in (1, 2)}
    assert took["alpha", "main", "east-1"] <= 0.001
    (ends,) = found["quarterdeck_certificate_expiry_timestamp_seconds"].values()
    assert ends > 1_700_000_000
    now[0] += EVERY - 1
    await measures.turn(small.plane, small.world)
    assert numbers_of(metrics) == found, "it was read a moment ago"
    now[0] += 1
    await measures.turn(small.plane, small.world)
    (third,) = numbers_of(metrics)["quarterdeck_etcd_member_wal_fsync_p99_seconds"]
    assert third == ("alpha", "main", "east-3"), "the others have synced nothing since"


@pytest.mark.parametrize(
    ("counts", "share", "seconds"),
    [
        ((0, 0, 0), 0.99, None),
        ((100, 100, 100), 0.5, 0.5),
        ((0, 100, 100), 0.5, 1.5),
        ((50, 100, 100), 0.99, 1.98),
        ((0, 0, 7), 0.99, 2.0),
    ],
)
def test_a_quantile_is_reckoned_as_prometheus_does(
    counts: tuple[int, int, int], share: float, seconds: float | None
) -> None:
    assert Durations(tuple(zip((1.0, 2.0, math.inf), counts, strict=True))).quantile(share) == seconds


def test_what_a_program_took_since_it_was_restarted_is_all_there_is() -> None:
    before, after = Durations(((1.0, 5), (math.inf, 9))), Durations(((1.0, 7), (math.inf, 12)))
    assert after.since(before) == Durations(((1.0, 2), (math.inf, 3)))
    assert before.since(after) == before


# --- who reads them -------------------------------------------------------------------------------------------------


async def asked(address: ListenAddress, request: str) -> tuple[str, str]:
    """The status line, and the body."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(request.encode())
    text = (await asyncio.wait_for(reader.read(), 5)).decode()
    writer.close()
    await writer.wait_closed()
    head, _, body = text.partition("\r\n\r\n")
    return head.partition("\r\n")[0].removeprefix("HTTP/1.1 ").strip(), body


def get(path: str, method: str = "GET") -> str:
    return f"{method} {path} HTTP/1.1\r\nHost: here\r\n\r\n"


async def test_metrics_and_health_are_told_over_http_and_nothing_else_is(golden: Golden) -> None:
    metrics, why = Metrics(), ["no plane was looked at yet"]
    metrics.observed("demo", WELL, plan(WELL))
    async with serve_metrics(
        metrics, ListenAddress("127.0.0.1", 0), store=MemoryStore(), ready=lambda: why[0]
    ) as address:
        status, body = await asked(address, get("/metrics?x=y"))
        assert status.startswith("200")
        assert 'quarterdeck_plane_settled{plane="demo"} 1.0' in body
        assert await asked(address, get("/healthz")) == ("200", "ok\n")
        golden(await asked(address, get("/readyz")))
        why[0] = ""
        assert await asked(address, get("/readyz")) == ("200", "ok\n")
        assert (await asked(address, get("/readyz", "HEAD")))[1] == ""
        assert (await asked(address, get("/")))[0] == "404"
        assert (await asked(address, get("/metrics", "POST")))[0] == "405"
        assert await asked(address, "what?\r\n\r\n") == ("", "")
        assert await asked(address, "GET / HTTP/1.1\r\n" + "a: b\r\n" * 5_000) == ("", "")
        slow, idle = await asyncio.open_connection(address.host, address.port)
        with pytest.raises(PreconditionFailed, match="--metrics"):
            async with serve_metrics(metrics, address, store=MemoryStore()):
                pass
    async with asyncio.timeout(5):
        assert await slow.read() == b"", "who says nothing holds up no end"
    idle.close()


async def test_a_manager_tells_of_each_plane_and_is_ready_while_it_keeps_any() -> None:
    addresses: list[str] = []
    log = SimpleNamespace(info=lambda _, address: addresses.append(address))
    engine = SimpleNamespace(home=SimpleNamespace(store=MemoryStore()))
    async with AsyncExitStack() as stack:
        manager = await measured(PlaneManager(engine=engine, network=Isolation.LOOPBACK, log=log), "127.0.0.1:0", stack)
        address = ListenAddress.parse(addresses[0].removeprefix("http://").removesuffix("/metrics"))
        assert (await asked(address, get("/readyz")))[0] == "503"
        manager.alive()
        assert (await asked(address, get("/readyz")))[0] == "200"
        (watcher,), (task,) = manager.watchers("demo"), manager.background_tasks("demo")
        await watcher.observed(WELL, plan(WELL))
        assert 'quarterdeck_plane_settled{plane="demo"} 1.0' in (await asked(address, get("/metrics")))[1]
        assert task.name == "measures"


def labels_of(text: bytes, name: str) -> dict[str, str]:
    return dict(re.findall(rf"^{name}{{(.*)}} (\S+)$", text.decode(), re.MULTILINE))


async def test_what_two_processes_tell_is_told_as_one() -> None:
    here, there = Metrics(), Metrics()
    here.observed("demo", WELL, plan(WELL))
    there.observed("away", WELL, plan(WELL))
    there.observed("demo", replace(WELL, membership=None), Plan(waiting=(Wait("a quorum", "see to it"),)))
    step = SetRecord(site="east", why="", to="east")
    for metrics, plane, seconds in ((here, "demo", 0.02), (there, "away", 0.07), (there, "away", 0.07)):
        await metrics.of(plane).ended(step, seconds, None)
    found = merged((here.text(), there.text()))
    assert labels_of(found, "quarterdeck_plane_settled") == {'plane="demo"': "1.0", 'plane="away"': "1.0"}
    counted = labels_of(found, "quarterdeck_steps_total")
    assert sorted(counted.values()) == ["1.0", "2.0"]
    took = labels_of(found, "quarterdeck_step_duration_seconds_bucket")
    assert [took[f'le="{bound}",step="set-record"'] for bound in ("0.01", "0.05", "0.1", "+Inf")] == [
        *("0.0", "1.0", "3.0", "3.0")
    ]
    assert labels_of(found, "quarterdeck_step_duration_seconds_count") == {'step="set-record"': "3.0"}
    assert merged((here.text(),)) == here.text(), "nothing of one is lost"


async def test_a_process_on_another_network_tells_when_it_is_asked_and_ends_with_who_started_it() -> None:
    (asks, ask), (tell, answers) = os.pipe(), os.pipe()
    text, free = b"a" * 300_000, asyncio.Event()
    free.set()

    async def metrics() -> bytes:
        await free.wait()
        return text

    attending = asyncio.create_task(attended(Parent(asks=asks, answers=answers), metrics))
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    out, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(tell, "rb"))
    into, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(ask, "wb")
    )
    writer = asyncio.StreamWriter(into, protocol, None, loop)
    outpost = PipedMetrics(cast("Process", SimpleNamespace(stdin=writer, stdout=reader)))
    assert await outpost.metrics() == text
    free.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipes, "PATIENCE", 0.05)
        assert await outpost.metrics() is None, "nobody waits for one that hangs"
    free.set()
    assert await outpost.metrics() == text, "what comes late is the answer to one question only"
    assert await outpost.metrics() == text
    into.close()
    await asyncio.wait_for(attending, 5)
    assert await outpost.metrics() is None
    await outpost.end()
    out.close()


async def test_a_network_whose_process_does_not_answer_is_named() -> None:
    metrics = Metrics()

    async def others() -> tuple[bytes, ...]:
        metrics.answered({"netns": False})
        return ()

    async with serve_metrics(metrics, ListenAddress("127.0.0.1", 0), store=MemoryStore(), others=others) as address:
        assert 'quarterdeck_network_answered{network="netns"} 0.0' in (await asked(address, get("/metrics")))[1]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9477", "127.0.0.1:9477"),
        ("9477", "127.0.0.1:9477"),
        (":9477", "127.0.0.1:9477"),
        ("[::1]:9477", "[::1]:9477"),
        ("0.0.0.0:0", "0.0.0.0:0"),
    ],
)
def test_an_address_to_listen_at_is_read(text: str, address: str) -> None:
    assert str(ListenAddress.parse(text)) == address


@pytest.mark.parametrize("text", ["", "here:1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "[::1]", "::1:-1", "1:²"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="9477"):
        ListenAddress.parse(text)


# --- what is written of them ----------------------------------------------------------------------------------------


def queries() -> Iterator[str]:
    yield from re.findall(r"expr: (?:>-\n((?:\s{10}.*\n)+)|(.*))", (DOCS / "monitoring" / "rules.yml").read_text())
    for panel in json.loads(dashboard.dashboard())["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def test_rules_and_dashboard_ask_only_for_metrics_that_there_are_with_labels_that_they_have() -> None:
    known: Mapping[str, frozenset[str]] = {
        name: frozenset(each.labels)
        for each in METRICS
        for name in (each.name, *([f"{each.name}_bucket"] if each.kind is MetricKind.HISTOGRAM else []))
    }
    found = ["".join(each) for each in queries()]
    assert len(found) > 30
    for query in found:
        asked_for = re.findall(r"\b(quarterdeck_\w+)(?:\{([^}]*)\})?", query)
        assert asked_for or "up{" in query, query
        for name, labels in asked_for:
            assert name in known, query
            assert set(re.findall(r"(\w+)\s*[=!]", labels)) <= known[name], query


def test_every_metric_is_told_by_somebody() -> None:
    text = "".join(each.read_text() for each in (DOCS.parent / "src/quarterdeck/metrics").glob("*.py"))
    names = {value: name for name, value in vars(catalogue).items() if isinstance(value, catalogue.Metric)}
    assert set(names) == set(METRICS)
    assert not [
        each.name for each in METRICS if each.kind is MetricKind.GAUGE and f"catalogue.{names[each]}" not in text
    ]
