"""How clients find the plane: its load balancers, and its name."""

from __future__ import annotations

from quarterdeck.actions.addresses import backend_address
from quarterdeck.actions.handlers import Detail, Handlers
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.together import together
from quarterdeck.actions.units import favour
from quarterdeck.model.components import Component
from quarterdeck.model.endpoints import PersonMust
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps import RemoveRecord, SetBackends, SetRecord, StopBalancer
from quarterdeck.model.world import World


async def set_backends(plane: Plane, step: SetBackends, world: World) -> None:
    """Have the load balancer send to these, which get all that they can of their machines before."""
    chosen = {name: plane.memory.replica(name) for name in step.backends}
    serving = {name for balancer in world.balancers for name in balancer.backends}
    new = [record for name, record in chosen.items() if name not in serving]
    await together(*(favour(plane, each, *_asked_through(each)) for each in new))
    await plane.check()
    backends = {name: backend_address(plane, each) for name, each in chosen.items()}
    await plane.balancers[step.site].apply(backends)


def _asked_through(record: Replica) -> tuple[Component, ...]:
    """The programs that a request passes through."""
    events = (Component.EVENTS_ETCD,) if record.events is not None else ()
    return Component.ETCD, *events, Component.APISERVER


async def stop_balancer(plane: Plane, step: StopBalancer, _: World) -> None:
    """Take a load balancer down."""
    await plane.balancers[step.site].remove()


async def set_record(plane: Plane, step: SetRecord, _: World) -> Detail | PersonMust:
    """Lead the name to a site's load balancer, or say what a person must do for it."""
    address = plane.balancers[step.to].address.ip
    ttl = plane.resource.spec.endpoint.ttl
    return await plane.dns.set(plane.resource.host, (address,), ttl, plane.claim) or {}


async def remove_record(plane: Plane, _: RemoveRecord, __: World) -> Detail | PersonMust:
    """Take the name away, or say what a person must do for it."""
    return await plane.dns.remove(plane.resource.host, plane.claim) or {}


HANDLERS: Handlers = {
    SetBackends: set_backends,
    StopBalancer: stop_balancer,
    SetRecord: set_record,
    RemoveRecord: remove_record,
}
