"""What ``status`` says, once or as long as somebody watches."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from model.stories import serving
from rich.console import Console
from support.cli_lab import Cli
from support.golden import Golden

from quarterdeck.api.base import Condition, ConditionStatus, instant
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.output.status import PlaneStatus
from quarterdeck.app.plane_status import summary
from quarterdeck.app.plane_watch import Event, Watch, WatchedPlane
from quarterdeck.app.words import survival
from quarterdeck.cli.change_lines import ChangeLines
from quarterdeck.cli.plane_text import status_lines
from quarterdeck.cli.screen import screen
from quarterdeck.endpoint.dns.coredns import CoreDns
from quarterdeck.engine.status import Status
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import Unavailable
from quarterdeck.model.components import Component
from quarterdeck.model.endpoints import Sighting
from quarterdeck.model.leadership import Leadership
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan
from quarterdeck.stores.port import EventType


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers for names, and that at once."""

    async def look(self: CoreDns, name: str) -> Sighting:
        raise Unavailable("asking the DNS server", "nobody is there")

    monkeypatch.setattr(CoreDns, "look", look)


def seen(world: World, resource: ControlPlane | None = None, **more: object) -> WatchedPlane:
    """A plane as it is watched, of which this was observed."""
    resource = resource or new_control_plane("demo", site="east")
    status = Status(plane=resource, world=world, plan=plan(world), operation=None, driver="", leaders={})
    return replace(WatchedPlane(name="demo", facts=summary(status), looked=1), **more)


def facts(world: World, resource: ControlPlane | None = None) -> PlaneStatus:
    found = seen(world, resource).facts
    assert found is not None
    return found


def shown(*planes: WatchedPlane, one: bool, width: int = 160) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(screen(planes, one=one))
    return console.export_text()


WELL = serving()
FALLEN = replace(WELL, membership=None)
EVENT = Event(
    plane="demo", type=EventType.WARNING, reason="NoQuorum", message="no quorum [of] all", first=1.0, last=2.0
)


def test_status_says_what_a_plane_survives_and_why_not_the_rest(cli: Cli, golden: Golden) -> None:
    cli.plane()
    result = cli("status", "demo")
    assert result.code == 1
    assert "survives: nothing\n" in result.out
    golden(result.out)
    fact = json.loads(cli("status", "demo", "-o", "json").out)
    assert {each["failure"] for each in fact["survives"]} == {"machine", "host", "zone", "edge", "dns", "site"}
    assert all(each["answer"] != "yes" and each["reasons"] for each in fact["survives"])


def test_what_is_survived_comes_first_and_what_has_the_same_reason_is_said_together(golden: Golden) -> None:
    golden(survival(facts(WELL).survives))
    golden(survival(facts(FALLEN).survives)[-1])
    assert survival(()) == ()


def test_a_plane_whose_controllers_nobody_leads_is_not_healthy_and_says_why_and_what_to_do(golden: Golden) -> None:
    ghost = Leadership(
        component=Component.SCHEDULER,
        lease="kube-scheduler",
        holder="ghost",
        led=False,
        expired=False,
        expires_at=1.8e9,
    )
    fact = facts(replace(WELL, leading=(ghost,)))
    assert not fact.healthy
    assert [each.message for each in fact.warnings] == [ghost.trouble]
    golden(ghost.trouble)
    lines = status_lines(fact)
    golden(lines[0])
    assert f"[yellow]warning:[/yellow] {ghost.trouble}" in lines


def test_known_flaws_of_the_versions_are_warnings() -> None:
    plane = new_control_plane("demo", site="east")
    assert facts(WELL, plane).warnings == ()
    etcd = plane.spec.etcd.model_copy(update={"version": "3.6.13"})
    (warning,) = facts(WELL, plane.with_spec(etcd=etcd)).warnings
    assert warning.message.startswith("etcd 3.6.13 has flaws that 3.6.14 does not have: ")


def test_a_status_needs_a_name_unless_it_goes_on(cli: Cli, golden: Golden) -> None:
    golden(cli.refused("status", code=2).err)
    cli.refused("status", "demo", "--watch", code=3, says=('"demo"',))
    golden(cli.refused("status", "--watch", "-o", "yaml", code=2).err)


def test_without_a_terminal_each_change_is_a_line_and_what_stays_is_not_said_again(golden: Golden) -> None:
    changes = ChangeLines()
    first = list(changes.lines((seen(WELL),)))
    golden(first)
    assert not list(changes.lines((seen(WELL),)))
    lost = list(changes.lines((seen(FALLEN, events=(EVENT,)),)))
    golden(lost)
    assert [each for each in lost if each.startswith("demo  warning: ")]
    golden(list(changes.lines((seen(FALLEN, trouble="away"),))))
    golden(list(changes.lines((seen(WELL),))))
    golden(list(changes.lines(())))


def test_one_screen_has_members_with_their_lag_conditions_survival_and_the_last_events() -> None:
    ready = Condition(
        type="Ready",
        status=ConditionStatus.FALSE,
        reason="Waiting",
        message="for [it]",
        last_transition_time=instant(0),
    )
    text = shown(seen(WELL, conditions=(ready,), events=(EVENT,)), one=True)
    for words in ("demo at east: healthy", "survives: one machine", "LAG", "Ready", "for [it]", "no quorum [of] all"):
        assert words in text
    assert "not seen now: away" in shown(seen(WELL, trouble="away"), one=True)


def test_the_screen_of_all_planes_has_a_line_for_each_and_also_for_those_that_were_not_seen(golden: Golden) -> None:
    text = shown(seen(WELL), WatchedPlane(name="other", trouble="its site is gone" * 9), one=False, width=100)
    (well,) = (line for line in text.splitlines() if line.startswith("demo"))
    assert "healthy" in well
    assert "3/3" in well
    golden(well)
    assert "its site is gone" in text
    assert "no planes" in shown(one=False)


async def test_who_watches_sees_planes_come_and_go_and_ends_with_the_one_that_was_named(tmp_path: Path) -> None:
    home = await Home.open(tmp_path / "home")
    try:
        for name in ("one", "two"):
            await home.store.create(new_control_plane(name, site="east"))
        all_planes = Watch(home=home, every=0.01).moments(None)
        assert [each.name for each in await anext(all_planes)] == ["one", "two"]
        of_one = Watch(home=home, every=0.01).moments("one")
        assert all(each.facts is not None for each in await anext(of_one))
        await home.forget(await home.store.get(ControlPlane, "one"))
        async with asyncio.timeout(10):
            assert [each.gone async for each, *_ in of_one][-1]
            while len(await anext(all_planes)) > 1:
                pass
        await all_planes.aclose()
    finally:
        await home.close()
    assert len(asyncio.all_tasks()) == 1, "nobody looks any more"
