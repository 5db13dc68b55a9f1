"""What is stored is checked before an older version runs: what it cannot read is named, and nothing is recorded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.golden import Golden
from support.small_plane import SmallPlane, small_plane
from support.stored_values import protobuf
from support.templates import template

from quarterdeck.actions.carry_out import carry_out
from quarterdeck.actions.status import write_memory
from quarterdeck.components.template import Revisions
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.steps.stored import CheckStored

STEP = CheckStored(site="", why="", revision="older")
POD = protobuf("v1", "Pod", b"")
#: A type of 1.37 alone.
NEWER = protobuf("storagemigration.k8s.io/v1", "StorageVersionMigration", b"")


@pytest.fixture
async def small() -> SmallPlane:
    made = await small_plane()
    plane = made.plane
    newer, older = template(kubernetes_version="v1.37.2"), template(kubernetes_version="v1.36.3")
    plane.revisions = Revisions(goal="older", templates={"newer": newer, "older": older})
    records = tuple(replace(each, revision="newer") for each in plane.memory.replicas)
    await write_memory(plane, replace(plane.memory, replicas=records))
    made.cluster.put(b"/registry/pods/default/one", POD)
    return made


async def test_that_everything_can_be_read_is_recorded(small: SmallPlane) -> None:
    assert await carry_out(small.plane, STEP, small.world) == {"storedObjects": 1}
    assert small.plane.memory.readable == "older"


@pytest.mark.parametrize("value", [NEWER, b"k8s:enc:secretbox:v1:gone:xxxx", b"\xff"])
async def test_what_cannot_be_read_or_is_not_known_is_named(value: bytes, small: SmallPlane, golden: Golden) -> None:
    small.cluster.put(b"/registry/things/default/two", value)
    with golden.raises(PreconditionFailed):
        await carry_out(small.plane, STEP, small.world)
    assert small.plane.memory.readable == ""


async def test_what_the_newer_version_cannot_read_either_is_no_obstacle(small: SmallPlane) -> None:
    small.cluster.put(b"/registry/podsecuritypolicy/old", protobuf("policy/v1beta1", "PodSecurityPolicy", b""))
    await carry_out(small.plane, STEP, small.world)
    assert small.plane.memory.readable == "older"
