"""The observation of etcd: its members, its leader, and the health of members that do not answer."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from quarterdeck.actions.addresses import candidates, client_url, client_urls, metrics_url, owners, peer_url
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.volumes import volume_name
from quarterdeck.engine.observation.identity import foreign, set_back
from quarterdeck.engine.observation.member_words import words_of
from quarterdeck.engine.observation.queries import SOON, all_or_none, or_none
from quarterdeck.engine.observation.silence import Distance, Pursuit, Silence, Word
from quarterdeck.etcd.facts import ListedMember, MemberReport, RaftProgress, Replication
from quarterdeck.model.bounds import Settings
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.epochs import MemberWord
from quarterdeck.model.membership import EtcdMinor, Health, MemberFact, Membership, Space, WrongData
from quarterdeck.model.memory import Memory, Replica

#: Seconds that a member needs at most to serve clients once it has applied its own publication.
PUBLISHED = 0.5
#: The prefix of alarms among a member's errors, such as a missing leader (etcd: AlarmMember's text in Status).
_ALARM = "alarm:"
#: Seconds between two requests that every member must acknowledge, sent while nothing else is written.
_ASKING = 1.0
#: Seconds for an answer of a member that gave none last time: it must not delay the observation of the others.
_AGAIN = 1.0
#: Seconds between two readings of the volume size of a copying member.
_WEIGHED = 5.0
#: Seconds of initial silence of a joining member before the leader's progress of it is read.
_BEGINS = 2.0
#: As many versions as an upgrade has.
_TWO = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """A listed member, and its replica, if one is recorded. ``misplaced`` and ``displaced_by`` as in ``MemberFact``."""

    member: ListedMember
    record: Replica | None
    misplaced: bool = False
    displaced_by: int | None = None

    @property
    def replica(self) -> str:
        return self.record.name if self.record else ""

    @property
    def joining(self) -> bool:
        """It has never served, so its silence does not count."""
        return self.record is not None and not self.record.started


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    """The answer of one member between ``began`` and ``ended``: its status, or at least its applied index, if it
    answered.
    """

    began: float
    ended: float
    status: MemberReport | None = None
    applied: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leader:
    """The leader of the highest known term, and the last index that is known to be committed there."""

    id: int
    term: int
    committed: int

    def is_followed(self, heard: _Heard) -> bool:
        """Whether a member answered, and follows it."""
        return heard.status is not None and heard.status.leader_id == self.id

    def heard_of(self, listed: _Listed, heard: _Heard) -> int | None:
        """The applied index that a member reports, if it follows this leader, or is joining and does not serve
        yet; None where that is unknown.
        """
        if heard.status is not None:
            return heard.status.raft_applied_index if self.is_followed(heard) else None
        return heard.applied if listed.joining else None


@dataclass(kw_only=True)
class EtcdObserver:
    """Observes an etcd cluster of one plane repeatedly. It remembers silent members, lagging members, and since when
    names are listed. ``lag_bound``: entries that a member may be behind and still have the data.

    ``wrong``: the members whose data was not the plane's in the last observation; their answers are not used.
    ``words``: the reports of members of the main cluster about themselves, if no quorum answered.
    """

    plane: Plane
    cluster: Cluster = Cluster.MAIN
    lag_bound: int = Settings().lag_bound
    wrong: tuple[WrongData, ...] = ()
    words: tuple[MemberWord, ...] = ()
    _silences: dict[int, Silence] = field(default_factory=dict)
    _pursuits: dict[int, Pursuit] = field(default_factory=dict)
    _weighed: dict[int, tuple[float, int | None]] = field(default_factory=dict)
    _published: dict[int, float] = field(default_factory=dict)
    _asked: float = -math.inf
    _listed: bool = False

    async def observe(self, memory: Memory) -> Membership | None:
        """The membership that a quorum of the plane's own members confirms now; None when none does. ``memory`` is the
        memory of this cluster.
        """
        wrong: dict[str, str] = {}
        membership, found = await self._look(memory, wrong)
        while found:  # the membership may have come from wrong members
            wrong |= found
            membership, found = await self._look(memory, wrong)
        if membership is not None:
            back = await set_back(self.plane.etcd, self._urls(memory, wrong), memory, membership.revision)
            if back != "":
                wrong |= {member.replica: back for member in membership.members if back and member.replica}
                membership = None
        known = {record.name for record in memory.replicas}
        self.words = ()
        if membership is None and memory.created and self.cluster is Cluster.MAIN:
            self.words = await words_of(self.plane, wrong)
        self.wrong = tuple(WrongData(replica=name, seen=seen) for name, seen in wrong.items() if name in known)
        return membership

    async def _look(self, memory: Memory, wrong: Mapping[str, str]) -> tuple[Membership | None, dict[str, str]]:
        """The membership without members known to be wrong; and newly found wrong ones."""
        listed = await self._list(memory, wrong)
        heard = await asyncio.gather(*(self._hear(each, wrong) for each in listed))
        found = {each.replica: foreign(memory, answer.status) for each, answer in zip(listed, heard, strict=True)}
        leader = _leader(listed, heard)
        if leader is None and memory.cluster_id:
            found |= await self._ask_all(memory, wrong)
        found = {name: seen for name, seen in found.items() if seen}
        if leader is None or found:
            return None, found
        return await self._membership(listed, heard, leader), {}

    async def _ask_all(self, memory: Memory, wrong: Mapping[str, str]) -> dict[str, str]:
        """The possible members that belong to another cluster: without a leader no member lists them."""
        asked = [each for each in candidates(self.plane, self.cluster) if each.name not in wrong]
        heard = await all_or_none(
            partial(self.plane.etcd.status, client_url(each, self.cluster), within=SOON) for each in asked
        )
        return {each.name: foreign(memory, status) for each, status in zip(asked, heard, strict=True)}

    async def _membership(self, listed: Sequence[_Listed], heard: Sequence[_Heard], leader: _Leader) -> Membership:
        silent = [each for each, answer in zip(listed, heard, strict=True) if not leader.is_followed(answer)]
        behind = {
            each.member.id: (each, leader.committed - applied)
            for each, answer in zip(listed, heard, strict=True)
            if (applied := leader.heard_of(each, answer)) is not None and leader.committed - applied > self.lag_bound
        }
        asked = behind or any(map(self._matters, silent))
        progress = await self._progress(leader, listed, heard) if asked else None
        await self._pursue(leader, behind, progress)
        members = tuple(self._fact(each, answer, leader, progress) for each, answer in zip(listed, heard, strict=True))
        self._silences = {each.member.id: self._silences[each.member.id] for each in silent}
        there = {each.member.id for each in listed}
        self._pursuits = {number: each for number, each in self._pursuits.items() if number in there}
        await self._have_something_owed([each for each in silent if self._matters(each)])
        names = {fact.id: fact.replica for fact in members}
        complaints = {text for answer in heard if answer.status for text in answer.status.errors}
        alarms = tuple(sorted(text for text in complaints if _ALARM in text))
        followed = [answer.status for answer in heard if answer.status is not None and leader.is_followed(answer)]
        return Membership(
            members=members,
            leader=names.get(leader.id) or None,
            alarms=alarms,
            authenticates=await self._authenticates(leader, listed, heard),
            cluster_id=followed[0].cluster_id,
            revision=max(status.revision for status in followed),
            works_as=await self._works_as(leader, listed, heard),
            downgrade=_downgrade(leader, followed),
        )

    async def _works_as(self, leader: _Leader, listed: Sequence[_Listed], heard: Sequence[_Heard]) -> EtcdMinor | None:
        """The version of the cluster, by its leader alone: others may not have applied the last change of it. It is
        read while revisions have different versions of etcd.
        """
        if len({minor for _, minor in self.plane.revisions.etcd_minors}) < _TWO:
            return None
        for each, answer in zip(listed, heard, strict=True):
            if each.member.id == leader.id and each.record is not None and answer.status is not None:
                return await or_none(self.plane.etcd.works_as(client_url(each.record, self.cluster), within=SOON))
        return None

    async def _authenticates(self, leader: _Leader, listed: Sequence[_Listed], heard: Sequence[_Heard]) -> bool:
        """Whether a following member refuses to read keys. Authentication is part of the data, so all have it."""
        for each, answer in zip(listed, heard, strict=True):
            if each.record is not None and leader.is_followed(answer) and not each.member.is_learner:
                url = client_url(each.record, self.cluster)
                return await or_none(self.plane.etcd.admits(url, within=SOON)) is False
        return False

    def _urls(self, memory: Memory, wrong: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(
            client_url(each, self.cluster) for each in candidates(self.plane, self.cluster) if each.name not in wrong
        )

    async def _list(self, memory: Memory, wrong: Mapping[str, str]) -> tuple[_Listed, ...]:
        """The members that a quorum lists; empty without a quorum. If there was none last time, members are first
        queried for a leader: without one, etcd delays a request for the list for seconds.
        """
        urls = self._urls(memory, wrong)
        waits = bool(urls) and not self._listed and await self._leaderless(urls)
        found = await or_none(self.plane.etcd.members(urls)) if urls and not waits else None
        self._listed = found is not None
        if found is None:
            return ()
        owner = owners(self.plane, self.cluster, found)
        return tuple(self._placed(each, owner.get(each.id), found) for each in found)

    def _placed(self, member: ListedMember, record: Replica | None, members: Sequence[ListedMember]) -> _Listed:
        if record is None:
            return _Listed(member=member, record=None)
        url = peer_url(record, self.cluster)
        there = next((each.id for each in members if url in each.peer_urls and each.id != member.id), None)
        return _Listed(member=member, record=record, misplaced=member.peer_urls != (url,), displaced_by=there)

    async def _leaderless(self, urls: Sequence[str]) -> bool:
        """Whether members answer, and none of them knows a leader."""
        answers = await all_or_none(partial(self.plane.etcd.status, url, within=SOON) for url in urls)
        heard = [status for status in answers if status is not None]
        return bool(heard) and all(status.leader_id == 0 for status in heard)

    async def _hear(self, listed: _Listed, wrong: Mapping[str, str]) -> _Heard:
        etcd, record, began = self.plane.etcd, listed.record, self.plane.steady()
        status, applied = None, None
        if listed.replica in wrong:
            return _Heard(began=began, ended=began)
        if record is not None and listed.member.started:
            # Until it was healthy once, its client port may be bound and not yet served: it is not waited for.
            within = SOON if listed.joining else _AGAIN if listed.member.id in self._silences else None
            status = await or_none(etcd.status(client_url(record, self.cluster), within=within))
        if record is not None and status is None and listed.member.is_learner:
            # A joining member's client port opens late, but its metrics are there from the first moment.
            applied = await or_none(etcd.applied_index(metrics_url(record, self.cluster), within=SOON))
        return _Heard(began=began, ended=self.plane.steady(), status=status, applied=applied)

    async def _progress(
        self, leader: _Leader, listed: Sequence[_Listed], heard: Sequence[_Heard]
    ) -> RaftProgress | None:
        """The leader's progress of all members; None where it does not answer this process itself."""
        for each, answer in zip(listed, heard, strict=True):
            if each.member.id == leader.id and each.record is not None and answer.status is not None:
                progress = await or_none(self.plane.etcd.progress(client_url(each.record, self.cluster)))
                return progress if progress is not None and progress.leader_id == leader.id else None
        return None

    async def _pursue(
        self, leader: _Leader, behind: Mapping[int, tuple[_Listed, int]], progress: RaftProgress | None
    ) -> None:
        """Track the members that are far ``behind``, each by so many entries. The others are measured against the
        leader; a silent member is not judged; one that has the data is no longer tracked.
        """
        for number, (each, entries) in behind.items():
            if number == leader.id:
                continue
            word = _word(number, progress)
            sending = word.sending if word is not None else progress is None
            size = await self._size(each) if word is not None and sending else None
            at = Distance(leader=(leader.id, leader.term), entries=entries, sending=sending, size=size)
            before, now = self._pursuits.get(number), self.plane.steady()
            after = before.after(at, now) if before is not None else Pursuit.begun(at, now, moved=False)
            self._pursuits[number] = after

    async def _size(self, listed: _Listed) -> int | None:
        """The bytes in the volume of a copying member; None where that is unknown. Only the driver reads it."""
        record, now = listed.record, self.plane.steady()
        if record is None or self.plane.guard is None:
            return None
        at, size = self._weighed.get(listed.member.id, (-math.inf, None))
        if now - at >= _WEIGHED:
            name = volume_name(self.plane, record, self.cluster)
            found = await or_none(self.plane.site(record.site).volumes(record.machine)) or ()
            size = next((each.used_bytes for each in found if each.name == name), None)
            self._weighed[listed.member.id] = now, size
        return size

    def _lagging(self, listed: _Listed, answer: _Heard, leader: _Leader, lag: int | None) -> bool | None:
        """Whether a member is far behind, and does not catch up."""
        number, heard = listed.member.id, leader.heard_of(listed, answer) is not None
        if number == leader.id or (heard and lag is not None and lag <= self.lag_bound):
            self._pursuits.pop(number, None)
            self._weighed.pop(number, None)
            return False
        return self._pursuits[number].lagging if heard else None

    def _matters(self, silent: _Listed) -> bool:
        """Whether it matters that it may be down: a joining member has no vote, and takes time to start."""
        silence = self._silences.get(silent.member.id, Silence())
        return not (silent.joining and silent.member.is_learner) or silence.seconds >= _BEGINS

    async def _have_something_owed(self, silent: Sequence[_Listed]) -> None:
        """A plane in use writes every second or two. In an idle one a silent member would owe no acknowledgement, which
        proves nothing: so a request is sent that all members must acknowledge.
        """
        now = self.plane.steady()
        if now - self._asked >= _ASKING and any(self._silences[each.member.id].says_nothing for each in silent):
            self._asked = now
            await or_none(self.plane.etcd.alarms(client_urls(self.plane, self.cluster)))

    def _fact(self, listed: _Listed, answer: _Heard, leader: _Leader, progress: RaftProgress | None) -> MemberFact:
        member, now = listed.member, self.plane.steady()
        word = _word(member.id, progress)
        if leader.is_followed(answer):
            health = Health.HEALTHY
        else:
            silence = self._silences.get(member.id, Silence()).after(answer.began, answer.ended, word)
            self._silences[member.id] = silence
            health = silence.health
        has = answer.status.raft_applied_index if answer.status is not None else answer.applied
        if has is None and word is not None and not listed.joining:
            has = word.match
        lag = None if has is None else max(0, leader.committed - has)
        published = member.started and now - self._published.setdefault(member.id, now) >= PUBLISHED
        return MemberFact(
            id=member.id,
            replica=listed.replica,
            name=member.name,
            peer_urls=member.peer_urls,
            learner=member.is_learner,
            health=health,
            lag=lag,
            published=published,
            space=self._space(answer.status) if answer.status is not None else None,
            revision=answer.status.revision if answer.status is not None else None,
            misplaced=listed.misplaced,
            displaced_by=listed.displaced_by,
            lagging=self._lagging(listed, answer, leader, lag),
            storage=answer.status.storage if answer.status is not None else None,
        )

    def _space(self, status: MemberReport) -> Space:
        """How full a member is. etcd 3.5 does not report its quota: then the wanted one counts."""
        etcd = self.plane.wanted.etcd
        apart = etcd.events if self.cluster is Cluster.EVENTS else None
        quota = apart.quota_bytes if apart is not None else etcd.quota_bytes
        return Space(size=status.db_size, in_use=status.db_size_in_use, quota=status.db_size_quota or quota)


