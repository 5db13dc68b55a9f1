"""The judge of histories: what could have been is taken, and what could not is named."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest
from histories.judge import judged
from histories.operations import Op, Operation, Outcome
from histories.registers import RegisterClient, Registers

from quarterdeck.probe import client as probe
from quarterdeck.probe.wire import Request


def did(op: Op, call: int, end: int | None, outcome: Outcome = Outcome.OK, **fields: str) -> Operation:
    return Operation(client=call, key="a", op=op, call=call, end=end, outcome=outcome, **fields)


UNKNOWN = Outcome.UNKNOWN
CREATED = did(Op.CREATE, 0, 1, value="1")
SECOND = did(Op.PUT, 2, 3, value="2")
LOST = did(Op.PUT, 2, None, UNKNOWN, value="2")
HISTORIES = {
    "a write that is read": ((CREATED, SECOND, did(Op.GET, 4, 5, seen="2")), True),
    "a lost write": ((CREATED, SECOND, did(Op.GET, 4, 5, seen="1")), False),
    "a lost creation": ((CREATED, did(Op.GET, 2, 3, seen="")), False),
    "a read that is too old": (
        (CREATED, did(Op.PUT, 2, 9, value="2"), did(Op.GET, 3, 4, seen="2"), did(Op.GET, 5, 6, seen="1")),
        False,
    ),
    "two compare-and-swaps of one value": (
        (CREATED, did(Op.CAS, 2, 5, expected="1", value="2"), did(Op.CAS, 3, 6, expected="1", value="3")),
        False,
    ),
    "one of two is refused": (
        (
            CREATED,
            did(Op.CAS, 2, 5, expected="1", value="2"),
            did(Op.CAS, 3, 6, Outcome.REFUSED, expected="1", value="3"),
        ),
        True,
    ),
    "refused, and done all the same": (
        (CREATED, did(Op.CAS, 2, 3, Outcome.REFUSED, expected="0", value="2"), did(Op.GET, 4, 5, seen="2")),
        False,
    ),
    "unknown, and never done": ((CREATED, LOST, did(Op.GET, 4, 5, seen="1")), True),
    "unknown, and done late": ((CREATED, LOST, did(Op.GET, 4, 5, seen="1"), did(Op.GET, 6, 7, seen="2")), True),
    "unknown, and done twice": (
        (CREATED, LOST, did(Op.GET, 4, 5, seen="2"), did(Op.PUT, 6, 7, value="3"), did(Op.GET, 8, 9, seen="2")),
        False,
    ),
    "unknown, and done before it began": ((CREATED, did(Op.GET, 1, 1, seen="2"), LOST), False),
}


@pytest.mark.parametrize(("history", "linearizable"), HISTORIES.values(), ids=HISTORIES)
async def test_a_history_is_taken_exactly_if_it_could_have_been(
    history: tuple[Operation, ...], linearizable: bool, tmp_path: Path
) -> None:
    picture = tmp_path / "history.html"
    verdict = await judged(history, picture=picture)
    assert verdict.illegal == (() if linearizable else ("a",))
    assert verdict.linearizable is linearizable
    assert picture.exists() is not linearizable
    assert (verdict.operations, verdict.keys) == (len(history), 1)


async def test_each_register_is_judged_by_itself() -> None:
    other = Operation(client=0, key="b", op=Op.GET, call=4, end=5, outcome=Outcome.OK, seen="2")
    assert (await judged((CREATED, SECOND, other))).illegal == ("b",)


class Server:
    """An apiserver in memory, as far as clients of registers ask it. Every ``nth`` write that it acknowledges is lost,
    or it says nothing of it (0: none).
    """

    def __init__(self, *, loses: int = 0, silent: int = 0) -> None:
        self._there: dict[str, tuple[str, str]] = {}
        self._revision = 0
        self._loses, self._silent = loses, silent

    async def call(self, request: Request) -> probe.RequestOutcome:
        await asyncio.sleep(0)
        status, name = self._done(request)
        await asyncio.sleep(0)
        if status in (200, 201) and request.method != "GET" and self._silent and self._revision % self._silent == 0:
            return probe.RequestOutcome(reason="no answer within 4 s", address="10.0.0.1")
        if status < 300:
            value, revision = self._there[name]
            body = {"kind": "ConfigMap", "metadata": {"resourceVersion": revision}, "data": {"value": value}}
        else:
            reasons = {404: "NotFound", 409: "AlreadyExists" if request.method == "POST" else "Conflict"}
            body = {"kind": "Status", "reason": reasons[status], "details": {"name": name}}
        return probe.RequestOutcome(status=status, body=json.dumps(body).encode(), address="10.0.0.1")

    def _done(self, request: Request) -> tuple[int, str]:
        if request.method == "GET":
            name = request.path.rpartition("/")[2]
            return (200 if name in self._there else 404), name
        document = json.loads(request.body)
        name, wanted = document["metadata"]["name"], document["metadata"].get("resourceVersion")
        if request.method == "POST" and name in self._there:
            return 409, name
        if request.method == "PUT" and name not in self._there:
            return 404, name
        if wanted is not None and wanted != self._there[name][1]:
            return 409, name
        self._revision += 1
        before = self._there.get(name)
        self._there[name] = document["data"]["value"], str(self._revision)
        if before is not None and self._loses and self._revision % self._loses == 0:
            asyncio.get_running_loop().call_later(0.001, self._there.__setitem__, name, before)
        return (201 if request.method == "POST" else 200), name


async def history_of(server: Server) -> list[Operation]:
    shared = Registers()
    clients = [RegisterClient(each, random.Random(each), server, "any", shared) for each in range(5)]

    async def work(client: RegisterClient) -> None:
        for _ in range(150):
            await client.once()

    await asyncio.gather(*map(work, clients))
    return shared.history


@pytest.mark.parametrize(
    ("server", "linearizable"),
    [(Server(), True), (Server(silent=20), True), (Server(loses=50), False)],
    ids=["sound", "silent", "loses"],
)
async def test_clients_catch_a_server_that_loses_what_it_acknowledged(server: Server, linearizable: bool) -> None:
    history = await history_of(server)
    assert {each.op for each in history} == set(Op)
    assert any(each.outcome is Outcome.REFUSED for each in history)
    assert (await judged(history)).linearizable is linearizable
