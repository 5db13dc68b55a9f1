"""A component is one record: what is added to the catalogue is known wherever programs of replicas are dealt with."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import cast

import pytest
from model.stories import step_words
from model.worlds import FORMER, NEW, changing, settled
from support.small_plane import NAME, SmallPlane, with_volume
from support.templates import CLUSTER, REPLICA, template
from support.token_webhook import PORT, SERVING, TOKEN_WEBHOOK, WEBHOOK, WebhookTemplate

from quarterdeck.actions.addresses import server_address
from quarterdeck.actions.certificates import certificates_of
from quarterdeck.actions.seats import settle_seats
from quarterdeck.actions.units import start_unit, stop_unit
from quarterdeck.app import logs
from quarterdeck.app.certificates import purposes
from quarterdeck.app.plane_status import summary
from quarterdeck.cli.context import Output
from quarterdeck.cli.plane_text import print_members
from quarterdeck.components.catalogue import CATALOGUE, named, programs_of
from quarterdeck.components.difference import change, differences
from quarterdeck.components.ports import ports_of, seat_at
from quarterdeck.components.replica import component_unit
from quarterdeck.components.settings import Inputs
from quarterdeck.components.template import Revisions
from quarterdeck.drills.aim import Ground, Wish, aim
from quarterdeck.engine.observation.assemble import Dated, ReplicaPlace, ServerFacts
from quarterdeck.engine.observation.liveness import Liveness
from quarterdeck.engine.observation.observe_leaders import led_kinds
from quarterdeck.engine.reconcile.drive import released
from quarterdeck.engine.status import Status
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import InvalidInput, PreconditionFailed
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.faults import Fail, FaultKind
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.steps.units import RejectRevision, StartUnit, StopUnit
from quarterdeck.model.units import UnitState, UnitStatus
from quarterdeck.pki.codec import decode, encode
from quarterdeck.pki.issuance import ReplicaNames, create_plane_secrets, with_replica, without_program
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import apply, observe
from quarterdeck.planner.simulated.dry_run import dry_run
from quarterdeck.planner.simulated.truth import Truth
from quarterdeck.stores.lease import LeaseGuard

NOW = datetime(2026, 3, 1, tzinfo=UTC)
BEFORE = WebhookTemplate.model_validate(template().model_dump())
AFTER = BEFORE.model_copy(update={"token_webhook": "/opt/webhook"})
A1, UNIT = "east-a1", f"{NAME}-east-1-{TOKEN_WEBHOOK}"


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row of the catalogue."""
    monkeypatch.setitem(CATALOGUE, TOKEN_WEBHOOK, WEBHOOK)


# The catalogue


def test_a_revision_has_it_or_not() -> None:
    assert TOKEN_WEBHOOK not in programs_of(BEFORE)
    assert programs_of(AFTER) == (*programs_of(BEFORE), TOKEN_WEBHOOK)
    assert named("token-webhook") is TOKEN_WEBHOOK
    with pytest.raises(InvalidInput, match="there is no webhook"):
        named("webhook")


def test_a_change_of_it_starts_nothing_else_again() -> None:
    (found,) = differences(BEFORE, AFTER)
    assert (found.path, found.before, found.after) == ("spec.tokenWebhook", "unset", "/opt/webhook")
    assert change(BEFORE, AFTER) == change(AFTER, BEFORE) == ReplicaChange(restart=frozenset({TOKEN_WEBHOOK}))
    renewed = AFTER.model_copy(update={"certificates": AFTER.certificates.model_copy(update={"generation": 1})})
    assert TOKEN_WEBHOOK in change(AFTER, renewed).restart


def test_each_seat_has_its_port_and_its_unit_listens_there() -> None:
    assert ports_of(1)[PORT.name] == PORT.number + 10
    names = ReplicaNames(replica="demo-1", addresses=("10.0.0.1",), service_ip="10.96.0.1", programs=(TOKEN_WEBHOOK,))
    secrets = with_replica(create_plane_secrets("demo", NOW), names, NOW)
    issued = secrets.replica("demo-1")
    assert issued is not None
    replica = replace(
        REPLICA,
        seat=seat_at("east-a1", "10.0.0.1", 0),
        folders={TOKEN_WEBHOOK: PurePosixPath("/units")},
        programs={TOKEN_WEBHOOK: PurePosixPath("/opt/webhook")},
    )
    inputs = Inputs(
        plane="demo", template=AFTER, replica=replica, secrets=secrets, certificates=issued, initial=CLUSTER
    )
    unit = component_unit(TOKEN_WEBHOOK, inputs)
    assert (unit.name, unit.after) == ("demo-demo-1-token-webhook", ("demo-demo-1-kube-apiserver",))
    assert unit.argv[:2] == ("/opt/webhook", f"--listen=https://10.0.0.1:{PORT.number}")
    assert [each.content for each in unit.files] == [issued.of(SERVING).certificate, issued.of(SERVING).key]


