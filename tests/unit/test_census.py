"""A census of what etcd stores: what is counted, page by page, and what a minor cannot decode of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import pytest
from fakes.etcd import FakeEtcd
from fakes.etcd_cluster import FakeCluster, MemberAddress
from support.golden import Golden
from support.secretbox import seal
from support.stored_values import protobuf

from quarterdeck.census.census import census
from quarterdeck.census.result import Census, decoded_by, lost, undecodable
from quarterdeck.census.stored_types import ALWAYS, MINORS, ONLY
from quarterdeck.census.value_types import StoredType
from quarterdeck.components.credentials import EncryptionKey
from quarterdeck.errors import InvalidInput, Unavailable
from quarterdeck.etcd.calls import LONGEST_ANSWER
from quarterdeck.etcd.facts import RangeResult
from quarterdeck.etcd.faults import EtcdRefused, Reason
from quarterdeck.etcd.kv import Get
from quarterdeck.upstream.catalog import Project, Version, is_supported

KEY = EncryptionKey("key1", b"k" * 32)
POD = protobuf("v1", "Pod", b"")
DEFINITION = protobuf("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", b"")


def widget(version: str = "example.com/v1") -> bytes:
    return json.dumps({"apiVersion": version, "kind": "Widget"}).encode()


class Etcd(FakeEtcd):
    """A cluster of three, which notes what is read, and before each read does what a test wants done."""

    def __init__(self, before: Callable[[Etcd], object] = lambda _: None) -> None:
        self.addresses = tuple(
            MemberAddress(name=f"m{number}", peer_url=f"p{number}", client_url=f"c{number}", metrics_url="")
            for number in range(3)
        )
        self.urls = tuple(each.client_url for each in self.addresses)
        self.reads: list[tuple[str, Get]] = []
        self.pages: list[RangeResult] = []
        self._before = before
        super().__init__(FakeCluster.founded(self.addresses))

    def put(self, values: Mapping[str, bytes | Sequence[bytes]]) -> Etcd:
        """Write below /registry/: a value, or many with numbers behind the path."""
        for path, value in values.items():
            if isinstance(value, bytes):
                self.cluster.put(f"/registry/{path}".encode(), value)
                continue
            for number, each in enumerate(value):
                self.cluster.put(f"/registry/{path}{number:05}".encode(), each)
        return self

    async def read(self, url: str, what: Get) -> RangeResult:
        self.reads.append((url, what))
        self._before(self)
        page = await super().read(url, what)
        self.pages.append(page)
        return page

    async def census(self, *keys: EncryptionKey) -> Census:
        return await census(self, self.urls, keys)


def counts(found: Census) -> dict[str, int]:
    return {f"{each.resource}: {each.type}": each.number for each in found.types}


def afterwards(act: Callable[[Etcd], object]) -> Callable[[Etcd], object]:
    """Before each read but the first one."""
    return lambda etcd: act(etcd) if len(etcd.reads) > 1 else None


def compact(etcd: Etcd) -> None:
    """Discard all history but that of one more write."""
    etcd.cluster.put(b"/registry/pods/ns/new", POD)
    etcd.cluster.compacted = etcd.cluster.revision


async def test_values_are_counted_by_resource_and_type_at_one_revision() -> None:
    etcd = Etcd().put(
        {
            "pods/ns/p": [POD] * 7,
            "masterleases/10": protobuf("v1", "Endpoints", b""),
            "ranges/serviceips": protobuf("v1", "RangeAllocation", b""),
            "leases/ns/old": protobuf("coordination.k8s.io/v1beta1", "Lease", b""),
            "leases/ns/new": protobuf("coordination.k8s.io/v1", "Lease", b""),
            "unusual/a/b/c": POD,
        }
    )
    etcd.cluster.put(b"compact_rev_key", b"1002")
    etcd.cluster.put(b"/registry0/pods/a/b", b"")
    revision = etcd.cluster.revision
    found = await etcd.census()
    assert counts(found) == {
        "leases: coordination.k8s.io/v1 Lease": 1,
        "leases: coordination.k8s.io/v1beta1 Lease": 1,
        "masterleases: v1 Endpoints": 1,
        "pods: v1 Pod": 7,
        "ranges: v1 RangeAllocation": 1,
        "unusual: v1 Pod": 1,
    }
    assert (found.revision, found.unreadable, found.number) == (revision, (), 12)
    pods = next(each for each in found.types if each.resource == "pods")
    assert pods.examples == tuple(f"/registry/pods/ns/p{number:05}" for number in range(5))


async def test_nothing_is_found_where_nothing_is_stored() -> None:
    found = await Etcd().census()
    assert (found.types, found.unreadable, found.number) == ((), (), 0)
    assert undecodable(found, MINORS[0]).number == 0


async def test_pages_are_of_one_revision_and_are_shorter_where_values_are_long() -> None:
    write = afterwards(lambda etcd: etcd.put({"pods/ns/a": POD, "secrets/ns/z": POD}))
    etcd = Etcd(write).put({"pods/ns/p": [POD] * 2_500, "secrets/ns/s": [POD + bytes(60_000)] * 600})
    found = await etcd.census()
    assert counts(found) == {"pods: v1 Pod": 2_500, "secrets: v1 Pod": 600}
    assert {what.revision for _, what in etcd.reads} == {0, found.revision}
    limits = [what.limit for _, what in etcd.reads]
    assert limits[:5] == [100, 200, 400, 800, 1_000]
    assert 60 < limits[-1] < 70, "pages of 4 MiB"
    assert all(sum(len(each.value) for each in page.items) <= LONGEST_ANSWER for page in etcd.pages)


async def test_custom_resources_are_decoded_by_every_minor_as_long_as_they_are_defined() -> None:
    definitions = "apiextensions.k8s.io/customresourcedefinitions"
    etcd = Etcd().put(
        {
            "example.com/widgets/ns/one": widget(),
            "example.com/gadgets/ns/one": widget(),
            "other.example/widgets/ns/one": widget("example.com/v1"),
            f"{definitions}/widgets.example.com": DEFINITION,
            f"{definitions}/widgets.other.example": DEFINITION,
        }
    )
    found = await etcd.census()
    assert found.custom == {"widgets.example.com", "widgets.other.example"}
    left = undecodable(found, (1, 36))
    assert [each.resource for each in left.types] == ["gadgets.example.com", "widgets.other.example"]
    assert left.number == 2


async def test_a_value_that_cannot_be_read_is_named_and_counts_for_no_minor_as_decoded() -> None:
    secret = b"k8s:enc:secretbox:v1:key1:" + seal(KEY.secret, b"n" * 24, protobuf("v1", "Secret", b"content"))
    etcd = Etcd().put({"secrets/ns/s": [secret] * 8, "pods/ns/p": POD, "pods/ns/q": b""})
    found = await etcd.census()
    why = "encrypted with a key that the plane does not have (key1)"
    assert [(each.why, each.number) for each in found.unreadable] == [("empty", 1), (why, 8)]
    assert found.unreadable[0].examples == ("/registry/pods/ns/q",)
    assert found.unreadable[1].examples == tuple(f"/registry/secrets/ns/s{number:05}" for number in range(5))
    for minor in MINORS:
        left = undecodable(found, minor)
        assert (left.minor, left.types, left.unreadable, left.number) == (minor, (), found.unreadable, 9)
    read = await etcd.census(KEY)
    assert counts(read) == {"pods: v1 Pod": 1, "secrets: v1 Secret": 8}
    assert read.number == found.number == 10


async def test_a_value_longer_than_an_answer_is_named_and_what_comes_after_it_is_read() -> None:
    etcd = Etcd().put({"pods/ns/a": [POD] * 3, "pods/ns/b": bytes(LONGEST_ANSWER), "pods/ns/c": [POD] * 300})
    found = await etcd.census()
    (one,) = found.unreadable
    assert (one.why, one.number, one.examples) == ("longer than 8,388,608 bytes", 1, ("/registry/pods/ns/b",))
    assert counts(found) == {"pods: v1 Pod": 303}


async def test_it_begins_again_at_a_new_revision_when_its_own_is_compacted() -> None:
    once = iter((compact,))
    etcd = Etcd(afterwards(lambda etcd: next(once, lambda _: None)(etcd))).put({"pods/ns/p": [POD] * 500})
    found = await etcd.census()
    assert counts(found) == {"pods: v1 Pod": 501}
    assert found.revision == etcd.cluster.revision


async def test_it_gives_up_where_history_is_always_compacted(golden: Golden) -> None:
    etcd = Etcd(afterwards(compact)).put({"pods/ns/p": [POD] * 500})
    with pytest.raises(Unavailable) as error:
        await etcd.census()
    assert len(etcd.reads) == 6, "two for each attempt"
    golden(str(error.value))


async def test_it_goes_on_at_another_member_where_one_stops_to_answer() -> None:
    etcd = Etcd(afterwards(lambda etcd: etcd.cluster.hide("c0"))).put({"pods/ns/p": [POD] * 1_000})
    found = await etcd.census()
    assert counts(found) == {"pods: v1 Pod": 1_000}
    assert [url for url, _ in etcd.reads] == ["c0", "c0", *["c1"] * (len(etcd.reads) - 2)]
    assert {what.revision for _, what in etcd.reads} == {0, found.revision}


async def test_it_ends_where_no_member_answers_or_none_is_known_or_reading_is_denied() -> None:
    etcd = Etcd()
    with pytest.raises(Unavailable):
        await census(etcd, (), ())
    etcd.cluster.authenticates = True
    with pytest.raises(EtcdRefused) as denied:
        await etcd.census()
    assert denied.value.reason is Reason.DENIED
    for each in etcd.urls:
        etcd.cluster.hide(each)
    with pytest.raises(Unavailable):
        await etcd.census()


async def test_going_back_does_not_lose_what_is_not_decoded_now() -> None:
    etcd = Etcd().put(
        {
            "podsecuritypolicy/old": protobuf("policy/v1beta1", "PodSecurityPolicy", b""),
            "example.com/gadgets/ns/orphan": widget(),
            "deviceclasses/new": protobuf("resource.k8s.io/v1", "DeviceClass", b""),
            "secrets/ns/unknown": b"",
        }
    )
    found = await etcd.census()
    assert undecodable(found, (1, 33)).number == 4
    left = lost(found, (1, 33), (1, 34))
    assert [each.resource for each in left.types] == ["deviceclasses"]
    assert (left.minor, left.unreadable, left.number) == ((1, 33), found.unreadable, 2)
    assert lost(found, (1, 34), (1, 35)).types == ()


@pytest.mark.parametrize(
    ("api_version", "kind", "minors"),
    [
        ("v1", "Pod", MINORS),
        ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", MINORS),
        ("apiregistration.k8s.io/v1", "APIService", MINORS),
        ("v1", "RangeAllocation", MINORS),
        ("resource.k8s.io/v1", "ResourceClaim", MINORS[1:]),
        ("scheduling.k8s.io/v1alpha1", "Workload", ((1, 35),)),
        ("autoscaling/v2beta2", "HorizontalPodAutoscaler", MINORS[:3]),
        ("storagemigration.k8s.io/v1", "StorageVersionMigration", ((1, 37),)),
        ("policy/v1beta1", "PodSecurityPolicy", ()),
        ("v1", "Nothing", ()),
    ],
)
async def test_types_are_decoded_by_the_minors_that_have_them(
    api_version: str, kind: str, minors: Sequence[tuple[int, int]]
) -> None:
    found = await Etcd().put({"things/ns/one": protobuf(api_version, kind, b"")}).census()
    assert [minor for minor in MINORS if undecodable(found, minor).number == 0] == [*minors]


def test_what_all_minors_decode_is_in_the_table_of_none() -> None:
    assert set(ONLY) == set(MINORS)
    for minor, table in ONLY.items():
        kinds = [(version, kind) for version, names in table.items() for kind in names.split()]
        assert not any(kind in ALWAYS.get(version, "").split() for version, kind in kinds)
        assert StoredType("v1", "Pod") in decoded_by(minor)


def test_the_types_of_every_supported_minor_are_known(golden: Golden) -> None:
    supported = [each for each in range(100) if is_supported(Project.KUBERNETES, Version(1, each, 99))]
    assert supported
    assert {(1, each) for each in supported} <= set(MINORS)
    with pytest.raises(InvalidInput) as error:
        decoded_by((1, 32))
    golden(str(error.value))
