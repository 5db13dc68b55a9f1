"""Certificates are asked for again when a third of their life is left, once, and not before; and what is done where all
have expired.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest
from support.components import ALWAYS
from support.fake_plane import FakePlane
from support.golden import Golden

from quarterdeck.actions.plane import Plane
from quarterdeck.api.base import find_condition
from quarterdeck.api.conditions import ConditionType
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.operation import Operation
from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.engine.background.certificates import CertificateRenewal, renewed
from quarterdeck.engine.observation.expiry import expired_replicas
from quarterdeck.engine.preflight.renewal import require_use
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.engine.workspace.settings import planner_settings
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.membership import Health, MemberFact, Membership
from quarterdeck.model.memory import Memory
from quarterdeck.model.world import World
from quarterdeck.pki.certificate import CA_LIFETIME
from quarterdeck.pki.issuance import LEAF_LIFETIME, ReplicaNames, create_plane_secrets, with_replica
from quarterdeck.pki.validity import check_authorities


@pytest.mark.parametrize(("share", "asked"), [(0.6, 0), (0.7, 1)])
async def test_they_are_asked_for_again_at_two_thirds_of_their_life_and_once(share: float, asked: int) -> None:
    fake = FakePlane()
    fake.memory = replace(fake.memory, replicas=())
    fake.clocks.wall = (datetime.now(UTC) + share * LEAF_LIFETIME).timestamp()
    plane = await fake.open()
    task = CertificateRenewal(home=cast("Home", SimpleNamespace(store=fake.store)), requester=Requester(name="a test"))
    for _ in range(2):
        await task.turn(plane, World(slots=(), memory=plane.memory, now=0.0))
    assert (await fake.store.get(ControlPlane, plane.name)).spec.certificates.generation == asked
    assert len(await fake.store.list(Operation)) == asked


def test_that_is_long_before_they_end() -> None:
    assert timedelta(days=90) < LEAF_LIFETIME / 3


async def opened(fake: FakePlane, secrets: SharedSecrets) -> Plane:
    plane = await fake.open()
    plane.secrets = secrets
    return plane


def task_of(fake: FakePlane) -> CertificateRenewal:
    return CertificateRenewal(
        home=cast("Home", SimpleNamespace(store=fake.store)), requester=Requester(name="a test"), every=0.0
    )


def condition(plane: Plane) -> tuple[str, str, str]:
    found = find_condition(plane.resource.status.conditions, ConditionType.CERTIFICATES_VALID)
    assert found is not None
    return found.status, found.reason, found.message


def world_of(plane: Plane, membership: Membership | None = None) -> World:
    return World(slots=(), memory=plane.memory, now=0.0, membership=membership)


async def test_a_condition_warns_a_month_before_anything_expires_authorities_too(golden: Golden) -> None:
    fake, made = FakePlane(), datetime(2026, 1, 1, tzinfo=UTC)
    fake.memory = replace(fake.memory, replicas=())
    plane = await opened(fake, create_plane_secrets("demo", made, lifetime=2 * CA_LIFETIME))
    for before, status in ((timedelta(days=31), "True"), (timedelta(days=29), "False"), (timedelta(-1), "False")):
        fake.clocks.wall = (made + CA_LIFETIME - before).timestamp()
        await task_of(fake).turn(plane, world_of(plane))
        assert condition(plane)[0] == status
        golden(condition(plane))


async def test_nothing_is_renewed_that_would_expire_no_later_because_its_authority_does() -> None:
    fake, made = FakePlane(), datetime(2026, 1, 1, tzinfo=UTC)
    fake.memory = replace(fake.memory, replicas=())
    plane = await opened(fake, create_plane_secrets("demo", made, lifetime=2 * CA_LIFETIME))
    fake.clocks.wall = (made + CA_LIFETIME - timedelta(days=1)).timestamp()
    await task_of(fake).turn(plane, world_of(plane))
    assert not await fake.store.list(Operation)


# Where certificates have expired


async def test_replicas_whose_certificates_have_expired_are_known_while_a_member_does_not_answer() -> None:
    fake, made = FakePlane(), datetime.now(UTC)
    secrets = create_plane_secrets("demo", made)
    for name, days in (("east-1", 1), ("east-2", 3), ("west-1", 1)):
        names = ReplicaNames(replica=name, addresses=("10.0.0.1",), service_ip="10.96.0.1", programs=ALWAYS)
        secrets = with_replica(secrets, names, made, lifetime=timedelta(days=days))
    plane = await opened(fake, secrets)
    fake.clocks.wall = (made + timedelta(days=2)).timestamp()
    assert expired_replicas(plane, world_of(plane)) == {"east-1", "west-1"}
    fake.clocks.wall = made.timestamp()
    assert expired_replicas(plane, world_of(plane)) == frozenset()
    fake.clocks.wall = (made + timedelta(days=2)).timestamp()
    well = Membership(members=(MemberFact(id=1, replica="east-1", learner=False, health=Health.HEALTHY),), leader=None)
    assert expired_replicas(plane, world_of(plane, well)) == frozenset(), "nobody asks while all are well"
    one_is_down = replace(well, members=(*well.members, replace(well.members[0], id=2, health=Health.DOWN)))
    assert expired_replicas(plane, world_of(plane, one_is_down)) == {"east-1", "west-1"}


def test_consent_is_for_one_generation() -> None:
    plane = new_control_plane("demo", site="east")
    assert not planner_settings(plane).offline
    asked = renewed(renewed(plane), offline=True)
    assert asked.spec.certificates.generation == asked.spec.rollout.offline_generation == 2
    assert planner_settings(asked).offline
    assert not planner_settings(renewed(asked)).offline


def test_an_offline_renewal_is_refused_where_it_is_of_no_use(golden: Golden) -> None:
    world = World(slots=(), memory=Memory(), now=0.0, plane_name="demo", expired=frozenset({"east-1"}))
    require_use(world)
    with golden.raises(PreconditionFailed):
        require_use(replace(world, membership=Membership(members=(), leader=None)))
    with golden.raises(PreconditionFailed):
        require_use(replace(world, expired=frozenset()))


def test_authorities_that_have_expired_issue_nothing(golden: Golden) -> None:
    made = datetime(2026, 1, 1, tzinfo=UTC)
    secrets = create_plane_secrets("demo", made)
    check_authorities(secrets, made + 2 * LEAF_LIFETIME)
    with golden.raises(PreconditionFailed):
        check_authorities(secrets, made + CA_LIFETIME)
