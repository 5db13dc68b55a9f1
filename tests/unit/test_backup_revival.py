"""What a database needs before Kubernetes is served from it again."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.databases import database, history

from quarterdeck.backup.bolt.file import BoltFile
from quarterdeck.backup.contents import keys_at
from quarterdeck.backup.database import lease_of, lease_value, newest_revision
from quarterdeck.backup.records import LeaseTimes
from quarterdeck.backup.revival import Revival, revive
from quarterdeck.errors import Corrupt

IDENTITY = "apiserver-" + "abcdefghijklmnopqrstuvwxyz"
STALE = ("masterleases/10.0.0.1", "masterleases/10.0.0.2", "peerserverleases/x", f"leases/kube-system/{IDENTITY}")
KEPT = (
    "leases/kube-system/kube-scheduler",
    "leases/kube-system/apiserver-of-mine",
    f"leases/default/{IDENTITY}",
    "leases/kube-node-lease/node-1",
    "pods/kube-system/masterleases",
)
LEASES = {each.to_bytes(8, "big"): lease_value(LeaseTimes(each, 3600, 5 * each)) for each in (1, 2, 1 << 62)}


def made(path: Path, prefix: str = "/registry") -> Path:
    names = [f"{prefix}/{each}" for each in (*STALE, *KEPT)]
    gone = f"{prefix}/masterleases/10.0.0.9"
    changes = history([*({name: b"x"} for name in (gone, *names)), {gone: None}])
    return database(
        path,
        changes,
        {
            b"lease": LEASES,
            b"alarm": {b"\x08\x01\x10\x01": b"", b"\x08\x02\x10\x01": b""},
            b"cluster": {b"clusterVersion": b"3.6.0", b"downgrade": b'{"enabled":true}'},
        },
    )


@pytest.mark.parametrize("prefix", ["/registry", "/else.where"])
def test_what_the_old_cluster_knew_of_itself_is_gone_and_all_else_stays(tmp_path: Path, prefix: str) -> None:
    path = made(tmp_path / "db", prefix)
    newest = newest_revision(path)
    stale = tuple(sorted(f"{prefix}/{each}".encode() for each in STALE))
    assert revive(path, prefix=prefix) == Revival(newest + 1, stale, alarms=2, downgrade=True, leases=3)
    assert newest_revision(path) == newest + 1
    assert [each.key.decode() for each in keys_at(path)] == sorted(f"{prefix}/{each}" for each in KEPT)
    with BoltFile(path) as file:
        assert [*file.rows(b"alarm")] == []
        assert dict(file.rows(b"cluster")) == {b"clusterVersion": b"3.6.0"}
        times = [lease_of(value) for _, value in file.rows(b"lease")]
        assert [row for row, _ in file.rows(b"lease")] == sorted(LEASES)
    assert times == [LeaseTimes(each, 3600, 0) for each in (1, 2, 1 << 62)]


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    path = made(tmp_path / "db")
    first = revive(path)
    assert revive(path) == Revival(first.revision, (), alarms=0, downgrade=False, leases=3)


def test_keys_below_another_prefix_are_left_alone(tmp_path: Path) -> None:
    assert revive(made(tmp_path / "db", "/registry"), prefix="/reg").removed == ()


@pytest.mark.parametrize("lease", [LeaseTimes(1, 0, 0), LeaseTimes(-5, 1 << 40, 7), LeaseTimes(1 << 62, 60, 59)])
def test_a_lease_is_read_as_it_is_written(lease: LeaseTimes) -> None:
    assert lease_of(lease_value(lease)) == lease


@pytest.mark.parametrize("value", [b"\x08", b"\x08\xff", b"\x22\x01", b"\x08" + b"\xff" * 12])
def test_what_is_no_lease_is_refused(value: bytes) -> None:
    with pytest.raises(Corrupt, match="is no lease"):
        lease_of(value)