def _word(member: int, progress: RaftProgress | None) -> Word | None:
    of = progress.of(member) if progress is not None else None
    if progress is None or of is None:
        return None
    sending = of.state is Replication.SNAPSHOT
    return Word(
        leader=progress.leader_id, term=progress.term, match=of.match, committed=progress.committed, sending=sending
    )


def _downgrade(leader: _Leader, followed: Sequence[MemberReport]) -> EtcdMinor | None:
    """The version to which a downgrade is enabled, by the leader, or by any member where that is of etcd 3.5, which
    does not report it.
    """
    led = [each for each in followed if each.member_id == leader.id and each.storage is not None]
    return next((each.downgrade for each in led or followed if each.downgrade is not None), None)


def _leader(listed: Sequence[_Listed], heard: Sequence[_Heard]) -> _Leader | None:
    """The leader that members follow in the highest known term. It need not answer this process itself: a quorum has
    just confirmed the membership, which needs a leader.
    """
    ids = {each.member.id for each in listed}
    statuses = [answer.status for answer in heard if answer.status is not None and answer.status.leader_id in ids]
    newest = max(statuses, key=lambda status: (status.raft_term, status.is_leader), default=None)
    if newest is None:
        return None
    followers = [status for status in statuses if status.leader_id == newest.leader_id]
    return _Leader(id=newest.leader_id, term=newest.raft_term, committed=max(status.raft_index for status in followers))