def test_a_program_that_a_revision_names_is_not_fetched() -> None:
    assert TOKEN_WEBHOOK not in released()


# Certificates


def test_its_certificate_comes_and_goes_with_it_and_says_what_it_is_for() -> None:
    names = ReplicaNames(
        replica="demo-1", addresses=("10.0.0.1",), service_ip="10.96.0.1", programs=programs_of(BEFORE)
    )
    before = with_replica(create_plane_secrets("demo", NOW), names, NOW)
    after = with_replica(before, replace(names, programs=programs_of(AFTER)), NOW)
    one, other = before.replica("demo-1"), after.replica("demo-1")
    assert one is not None
    assert other is not None
    assert other.pairs.keys() - one.pairs.keys() == {SERVING.name}
    assert one.pairs.items() <= other.pairs.items()
    assert decode(encode(after)) == after
    assert without_program(after, "demo-1", TOKEN_WEBHOOK).replica("demo-1") == one
    assert purposes()["token-webhook"] == "token-webhook serves"


# The planner, and the simulator that forecasts are made with


def asked(*, broken: bool = False, off: bool = False) -> Truth:
    """A plane of three replicas, of which a revision with it has just been asked for, or (``off``) one without it."""
    templates = {FORMER: AFTER, NEW: BEFORE} if off else {FORMER: BEFORE, NEW: AFTER}
    known = Revisions(goal=NEW, templates=templates)
    truth = changing(3, 3, ReplicaChange(), broken=TOKEN_WEBHOOK if broken else None)
    before = replace(truth, revision=FORMER, programs=known.programs, changes=known.changes)
    return replace(settled(before), revision=NEW)


def runs(truth: Truth) -> set[str]:
    return {name for name, each in truth.replicas if TOKEN_WEBHOOK in each.units}


def test_it_comes_to_one_replica_after_the_other_and_leaves_them_again() -> None:
    steps = [step_words(each.step) for each in dry_run(observe(asked())).steps]
    starts = [f"StartUnit {TOKEN_WEBHOOK} of east-{number}" for number in (2, 3, 1)]
    assert sorted(starts) == sorted(each for each in steps if each.startswith("StartUnit"))
    assert not [each for each in steps if each.startswith("StopUnit")], "nothing stops for it"
    assert runs(settled(asked())) == {"east-1", "east-2", "east-3"}
    assert runs(asked(off=True)) == {"east-1", "east-2", "east-3"}
    assert runs(settled(asked(off=True))) == set()


def test_one_that_does_not_start_is_given_up_on_the_first_replica() -> None:
    truth = asked(broken=True)
    for _ in range(40):
        now = plan(observe(truth)).now
        found = [each for each in now if isinstance(each, RejectRevision)]
        if found:
            assert found[0].component == TOKEN_WEBHOOK
            assert len(runs(truth)) == 1
            return
        for each in now:
            truth = apply(truth, each)
    raise AssertionError("nothing was given up")


# A plane


async def with_it() -> SmallPlane:
    """A plane of three replicas whose only revision has it."""
    small = await with_volume(A1)
    await settle_seats(small.plane)
    return revised(small, AFTER)


def revised(small: SmallPlane, template: WebhookTemplate) -> SmallPlane:
    small.plane.revisions = replace(small.plane.revisions, templates={"": template})
    world = replace(small.world, memory=small.plane.memory, programs=small.plane.revisions.programs)
    return replace(small, world=world)


