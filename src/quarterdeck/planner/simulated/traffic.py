"""The simulated load balancers, and the plane's name."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.steps import RemoveRecord, SetBackends, SetRecord, StopBalancer
from quarterdeck.planner.simulated.effects import Effects, RefusedError
from quarterdeck.planner.truth import DNS, Truth


def named(truth: Truth, step: SetRecord | RemoveRecord) -> Truth:
    """The name leads to another site, or to none. Raises RefusedError."""
    if truth.front is not None:
        raise RefusedError("the endpoint is a fixed address")
    if DNS in truth.mute:
        raise RefusedError("the DNS server does not answer")
    return replace(truth, record=step.to if isinstance(step, SetRecord) else None)


def balanced(truth: Truth, step: SetBackends | StopBalancer) -> Truth:
    """A load balancer sends to others, or goes. Raises RefusedError."""
    if not truth.edge_answers(step.site):
        raise RefusedError(f"the machine of the load balancer at {step.site} does not answer")
    balancers, checked = dict(truth.balancers), dict(truth.checked)
    balancers.pop(step.site, None)
    held_healthy = checked.pop(step.site, frozenset())
    if isinstance(step, SetBackends):
        balancers[step.site] = frozenset(step.backends)
        # What it has not checked yet gets nothing.
        checked[step.site] = held_healthy & frozenset(step.backends)
    return replace(truth, balancers=by_site(balancers), checked=by_site(checked))


def by_site(of: dict[str, frozenset[str]]) -> tuple[tuple[str, frozenset[str]], ...]:
    """What is kept of each site, in their order."""
    return tuple(sorted(of.items(), key=lambda entry: entry[0]))


EFFECTS: Effects = {SetBackends: balanced, StopBalancer: balanced, SetRecord: named, RemoveRecord: named}
