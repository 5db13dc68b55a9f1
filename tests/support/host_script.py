"""quarterdeck's part of a host, run on this one."""

from __future__ import annotations

from quarterdeck.sites.ssh.wire import script

_END = '\n[ $# -gt 0 ] || fail $INVALID "host serve'


def functions() -> str:
    """Its functions, without a call of any."""
    text = script().decode()
    return f"{text[: text.index(_END)]}\nset +u\n"
