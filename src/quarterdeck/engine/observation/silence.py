"""When a member that does not answer counts as down, and when one that is heard and far behind comes no nearer. Pure.

One observer's view is not everybody's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from quarterdeck.model.membership import Health

#: Seconds for which a member may fail to answer before more is thought of it. Longer than an election, and than the
#: pause of a machine that is busy; short enough that a dead member does not cost tolerance for long.
GRACE = 8.0
#: Looks that must have failed as well: one is an accident.
LOOKS = 3
#: Seconds that the time between two looks counts for at most, since nobody looked; and after which all begins anew: the
#: observer itself was frozen, or its host slept.
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
    """For how long a member has answered no look: ``looks`` failed ones over ``seconds``, the last ended at ``until``.

    ``word`` is the leader's at the last look, if it was known; ``owed`` its first that has been repeated ever since
    while an acknowledgement was owed, and ``owed_from`` how many of the seconds had passed then.
    """

    looks: int = 0
    seconds: float = 0.0
    until: float = -math.inf
    word: Word | None = None
    owed: Word | None = None
    owed_from: float = 0.0

    def after(self, began: float, ended: float, word: Word | None) -> Silence:
        """The silence after one more look that failed; ``word`` is what the leader said right after it."""
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
        """What to think of the member."""
        if self.looks < LOOKS or self.seconds < GRACE:
            return Health.SUSPECT
        if self.word is None or self.owed is None or self.seconds - self.owed_from < GRACE:
            return Health.UNREACHABLE
        return Health.DOWN

    @property
    def says_nothing(self) -> bool:
        """Whether the leader's word cannot tell a member that is down from one that we cannot see: there is nothing
        that it would have to acknowledge.
        """
        return self.word is not None and not self.word.owes and not self.word.sending


#: Seconds for which it must have come no nearer. Bursts of writes leave members behind for less.
STUCK = 30.0
#: Bytes that count as more of a database: who copies again and again has a little more each time, as the data grows.
#: Over any link on which etcd is of use they come within ``STUCK`` seconds.
MORE = 4 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """What one look says of a member that is far behind: by how many entries, and whom in which term. ``sending``: the
    leader sends it a whole database; ``size`` is then what its volume holds, in bytes (None: not known).
    """

    leader: tuple[int, int]
    entries: int
    sending: bool = False
    size: int | None = None

    @property
    def known(self) -> bool:
        """Whether it tells where the member is."""
        return self.size is not None or not self.sending

    @property
    def come(self) -> int:
        """Bytes that there are of a database that is sent."""
        return self.size if self.size is not None and self.sending else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pursuit:
    """How a member that is far behind has fared under one leader: ``nearest`` is the least by which it was, ``most``
    what its volume held at most. ``better``: when one of them last got better; ``moved``: that was seen, and is not
    merely when we began to look. ``known``: the last look, ``until``, told where it is.
    """

    leader: tuple[int, int]
    nearest: int
    most: int
    better: float
    until: float
    moved: bool
    known: bool

    @classmethod
    def begun(cls, at: Distance, now: float, *, moved: bool) -> Pursuit:
        """What the first look says."""
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
        """The pursuit after one more look. It begins anew with another leader, which has yet to hear of the member, and
        where we ourselves were away.
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
        """Whether it comes no nearer; None as long as that cannot be told."""
        if self.until - self.better < STUCK:
            return False if self.moved else None
        return True if self.known else None
