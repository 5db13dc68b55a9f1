"""Certificates that kubelets serve with: approved for nodes that ask for themselves; others are told of once."""

from __future__ import annotations

import pytest
from support.golden import Golden
from support.joining_lab import JoiningLab, signing_request

from quarterdeck.api.plane.nodes import Nodes
from quarterdeck.engine.background.certificates import ApproveNodes
from quarterdeck.kube.port import Refusal, Refused
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import ReplicaFact, World

USER = "system:node:n1"


@pytest.fixture
async def lab() -> JoiningLab:
    made = await JoiningLab.made()
    made.node("n1", "10.0.9.1")
    return made


async def turn(lab: JoiningLab, task: ApproveNodes, *, ready: bool = True) -> None:
    facts = tuple(
        ReplicaFact(name=each.name, machine=MachineState.UP, units=(), ready=ready)
        for each in lab.plane.memory.replicas
    )
    await task.turn(lab.plane, World(slots=(), memory=lab.plane.memory, now=0.0, replicas=facts))


async def messages(lab: JoiningLab) -> list[str]:
    return [each.message for each in await lab.fake.store.events("demo") if each.reason == "NodeCertificateNotApproved"]


def good(lab: JoiningLab) -> str:
    return lab.request("csr-1", USER, signing_request(USER, names=("n1",), addresses=("10.0.9.1",)))


async def test_a_node_that_asks_for_itself_is_approved_once(lab: JoiningLab) -> None:
    path, task = good(lab), ApproveNodes()
    await turn(lab, task)
    assert lab.approved(path)
    assert lab.objects.calls == [f"apply {path}/approval"]
    await turn(lab, task)
    assert len(lab.objects.calls) == 1, "it was decided on"
    assert await messages(lab) == []


async def test_one_that_asks_for_the_planes_address_is_left_to_a_person_and_told_of_once(
    lab: JoiningLab, golden: Golden
) -> None:
    own = "127.0.1.1"
    lab.node("evil", own)
    user = "system:node:evil"
    path, task = lab.request("csr-2", user, signing_request(user, addresses=(own,))), ApproveNodes()
    for _ in range(3):
        await turn(lab, task)
    assert not lab.approved(path)
    golden(await messages(lab))


async def test_what_an_apiserver_refuses_is_told_of_and_tried_again(lab: JoiningLab, golden: Golden) -> None:
    path, task = good(lab), ApproveNodes()
    lab.objects.refuses["csr-1"] = Refused("applying", "some policy says no", Refusal.LATER)
    await turn(lab, task)
    golden(await messages(lab))
    lab.objects.refuses.clear()
    await turn(lab, task)
    assert lab.approved(path)


async def test_nothing_is_asked_of_planes_that_take_no_nodes_or_do_not_serve(lab: JoiningLab) -> None:
    path, task = good(lab), ApproveNodes()
    await turn(lab, task, ready=False)
    await lab.say(Nodes(bootstrap=False))
    await turn(lab, task)
    assert not lab.approved(path)


async def test_requests_of_other_kinds_are_nobodys_business(lab: JoiningLab) -> None:
    path = lab.request("csr-3", USER, signing_request(USER, addresses=("10.0.9.1",)), signer="example.com/other")
    await turn(lab, ApproveNodes())
    assert not lab.approved(path)
