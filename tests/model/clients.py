"""What clients hold that no observation shows: the checker keeps its own account of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from model.faulty_truth import FaultyTruth
from quarterdeck.model.components import Component
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.traffic import LeadTo, RemoveRecord, SetRecord
from quarterdeck.planner.simulated.parts import apiserver_of

#: Seconds by which sums of floating point numbers that stand for the same moment may differ.
_ODD = 1e-6


@dataclass(frozen=True, slots=True)
class Clients:
    """``held``: sites that the name led to before, with the time until which it did: some clients go on using them.
    ``left``: replicas that load balancers have stopped sending new connections to, with the time since when.
    ``unled``: those whose own address the name had before, with the time until which it did.
    """

    held: tuple[tuple[str, float], ...] = ()
    left: tuple[tuple[str, float], ...] = ()
    unled: tuple[tuple[str, float], ...] = ()

    def after(self, before: FaultyTruth, step: Step, after: FaultyTruth) -> Clients:
        """What clients hold after a step."""
        return self._handed(before, step)._unled(before, after)._left(before, after)

    def aged(self, truth: FaultyTruth) -> Clients:
        """The same with ages in place of times, without those who have let go."""
        if not self.held and not self.left and not self.unled:
            return self
        patience, drain = truth.settings.ttl + truth.settings.drain, truth.settings.drain
        held, unled = (_fresh(each, truth.now, patience) for each in (self.held, self.unled))
        return Clients(held, _fresh(self.left, truth.now, drain), unled)

    def sites(self, truth: FaultyTruth) -> frozenset[str]:
        """The sites whose address a client may use: the record's, and each former one until its time to live and
        the drain have passed.
        """
        former = {site for site, _ in _fresh(self.held, truth.now, truth.settings.ttl + truth.settings.drain)}
        return frozenset(former | ({truth.record} if truth.record else set()))

    def edges(self, truth: FaultyTruth) -> frozenset[str]:
        """The edges whose address a client may use: those of these sites but which the name has lacked for as long; and
        the apiservers whose own address it may use.
        """
        lacked = dict(truth.unnamed)
        patience = truth.settings.ttl + truth.settings.drain - _ODD
        themselves = truth.named | {name for name, _ in _fresh(self.unled, truth.now, patience + _ODD)}
        return frozenset(map(apiserver_of, themselves)) | frozenset(
            name
            for site in self.sites(truth) - {APISERVERS}
            for name in truth.addresses(site)
            if name not in lacked or truth.now - lacked[name] < patience
        )

    def may_be_at(self, truth: FaultyTruth, replica: str) -> bool:
        """Whether connections that were made through a load balancer may still be open within their drain."""
        return any(name == replica for name, _ in _fresh(self.left, truth.now, truth.settings.drain))

    def _handed(self, before: FaultyTruth, step: Step) -> Clients:
        if before.record is None or not isinstance(step, SetRecord | LeadTo | RemoveRecord):
            return self
        if _leads_to(step) == before.record:
            return self
        held = {site: since for site, since in self.held if site != before.record}
        held[before.record] = before.now
        return replace(self, held=tuple(sorted(held.items())))

    def _unled(self, before: FaultyTruth, after: FaultyTruth) -> Clients:
        if before.named == after.named:
            return self
        unled = {name: since for name, since in self.unled if name not in after.named}
        unled |= dict.fromkeys(before.named - after.named, before.now)
        return replace(self, unled=tuple(sorted(unled.items())))

    def _left(self, before: FaultyTruth, after: FaultyTruth) -> Clients:
        changed = (before.balancers, before.seconds) != (after.balancers, after.seconds)
        if not changed and before.replicas == after.replicas:
            return self
        sent, sends = listed(before), listed(after)
        running = {name for name, replica in after.replicas if Component.APISERVER in replica.units}
        left = {name: since for name, since in self.left if name in running - sends}
        left.update({name: after.now for name in sent - sends if name in running})
        now = tuple(sorted(left.items()))
        return self if now == self.left else replace(self, left=now)


def _leads_to(step: SetRecord | LeadTo | RemoveRecord) -> str | None:
    match step:
        case SetRecord(to=site):
            return site
        case LeadTo():
            return APISERVERS
        case RemoveRecord():
            return None


def _fresh(since: tuple[tuple[str, float], ...], now: float, patience: float) -> tuple[tuple[str, float], ...]:
    """Moments as ages, without those that have lasted for ``patience`` seconds."""
    until = patience - _ODD
    return tuple(sorted((name, moment - now) for name, moment in since if now - moment < until)) if since else ()


def listed(truth: FaultyTruth) -> frozenset[str]:
    """The replicas that load balancers which run send new connections to."""
    first = (names for site, names in truth.balancers if site not in truth.dead_edges | truth.looping)
    other = (names for site, names in truth.seconds if site not in truth.dead_seconds)
    return frozenset[str]().union(*first, *other)
