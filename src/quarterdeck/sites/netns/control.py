"""Requests to the keeper: one request and one answer per connection, over a Unix socket.

A request is a list of words. An answer is ``{"ok": ...}``, with descriptors where requested, or the class and parts of
an error. Every process that can reach the folder (0700) may send one.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from quarterdeck.errors import QuarterdeckError, Unavailable, error_class

LARGEST = 1 << 18
"""Most bytes of a message."""
SOCKET, LAYOUT_FILE, KEEPER_FILE, LOG_FILE = "control", "lab.json", "keeper.json", "keeper.log"
"""The files of a lab's folder: the socket, the layout, the keeper's process ids, its output."""
HELD_FILE, START_FILE = "held.lock", "start.lock"
"""Locked by a running keeper, and by a process that starts one."""


def lab_folder(home: Path) -> Path:
    """The folder with a lab's files."""
    return home.absolute() / "netns"


@contextlib.contextmanager
def _short(folder: Path) -> Iterator[str]:
    """The socket's path in a form that fits into the 108 bytes that the kernel allows."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)


def listen(folder: Path) -> socket.socket:
    """The keeper's socket; one that a dead keeper left behind is replaced."""
    (folder / SOCKET).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with _short(folder) as path:
        listener.bind(path)
    listener.listen(64)
    return listener


def answers(folder: Path, timeout: float = 20.0) -> bool:
    """Whether there is a keeper; raises Unavailable if there is one that does not answer in ``timeout`` seconds."""
    try:
        return bool(_exchange(folder, ("ping",), timeout)[0])
    except TimeoutError as error:
        raise Unavailable(f"checking the keeper of the lab in {folder}", "it does not answer") from error
    except OSError:  # there never was one, it has ended, or is just ending
        return False


def ask(folder: Path, *words: str, timeout: float = 20.0) -> str:
    """Send a request and return the answer's text; ``timeout`` in seconds.

    Raises Unavailable if no keeper answers, and the keeper's error.
    """
    text, descriptors = _ask(folder, words, timeout)
    for each in descriptors:
        os.close(each)
    return text


def ask_descriptors(folder: Path, *words: str, timeout: float = 20.0) -> tuple[int, ...]:
    """``ask`` for descriptors, which the caller closes."""
    return _ask(folder, words, timeout)[1]


def _ask(folder: Path, words: tuple[str, ...], timeout: float) -> tuple[str, tuple[int, ...]]:
    doing = f"requesting {words[0]} of the keeper of the lab in {folder}"
    try:
        message, descriptors = _exchange(folder, words, timeout)
    except OSError as error:
        raise Unavailable(doing, f"no answer ({error})", "the lab starts again with the next command") from error
    if not message:
        raise Unavailable(doing, "it ended before it answered", f"see {folder / LOG_FILE}")
    return read_answer(message), descriptors


def _exchange(folder: Path, words: tuple[str, ...], timeout: float) -> tuple[bytes, tuple[int, ...]]:
    """The answer, which is empty if the keeper ends instead. Raises OSError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(timeout)
        with _short(folder) as path:
            connection.connect(path)
        connection.sendall(json.dumps(words).encode())
        message, received, _flags, _address = socket.recv_fds(connection, LARGEST, 4)
        return message, tuple(received)


def read_answer(message: bytes) -> str:
    """The text of an answer; raises the error that it carries."""
    answer = json.loads(message)
    if "error" in answer:
        kind, doing, seen, next_step = answer["error"]
        raise error_class(kind)(doing, seen, next_step)
    text: str = answer["ok"]
    return text


def answer_error(error: QuarterdeckError) -> bytes:
    """The message for an error."""
    return json.dumps(
        {"error": [error.kind, error.doing, error.seen, error.next_step]},
    ).encode()


def answer_ok(text: str = "") -> bytes:
    """The message for a result."""
    return json.dumps({"ok": text}).encode()
