"""What every kube driver does: the fake, and real programs."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pytest
from fakes.kube import FakeApiserver, FakeKube
from pydantic import JsonValue
from support.replica_processes import OneReplica, binaries, one_replica, until
from support.tiers import smoke

from quarterdeck.addons.applyset import MANAGER, ours, owned_fields
from quarterdeck.components.controller import scheduler
from quarterdeck.errors import Unavailable
from quarterdeck.kube.http import WATCHED, HttpKube
from quarterdeck.kube.port import Address, ApiResource, Kube, Refusal, Refused, WriteTrial
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.upstream.catalog import UpstreamProgram, Versions

__all__ = ["binaries"]

HOLDER = "machine-1_3f2a"


class Lab(Protocol):
    """One apiserver that is ready, one scheduler that leads, and an address where nothing listens."""

    kube: Kube
    apiserver: Address
    leader: Address
    nobody: Address

    def freeze(self) -> None:
        """Have the apiserver accept connections, but never answer."""
        ...

    def thaw(self) -> None: ...

    def freeze_leader(self) -> None:
        """The same of the scheduler."""
        ...

    def thaw_leader(self) -> None: ...

    def end(self) -> None:
        """Have the apiserver end, as it does when it is told to, and return when it has."""
        ...

    def begin(self) -> None: ...

    def take(self) -> None:
        """Have the scheduler take its lease again, which it does by itself if it is one."""
        ...

    async def come_and_go(self, lease: str) -> None:
        """Have a lease made and deleted."""
        ...

    async def hold(self, lease: str, *, renewed: float) -> None:
        """Have "ghost" hold a lease for a day, renewed at a time by its own clock."""
        ...

    def webhook(self, *, late: bool) -> AbstractAsyncContextManager[None]:
        """Within the block a webhook is called for leases that does not answer, or where nobody listens."""
        ...


@dataclass
class FakeLab:
    kube: FakeKube
    apiserver: Address
    leader: Address
    nobody: Address

    def freeze(self) -> None:
        self.kube.apiservers[self.apiserver].hangs = True

    def thaw(self) -> None:
        self.kube.apiservers[self.apiserver].hangs = False

    def freeze_leader(self) -> None:
        self.kube.frozen = frozenset({self.leader})

    def thaw_leader(self) -> None:
        self.kube.frozen = frozenset()

    def end(self) -> None:
        self.kube.apiservers[self.apiserver].up = False

    def begin(self) -> None:
        self.kube.apiservers[self.apiserver].up = True

    def take(self) -> None:
        self.kube.set_lease(scheduler.LEASE, HOLDER, renewed=1010.0, manager="kube-scheduler")

    async def come_and_go(self, lease: str) -> None:
        self.kube.set_lease(lease, HOLDER)
        self.kube.delete_lease(lease)

    async def hold(self, lease: str, *, renewed: float) -> None:
        self.kube.set_lease(lease, "ghost", renewed=renewed, duration=86_400.0)

    @asynccontextmanager
    async def webhook(self, *, late: bool) -> AsyncIterator[None]:
        self.kube.delays_leases = late
        self.kube.refuses_leases = "" if late else 'Internal error occurred: failed calling webhook "all.example.com"'
        yield


@dataclass
class RealLab:
    kube: HttpKube
    apiserver: Address
    leader: Address
    nobody: Address
    replica: OneReplica

    def freeze(self) -> None:
        self.replica.processes.freeze(self.replica.spec(Component.APISERVER))

    def thaw(self) -> None:
        self.replica.processes.thaw(self.replica.spec(Component.APISERVER))

    def freeze_leader(self) -> None:
        self.replica.processes.freeze(self.replica.spec(Component.SCHEDULER))

    def thaw_leader(self) -> None:
        self.replica.processes.thaw(self.replica.spec(Component.SCHEDULER))

    def end(self) -> None:
        self.replica.stop(Component.APISERVER)

    def begin(self) -> None:
        self.replica.start_and_await(Component.APISERVER)

    def take(self) -> None:
        pass

    async def come_and_go(self, lease: str) -> None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease}"
        about = {"name": lease, "namespace": "kube-system"}
        manifest = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": about, "spec": {}}
        made = await self.kube.apply(self.apiserver, path, manifest, manager="somebody")
        assert await self.kube.delete(self.apiserver, path, uid=made.uid)

    async def hold(self, lease: str, *, renewed: float) -> None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease}"
        about = {"name": lease, "namespace": "kube-system"}
        when = f"{datetime.fromtimestamp(renewed, UTC):%Y-%m-%dT%H:%M:%S.000000Z}"
        spec = {"holderIdentity": "ghost", "leaseDurationSeconds": 86_400, "renewTime": when}
        manifest = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": about, "spec": spec}
        await self.kube.apply(self.apiserver, path, manifest, manager="somebody")

    @asynccontextmanager
    async def webhook(self, *, late: bool) -> AsyncIterator[None]:
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/contract"
        rule: dict[str, JsonValue] = {
            "apiGroups": ["coordination.k8s.io"],
            "apiVersions": ["*"],
            "operations": ["*"],
            "resources": ["leases"],
        }
        with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and says nothing
            port = silent.getsockname()[1] if late else 1
            webhook: dict[str, JsonValue] = {
                "name": "all.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Ignore" if late else "Fail",
                "timeoutSeconds": 5,
                "clientConfig": {"url": f"https://127.0.0.1:{port}/"},
                "rules": [rule],
            }
            manifest: dict[str, JsonValue] = {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "contract"},
                "webhooks": [webhook],
            }
            made = await self.kube.apply(self.apiserver, path, manifest, manager="somebody")
            try:
                async with asyncio.timeout(10):  # an apiserver takes a moment to go by it
                    while await self.kube.try_lease(self.apiserver, scheduler.LEASE, within=1.0) == WriteTrial():  # noqa: ASYNC110
                        await asyncio.sleep(0.2)
                yield
            finally:
                assert await self.kube.delete(self.apiserver, path, uid=made.uid)


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory, binaries: Mapping[UpstreamProgram, Path]) -> Iterator[OneReplica]:
    with one_replica(tmp_path_factory.mktemp("replica"), binaries) as replica:
        for component in (Component.ETCD, Component.APISERVER, Component.SCHEDULER):
            replica.start_and_await(component)
        yield replica


@pytest.fixture(params=smoke("fake", "real"))
def programs(request: pytest.FixtureRequest) -> OneReplica | None:
    """The replica, started outside of the event loop; none for the fake."""
    replica: OneReplica = request.getfixturevalue("replica") if request.param == "real" else None
    if replica is not None:
        until(lambda: replica.leads(scheduler.LEASE), "a scheduler that leads")
    return replica


@pytest.fixture
async def lab(programs: OneReplica | None) -> AsyncIterator[Lab]:
    nobody = Address("127.0.0.1", 1)
    if programs is None:
        apiserver, leader = Address("10.0.0.1", 6443), Address("10.0.0.1", 10259)
        kube = FakeKube({apiserver: FakeApiserver()}, leaders={leader: frozenset({scheduler.LEASE})})
        kube.set_lease(scheduler.LEASE, HOLDER, renewed=1000.0, manager="kube-scheduler")
        kube.holders = {("system:kube-scheduler", scheduler.LEASE)}
        yield FakeLab(kube, apiserver, leader, nobody)
        return
    real = HttpKube(
        programs.secrets.kubernetes_ca.bundle,
        programs.secrets.manager,
        health_deadline=1.0,
        call_deadline=2.0,
    )
    leader = programs.at(PortName.SCHEDULER)
    try:
        yield RealLab(real, programs.apiserver, leader, nobody, programs)
    finally:
        await real.close()


async def test_a_ready_apiserver_says_so(lab: Lab) -> None:
    assert (await lab.kube.readyz(lab.apiserver)).ok is True
    assert (await lab.kube.readyz(lab.apiserver, founded=True)).ok is True
    assert (await lab.kube.ping(lab.apiserver)).ok is True


async def test_a_refused_connection_is_a_plain_no(lab: Lab) -> None:
    for answer in (await lab.kube.readyz(lab.nobody, founded=True), await lab.kube.ping(lab.nobody)):
        assert answer.ok is False
        assert answer.detail == "connection refused"


async def test_it_is_told_whether_anything_listens_ready_or_not(lab: Lab) -> None:
    assert await lab.kube.listens(lab.apiserver) is True
    assert await lab.kube.listens(lab.nobody) is False
    lab.freeze()
    try:
        assert await lab.kube.listens(lab.apiserver) is not False
    finally:
        lab.thaw()


async def test_who_is_connected_is_told_when_an_apiserver_ends_and_not_before(lab: Lab) -> None:
    async with lab.kube.witness(lab.apiserver) as witness:
        await asyncio.sleep(0.2)  # whoever broke off by itself would have by then
        assert not witness.informed
        await asyncio.to_thread(lab.end)
        try:
            async with asyncio.timeout(5):
                while not witness.informed:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        finally:
            await asyncio.to_thread(lab.begin)


async def test_nobody_is_waited_for_where_no_apiserver_answers(lab: Lab) -> None:
    async with lab.kube.witness(lab.nobody) as witness:
        assert witness.informed
    lab.freeze()
    try:
        async with lab.kube.witness(lab.apiserver) as witness:
            assert witness.informed
    finally:
        lab.thaw()


async def test_silence_is_unknown_and_not_a_no(lab: Lab) -> None:
    lab.freeze()
    try:
        answer = await lab.kube.readyz(lab.apiserver)
        assert answer.ok is None
        assert "no answer" in answer.detail
        with pytest.raises(Unavailable):
            await lab.kube.leader_lease(lab.apiserver, scheduler.LEASE)
    finally:
        lab.thaw()
    assert (await lab.kube.readyz(lab.apiserver)).ok is True


async def test_programs_that_work_say_so_and_one_that_hangs_says_nothing(lab: Lab) -> None:
    assert (await lab.kube.livez(lab.apiserver)).ok is True
    assert (await lab.kube.healthz(lab.leader)).ok is True
    assert (await lab.kube.livez(lab.nobody)).ok is False
    assert (await lab.kube.healthz(lab.nobody)).ok is False
    lab.freeze()
    lab.freeze_leader()
    try:
        assert (await lab.kube.livez(lab.apiserver, within=0.5)).ok is None
        assert (await lab.kube.healthz(lab.leader, within=0.5)).ok is None
    finally:
        lab.thaw_leader()
        lab.thaw()


async def test_the_version_is_a_plain_number(lab: Lab) -> None:
    assert await lab.kube.version(lab.apiserver) == str(Versions().kubernetes)


async def test_calls_where_nobody_listens_are_unavailable(lab: Lab) -> None:
    with pytest.raises(Unavailable):
        await lab.kube.version(lab.nobody)
    with pytest.raises(Unavailable):
        await lab.kube.release_lease(lab.nobody, scheduler.LEASE, HOLDER)


async def test_a_leader_knows_that_it_leads(lab: Lab) -> None:
    assert await lab.kube.leads(lab.leader, scheduler.LEASE) is True
    assert await lab.kube.leads(lab.leader, "another-lease") is False
    assert await lab.kube.leads(lab.nobody, scheduler.LEASE) is None


async def test_a_lease_tells_its_holder(lab: Lab) -> None:
    lease = await lab.kube.leader_lease(lab.apiserver, scheduler.LEASE)
    assert lease is not None
    assert lease.name == scheduler.LEASE
    assert lease.holder
    assert lease.renewed is not None
    assert lease.duration == 15.0
    assert await lab.kube.leader_lease(lab.apiserver, "no-such-lease") is None


async def test_the_apiserver_s_clock_says_how_long_ago_a_lease_was_renewed_whatever_its_holder_wrote(lab: Lab) -> None:
    lease = await lab.kube.leader_lease(lab.apiserver, scheduler.LEASE)
    assert lease is not None
    assert lease.age_s is not None
    assert lease.answered_at == pytest.approx(time.time(), abs=2.0)
    assert lease.age_s < 10.0
    await lab.hold("held", renewed=1.0)
    held = await lab.kube.leader_lease(lab.apiserver, "held")
    assert held is not None
    assert (held.holder, held.renewed, held.duration) == ("ghost", 1.0, 86_400.0)
    assert held.age_s is not None
    assert held.age_s < 10.0


async def test_a_trial_write_of_a_lease_stores_nothing(lab: Lab) -> None:
    before = await lab.kube.leader_lease(lab.apiserver, scheduler.LEASE)
    assert before is not None
    for name in (scheduler.LEASE, "no-such-lease"):
        assert await lab.kube.try_lease(lab.apiserver, name, within=2.0) == WriteTrial()
    assert await lab.kube.leader_lease(lab.apiserver, "no-such-lease") is None
    with pytest.raises(Unavailable):
        await lab.kube.try_lease(lab.nobody, scheduler.LEASE, within=2.0)


@pytest.mark.parametrize("late", [False, True])
async def test_a_trial_write_tells_what_a_webhook_does_to_it(lab: Lab, *, late: bool) -> None:
    async with lab.webhook(late=late):
        trial = await lab.kube.try_lease(lab.apiserver, scheduler.LEASE, within=1.0)
    assert trial.late is late
    assert ('failed calling webhook "all.example.com"' in trial.refusal) is not late


async def test_the_lease_of_somebody_else_is_never_released(lab: Lab) -> None:
    lease = await lab.kube.leader_lease(lab.apiserver, scheduler.LEASE)
    assert lease is not None
    assert await lab.kube.release_lease(lab.apiserver, scheduler.LEASE, "somebody-else") is False
    assert await lab.kube.release_lease(lab.apiserver, scheduler.LEASE, "") is False
    assert await lab.kube.release_lease(lab.apiserver, "no-such-lease", lease.holder) is False
    after = await lab.kube.leader_lease(lab.apiserver, scheduler.LEASE)
    assert after is not None
    assert after.holder == lease.holder


async def test_a_released_lease_has_no_holder(lab: Lab) -> None:
    """The real scheduler takes it again some time later: what was written is seen in the answer to the write."""
    lease = await lab.kube.leader_lease(lab.apiserver, scheduler.LEASE)
    assert lease is not None
    assert await lab.kube.release_lease(lab.apiserver, scheduler.LEASE, lease.holder) is True
    after = await lab.kube.leader_lease(lab.apiserver, scheduler.LEASE)
    assert after is not None
    assert after.resource_version != lease.resource_version
    assert after.holder == "" or isinstance(lab, RealLab)


async def test_every_change_of_leases_is_told_from_what_they_are_to_who_takes_one_next(lab: Lab) -> None:
    async with asyncio.timeout(30), aclosing(lab.kube.lease_changes(lab.apiserver)) as changes:
        first = await anext(each async for each in changes if each.name == scheduler.LEASE and each.holder)
        assert (first.manager, first.duration, first.deleted) == ("kube-scheduler", 15.0, False)
        assert first.acquired is not None
        assert first.renewed is not None
        assert first.acquired <= first.renewed
        assert await lab.kube.release_lease(lab.apiserver, scheduler.LEASE, first.holder) is True
        free = await anext(each async for each in changes if each.name == scheduler.LEASE and not each.holder)
        assert free.transitions == first.transitions
        lab.take()
        taken = await anext(each async for each in changes if each.name == scheduler.LEASE and each.holder)
        assert (taken.transitions, taken.manager) == (first.transitions + 1, "kube-scheduler")
        assert int(first.resource_version) < int(free.resource_version) < int(taken.resource_version)
    now = await lab.kube.leader_lease(lab.apiserver, scheduler.LEASE)
    assert now is not None
    assert (now.transitions, now.acquired) == (taken.transitions, taken.acquired)


async def test_a_lease_that_is_deleted_is_told_once_more(lab: Lab) -> None:
    async with asyncio.timeout(30), aclosing(lab.kube.lease_changes(lab.apiserver)) as changes:
        await anext(changes)
        await lab.come_and_go("short")
        seen = [await anext(each async for each in changes if each.name == "short") for _ in range(2)]
    assert [each.deleted for each in seen] == [False, True]
    assert await lab.kube.leader_lease(lab.apiserver, "short") is None


@pytest.mark.parametrize("programs", smoke("real"), indirect=True)  # the fake has no watch that ends
async def test_changes_go_on_beyond_the_end_of_a_watch(lab: Lab) -> None:
    """The scheduler renews its lease every two seconds."""
    async with asyncio.timeout(4 * WATCHED), aclosing(lab.kube.lease_changes(lab.apiserver)) as changes:
        began, seen = time.monotonic(), list[str]()
        async for each in changes:
            if each.name == scheduler.LEASE:
                seen.append(each.resource_version)
            if time.monotonic() - began > 2.2 * WATCHED:
                break
    assert len(seen) >= WATCHED
    assert len(set(seen)) == len(seen), "none is told twice"


async def test_whoever_watches_leases_of_an_apiserver_that_falls_silent_is_told(lab: Lab) -> None:
    with pytest.raises(Unavailable):
        await anext(lab.kube.lease_changes(lab.nobody))
    async with aclosing(lab.kube.lease_changes(lab.apiserver)) as changes:
        await anext(changes)
        lab.freeze()
        try:
            with pytest.raises(Unavailable):
                async with asyncio.timeout(15):
                    async for _ in changes:
                        continue
        finally:
            lab.thaw()


async def test_an_apiserver_says_who_may_hold_a_lease(lab: Lab) -> None:
    assert await lab.kube.may_hold(lab.apiserver, "system:kube-scheduler", scheduler.LEASE) is True
    assert await lab.kube.may_hold(lab.apiserver, "system:cloud-controller-manager", scheduler.LEASE) is False
    with pytest.raises(Unavailable):
        await lab.kube.may_hold(lab.nobody, "system:kube-scheduler", scheduler.LEASE)


CONFIG_MAP = ApiResource("", "v1", "ConfigMap", "configmaps", namespaced=True)
HELD = CONFIG_MAP.path("default", "held")


def held(name: str = "held", namespace: str = "default", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": {"set": "mine"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def test_what_is_served_is_told_with_its_path_and_scope(lab: Lab) -> None:
    found = (await lab.kube.discover(lab.apiserver)).resources
    assert CONFIG_MAP in found
    assert ApiResource("apps", "v1", "Deployment", "deployments", namespaced=True) in found
    assert ApiResource("", "v1", "Namespace", "namespaces", namespaced=False) in found
    assert "TokenReview" not in {each.kind for each in found}, "nobody can apply one"
    (config_map,) = (each for each in found if each == CONFIG_MAP)
    assert (config_map.singular, config_map.short_names) == ("configmap", ("cm",))


async def test_an_object_that_is_applied_is_there_and_found_by_its_label_and_its_fields_are_owned(lab: Lab) -> None:
    assert await lab.kube.read(lab.apiserver, CONFIG_MAP.path("default", "none")) is None
    made = await lab.kube.apply(lab.apiserver, HELD, held(a="1", b="2"), manager=MANAGER)
    assert (made.namespace, made.name, bool(made.uid)) == ("default", "held", True)
    read = await lab.kube.read(lab.apiserver, HELD)
    assert isinstance(read, dict)
    assert read["data"] == {"a": "1", "b": "2"}
    listed = await lab.kube.metadata(lab.apiserver, CONFIG_MAP, "set=mine")
    assert [(each.name, each.uid) for each in listed] == [("held", made.uid)]
    assert owned_fields(listed[0].managed) == owned_fields(made.managed) is not None
    assert await lab.kube.metadata(lab.apiserver, CONFIG_MAP, "set=another") == ()


async def test_applying_the_same_again_changes_nothing_and_a_field_that_is_not_named_any_more_goes(lab: Lab) -> None:
    first = await lab.kube.apply(lab.apiserver, HELD, held(a="1", b="2"), manager=MANAGER)
    again = await lab.kube.apply(lab.apiserver, HELD, held(a="1", b="2"), manager=MANAGER)
    assert owned_fields(again.managed) == owned_fields(first.managed)
    fewer = await lab.kube.apply(lab.apiserver, HELD, held(a="1"), manager=MANAGER)
    assert owned_fields(fewer.managed) != owned_fields(first.managed)
    read = await lab.kube.read(lab.apiserver, HELD)
    assert isinstance(read, dict)
    assert read["data"] == {"a": "1"}


async def test_a_field_of_somebody_else_is_only_taken_by_force_and_both_tell_which(lab: Lab) -> None:
    path = CONFIG_MAP.path("default", "shared")
    before = await lab.kube.apply(lab.apiserver, path, held("shared", a="1", b="2"), manager=MANAGER)
    await lab.kube.apply(lab.apiserver, path, held("shared", a="x"), manager="somebody", force=True)
    (taken,) = (
        each for each in await lab.kube.metadata(lab.apiserver, CONFIG_MAP, "set=mine") if each.name == "shared"
    )
    assert owned_fields(taken.managed) != owned_fields(before.managed), "it is seen that somebody took a field"
    with pytest.raises(Refused) as refused:
        await lab.kube.apply(lab.apiserver, path, held("shared", a="1", b="2"), manager=MANAGER)
    assert refused.value.why is Refusal.OWNED
    assert refused.value.fields == (".data.a",)
    assert '"somebody"' in refused.value.owners
    assert ours(refused.value.fields, held("shared", a="1"))
    assert not ours(refused.value.fields, held("shared", b="2"))
    back = await lab.kube.apply(lab.apiserver, path, held("shared", a="1", b="2"), manager=MANAGER, force=True)
    assert owned_fields(back.managed) == owned_fields(before.managed)


async def test_a_preview_tells_what_applying_by_force_would_make_and_stores_nothing(lab: Lab) -> None:
    path = CONFIG_MAP.path("default", "previewed")
    made = await lab.kube.preview(lab.apiserver, path, held("previewed", a="1"), manager=MANAGER)
    assert await lab.kube.read(lab.apiserver, path) is None
    assert data_of(made) == {"a": "1"}
    await lab.kube.apply(lab.apiserver, path, held("previewed", a="1", b="2"), manager="somebody")
    changed = await lab.kube.preview(lab.apiserver, path, held("previewed", a="x"), manager=MANAGER)
    assert data_of(changed) == {"a": "x", "b": "2"}
    assert data_of(await lab.kube.read(lab.apiserver, path)) == {"a": "1", "b": "2"}
    with pytest.raises(Refused):
        nowhere = CONFIG_MAP.path("nowhere", "previewed")
        await lab.kube.preview(lab.apiserver, nowhere, held("previewed", "nowhere"), manager=MANAGER)


def data_of(document: JsonValue) -> JsonValue:
    assert isinstance(document, dict)
    return document["data"]


async def test_only_the_object_that_was_seen_is_deleted(lab: Lab) -> None:
    path = CONFIG_MAP.path("default", "short")
    made = await lab.kube.apply(lab.apiserver, path, held("short"), manager=MANAGER)
    assert await lab.kube.delete(lab.apiserver, path, uid="another") is False
    assert await lab.kube.read(lab.apiserver, path) is not None
    assert await lab.kube.delete(lab.apiserver, path, uid=made.uid) is True
    assert await lab.kube.delete(lab.apiserver, path, uid=made.uid) is False


async def test_an_object_is_stored_again_unchanged(lab: Lab) -> None:
    path = CONFIG_MAP.path("default", "again")
    await lab.kube.apply(lab.apiserver, path, held("again"), manager=MANAGER)
    before = await lab.kube.read(lab.apiserver, path)
    assert await lab.kube.rewrite(lab.apiserver, path) is True
    assert await lab.kube.read(lab.apiserver, path) == before
    assert await lab.kube.rewrite(lab.apiserver, CONFIG_MAP.path("default", "nowhere")) is False


async def test_what_is_missing_may_come_later(lab: Lab) -> None:
    nothing = ApiResource("example.com", "v1", "Thing", "things", namespaced=True)
    assert await lab.kube.metadata(lab.apiserver, nothing, "set=mine") == ()
    for path in (nothing.path("default", "one"), CONFIG_MAP.path("nowhere", "held")):
        with pytest.raises(Refused) as refused:
            await lab.kube.apply(lab.apiserver, path, held(namespace=path.split("/")[-3]), manager=MANAGER)
        assert refused.value.why is Refusal.LATER, refused.value


async def test_objects_of_nobody_are_unavailable(lab: Lab) -> None:
    with pytest.raises(Unavailable):
        await lab.kube.discover(lab.nobody)
    with pytest.raises(Unavailable):
        await lab.kube.apply(lab.nobody, HELD, held(), manager=MANAGER)


@pytest.mark.parametrize("programs", smoke("real"), indirect=True)  # the fake refuses what a test tells it to
async def test_what_makes_no_sense_is_refused_for_good_and_a_secret_is_not_told(lab: Lab) -> None:
    bad = held()
    bad["data"] = ["no mapping"]
    with pytest.raises(Refused) as refused:
        await lab.kube.apply(lab.apiserver, HELD, bad, manager=MANAGER)
    assert refused.value.why is Refusal.INVALID
    secret = {**held("hidden"), "kind": "Secret", "data": {}}
    secret["metadata"]["labels"] = {"a": "the password!"}
    with pytest.raises(Refused) as refused:
        await lab.kube.apply(lab.apiserver, "/api/v1/namespaces/default/secrets/hidden", secret, manager=MANAGER)
    assert refused.value.why is Refusal.INVALID
    assert "password" not in str(refused.value)


@pytest.mark.parametrize("programs", smoke("real"), indirect=True)  # the fake has no aggregated apiservers
async def test_a_group_whose_apiserver_does_not_answer_is_told_and_hides_no_other(lab: Lab) -> None:
    name = "v1beta1.metrics.k8s.io"
    service = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name},
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"namespace": "kube-system", "name": "metrics-server"},
        },
    }
    path = f"/apis/apiregistration.k8s.io/v1/apiservices/{name}"
    made = await lab.kube.apply(lab.apiserver, path, service, manager=MANAGER)
    try:
        async with asyncio.timeout(30):
            while ("metrics.k8s.io", "v1beta1") not in (found := await lab.kube.discover(lab.apiserver)).silent:
                assert CONFIG_MAP in found.resources
                await asyncio.sleep(0.1)
        assert CONFIG_MAP in found.resources
    finally:
        assert await lab.kube.delete(lab.apiserver, path, uid=made.uid)
