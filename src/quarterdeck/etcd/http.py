"""etcd's HTTP endpoints: the version on its peer port, metrics, and the leader's raft status."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.facts import Durations, MemberProgress, MemberTimes, RaftProgress, Replication
from quarterdeck.etcd.faults import Reason, fault
from quarterdeck.etcd.maintenance import minor_of
from quarterdeck.http import Answer, Http, NoAnswer
from quarterdeck.model.membership import EtcdMinor
from quarterdeck.pki.tls import client_context

_LEADER = "StateLeader"
_FSYNC = "etcd_disk_wal_fsync_duration_seconds"
_COMMIT = "etcd_disk_backend_commit_duration_seconds"
_TRIP = re.compile(
    r'^etcd_network_peer_round_trip_time_seconds_bucket\{To="([0-9a-f]+)",le="([^"]+)"\} (\S+)$', re.MULTILINE
)
_OK = 200


class _Part(BaseModel):
    model_config = ConfigDict(defer_build=True)  # built when a member first answers


class _Member(_Part):
    match: int
    next: int
    state: Replication


class _Raft(_Part):
    """etcd: raft, Status.MarshalJSON. Ids are hexadecimal; only a leader has ``progress``."""

    id: str
    term: int
    commit: int
    role: str = Field(alias="raftState")
    progress: Mapping[str, _Member]
    transferee: str = Field(alias="leadtransferee")


class _Vars(_Part):
    raft: _Raft = Field(alias="raft.status")


class _Version(_Part):
    """etcd: version.Versions. etcd 3.5 tells no version of its storage."""

    cluster: str = Field(alias="etcdcluster")


class EtcdHttp:
    """GET requests to members, by https:// with the client's certificate, or by http://.

    ``deadline``, or ``within`` where that is given, is in seconds: see ``Http.ask``.
    """

    def __init__(self, tls: ClientTls, *, deadline: float) -> None:
        self._deadline = deadline
        self._client = Http(client_context(tls.ca, tls.client))

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def peer_version_answers(self, peer_url: str, *, within: float | None = None) -> bool:
        """Whether the peer port answers /version: the request that a starting member makes of all others."""
        try:
            answer = await self._get(peer_url, "/version", within)
        except NoAnswer:
            return False
        return answer.status == _OK

    async def works_as(self, client_url: str, *, within: float | None = None) -> EtcdMinor:
        """The version of the cluster, as one member knows it. Raises Unavailable, also until it knows one."""
        doing = f"reading the version of the cluster at {client_url}"
        answer = await self._fetch(client_url, "/version", doing, within)
        try:
            return minor_of(_Version.model_validate_json(answer.body).cluster)
        except ValueError as error:
            raise fault(doing, Reason.OTHER, f"status {answer.status} and no version of a cluster") from error

    async def metric(self, metrics_url: str, wanted: str, *, within: float | None = None) -> int:
        """A counter or gauge without labels. Raises Unavailable."""
        doing = f"reading etcd's metrics at {metrics_url}"
        answer = await self._fetch(metrics_url, "/metrics", doing, within)
        found = re.search(rf"^{re.escape(wanted)} (\S+)$", answer.text, re.MULTILINE)
        if found is None:
            raise fault(doing, Reason.OTHER, f"status {answer.status} without {wanted}")
        return int(float(found[1]))

    async def times(self, metrics_url: str) -> MemberTimes:
        """The histograms of a member. Raises Unavailable."""
        doing = f"reading etcd's metrics at {metrics_url}"
        answer = await self._fetch(metrics_url, "/metrics", doing, None)
        fsync, commit = (_durations(answer.text, name) for name in (_FSYNC, _COMMIT))
        for name, each in ((_FSYNC, fsync), (_COMMIT, commit)):
            if not each.buckets:
                raise fault(doing, Reason.OTHER, f"status {answer.status} without {name}")
        return MemberTimes(fsync=fsync, commit=commit, trips=_trips(answer.text))

    async def progress(self, client_url: str) -> RaftProgress:
        """The leader's own report of its members (etcd: expvar raft.status). Raises Unavailable."""
        doing = f"reading the progress of the members at {client_url}"
        answer = await self._fetch(client_url, "/debug/vars", doing, None)
        try:
            raft = _Vars.model_validate_json(answer.body).raft
        except ValidationError as error:
            raise fault(doing, Reason.OTHER, f"status {answer.status} and no raft status") from error
        if raft.role != _LEADER:
            raise fault(doing, Reason.NO_LEADER, "it is not the leader")
        return RaftProgress(
            leader_id=int(raft.id, 16),
            term=raft.term,
            committed=raft.commit,
            transferee=int(raft.transferee, 16),
            members=tuple(
                MemberProgress(member_id=int(member, 16), match=each.match, next=each.next, state=each.state)
                for member, each in raft.progress.items()
            ),
        )

    async def _fetch(self, url: str, path: str, doing: str, within: float | None) -> Answer:
        try:
            return await self._get(url, path, within)
        except NoAnswer as error:
            if error.late:
                raise fault(doing, Reason.DEADLINE, f"no answer within {within or self._deadline:g} s") from error
            raise fault(doing, Reason.UNREACHABLE, str(error)) from error

    async def _get(self, url: str, path: str, within: float | None) -> Answer:
        return await self._client.ask("GET", url, path, deadline=within or self._deadline)


def _trips(text: str) -> Mapping[int, Durations]:
    found: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
    for member, bound, count in _TRIP.findall(text):
        found[int(member, 16)].append((float(bound), int(float(count))))
    return {member: Durations(tuple(buckets)) for member, buckets in found.items()}


def _durations(text: str, name: str) -> Durations:
    found = re.findall(rf'^{re.escape(name)}_bucket\{{le="([^"]+)"\}} (\S+)$', text, re.MULTILINE)
    return Durations(tuple((float(bound), int(float(count))) for bound, count in found))