async def test_its_unit_starts_and_is_removed_with_its_certificate_when_no_revision_has_it() -> None:
    small = await with_it()
    step = StartUnit(site="east", why="", replica="east-1", component=TOKEN_WEBHOOK)
    await start_unit(small.plane, step, small.world)
    assert [(each.name, each.state) for each in await small.sites["east"].units(A1)] == [(UNIT, UnitState.RUNNING)]
    assert SERVING.name in (await certificates_of(small.plane, small.record("east-1"))).pairs
    small = revised(small, BEFORE)
    stop = StopUnit(site="east", why="", replica="east-1", component=TOKEN_WEBHOOK)
    await stop_unit(small.plane, stop, small.world)
    assert not await small.sites["east"].units(A1)
    left = small.plane.secrets.replica("east-1")
    assert left is not None
    assert SERVING.name not in left.pairs


async def test_it_leads_nothing() -> None:
    small = await with_it()
    kinds = led_kinds(small.plane, small.plane.memory.replicas)
    assert kinds == (Component.CONTROLLER_MANAGER, Component.SCHEDULER)


async def test_its_logs_are_among_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    small = await with_it()

    async def reached(home: Home, plane: object) -> None:
        del home, plane

    async def known(store: object, plane: object, *, guess: bool) -> Revisions:
        assert guess
        return small.plane.revisions

    async def asked_for(name: str) -> str:
        return name

    async def read(machine: str, unit: str, *, lines: int) -> str:
        del machine, lines
        return unit

    monkeypatch.setattr(logs, "require_in_reach", reached)
    monkeypatch.setattr(logs.revisions, "known", known)
    sites = SimpleNamespace(open=lambda name: SimpleNamespace(logs=read))
    home = cast("Home", SimpleNamespace(store=small.plane.store, sites=sites, site=asked_for))
    every = [each async for each in logs.tails(home, NAME, replica="east-1", component=None, lines=5)]
    assert [each.component for each in every] == [*programs_of(AFTER)]
    assert every[-1].text == UNIT


async def test_a_status_has_its_state_and_a_wide_one_its_column(capsys: pytest.CaptureFixture[str]) -> None:
    small = await with_it()
    facts = tuple(
        replace(each, units=(*each.units, (TOKEN_WEBHOOK, UnitState.RUNNING))) for each in small.world.replicas
    )
    world = replace(small.world, replicas=facts)
    status = Status(plane=small.plane.resource, world=world, plan=plan(world), operation=None, driver="", leaders={})
    rows = summary(status).members
    assert {each.components[TOKEN_WEBHOOK] for each in rows} == {"running"}
    print_members(rows, Output.WIDE)
    assert "TOKEN-WEBHOOK" in capsys.readouterr().out.upper()


async def test_a_drill_may_strike_it_where_a_replica_has_it() -> None:
    small = await with_it()
    wish = Wish(fail=Fail.UNIT, component=TOKEN_WEBHOOK, replica="east-1")
    machines = tuple(small.plane.machines.values())
    ground = Ground(plane=NAME, site="east", world=small.world, machines=machines, hub=())
    (hit,) = aim(ground, wish).hits
    assert (hit.kind, hit.replica, hit.component) == (FaultKind.KILL_UNIT, "east-1", TOKEN_WEBHOOK)
    without = revised(small, BEFORE).world
    with pytest.raises(PreconditionFailed, match="east-1 has no token-webhook"):
        aim(replace(ground, world=without), wish)


async def test_it_is_asked_for_its_health() -> None:
    small = await with_it()
    small.plane.guard = cast("LeaseGuard", object())
    record, machine = small.record("east-1"), small.plane.machines["east", A1]
    unit = UnitStatus(name=UNIT, state=UnitState.RUNNING, pid=7)
    site = SiteFacts(name="east", machines=(MachineFacts(machine=machine, units=(unit,)),), storage_classes=())
    places = {record.name: ReplicaPlace(units={TOKEN_WEBHOOK: UNIT}, volume="", storage_class="")}
    memory = replace(small.plane.memory, replicas=(record,))

    async def silent() -> frozenset[Component]:
        found = await Liveness(plane=small.plane).observe(
            memory,
            places,
            {"east": Dated(0.0, site)},
            {record.name: Dated(0.0, ServerFacts(ready=True))},
            dict.fromkeys(Cluster),
        )
        return found[record.name].all if record.name in found else frozenset()

    assert await silent() == {TOKEN_WEBHOOK}, "nobody answers at its port"
    small.kube.leaders[server_address(record, PORT.name)] = frozenset()
    assert await silent() == frozenset()
