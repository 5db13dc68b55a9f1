"""A site that is not declared any more says so to whatever is asked of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.golden import Golden

from quarterdeck.errors import Unavailable
from quarterdeck.model.units import Fence, Machine, MachineState
from quarterdeck.sites.former_site import former_site
from quarterdeck.sites.port import Faults, Holds, SitePort

KNOWN = Machine(name="east-a1", site="east", zone="a", address="127.0.0.1", state=MachineState.UNREACHABLE)


#: Of the calls of the port, those that a former site answers.
ANSWERED = {"machines", "facts", "storage_classes"}


def calls() -> Iterator[str]:
    for port in (SitePort, Holds):
        for name, call in vars(port).items():
            if inspect.iscoroutinefunction(call) and name not in ANSWERED:
                yield name


async def test_its_machines_are_known_and_nothing_else_is() -> None:
    site = former_site("east", (KNOWN,))
    assert await site.machines() == (KNOWN,)
    assert [each.machine for each in (await site.facts("member")).machines] == [KNOWN]
    assert await site.storage_classes() == (), "so that data which cannot be looked at is unknown, not lost"
    assert site.folder("east-a1", "x").is_absolute()
    assert site.fenced(Fence("demo", 3)).name == "east"
    assert site.capabilities == frozenset()
    assert isinstance(site, Holds)
    assert not isinstance(site, Faults)


@pytest.mark.parametrize("call", [*calls()])
async def test_each_other_call_says_that_it_is_not_declared_any_more(call: str) -> None:
    site = former_site("east", (KNOWN,))
    with pytest.raises(Unavailable, match="machine east-a1: site east"):
        await getattr(site, call)("east-a1")


async def test_a_call_of_the_site_as_a_whole_names_all_its_machines(golden: Golden) -> None:
    site = former_site("east", (KNOWN, replace(KNOWN, name="east-b1")))
    with golden.raises(Unavailable):
        await site.require_room("adding replicas", 1)
    with golden.raises(Unavailable):
        await site.stop_unit("east-b1", "etcd", kill=True)
