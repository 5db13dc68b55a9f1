"""What is made of a watch of Leases that ends, that began too long ago, or that says what it must not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import pytest
from support.golden import Golden

from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.http import NoAnswer
from quarterdeck.kube import http
from quarterdeck.kube.documents import LeaseDocument, LeaseListDocument
from quarterdeck.kube.http import LeaseWatch
from quarterdeck.kube.port import SeenLease

LOCK = "migration"


def document(version: int, name: str = LOCK, **spec: object) -> dict[str, object]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}, "spec": spec}


def event(version: int, kind: str = "MODIFIED", name: str = LOCK, **spec: object) -> str:
    return json.dumps({"type": kind, "object": document(version, name, **spec)})


def failed(code: int, message: str) -> str:
    return json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": code, "message": message}})


@dataclass
class Server:
    """Gives one list and one watch after another; what it was asked to watch from is in ``asked``."""

    lists: list[tuple[int, Sequence[dict[str, object]]]]
    watches: list[Sequence[str | Exception]]
    asked: list[str] = field(default_factory=list)

    async def listed(self) -> LeaseListDocument:
        version, items = self.lists.pop(0)
        return LeaseListDocument.model_validate({"metadata": {"resourceVersion": str(version)}, "items": [*items]})

    async def lines(self, version: str, seconds: int) -> AsyncGenerator[bytes, None]:
        del seconds
        self.asked.append(version)
        if not self.watches:
            await asyncio.Event().wait()
        for each in self.watches.pop(0):
            if isinstance(each, Exception):
                raise each
            yield each.encode()

    async def changes(self, count: int) -> list[SeenLease]:
        """The first changes."""
        watch = LeaseWatch(where="https://a:1", listed=self.listed, lines=self.lines, deadline=0.1)
        async with asyncio.timeout(5), aclosing(watch.changes()) as changes:
            return [await anext(changes) for _ in range(count)]


async def test_a_watch_that_ended_goes_on_from_what_was_seen_last() -> None:
    server = Server([(7, [document(5)])], [[event(8, holderIdentity="a")], [event(9, leaseTransitions=3)]])
    found = await server.changes(3)
    assert [(each.resource_version, each.holder, each.transitions) for each in found] == [
        ("5", "", 0),
        ("8", "a", 0),
        ("9", "", 3),
    ]
    assert server.asked == ["7", "8"]


async def test_where_nothing_changes_all_are_listed_again_so_that_an_apiserver_without_its_etcd_is_not_believed() -> (
    None
):
    server = Server([(7, [document(5)]), (9, [document(8)])], [[], [event(10)]])
    assert [each.resource_version for each in await server.changes(3)] == ["5", "8", "10"]
    assert server.asked == ["7", "9"]


async def test_what_was_watched_too_long_ago_is_listed_again_and_what_is_gone_is_told() -> None:
    there, other = document(5), document(6, "other")
    server = Server([(7, [there, other]), (20, [document(12)])], [[failed(410, "too old")], [event(21)]])
    found = await server.changes(5)
    leases = [(each.name, each.resource_version, each.deleted) for each in found]
    assert leases == [
        (LOCK, "5", False),
        ("other", "6", False),
        ("other", "6", True),
        (LOCK, "12", False),
        (LOCK, "21", False),
    ]
    assert server.asked == ["7", "20"]


async def test_a_deletion_is_told_once() -> None:
    gone = event(8, "DELETED", holderIdentity="a")
    server = Server([(7, [document(5)]), (20, [])], [[gone, failed(410, "too old")], [event(21, "ADDED")]])
    found = await server.changes(3)
    assert [(each.resource_version, each.deleted) for each in found] == [("5", False), ("8", True), ("21", False)]


@pytest.mark.parametrize(
    "line",
    [
        failed(500, "etcd is away"),
        "no JSON",
        json.dumps({"type": "MODIFIED", "object": {}}),
        NoAnswer("it was closed"),
        NoAnswer("no", refused=True),
    ],
)
async def test_what_is_no_change_ends_it(line: str | Exception, golden: Golden) -> None:
    server = Server([(7, [document(5)])], [[line]])
    with golden.raises(Unavailable):
        await server.changes(2)


async def test_silence_ends_it(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr(http, "WATCHED", 0)
    server = Server([(7, [document(5)])], [])
    with golden.raises(TimedOut):
        await server.changes(2)


def test_who_wrote_the_holder_is_who_holds_it_and_not_who_wrote_another_field_later() -> None:
    def wrote(manager: str, time: str, *fields: str) -> dict[str, object]:
        return {"manager": manager, "time": time, "fieldsV1": {"f:spec": {f"f:{each}": {} for each in fields}}}

    managed = [
        wrote("kube-controller-manager", "2027-01-15T08:00:01Z", "holderIdentity", "renewTime"),
        wrote("ccm", "2027-01-15T08:00:02Z", "holderIdentity", "renewTime"),
        wrote("quarterdeck", "2027-01-15T08:00:03Z", "leaseDurationSeconds"),
        {"manager": "label", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
    ]
    metadata = {"name": LOCK, "resourceVersion": "1", "managedFields": managed}
    assert LeaseDocument.model_validate({"metadata": metadata}).lease().manager == "ccm"
    assert LeaseDocument.model_validate(document(1)).lease().manager == ""


def test_all_that_tells_one_tenure_from_the_next_is_read() -> None:
    times = {"acquireTime": "2027-01-15T08:00:00.000001Z", "renewTime": "2027-01-15T08:00:10.5Z"}
    found = LeaseDocument.model_validate(document(1, **times, leaseTransitions=4, holderIdentity="a")).lease()
    assert (found.acquired, found.renewed, found.transitions) == (1_800_000_000.000001, 1_800_000_010.5, 4)
