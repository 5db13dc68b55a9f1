"""The observation of who leads: what is asked, how often, and what is found out when nobody does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from fakes.kube import FakeApiserver
from support.fake_plane import FakePlane
from support.golden import Golden

from quarterdeck.actions.addresses import apiserver_address, server_address
from quarterdeck.actions.plane import Plane
from quarterdeck.addons.applyset import PART_OF, ApplySetParent
from quarterdeck.components.controller import controller_manager, scheduler
from quarterdeck.engine.observation.observe_leaders import EVERY_S, LeadersObserver
from quarterdeck.model.components import Component
from quarterdeck.model.leadership import UNLED_S, Leadership
from quarterdeck.model.seats import PortName

PATH = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
LEASES = {controller_manager.LEASE: Component.CONTROLLER_MANAGER, scheduler.LEASE: Component.SCHEDULER}
REFUSED = 'Internal error occurred: failed calling webhook "all.example.com": connection refused'


class Lab:
    """A plane whose controllers lead, or do not."""

    def __init__(self, fake: FakePlane, plane: Plane) -> None:
        self.fake, self.kube = fake, fake.kube
        self.plane = plane
        self.kube.clock = lambda: fake.clocks.wall
        self.kube.apiservers = {apiserver_address(each): FakeApiserver() for each in plane.memory.replicas}
        self.kube.holders = {(f"system:{lease}", lease) for lease in LEASES}
        self.observer = LeadersObserver(plane=plane)
        self.ready: Mapping[str, bool | None] = {each.name: True for each in plane.memory.replicas}
        for lease in LEASES:
            self.take(lease, "east-1")

    def take(self, lease: str, replica: str) -> None:
        """A program of a replica holds a lease, and says so."""
        for record in self.plane.memory.replicas:
            address = server_address(record, PortName(LEASES[lease]))
            held = self.kube.leaders.get(address, frozenset()) - {lease}
            self.kube.leaders[address] = held | {lease} if record.name == replica else held
        self.renew(lease, f"host_{replica}")

    def renew(self, lease: str, holder: str, **lasts: float) -> None:
        self.kube.set_lease(lease, holder, renewed=self.fake.clocks.wall, **lasts)

    async def look(self, seconds: float = 0.0, *renewed: tuple[str, str]) -> dict[Component, Leadership]:
        """The last of looks over some seconds, in which these leases are renewed by these holders."""
        for _ in range(int(seconds / EVERY_S) + 1 if seconds else 0):
            self.fake.clocks.pass_(EVERY_S)
            for lease, holder in renewed:
                self.renew(lease, holder)
            await self.observer.observe(self.plane.memory, self.ready)
        return {each.component: each for each in await self.observer.observe(self.plane.memory, self.ready)}

    async def trouble(self, lease: str = scheduler.LEASE) -> str:
        """What is said of one that a ghost has taken, once it is known."""
        self.renew(lease, "ghost", duration=86_400.0)
        return (await self.look(UNLED_S + EVERY_S))[LEASES[lease]].trouble


@pytest.fixture
async def lab() -> Lab:
    fake = FakePlane()
    return Lab(fake, await fake.open())


def configuration(called: str, labels: Mapping[str, str] | None = None, **webhook: Any) -> dict[str, Any]:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}
    made = {"name": "all.example.com", "rules": [rule], **webhook}
    return {"metadata": {"name": called, **({"labels": labels} if labels else {})}, "webhooks": [made]}


async def test_who_renews_leads(lab: Lab) -> None:
    held = [(lease, "host_east-1") for lease in LEASES]
    found = await lab.look(120.0, *held)
    assert {each.led for each in found.values()} == {True}
    assert {each.replica for each in found.values()} == {"east-1"}


async def test_a_takeover_by_another_of_ours_is_followed(lab: Lab) -> None:
    await lab.look(20.0)
    lab.take(scheduler.LEASE, "west-1")
    found = await lab.look(EVERY_S, (controller_manager.LEASE, "host_east-1"))
    assert (found[Component.SCHEDULER].replica, found[Component.SCHEDULER].led) == ("west-1", True)


async def test_a_ghost_is_told_of_within_a_minute_with_who_it_is_and_the_command_that_mends_it(
    lab: Lab, golden: Golden
) -> None:
    held = (controller_manager.LEASE, "host_east-1")
    await lab.look(20.0, held)
    lab.renew(scheduler.LEASE, "ghost", duration=86_400.0)
    took = 0.0
    while (found := await lab.look(EVERY_S, held))[Component.SCHEDULER].led is not False:
        took += EVERY_S
        assert took <= 60.0
    assert found[Component.CONTROLLER_MANAGER].led is True
    golden(found[Component.SCHEDULER].trouble)
    lab.kube.delete_lease(scheduler.LEASE)
    lab.take(scheduler.LEASE, "east-2")
    assert (await lab.look(EVERY_S, held))[Component.SCHEDULER].trouble == ""


async def test_a_webhook_that_refuses_is_named_with_the_command_that_takes_it_out(lab: Lab, golden: Golden) -> None:
    lab.kube.objects.put(f"{PATH}/dead", configuration("dead"))
    lab.kube.objects.put(f"{PATH}/harmless", configuration("harmless", name="other.example.com"))
    lab.kube.refuses_leases = REFUSED
    trouble = await lab.trouble()
    golden(trouble)
    assert "harmless" not in trouble


async def test_a_webhook_that_delays_is_named_though_its_failure_is_ignored(lab: Lab, golden: Golden) -> None:
    lab.kube.objects.put(f"{PATH}/slow", configuration("slow", failurePolicy="Ignore", timeoutSeconds=30))
    lab.kube.delays_leases = True
    trouble = await lab.trouble(controller_manager.LEASE)
    golden(trouble)


async def test_a_refusal_whose_words_differ_in_numbers_alone_is_told_once(lab: Lab) -> None:
    lab.kube.refuses_leases = "read tcp 127.0.0.1:53412->127.0.0.1:8443: connection reset by peer"
    first = await lab.trouble()
    lab.kube.refuses_leases = "read tcp 127.0.0.1:53991->127.0.0.1:8443: connection reset by peer"
    assert (await lab.look(60.0))[Component.SCHEDULER].trouble == first
    lab.kube.refuses_leases = "denied"
    assert "refused: denied" in (await lab.look(60.0))[Component.SCHEDULER].trouble


async def test_a_webhook_of_an_add_on_would_come_again(lab: Lab, golden: Golden) -> None:
    parent = ApplySetParent("policy", frozenset(), frozenset())
    lab.kube.objects.put(f"/api/v1/namespaces/kube-system/configmaps/{parent.name}", parent.manifest())
    lab.kube.objects.put(f"{PATH}/dead", configuration("dead", {PART_OF: parent.id}))
    lab.kube.refuses_leases = REFUSED
    golden(await lab.trouble())


async def test_a_refusal_of_another_kind_is_told_in_its_own_words(lab: Lab, golden: Golden) -> None:
    lab.kube.refuses_leases = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"
    golden(await lab.trouble())


async def test_a_webhook_that_takes_no_trial_is_named_as_what_may_be_in_the_way(lab: Lab, golden: Golden) -> None:
    lab.kube.objects.put(f"{PATH}/old", configuration("old"))
    lab.kube.refuses_leases = 'admission webhook "all.example.com" does not support dry run'
    golden(await lab.trouble())


async def test_rights_that_are_gone_are_told_of(lab: Lab, golden: Golden) -> None:
    lab.kube.holders.clear()
    golden(await lab.trouble())


async def test_nothing_is_said_where_no_apiserver_answers(lab: Lab) -> None:
    lab.ready = dict.fromkeys(lab.ready)
    assert await lab.look(300.0) == {}


async def test_a_settled_plane_is_asked_for_each_lease_every_few_looks_and_its_programs_once(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name in ("leader_lease", "leads", "try_lease", "may_hold", "read"):
        inner = getattr(lab.kube, name)

        async def called(*args: object, _inner: Any = inner, _name: str = name, **kwargs: object) -> object:
            calls.append(_name)
            return await _inner(*args, **kwargs)

        monkeypatch.setattr(lab.kube, name, called)
    for _ in range(60):
        lab.fake.clocks.pass_(1.0)
        for lease in LEASES:
            lab.renew(lease, "host_east-1")
        await lab.observer.observe(lab.plane.memory, lab.ready)
    assert calls.count("leader_lease") <= 2 * (60 // EVERY_S + 1)
    assert calls.count("leads") == 2 * 3
    assert {*calls} == {"leader_lease", "leads"}
