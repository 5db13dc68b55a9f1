"""When a member that is heard, and is far behind, comes no nearer: then no time that it is given will help. Pure.

How far it is behind says little by itself: who was away for an hour, or joins over a slow link, is far behind and on
its way. So what counts is whether it comes nearer than it ever was under the same leader: by entries, or, while the
leader sends it a whole database and no index moves, by what of that has come. One that copies again and again comes as
near as it did before, and no nearer.

All times are in seconds on a clock that nobody sets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from quarterdeck.engine.observation.silence import AWAY

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
