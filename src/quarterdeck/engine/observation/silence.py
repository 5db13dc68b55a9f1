"""When a member that does not answer counts as down, and when an answering one that is far behind does not catch up.
Pure.

One observer's view is not that of the cluster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from quarterdeck.model.membership import Health

#: Seconds for which a member may fail to answer before it is more than suspect. Longer than an election, and than the
#: pause of a busy machine; short enough that a dead member does not cost fault tolerance for long.
GRACE = 8.0
#: Observations that must have failed as well: one is an accident.
LOOKS = 3
#: The longest time between two looks that counts, in seconds, since nothing was observed meanwhile. After a longer one
#: all silences start again: the observer itself was frozen, or its host slept.
PAUSE = 2.5
AWAY = 15.0
#: Seconds that one look may take. What took longer tells of the observer, not of the member: its deadline is 3 s.
LONGEST_LOOK = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What the leader says of a member at one look: the last entry that it surely has, and the last one committed.

    ``sending``: the leader sends it a whole database, and expects no acknowledgement meanwhile.
    """

    leader: int
    term: int
    match: int
    committed: int
    sending: bool = False

    def repeats(self, earlier: Word) -> bool:
        """Whether nothing was acknowledged between the two."""
        return (self.leader, self.term, self.match) == (earlier.leader, earlier.term, earlier.match)

    @property
    def owes(self) -> bool:
        """Whether the member owes the leader an acknowledgement."""
        return self.match < self.committed and not self.sending


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """How long a member has not answered: ``looks`` failed observations over ``seconds``, the last ended at ``until``.

    ``word`` is the leader's report at the last one, if known; ``owed`` its first report that has been repeated since
    then while an acknowledgement was owed, and ``owed_from`` how many of the seconds had passed then.
    """

    looks: int = 0
    seconds: float = 0.0
    until: float = -math.inf
    word: Word | None = None
    owed: Word | None = None
    owed_from: float = 0.0

    def after(self, began: float, ended: float, word: Word | None) -> Silence:
        """The silence after one more failed observation; ``word`` is the leader's report right after it."""
        if ended - began > LONGEST_LOOK:
            return Silence(until=ended)
        pause = began - self.until
        former = self if pause <= AWAY else Silence()
        counted = min(pause, PAUSE) if former.looks else 0.0
        seconds = former.seconds + counted + (ended - began)
        silence = replace(former, looks=former.looks + 1, seconds=seconds, until=ended, word=word)
        if word is None or (former.owed is not None and word.owes and word.repeats(former.owed)):
            return silence
        return replace(silence, owed=word if word.owes else None, owed_from=seconds)

    @property
    def health(self) -> Health:
        """The health of the member."""
        if self.looks < LOOKS or self.seconds < GRACE:
            return Health.SUSPECT
        if self.word is None or self.owed is None or self.seconds - self.owed_from < GRACE:
            return Health.UNREACHABLE
        return Health.DOWN

    @property
    def says_nothing(self) -> bool:
        """Whether the leader's report cannot distinguish a dead member from one that this process does not reach: there
        is nothing that it would have to acknowledge.
        """
        return self.word is not None and not self.word.owes and not self.word.sending


#: Seconds for which it must not have caught up. Bursts of writes leave members behind for less.
STUCK = 30.0
#: Bytes that count as progress of a copy: a copy that restarts repeatedly is a little larger each time, as the data
#: grows. Over any link on which etcd works they arrive within ``STUCK`` seconds.
MORE = 4 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """One observation of a member that is far behind: by how many entries, and behind which leader and term.
    ``sending``: the leader sends it a whole database; ``size`` is then the size of its volume in bytes (None: unknown).
    """

    leader: tuple[int, int]
    entries: int
    sending: bool = False
    size: int | None = None

    @property
    def known(self) -> bool:
        """Whether it shows the progress of the member."""
        return self.size is not None or not self.sending

    @property
    def come(self) -> int:
        """Bytes of the database that have arrived."""
        return self.size if self.size is not None and self.sending else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pursuit:
    """The progress of a member that is far behind, under one leader."""

    leader: tuple[int, int]
    #: The smallest distance so far, in entries.
    nearest: int
    #: The largest size of its volume so far, in bytes.
    most: int
    #: When one of them last improved.
    better: float
    #: The time of the last observation.
    until: float
    #: An improvement was observed; else ``better`` is the time of the first observation.
    moved: bool
    #: The last observation showed its progress.
    known: bool

    @classmethod
    def begun(cls, at: Distance, now: float, *, moved: bool) -> Pursuit:
        """The progress after the first observation."""
        return cls(
            leader=at.leader,
            nearest=at.entries,
            most=at.come,
            better=now,
            until=now,
            moved=moved,
            known=at.known,
        )

    def after(self, at: Distance, now: float) -> Pursuit:
        """The progress after one more observation. It starts again with another leader, which does not know the member
        yet, and after a gap in the observations.
        """
        if at.leader != self.leader:
            return Pursuit.begun(at, now, moved=True)
        if now - self.until > AWAY:
            return Pursuit.begun(at, now, moved=False)
        more = at.come >= self.most + MORE
        nearer = at.entries < self.nearest or more
        return replace(
            self,
            nearest=min(self.nearest, at.entries),
            most=at.come if more else self.most,
            better=now if nearer else self.better,
            until=now,
            moved=self.moved or nearer,
            known=at.known,
        )

    @property
    def lagging(self) -> bool | None:
        """Whether it does not catch up; None as long as that is unknown."""
        if self.until - self.better < STUCK:
            return False if self.moved else None
        return True if self.known else None
