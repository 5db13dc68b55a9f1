"""Clients that create, read, write and compare-and-swap registers, which are ConfigMaps, and keep the history of it."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from histories.operations import Op, Operation, Outcome
from quarterdeck.probe import client as probe
from quarterdeck.probe.dial import Dialer, HttpVersion, tls_context
from quarterdeck.probe.network import Direct
from quarterdeck.probe.resolve import resolver_for
from quarterdeck.probe.target import ProbeTarget
from quarterdeck.probe.wire import Request

_FOLDER = "/api/v1/namespaces/{namespace}/configmaps"
#: Registers at a time, and how many operations are begun on them before others take their place; sooner, once so many
#: are unknown: each of these may have been done at any time since, which takes a judge long.
KEYS = 4
_LONG = 400
_UNKNOWN = 8
#: Seconds: for a request, between two of a client, and after one without an answer.
_PATIENCE = 4.0
_PACE = 0.05
_AFTER_FAILURE = 0.4


class Once(Request):
    """A request that nobody sends a second time on his own: what came of the first would not be known any more."""

    __slots__ = ()

    @property
    def idempotent(self) -> bool:
        """See ``Request``."""
        return False


@dataclass(slots=True)
class Registers:
    """The registers that clients use now, in which all are kept that were begun."""

    history: list[Operation] = field(default_factory=list)
    unsent: int = 0
    keys: set[str] = field(default_factory=set)
    _age: int = 0
    _begun: int = 0
    _unknown: int = 0
    _written: int = 0

    def pick(self, chance: random.Random) -> str:
        """One that is to be used next."""
        self._begun += 1
        if self._begun > _LONG or self._unknown > _UNKNOWN:
            self._age, self._begun, self._unknown = self._age + 1, 1, 0
        key = f"register-{self._age}-{chance.randrange(KEYS)}"
        self.keys.add(key)
        return key

    def fresh(self) -> str:
        """A value that is written once."""
        self._written += 1
        return str(self._written)

    def keep(self, operation: Operation) -> None:
        """One has ended, or never will."""
        self._unknown += operation.outcome is Outcome.UNKNOWN
        self.history.append(operation)


@dataclass(frozen=True, slots=True)
class Known:
    """What a client last saw of a register; nothing is there without a ``revision``."""

    value: str = ""
    revision: str = ""


@dataclass(slots=True)
class RegisterClient:
    """One client, with a connection of its own."""

    number: int
    chance: random.Random
    client: probe.Client
    namespace: str
    shared: Registers
    _known: dict[str, Known] = field(default_factory=dict)

    async def run(self) -> None:
        """Until cancelled: what is under way then has no known outcome."""
        while True:
            good = await self.once()
            await asyncio.sleep(_PACE if good else _AFTER_FAILURE)

    async def once(self) -> bool:
        """One operation; whether it was answered."""
        key = self.shared.pick(self.chance)
        known = self._known.pop(key, None)
        return await self._done(_next(known, self.chance), key, known)

    async def read_all(self) -> None:
        """Read each register that was ever used, however long it takes until somebody answers."""
        for key in sorted(self.shared.keys):
            while not await self._done(Op.GET, key, None):  # noqa: ASYNC110 - it is told by nobody but this answer
                await asyncio.sleep(_AFTER_FAILURE)

    async def _done(self, op: Op, key: str, known: Known | None) -> bool:
        value = "" if op is Op.GET else self.shared.fresh()
        expected = known.value if known is not None and op is Op.CAS else ""
        call = time.monotonic_ns()
        outcome: Outcome | None = Outcome.UNKNOWN
        seen = None
        try:
            answer = await self.client.call(self._request(op, key, value, known))
            outcome, seen = judged(op, key, answer)
        finally:
            if outcome is None or (op is Op.GET and outcome is not Outcome.OK):
                self.shared.unsent += 1  # a read that was not answered says nothing
            else:
                end = None if outcome is Outcome.UNKNOWN else time.monotonic_ns()
                found = seen.value if seen is not None and op is Op.GET else ""
                self.shared.keep(
                    Operation(
                        client=self.number,
                        key=key,
                        op=op,
                        call=call,
                        end=end,
                        outcome=outcome,
                        value=value,
                        expected=expected,
                        seen=found,
                    )
                )
        if seen is not None:
            self._known[key] = seen
        return outcome in (Outcome.OK, Outcome.REFUSED)

    def _request(self, op: Op, key: str, value: str, known: Known | None) -> Request:
        folder = _FOLDER.format(namespace=self.namespace)
        if op is Op.GET:
            return Request("GET", f"{folder}/{key}")  # without a resourceVersion: the newest there is
        metadata = {"name": key, "namespace": self.namespace}
        if op is Op.CAS and known is not None:
            metadata["resourceVersion"] = known.revision
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}
        body = json.dumps(document).encode()
        return Once("POST", folder, body) if op is Op.CREATE else Once("PUT", f"{folder}/{key}", body)


def _next(known: Known | None, chance: random.Random) -> Op:
    if known is None:
        return Op.GET
    if not known.revision:
        return Op.CREATE
    return chance.choices((Op.GET, Op.PUT, Op.CAS), (3, 2, 5))[0]


def judged(op: Op, key: str, answer: probe.RequestOutcome) -> tuple[Outcome | None, Known | None]:
    """What is known of an operation by its answer, and of its register; None: it was never sent."""
    if not answer.address:
        return None, None
    body = _document(answer.body)
    if answer.ok and body.get("kind") == "ConfigMap":
        metadata, data = body["metadata"], body["data"]
        return Outcome.OK, Known(data["value"], metadata["resourceVersion"])
    about = (body.get("details") or {}).get("name") == key
    match op, answer.status, body.get("reason"):
        case Op.GET, 404, "NotFound" if about:
            return Outcome.OK, Known()
        case ((Op.PUT | Op.CAS), 404, "NotFound") if about:
            return Outcome.REFUSED, Known()
        case (Op.CREATE, 409, "AlreadyExists") | (Op.CAS, 409, "Conflict") if about:
            return Outcome.REFUSED, None
        case _:
            return Outcome.UNKNOWN, None


def _document(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class Crew:
    """Clients at work. ``auditor`` is one of them, which does what it is told to."""

    shared: Registers
    auditor: RegisterClient


@asynccontextmanager
async def register_clients(
    target: ProbeTarget, *, seed: int, count: int = 5, namespace: str = "quarterdeck-registers"
) -> AsyncIterator[Crew]:
    """Clients at work on a plane's registers until the block ends; then the history is whole. One plane has one of
    these in its life: what they find must be theirs.
    """
    shared, contexts = Registers(), {http: tls_context(target, http) for http in HttpVersion}

    def client(number: int, http: HttpVersion) -> RegisterClient:
        resolver = resolver_for(target, time.monotonic, Direct())
        dialer = Dialer(target=target, resolver=resolver, network=Direct(), context=contexts[http], http=http)
        dialled = probe.Client(dialer, timeout=_PATIENCE)
        return RegisterClient(number, random.Random(f"{seed}/{number}"), dialled, namespace, shared)

    auditor = client(count, HttpVersion.ONE)
    workers = [client(number, HttpVersion.TWO if number % 2 else HttpVersion.ONE) for number in range(count)]
    try:
        await _made(auditor.client, namespace)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each.run()) for each in workers]
            try:
                yield Crew(shared, auditor)
            finally:
                for task in tasks:
                    task.cancel()
    finally:
        for each in (auditor, *workers):
            await each.client.drop()


async def _made(clerk: probe.Client, namespace: str) -> None:
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    made = await clerk.call(Once("POST", "/api/v1/namespaces", json.dumps(document).encode()))
    assert made.status == 201, f"making the namespace of the registers: {made.reason} {made.body[:300]!r}"
