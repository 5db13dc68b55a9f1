"""What is read of a member's metrics: histograms with and without labels."""

from __future__ import annotations

from typing import Any

import pytest
from support.golden import Golden

from quarterdeck.errors import Unavailable
from quarterdeck.etcd import http as reading
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.facts import Durations
from quarterdeck.http import Answer

INF = float("inf")
#: As etcd 3.6 writes it.
METRICS = """
# TYPE etcd_disk_backend_commit_duration_seconds histogram
etcd_disk_backend_commit_duration_seconds_bucket{le="0.001"} 3
etcd_disk_backend_commit_duration_seconds_bucket{le="+Inf"} 4
etcd_disk_backend_commit_duration_seconds_sum 0.01
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.001"} 17
etcd_disk_wal_fsync_duration_seconds_bucket{le="+Inf"} 18
# TYPE etcd_network_peer_round_trip_time_seconds histogram
etcd_network_peer_round_trip_time_seconds_bucket{To="91bc3c398fb3c146",le="0.0001"} 0
etcd_network_peer_round_trip_time_seconds_bucket{To="91bc3c398fb3c146",le="+Inf"} 2
etcd_network_peer_round_trip_time_seconds_sum{To="91bc3c398fb3c146"} 0.12
etcd_network_peer_round_trip_time_seconds_count{To="91bc3c398fb3c146"} 2
etcd_network_peer_round_trip_time_seconds_bucket{To="fd422379fda50e48",le="0.0001"} 1
etcd_network_peer_round_trip_time_seconds_bucket{To="fd422379fda50e48",le="+Inf"} 2
"""


async def times_from(monkeypatch: pytest.MonkeyPatch, text: str) -> Any:
    async def ask(*_: object, **__: object) -> Answer:
        return Answer(200, text.encode())

    client = reading.EtcdHttp(ClientTls(ca=b"", client=None), deadline=1.0)  # type: ignore[arg-type]
    monkeypatch.setattr(client, "_get", ask)
    return await client.times("http://10.0.0.1:2381")


async def test_disks_and_the_links_to_each_other_member_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "client_context", lambda *_: None)
    times = await times_from(monkeypatch, METRICS)
    assert times.fsync == Durations(((0.001, 17), (INF, 18)))
    assert times.commit == Durations(((0.001, 3), (INF, 4)))
    assert times.trips == {
        0x91BC3C398FB3C146: Durations(((0.0001, 0), (INF, 2))),
        0xFD422379FDA50E48: Durations(((0.0001, 1), (INF, 2))),
    }


async def test_what_is_no_page_of_etcds_metrics_is_no_answer(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr(reading, "client_context", lambda *_: None)
    with golden.raises(Unavailable):
        await times_from(monkeypatch, "nothing to see here")
