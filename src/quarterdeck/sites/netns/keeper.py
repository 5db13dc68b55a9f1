"""The keeper of a lab: ``python -m quarterdeck.sites.netns.keeper FOLDER DESCRIPTOR``, started by ``Lab.open``.

Two processes. The guard is outside: it starts the keeper, waits for its end, whatever the reason, and then kills every
process that is still in the lab. The keeper is inside the lab's user namespace and router; it holds all other
namespaces open and serves requests. If the guard is killed, the keeper cleans up itself and ends. So nothing of a lab
outlives its keeper.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from quarterdeck.errors import QuarterdeckError, Unavailable
from quarterdeck.files import write_atomic
from quarterdeck.linux import calls
from quarterdeck.linux.processes import ProcessId
from quarterdeck.sites.netns import control
from quarterdeck.sites.netns.processes import kill_members, namespace_id
from quarterdeck.sites.netns.service import LabService

_CLEANING = 15.0  # seconds for the processes of a lab to die after SIGKILL
_ASKING = 2.0  # seconds for a connected process to send its request
_PRIORITY = 20


def main(folder: Path, ready: int) -> None:
    """Detach from the starter, and guard a keeper until its end.

    ``ready`` is the descriptor on which the starter waits for an answer in the form of ``control``.
    """
    if os.fork():
        os._exit(0)
    os.setsid()
    # A keeper before this one may still be cleaning up: its guard and itself hold this lock until they are done.
    lock = os.open(folder / control.HELD_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    guard = ProcessId.of(os.getpid())
    assert guard is not None
    guard_side, keeper_side = socket.socketpair()
    keeper = os.fork()
    if keeper == 0:
        guard_side.close()
        _keep(folder, ready, keeper_side, guard)
    else:
        keeper_side.close()
        _guard(folder, ready, guard_side, keeper)


def _guard(folder: Path, ready: int, guard_side: socket.socket, keeper: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: os.kill(keeper, signal.SIGTERM))
    user = None
    try:
        if guard_side.recv(1):
            user = calls.open_namespace(keeper, "user")  # kept open, since another process could get its id
            with _reported(ready, "making the users of the lab"):
                calls.map_users(keeper)
    except Unavailable:
        os.kill(keeper, signal.SIGKILL)
        raise
    finally:
        guard_side.close()
        os.waitpid(keeper, 0)
        if user is not None:
            room = os.fstat(user).st_ino
            kill_members("user", room, spare=os.getpid(), deadline=time.monotonic() + _CLEANING)
        for name in (control.KEEPER_FILE, control.SOCKET):
            (folder / name).unlink(missing_ok=True)


def _keep(folder: Path, ready: int, keeper_side: socket.socket, guard: ProcessId) -> None:
    with _reported(ready, "making the user namespace of the lab"):
        _move_in(keeper_side, guard)
    try:
        with _reported(ready, "starting the keeper of the lab"):
            service = LabService(folder / control.LAYOUT_FILE)
            keeper = ProcessId.of(os.getpid())
            assert keeper is not None
            ids = {"guard": asdict(guard), "keeper": asdict(keeper)}
            write_atomic(folder / control.KEEPER_FILE, json.dumps(ids).encode(), mode=0o600)
            listener = control.listen(folder)
        with listener:
            os.write(ready, control.answer_ok())
            os.close(ready)
            _serve(listener, service)
    finally:
        room = namespace_id("self", "user")
        assert room is not None
        kill_members("user", room, spare=os.getpid(), deadline=time.monotonic() + _CLEANING)


def _move_in(keeper_side: socket.socket, guard: ProcessId) -> None:
    """Enter a new user namespace, as its root."""
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    calls.signal_on_parents_death(signal.SIGTERM)
    with contextlib.suppress(PermissionError):
        # The forwarder inherits it: delays stay exact while the processors are busy. Only real root may have it.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    calls.unshare(calls.CLONE_NEWUSER)
    keeper_side.sendall(b"1")
    keeper_side.recv(1)  # the guard closes its side when it has mapped the users, or dies
    if os.getppid() != guard.pid:
        sys.exit(1)


def _serve(listener: socket.socket, service: LabService) -> None:
    """Serve requests, one after the other, until one ends the keeper."""
    while True:
        ends = service.forwarder_ends
        requests = listener.fileno()
        readable, _, _ = select.select([requests] if ends is None else [requests, ends], [], [])
        if ends in readable:
            service.replace_forwarder()
        if requests in readable and not _answer(listener, service):
            return


def _answer(listener: socket.socket, service: LabService) -> bool:
    """Serve one connection; False if it requested the end."""
    connection, _address = listener.accept()
    with connection:
        connection.settimeout(_ASKING)
        try:
            words: list[str] = json.loads(connection.recv(control.LARGEST))
        except (OSError, ValueError):  # it disconnected without a request
            return True
        try:
            text, descriptors = service.carry_out(words)
            message = control.answer_ok(text)
        except QuarterdeckError as error:
            message, descriptors = control.answer_error(error), ()
        with contextlib.suppress(OSError):  # it disconnected: its request is carried out nevertheless
            socket.send_fds(connection, [message], descriptors)
        return words != ["end"]


@contextlib.contextmanager
def _reported(ready: int, doing: str) -> Iterator[None]:
    """Report an error to the starter before the lab is up."""
    try:
        yield
    except QuarterdeckError as error:
        os.write(ready, control.answer_error(error))
        raise
    except OSError as error:
        unavailable = Unavailable(doing, str(error), "does this host allow user and network namespaces?")
        os.write(ready, control.answer_error(unavailable))
        raise unavailable from error


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
