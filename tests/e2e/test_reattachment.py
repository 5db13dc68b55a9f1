"""Two of three machines die for good, and volumes outlive their machines: the members come back on others with all that
they had, as who they were, and no epoch is begun.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import yaml
from support.conditions import until
from support.plane_lab import PlaneLab

from quarterdeck.actions.addresses import client_urls
from quarterdeck.actions.plane import Plane
from quarterdeck.etcd.facts import ListedMember
from quarterdeck.planner.survivors import survivors

#: A soak: tests/loop has it at any call, contract suites the storage, and test_quorum_loss what is left without it.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

NAME = "demo"


@pytest.fixture
def kept(demo: PlaneLab) -> Iterator[PlaneLab]:
    """The plane demo, whose volumes can be attached to any machine of its site, whatever was healed within the last
    hour; as it was afterwards.
    """
    site = demo.plane(NAME).spec.placement.site
    was = yaml.safe_load(demo.run("get", NAME, "-o", "yaml").out)
    plane = {**was, "metadata": {"name": NAME}}
    del plane["status"]

    def apply(*, reattachable: bool) -> None:
        place = {
            "apiVersion": "quarterdeck.dev/v1alpha1",
            "kind": "Site",
            "metadata": {"name": site},
            "spec": {"storageClasses": [{"name": "standard", "reattachable": reattachable}]},
        }
        spec = {**plane["spec"], "healing": {"budget": 20}} if reattachable else plane["spec"]
        demo.run("apply", "-f", str(demo.file(yaml.safe_dump_all([place, {**plane, "spec": spec}]))))

    apply(reattachable=True)
    try:
        yield demo
    finally:
        demo.boot_all()
        apply(reattachable=False)


def members(lab: PlaneLab) -> dict[str, ListedMember]:
    async def ask(plane: Plane) -> tuple[ListedMember, ...]:
        return await plane.etcd.members(client_urls(plane))

    return {each.name: each for each in lab.opened(NAME, ask)}


def test_members_of_dead_machines_come_back_elsewhere_as_who_they_were(kept: PlaneLab) -> None:
    site, client = kept.plane(NAME).spec.placement.site, kept.client(NAME)
    until(lambda: client.writes("written-before-they-died"), "a write is acknowledged")
    was, before = kept.plane(NAME).status.memory, members(kept)
    were = {each.name: each.machine for each in was.replicas}
    dead = dict(sorted(were.items())[1:])
    since = time.monotonic()
    for machine in dead.values():
        kept.kill_machine(site, machine)

    def is_lost() -> bool:
        left = survivors(kept.look(NAME).world)
        return left is not None and left.lost

    until(is_lost, "the quorum is lost")
    kept.run("wait", NAME)
    print(f"as wanted {time.monotonic() - since:.1f} s after two machines died")
    memory, after = kept.plane(NAME).status.memory, members(kept)
    assert (memory.epoch, memory.condemned) == (was.epoch, ())
    assert {name: each.id for name, each in after.items()} == {name: each.id for name, each in before.items()}
    are = {each.name: each.machine for each in memory.replicas}
    assert {name for name in are if are[name] != were[name]} == dead.keys()
    assert all(after[name].peer_urls != before[name].peer_urls for name in dead)
    until(lambda: client.writes("written-afterwards"), "another write is acknowledged")
    assert {"written-before-they-died", "written-afterwards"} <= client.names("configmaps")

    for machine in dead.values():
        kept.boot_machine(site, machine)
    kept.run("wait", NAME)
    assert kept.plane(NAME).status.memory.left == ()
    for machine in dead.values():
        assert kept.on_site(site, lambda driver, machine=machine: driver.units(machine)) == ()
    assert kept.status(NAME, code=0)["voters"] == 3
