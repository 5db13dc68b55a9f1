"""Asking one that accepts connections and answers none, as a program that is just starting does."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from quarterdeck.engine.observation.queries import all_or_none, or_none
from quarterdeck.errors import Unavailable
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.real import RealEtcd
from quarterdeck.kube.http import HttpKube
from quarterdeck.kube.port import Address, HealthAnswer
from quarterdeck.pki.issuance import create_plane_secrets

WITHIN = 0.05
CALLS = 200
AT_ONCE = 40

Ask = Callable[["Ports", Address], Awaitable[object]]


class Ports:
    """The real drivers."""

    def __init__(self) -> None:
        secrets = create_plane_secrets("demo", datetime.now(UTC))
        self.etcd = RealEtcd(ClientTls(ca=secrets.etcd_ca.bundle, client=secrets.etcd_manager))
        self.kube = HttpKube(secrets.kubernetes_ca.bundle, secrets.manager)


@pytest.fixture
async def ports() -> AsyncIterator[Ports]:
    made = Ports()
    yield made
    await made.etcd.close()
    await made.kube.close()


@pytest.fixture
def mute() -> Iterator[Address]:
    """The kernel accepts connections, and nobody ever reads from them."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(CALLS + 50)
        yield Address("127.0.0.1", listener.getsockname()[1])


def open_sockets() -> int:
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        try:
            found += str(each.readlink()).startswith("socket:")
        except FileNotFoundError:
            continue  # the folder that is listed
    return found


async def version(ports: Ports, where: Address) -> object:
    return await ports.etcd.peer_version_answers(f"https://{where.host}:{where.port}", within=WITHIN)


async def applied(ports: Ports, where: Address) -> object:
    return await or_none(ports.etcd.applied_index(f"https://{where.host}:{where.port}", within=WITHIN))


async def status(ports: Ports, where: Address) -> object:
    return await or_none(ports.etcd.status(f"https://{where.host}:{where.port}", within=WITHIN))


async def readiness(ports: Ports, where: Address) -> object:
    answer: HealthAnswer = await ports.kube.readyz(where, within=WITHIN)
    return answer.ok


@pytest.mark.parametrize(("ask", "nothing"), [(version, False), (applied, None), (status, None), (readiness, None)])
async def test_no_socket_is_left_open_or_to_the_garbage_collector_however_often_one_is_asked(
    ports: Ports, mute: Address, ask: Ask, nothing: object
) -> None:
    """A call that is cancelled from outside in its handshake drops its socket; one that gives up itself closes it."""
    await ask(ports, mute)
    before = open_sockets()
    with warnings.catch_warnings(record=True) as dropped:
        warnings.simplefilter("always", ResourceWarning)
        for _ in range(CALLS // AT_ONCE):
            began = asyncio.get_running_loop().time()
            answers = await asyncio.gather(*(ask(ports, mute) for _ in range(AT_ONCE)))
            assert answers == [nothing] * AT_ONCE
            assert asyncio.get_running_loop().time() - began < 10, "it is not waited for"
        assert open_sockets() <= before + 1
        gc.collect()
    assert [str(each.message) for each in dropped] == []


async def test_what_is_asked_at_once_is_known_or_not_each_by_itself() -> None:
    async def answers() -> int:
        return 7

    async def does_not() -> int:
        raise Unavailable("asking", "nothing answers")

    assert await all_or_none([answers, does_not, answers]) == [7, None, 7]


async def test_who_is_cancelled_before_a_question_was_asked_leaves_no_coroutine_behind() -> None:
    asked: list[int] = []

    async def ask(number: int) -> None:
        asked.append(number)

    task = asyncio.create_task(all_or_none(partial(ask, number) for number in range(3)))
    await asyncio.sleep(0)  # the questions are due, and none has had its turn
    task.cancel()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(asyncio.CancelledError):
            await task
        gc.collect()
    assert (asked, [str(each.message) for each in warned]) == ([], [])
