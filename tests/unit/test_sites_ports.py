"""Which ports are taken, read from the kernel's tables."""

from __future__ import annotations

import sys

import pytest

from quarterdeck.model.seats import HostPort
from quarterdeck.sites.kernel import listening_ends

HERE = "127.9.2.1"
HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
ROW = "   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n"


def table(local: str, state: str = "0A") -> str:
    return HEADER + ROW.format(local=local, state=state)


pytestmark = pytest.mark.skipif(sys.byteorder == "big", reason="the rows are as a little-endian kernel prints them")


@pytest.mark.parametrize(
    "local",
    [
        "0102097F:0947",  # 127.9.2.1
        "00000000:0947",  # 0.0.0.0
        "00000000000000000000000000000000:0947",  # ::
        "0000000000000000FFFF00000102097F:0947",  # ::ffff:127.9.2.1
    ],
)
def test_a_listener_at_the_address_or_at_all_addresses_takes_the_port(local: str) -> None:
    assert listening_ends(table(local), [HERE]) == {HostPort(HERE, 2375)}


@pytest.mark.parametrize("local", ["0202097F:0947", "00000000000000000000000001000000:0947"])
def test_a_listener_at_another_address_does_not(local: str) -> None:
    assert listening_ends(table(local), [HERE]) == frozenset()


@pytest.mark.parametrize("state", ["01", "06"])
def test_a_connection_is_not_a_listener(state: str) -> None:
    assert listening_ends(table("0102097F:0947", state), [HERE]) == frozenset()


def test_the_tables_may_follow_each_other() -> None:
    both = table("0102097F:0001") + table("00000000000000000000000000000000:0002")
    assert listening_ends(both, [HERE]) == {HostPort(HERE, 1), HostPort(HERE, 2)}
