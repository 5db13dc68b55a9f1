"""Actions for traffic: load balancers, and the plane's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quarterdeck.actions.addresses import apiserver_address, backend_address
from quarterdeck.actions.handlers import Detail, Handlers
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.units import favour
from quarterdeck.concurrency import together
from quarterdeck.model.components import Component
from quarterdeck.model.endpoints import Must
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.traffic import LeadTo, RemoveRecord, SetBackends, SetRecord, StopBalancer
from quarterdeck.model.world import World


async def set_backends(plane: Plane, step: SetBackends, world: World) -> Must | None:
    """Set the backends of the load balancer, which first get their full share of their machines; or return what a
    person must do for it.
    """
    chosen = await _favoured(plane, step.backends, world)
    backends = {name: backend_address(each) for name, each in chosen.items()}
    silent = world.balancer(step.site).silent
    edges = (each for name, each in plane.edges(step.site).items() if name not in silent)
    return _first(await together(*(each.apply(backends) for each in edges)))


async def _favoured(plane: Plane, backends: Sequence[str], world: World) -> Mapping[str, Replica]:
    """The records of these replicas. New backends have got their full share of their machines by then."""
    chosen = {name: plane.memory.replica(name) for name in backends}
    serving = {name for door in world.doors for name in door.backends}
    new = [record for name, record in chosen.items() if name not in serving]
    await together(*(favour(plane, each, *_asked_through(each)) for each in new))
    await plane.check()
    return chosen


def _asked_through(record: Replica) -> tuple[Component, ...]:
    """The programs that handle a request."""
    events = (Component.EVENTS_ETCD,) if record.events is not None else ()
    return Component.ETCD, *events, Component.APISERVER


async def stop_balancer(plane: Plane, step: StopBalancer, world: World) -> Must | None:
    """Stop a load balancer, on all edges that answer, or return what a person must do for it."""
    silent = world.balancer(step.site).silent
    edges = (each for name, each in plane.edges(step.site).items() if name not in silent)
    return _first(await together(*(each.remove() for each in edges)))


def _first(musts: Sequence[Must | None]) -> Must | None:
    """The first manual change; all edges of a user's load balancer need the same one."""
    return next((each for each in musts if each is not None), None)


async def set_record(plane: Plane, step: SetRecord, world: World) -> Detail | Must:
    """Point the name to a site's load balancer, or return what a person must do for it."""
    unnamed = {each.name for each in world.balancer(step.to).edges if not each.named}
    # edges can share a floating address
    addresses = dict.fromkeys(each.address.ip for name, each in plane.edges(step.to).items() if name not in unnamed)
    ttl = plane.resource.spec.endpoint.ttl
    return await plane.dns.set(plane.resource.host, tuple(addresses), ttl, plane.claim) or {}


async def lead_to(plane: Plane, step: LeadTo, world: World) -> Detail | Must:
    """Point the name to the apiservers of these replicas."""
    chosen = await _favoured(plane, step.backends, world)
    addresses = tuple(apiserver_address(each).host for each in chosen.values())
    return await plane.dns.set(plane.resource.host, addresses, plane.resource.spec.endpoint.ttl, plane.claim) or {}


async def remove_record(plane: Plane, _: RemoveRecord, __: World) -> Detail | Must:
    """Remove the name, or return what a person must do for it."""
    return await plane.dns.remove(plane.resource.host, plane.claim) or {}


HANDLERS: Handlers = {
    SetBackends: set_backends,
    StopBalancer: stop_balancer,
    SetRecord: set_record,
    LeadTo: lead_to,
    RemoveRecord: remove_record,
}
