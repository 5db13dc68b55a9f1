"""Effects on the simulated load balancers, and on the plane's DNS record."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.steps.traffic import LeadTo, RemoveRecord, SetBackends, SetRecord, StopBalancer
from quarterdeck.planner.simulated.effects import Effects, RefusedError
from quarterdeck.planner.simulated.parts import DNS
from quarterdeck.planner.simulated.truth import Truth


def named(truth: Truth, step: SetRecord | LeadTo | RemoveRecord) -> Truth:
    """Point the record to another site, to the apiservers themselves, or to nothing. Raises RefusedError."""
    if truth.fixed:
        raise RefusedError("the endpoint is a fixed address")
    if truth.is_mute(DNS):
        raise RefusedError("the DNS server does not answer")
    if isinstance(step, RemoveRecord):
        return replace(truth, record=None, named=frozenset())
    if isinstance(step, LeadTo):
        return replace(truth, record=APISERVERS, named=frozenset(step.backends))
    return replace(truth.with_edges_named(step.to), record=step.to, named=frozenset())


def balanced(truth: Truth, step: SetBackends | StopBalancer) -> Truth:
    """Give a load balancer other backends, or remove it. Raises RefusedError."""
    backends = frozenset(step.backends) if isinstance(step, SetBackends) else None
    truth, answered = truth.with_second_notified(step.site, backends)
    if not truth.edge_answers(step.site):
        if answered:
            return truth
        raise RefusedError(f"the machine of the load balancer at {step.site} does not answer")
    balancers, checked = dict(truth.balancers), dict(truth.checked)
    balancers.pop(step.site, None)
    held_healthy = checked.pop(step.site, frozenset())
    if backends is not None:
        balancers[step.site] = backends
        checked[step.site] = held_healthy & backends  # what it has not checked yet gets nothing
    return replace(truth, balancers=by_site(balancers), checked=by_site(checked))


def by_site(of: dict[str, frozenset[str]]) -> tuple[tuple[str, frozenset[str]], ...]:
    """What is kept of each site, in their order."""
    return tuple(sorted(of.items(), key=lambda entry: entry[0]))


EFFECTS: Effects = {
    SetBackends: balanced,
    StopBalancer: balanced,
    SetRecord: named,
    LeadTo: named,
    RemoveRecord: named,
}
