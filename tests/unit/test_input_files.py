"""Whatever a path that a person names leads to, reading it ends."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.golden import Golden

from quarterdeck.input_files import UnreadableFileError, read_bytes, read_text


def directory(path: Path) -> None:
    path.mkdir()


def socket_file(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**40)


@pytest.mark.parametrize(
    "make",
    [
        lambda path: None,
        directory,
        os.mkfifo,
        socket_file,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path),
        lambda path: path.write_bytes(b"a\xff"),
        lambda path: path.write_bytes(b"\xff\xfea"),
        huge,
    ],
)
def test_what_is_no_file_of_text_is_refused(tmp_path: Path, make: Callable[[Path], object], golden: Golden) -> None:
    path = tmp_path / "f"
    make(path)
    with pytest.raises(UnreadableFileError) as refused:
        read_text(path, 2**20)
    golden(refused.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_tells_the_encoding(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "f").write_bytes("kind: Grüße\n".encode(encoding))
    assert read_text(tmp_path / "f", 2**20) == "kind: Grüße\n"


def test_a_pipe_that_nobody_writes_to_is_given_up(tmp_path: Path, golden: Golden) -> None:
    os.mkfifo(tmp_path / "f")
    begun = time.monotonic()
    with golden.raises(UnreadableFileError):
        read_bytes(tmp_path / "f", 2**20, pipe_silence_s=0.2)
    assert time.monotonic() - begun >= 0.2


def test_a_pipe_whose_writer_says_nothing_is_given_up(tmp_path: Path, golden: Golden) -> None:
    os.mkfifo(tmp_path / "f")
    writer = os.open(tmp_path / "f", os.O_RDWR)
    try:
        os.write(writer, b"half")
        with golden.raises(UnreadableFileError):
            read_bytes(tmp_path / "f", 2**20, pipe_silence_s=0.2)
    finally:
        os.close(writer)


def test_a_pipe_is_read_to_its_end_whenever_its_writer_comes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    content = b"x" * 300_000
    writer = threading.Thread(target=(tmp_path / "f").write_bytes, args=(content,))
    writer.start()
    assert read_bytes(tmp_path / "f", 2**20, pipe_silence_s=30) == content
    writer.join()


def test_an_endless_pipe_is_refused_at_its_bound(golden: Golden) -> None:
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        assert endless.stdout is not None
        with golden.raises(UnreadableFileError):
            read_bytes(Path(f"/dev/fd/{endless.stdout.fileno()}"), 2**20, pipe_silence_s=30)
        endless.kill()


def test_a_substituted_process_that_has_ended_is_read() -> None:
    """As ``<(echo a: 1)`` of a shell is: the writer may be gone before anybody looks."""
    reader, writer = os.pipe()
    os.write(writer, b"a: 1\n")
    os.close(writer)
    try:
        assert read_text(Path(f"/dev/fd/{reader}"), 2**20, pipe_silence_s=30) == "a: 1\n"
    finally:
        os.close(reader)
