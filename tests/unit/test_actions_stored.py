"""What is stored is checked before an older version runs: what it cannot read is named, and nothing is recorded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.golden import Golden
from support.secretbox import seal
from support.small_plane import SmallPlane, small_plane
from support.stored_values import protobuf
from support.templates import template

from quarterdeck.actions.carry_out import carry_out
from quarterdeck.actions.status import write_memory
from quarterdeck.api.plane.keys import KeyUse
from quarterdeck.components.credentials import EncryptionKey, encryption_key_name
from quarterdeck.components.template import Revisions
from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.kube.port import Address
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


# Without a former key


KEYS = {each: EncryptionKey(encryption_key_name(each), bytes([each]) * 32) for each in (0, 1)}
SECRET = protobuf("v1", "Secret", b"")


def encrypted(key: EncryptionKey) -> bytes:
    return b"k8s:enc:secretbox:v1:" + key.name.encode() + b":" + seal(key.secret, bytes(24), SECRET)


@pytest.fixture
async def rotating(small: SmallPlane, monkeypatch: pytest.MonkeyPatch) -> SmallPlane:
    """All replicas encrypt with the second key, and the first one is to be given up: one Secret has it."""
    plane = small.plane
    both, second = (template(encryption_key=each) for each in (KeyUse(current=1, also=0), KeyUse(current=1)))
    plane.revisions = Revisions(goal="older", templates={"newer": both, "older": second})
    plane.secrets = replace(plane.secrets, encryption_keys=tuple(KEYS.values()))
    small.cluster.put(b"/registry/secrets/default/first", encrypted(KEYS[0]))
    small.cluster.put(b"/registry/secrets/default/second", encrypted(KEYS[1]))
    return small


async def test_what_a_former_key_encrypted_is_written_again_before_it_is_given_up(
    rotating: SmallPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    async def rewrite(_: Address, path: str) -> bool:
        written.append(path)
        rotating.cluster.put(b"/registry/secrets/default/first", encrypted(KEYS[1]))
        return True

    monkeypatch.setattr(rotating.plane.kube, "rewrite", rewrite)
    assert await carry_out(rotating.plane, STEP, rotating.world) == {"storedObjects": 3}
    assert written == ["/api/v1/namespaces/default/secrets/first"]
    assert rotating.plane.memory.readable == "older"


async def test_a_key_is_kept_as_long_as_an_object_needs_it(rotating: SmallPlane, golden: Golden) -> None:
    with golden.raises(PreconditionFailed):
        await carry_out(rotating.plane, STEP, rotating.world)
    assert rotating.plane.memory.readable == ""


async def test_without_a_ready_apiserver_nothing_is_written_again(rotating: SmallPlane, golden: Golden) -> None:
    silent = replace(rotating.world, replicas=tuple(replace(each, ready=None) for each in rotating.world.replicas))
    with golden.raises(Unavailable):
        await carry_out(rotating.plane, STEP, silent)
