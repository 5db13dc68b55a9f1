"""Which machine has which address, as one of them decides by what it hears. Pure: time comes in, and no IO.

Each address has an edge of its own; the others follow in the order of the site. Whoever has an address says so in each
beat. An address that nobody says to have is taken by the first who is fit. It goes back to its own edge when no client
is connected to it: to have the load shared is not worth a request.

Where an address is led from machines to others by orders (``number``), those with the newest ones come first among
those who are fit. Whoever has older ones is an understudy: it has the address as long as nobody else can serve it, and
takes it from who is silent only after a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

#: Seconds between two beats, and for which an edge that says nothing has its say all the same.
BEAT = 0.15
SILENCE = 0.7
#: For which those with newer orders may be silent: whoever has older ones hurts them if they only stood still.
PATIENCE = 5.0
#: Who has heard nothing at all for so many seconds takes it that nobody hears it either, and keeps nothing: before any
#: other takes that, and before it could take itself what belongs to those that it does not hear.
DEAF = SILENCE - 2 * BEAT


@dataclass(frozen=True, slots=True)
class Word:
    """What an edge says in each beat. ``fit``: its load balancer runs. ``number``: how new its orders are."""

    edge: str
    fit: bool
    holds: frozenset[str] = frozenset()
    number: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Ruling:
    """The addresses to be let go, and then those to be taken."""

    drop: frozenset[str] = frozenset()
    take: frozenset[str] = frozenset()


@dataclass(kw_only=True)
class Election:
    """What ``me`` knows. ``owners``: each address and the edge that it is of, in the order of the site. ``holds``: what
    is here (who comes again after it has died may find some); ``since``: from when on it has listened; ``hears``:
    whether something of the network reaches this edge (who hears nothing is to say nothing either). ``number``: how new
    its orders are, where there are any, and ``order`` the machines that these name, the first of which is to have every
    address if it can. Times are seconds of a clock that nobody sets.
    """

    me: str
    owners: Mapping[str, str]
    since: float
    holds: frozenset[str] = frozenset()
    hears: bool = True
    number: tuple[int, int] = (0, 0)
    order: tuple[str, ...] = ()
    _heard: dict[str, tuple[Word, float]] = field(default_factory=dict)
    _last: float | None = None

    def hear(self, word: Word, now: float) -> None:
        """An edge says something. One that is not of this site, or this one itself, is not heard."""
        if word.edge != self.me and (self.order or word.edge in self.owners.values()):
            self._heard[word.edge] = (word, now)

    def rule(self, now: float, *, fit: bool, router: float, left: Callable[[str], bool]) -> Ruling:
        """What is to be done now, which counts as done. ``fit``: the load balancer here runs. ``router``: when the
        router was heard last. ``left`` lets an address go that no client is connected to, and says whether it did.
        """
        late = self._last is not None and now - self._last >= SILENCE
        self._last = now
        self.hears = now - max([router, *(at for _, at in self._heard.values())]) < DEAF
        live = self._live(now)
        if not self.hears or (late and not self.order):
            # Others have what was here, or may take it any moment; and nobody reaches who hears nothing.
            self.since = now
            return self._done(Ruling(drop=self.holds))
        if late and (taken := frozenset(each for each in self.holds if _holders(each, live))):
            # What is led to machines is mostly led to one: nobody takes it unless he says so, which was heard by now.
            self.since = now
            return self._done(Ruling(drop=taken))
        drop = frozenset(each for each in self.holds if self._goes(each, live, fit, left))
        waited = self.has_listened(now)
        free = (each for each in self.owners if each not in self.holds and not _holders(each, live))
        take = frozenset(each for each in free if waited and self._first(each, live, fit) == self.me)
        return self._done(Ruling(drop=drop, take=take))

    def has_listened(self, now: float) -> bool:
        """Whether it would know by now of who has anything."""
        return now - self.since >= SILENCE

    def _done(self, ruling: Ruling) -> Ruling:
        self.holds = (self.holds - ruling.drop) | ruling.take
        return ruling

    def _live(self, now: float) -> list[Word]:
        return [
            word for word, at in self._heard.values() if now - at < (PATIENCE if word.number > self.number else SILENCE)
        ]

    def _goes(self, address: str, live: list[Word], fit: bool, left: Callable[[str], bool]) -> bool:
        """Whether an address that is here is to be let go."""
        mine = self._place(address, self._own(fit), live)
        if any(self._place(address, each, live) < mine for each in _holders(address, live)):
            return True
        if not fit and any(each.fit for each in live):
            return True
        return self._first(address, live, fit) != self.me and left(address)

    def _first(self, address: str, live: list[Word], fit: bool) -> str:
        """Whose it is to be: of those who are fit, if any, the first."""
        places = [(self._place(address, each, live), each.edge) for each in (*live, self._own(fit))]
        return min(places)[1]

    def _own(self, fit: bool) -> Word:
        return Word(self.me, fit, number=self.number)

    def _place(self, address: str, word: Word, live: list[Word]) -> tuple[bool, bool, int]:
        newest = max([self.number, *(each.number for each in live)])
        return not word.fit, word.number < newest, self._after(address, word.edge)

    def _after(self, address: str, edge: str) -> int:
        """How many come before an edge."""
        if self.order:
            return self.order.index(edge) if edge in self.order else len(self.order)
        order = [*self.owners.values()]
        return (order.index(edge) - order.index(self.owners[address])) % len(order)


def _holders(address: str, live: list[Word]) -> list[Word]:
    return [each for each in live if address in each.holds]
