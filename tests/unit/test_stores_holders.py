from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from quarterdeck.stores.port import Lease
from quarterdeck.stores.sqlite_leases import Holders


def lease(token: int, name: str = "plane/alpha") -> Lease:
    return Lease(name=name, holder="me", token=token, ttl=10.0, expires=100.0)


def test_a_holder_is_gone_when_it_has_ended_and_not_before(tmp_path: Path) -> None:
    mine, others = Holders(tmp_path / "holders"), Holders(tmp_path / "holders")
    assert not others.is_gone(lease(1)), "nothing is known of it"
    mine.begins(lease(1), after=None)
    assert not others.is_gone(lease(1))
    assert not mine.is_gone(lease(1))
    mine.close()
    assert others.is_gone(lease(1))


def test_of_earlier_holders_nothing_is_left_but_of_other_leases(tmp_path: Path) -> None:
    first, second = Holders(tmp_path / "holders"), Holders(tmp_path / "holders")
    first.begins(lease(1), after=None)
    first.begins(lease(1, "plane/alpha.1"), after=None)
    second.begins(lease(2), after=lease(1))
    assert sorted(os.listdir(tmp_path / "holders")) == ["plane%2Falpha.1.1", "plane%2Falpha.2"]  # noqa: PTH208
    assert not first.is_gone(lease(1)), "a frozen one of before has nothing more to say"
    assert not first.is_gone(lease(2))
    second.close()
    assert first.is_gone(lease(2))
    assert not second.is_gone(lease(1, "plane/alpha.1"))


@pytest.mark.parametrize("fails", ["flock", "open"])
def test_a_holder_that_cannot_have_a_lock_is_not_taken_for_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    where: tuple[object, str] = {"flock": (fcntl, "flock"), "open": (os, "open")}[fails]
    holders = Holders(tmp_path / "holders")
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(*where, full)
        holders.begins(lease(1), after=None)
    assert not Holders(tmp_path / "holders").is_gone(lease(1))
    holders.close()
