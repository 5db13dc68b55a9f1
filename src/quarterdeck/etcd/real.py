"""The etcd port for real members: one cached channel to each."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace

from quarterdeck.components.credentials import KeyPair
from quarterdeck.errors import Unavailable
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.client import EtcdMember
from quarterdeck.etcd.facts import (
    Alarm,
    AlarmKind,
    KeyEvent,
    KeySpaceHash,
    LeaseLife,
    ListedMember,
    MemberReport,
    MemberTimes,
    RaftProgress,
    RangeResult,
)
from quarterdeck.etcd.faults import (
    EtcdCompacted,
    EtcdFault,
    EtcdInvalid,
    EtcdNotFound,
    EtcdRefused,
    EtcdUnavailable,
    Reason,
    fault,
)
from quarterdeck.etcd.http import EtcdHttp
from quarterdeck.etcd.kv import DeleteRange, Get, Put
from quarterdeck.etcd.several import Answer, Ask, hedged, in_turn
from quarterdeck.etcd.watch import WatchRequest
from quarterdeck.model.membership import EtcdMinor

_APPLIED = "etcd_server_proposals_applied_total"
_PENDING = "etcd_server_proposals_pending"
#: Seconds that a member may take to compact the history of a large database.
_COMPACTING = 60.0
#: Seconds for an answer of the greatest length over a slow link.
_READING = 15.0


class RealEtcd:
    """The driver for one cluster, which authenticates quarterdeck by ``tls`` on client and peer ports.

    Times in seconds. ``read_deadline`` bounds each read of a member, ``change_deadline`` each change: etcd itself gives
    up after 5 s and two election timeouts. After ``stagger`` of silence another member is queried too.
    """

    def __init__(
        self,
        tls: ClientTls,
        *,
        read_deadline: float = 3.0,
        change_deadline: float = 5.0,
        stagger: float = 0.25,
    ) -> None:
        self._tls = tls
        self._read_deadline = read_deadline
        self._change_deadline = change_deadline
        self._stagger = stagger
        self._channels: dict[str, EtcdMember] = {}
        self._http = EtcdHttp(tls, deadline=read_deadline)
        self._leader: str | None = None  # the URL of the last known leader

    async def status(self, url: str, *, within: float | None = None) -> MemberReport:
        """See the port."""
        if self._leader == url:
            self._leader = None
        status = await self._member(url).maintenance.status(deadline=within or self._read_deadline)
        if status.is_leader:
            self._leader = url
        return status

    async def flush(self, url: str) -> None:
        """See the port."""
        await self._member(url).maintenance.flush(deadline=self._change_deadline)

    async def progress(self, leader_url: str) -> RaftProgress:
        """See the port."""
        return await self._http.progress(leader_url)

    async def members(self, urls: Sequence[str]) -> tuple[ListedMember, ...]:
        """See the port."""

        async def ask(url: str) -> tuple[ListedMember, ...]:
            return await self._member(url).cluster.members(deadline=self._read_deadline)

        return await hedged(self._leader_first(urls), ask, "listing the etcd members", stagger=self._stagger)

    async def revision(self, urls: Sequence[str]) -> int:
        """See the port."""

        async def ask(url: str) -> int:
            nothing = Get(key=b"\0", count_only=True)
            return (await self._member(url).kv.get(nothing, deadline=self._read_deadline)).revision

        return await hedged(self._leader_first(urls), ask, "reading etcd's revision", stagger=self._stagger)

    async def lists(self, url: str, member_id: int) -> bool:
        """See the port."""
        return any(each.id == member_id for each in await self.known_members(url))

    async def known_members(self, url: str) -> tuple[ListedMember, ...]:
        """See the port."""
        return await self._member(url).cluster.members(linearizable=False, deadline=self._read_deadline)

    async def add_learner(self, urls: Sequence[str], peer_url: str) -> int:
        """See the port."""

        async def ask(url: str) -> int:
            added = await self._member(url).cluster.add_learner(peer_url, deadline=self._change_deadline)
            return added.id

        doing = f"adding the etcd learner {peer_url}"
        try:
            return await self._change(urls, ask, doing)
        except EtcdFault as error:
            # etcd checks the health of the voters before it checks whether the member exists.
            if error.reason in (Reason.MEMBER_EXISTS, Reason.UNHEALTHY):
                for member in await self.members(urls):
                    if peer_url in member.peer_urls:
                        return member.id
            if error.reason is Reason.MEMBER_NOT_FOUND:
                # A member's id is a hash of its URL and the second of its addition, and no id is reused.
                seen = "a removed member has the id of this second"
                raise EtcdUnavailable(doing, seen, "try again in a second", reason=Reason.OTHER) from error
            raise

    async def promote(self, urls: Sequence[str], member_id: int) -> None:
        """See the port."""

        async def ask(url: str) -> None:
            await self._member(url).cluster.promote(member_id, deadline=self._change_deadline)

        try:
            await self._change(urls, ask, f"promoting the etcd member {member_id:x}")
        except EtcdRefused as error:
            if error.reason is not Reason.NOT_A_LEARNER:
                raise

    async def readdress(self, urls: Sequence[str], member_id: int, peer_url: str) -> None:
        """See the port."""

        async def ask(url: str) -> None:
            await self._member(url).cluster.readdress(member_id, peer_url, deadline=self._change_deadline)

        await self._change(urls, ask, f"changing the peer URL of etcd member {member_id:x} to {peer_url}")

    async def remove(self, urls: Sequence[str], member_id: int) -> None:
        """See the port."""

        async def ask(url: str) -> None:
            await self._member(url).cluster.remove(member_id, deadline=self._change_deadline)

        try:
            await self._change(urls, ask, f"removing the etcd member {member_id:x}")
        except EtcdNotFound:
            return

    async def move_leader(self, leader_url: str, to_id: int) -> None:
        """See the port."""
        try:
            await self._member(leader_url).maintenance.move_leader(to_id, deadline=self._change_deadline)
        except EtcdRefused as error:
            if error.reason is not Reason.NOT_LEADER or (await self.status(leader_url)).leader_id != to_id:
                raise
        finally:
            self._leader = None

    async def admits(self, url: str, *, within: float | None = None) -> bool:
        """See the port."""
        nothing = Get(key=b"\0", count_only=True, serializable=True)
        try:
            await self._member(url).kv.get(nothing, deadline=within or self._read_deadline)
        except EtcdRefused as error:
            if error.reason is not Reason.DENIED:
                raise
            return False
        return True

    async def disable_authentication(self, urls: Sequence[str], root: KeyPair) -> None:
        """See the port."""

        async def ask(url: str) -> None:
            async with EtcdMember(url, replace(self._tls, client=root)) as member:
                await member.auth.disable(deadline=self._change_deadline)

        await in_turn(self._leader_first(urls), ask, "disabling etcd's authentication")

    async def alarms(self, urls: Sequence[str]) -> tuple[Alarm, ...]:
        """See the port."""

        async def ask(url: str) -> tuple[Alarm, ...]:
            return await self._member(url).maintenance.alarms(deadline=self._read_deadline)

        return await hedged(self._leader_first(urls), ask, "reading etcd's alarms", stagger=self._stagger)

    async def compact(self, urls: Sequence[str], revision: int) -> None:
        """See the port."""

        async def ask(url: str) -> None:
            await self._member(url).kv.compact(revision, physical=True, deadline=_COMPACTING)

        try:
            await in_turn(self._leader_first(urls), ask, f"compacting etcd to revision {revision}")
        except EtcdCompacted:
            return

    async def defragment(self, url: str) -> None:
        """See the port."""
        await self._member(url).maintenance.defragment()

    async def disarm(self, urls: Sequence[str], kind: AlarmKind) -> None:
        """See the port."""
        raised = [alarm for alarm in await self.alarms(urls) if alarm.kind is kind]

        async def ask(url: str) -> None:
            for alarm in raised:
                await self._member(url).maintenance.disarm(alarm, deadline=self._change_deadline)

        if raised:
            await in_turn(self._leader_first(urls), ask, f"disarming the alarm {kind}")

    async def works_as(self, url: str, *, within: float | None = None) -> EtcdMinor:
        """See the port."""
        return await self._http.works_as(url, within=within)

    async def enable_downgrade(self, urls: Sequence[str], target: EtcdMinor) -> None:
        """See the port."""

        async def ask(url: str) -> None:
            try:
                await self._member(url).maintenance.enable_downgrade(target, deadline=self._change_deadline)
            except (EtcdInvalid, EtcdRefused) as error:
                again = error.reason in (Reason.BAD_DOWNGRADE, Reason.DOWNGRADING)
                if not again or (await self.status(url)).downgrade != target:
                    raise

        await in_turn(self._leader_first(urls), ask, "enabling a downgrade of etcd")

    async def cancel_downgrade(self, urls: Sequence[str]) -> None:
        """See the port."""

        async def ask(url: str) -> None:
            await self._member(url).maintenance.cancel_downgrade(deadline=self._change_deadline)

        await in_turn(self._leader_first(urls), ask, "cancelling the downgrade of etcd")

    async def keep_for(self, urls: Sequence[str], key: bytes, value: bytes, seconds: int) -> None:
        """See the port."""

        async def ask(url: str) -> None:
            member = self._member(url)
            granted = await member.lease.grant(seconds, deadline=self._change_deadline)
            await member.kv.put(Put(key=key, value=value, lease=granted.id), deadline=self._change_deadline)

        await in_turn(self._leader_first(urls), ask, f"writing the key {key.decode(errors='replace')}")

    async def forget(self, urls: Sequence[str], key: bytes) -> None:
        """See the port."""

        async def ask(url: str) -> None:
            await self._member(url).kv.delete(DeleteRange(key=key), deadline=self._change_deadline)

        await in_turn(self._leader_first(urls), ask, f"deleting the key {key.decode(errors='replace')}")

    async def read(self, url: str, what: Get) -> RangeResult:
        """See the port."""
        return await self._member(url).kv.get(what, deadline=_READING)

    async def hash_keys(self, url: str, revision: int) -> KeySpaceHash:
        """See the port."""
        return await self._member(url).maintenance.hash_keys(revision=revision)

    async def snapshot(self, url: str) -> AsyncGenerator[bytes, None]:
        """See the port."""
        async with aclosing(self._member(url).maintenance.snapshot()) as parts:
            async for part in parts:
                yield part

    async def changes(self, url: str, start_revision: int) -> AsyncGenerator[tuple[KeyEvent, ...], None]:
        """See the port."""
        everything = WatchRequest(key=b"\0", range_end=b"\0", start_revision=start_revision)
        async with aclosing(self._member(url).watch.revisions(everything, patience=self._change_deadline)) as revisions:
            async for events in revisions:
                yield events

    async def lease_times(self, urls: Sequence[str], only: Collection[int] | None = None) -> tuple[LeaseLife, ...]:
        """See the port."""

        async def ask(url: str) -> tuple[LeaseLife, ...]:
            lease = self._member(url).lease
            ids = await lease.ids(deadline=self._read_deadline) if only is None else only
            return await lease.lives(ids, deadline=self._read_deadline)

        return await in_turn(self._leader_first(urls), ask, "reading etcd's leases")

    async def peer_version_answers(self, peer_url: str, *, within: float | None = None) -> bool:
        """See the port."""
        return await self._http.peer_version_answers(peer_url, within=within)

    async def applied_index(self, metrics_url: str, *, within: float | None = None) -> int:
        """See the port."""
        return await self._http.metric(metrics_url, _APPLIED, within=within)

    async def pending_proposals(self, metrics_url: str, *, within: float | None = None) -> int:
        """See the port."""
        return await self._http.metric(metrics_url, _PENDING, within=within)

    async def times(self, metrics_url: str) -> MemberTimes:
        """See the port."""
        return await self._http.times(metrics_url)

    async def close(self) -> None:
        """See the port."""
        members, self._channels = list(self._channels.values()), {}
        for member in members:
            await member.close()
        await self._http.close()

    def _member(self, url: str) -> EtcdMember:
        if url not in self._channels:
            self._channels[url] = EtcdMember(url, self._tls)
        return self._channels[url]

    def _leader_first(self, urls: Sequence[str]) -> list[str]:
        return sorted(urls, key=lambda url: url != self._leader)

    async def _change(self, urls: Sequence[str], ask: Ask[Answer], doing: str) -> Answer:
        """Make a membership change, through the leader first if it can be found.

        A follower forwards a promotion by HTTP, over a connection of its own; and raft drops a change that comes while
        the leader has not applied the previous one, for which only the leader is certain to wait.
        """

        async def one(url: str) -> Answer:
            try:
                return await ask(url)
            except Unavailable:
                if self._leader == url:
                    self._leader = None
                raise

        return await in_turn(await self._with_leader_first(urls), one, doing)

    async def _with_leader_first(self, urls: Sequence[str]) -> list[str]:
        if self._leader not in urls:

            async def ask(url: str) -> None:
                if not (await self.status(url)).is_leader:
                    raise fault("looking for the leader", Reason.NO_LEADER, "it is another")

            try:
                await hedged(urls, ask, "looking for the leader", stagger=0)
            except Unavailable:
                return list(urls)  # the next member will report the problem
        return self._leader_first(urls)
