"""A host's script that serves a session, run on this host."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.host_script import functions

from quarterdeck.sites.ssh import wire

#: A host whose script writes down the bodies that it is asked to keep.
_HOST = """
SELF=$1/host LIB=$1 RUN=$1
: > "$SELF"
prepare() { :; }
ask_keep_here() { cat "$BODY" > "$LIB/kept-$ID"; }
call_serve "$(sha256sum < "$SELF" | cut -d ' ' -f 1)" -
wait
"""


def kept(folder: Path, sent: bytes) -> list[bytes]:
    """What is kept after a connection that brought this, and then ended."""
    code = f"{functions()}{_HOST}".replace("[ -d /run/systemd/system ]", "true")
    argv = ("bash", "-c", code, "bash", str(folder))
    done = subprocess.run(argv, input=sent, capture_output=True, timeout=30, check=False)
    assert done.stdout.startswith(b"quarterdeck "), done.stderr
    return [each.read_bytes() for each in sorted(folder.glob("kept-*"))]


@pytest.mark.parametrize("lost", [0, 1, 500])
def test_a_request_whose_body_was_cut_off_is_not_carried_out(tmp_path: Path, lost: int) -> None:
    sent = b"".join(wire.request(number, 10**9, None, ("keep-here",), b"x" * 501) for number in (1, 2))
    whole = [b"x" * 501]
    assert kept(tmp_path, sent[: len(sent) - lost]) == (whole if lost else 2 * whole)
