"""Where addresses lead in a simulated world, and whether the manager could have them lead somewhere."""

from __future__ import annotations

from dataclasses import replace

from model.clients import Clients
from model.faulty_truth import FaultyTruth
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.planner.simulated.parts import DNS


def felt(truth: FaultyTruth) -> bool:
    """Whether the members notice that sites are cut: the manager then sees it too."""
    return bool(truth.cuts) and _seen_by_members(truth) != _seen_by_members(replace(truth, cuts=frozenset()))


def _seen_by_members(truth: FaultyTruth) -> tuple[str | None, frozenset[str]]:
    return truth.elected, truth.healthy | truth.deceived


def dark(truth: FaultyTruth, clients: Clients) -> frozenset[str]:
    """The sites whose address a client may hold and leads nowhere, although the manager could tell its load balancer
    of a ready apiserver.
    """
    if truth.deleting or not truth.tells_members:
        return frozenset()
    ready = {name for name in truth.serving if truth.answers(name) and truth.apiserver_answers(name)}
    unled = truth.record == APISERVERS and truth.named.isdisjoint(truth.serving) and ready and DNS not in truth.mute
    return frozenset({APISERVERS} if unled else ()) | frozenset(
        site
        for site in clients.sites(truth) - {APISERVERS}
        # Of two edges none is told anything while one is silent that clients may use.
        if truth.edge_answers(site)
        and site not in truth.looping
        and (site not in truth.twins or truth.second_answers(site))
        # Else only the load balancer's next check is waited for.
        and not truth.well_behind.get(site)
        and not held_healthy(truth, site)
        and any(truth.connected(site, truth.site_of(name)) for name in ready)
    )


def astray(truth: FaultyTruth) -> bool:
    """Whether the name leads nowhere, although the manager could have the load balancer of where the quorum is lead
    somewhere, and send the name there. (While something does not answer it, it may not know where that is.)
    """
    unread = bool(truth.mute) or not truth.tells_members
    quorum_site = truth.quorum_site
    if truth.record == APISERVERS:
        return False  # the name leads to any apiserver that serves: see ``dark``
    if truth.deleting or truth.front or truth.record is None or unread or quorum_site is None:
        return False
    if quorum_site in truth.looping or not truth.edge_answers(quorum_site):
        return False
    able = any(truth.answers(name) and truth.connected(quorum_site, truth.site_of(name)) for name in truth.serving)
    return able and not any(map(truth.reached_by, truth.record_addresses(truth.record)))


def held_healthy(truth: FaultyTruth, site: str) -> bool:
    """Whether a load balancer, as of its last check, leads to an apiserver that serves (it may be cut off since)."""
    return not truth.serving.isdisjoint(dict(truth.checked).get(site, ()))
