"""The Service ``kubernetes`` of a plane: the address of an apiserver whose machine died is removed from it.

Apiservers maintain that list themselves: each renews its own key in etcd every 10 s, which expires after 15 s, and
writes all apiservers with a key to the list. So a dead one stays for up to 25 s.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from quarterdeck.actions.addresses import apiserver_address
from quarterdeck.actions.members import healthy_urls
from quarterdeck.actions.plane import Plane
from quarterdeck.kube.port import Address
from quarterdeck.model.membership import Health
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World

_KEYS = "/registry/masterleases/"  # kubernetes: pkg/controlplane/reconcilers, below --etcd-prefix
_MANAGER = "quarterdeck-endpoints"
_SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
_ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"


@dataclass(kw_only=True)
class ServiceAddresses:
    """A background task: the key of an apiserver whose machine is silent, and whose member the cluster does not reach
    either, is deleted, and its address is removed from the Service. Once for each silence: if the apiserver runs after
    all, it adds itself again within 10 s.
    """

    _gone: set[str] = field(default_factory=set)

    async def turn(self, plane: Plane, world: World) -> None:
        """See ``ShortTurn``."""
        self._gone &= {*silent(world)}
        ready = [each.name for each in world.replicas if each.ready]
        for name in silent(world):
            host = apiserver_address(plane.memory.replica(name)).host
            shared = host in {apiserver_address(plane.memory.replica(each)).host for each in ready}
            if name in self._gone or not ready or shared or ipaddress.ip_address(host).is_loopback:
                continue
            await plane.check()
            await plane.etcd.forget(healthy_urls(plane, world), f"{_KEYS}{host}".encode())
            await _take_out(plane, apiserver_address(plane.memory.replica(ready[0])), host)
            self._gone.add(name)


def silent(world: World) -> Iterator[str]:
    """The replicas whose machine does not answer this process, and whose member does not answer the cluster."""
    membership = world.membership
    for fact in world.replicas:
        member = membership.of(fact.name) if membership is not None else None
        unheard = member is not None and member.health in (Health.SUSPECT, Health.DOWN)
        if unheard and fact.machine is not MachineState.UP and not fact.ready:
            yield fact.name


async def _take_out(plane: Plane, apiserver: Address, host: str) -> None:
    """Remove an address from both lists of the Service's addresses."""
    for path, without in ((_SLICE, _slice_without), (_ENDPOINTS, _endpoints_without)):
        found = await plane.kube.read(apiserver, path)
        manifest = without(found, host) if isinstance(found, dict) else None
        if manifest is not None:
            await plane.check()
            await plane.kube.apply(apiserver, path, manifest, manager=_MANAGER, force=True)


def _slice_without(found: Mapping[str, JsonValue], host: str) -> dict[str, JsonValue] | None:
    """The EndpointSlice without the address; None if it does not have it, or has no other."""
    endpoints = _dicts(found.get("endpoints"))
    left: list[JsonValue] = [each for each in endpoints if each.get("addresses") != [host]]
    if not left or len(left) == len(endpoints):
        return None
    return {**_named(found), "addressType": found["addressType"], "ports": found["ports"], "endpoints": left}


def _endpoints_without(found: Mapping[str, JsonValue], host: str) -> dict[str, JsonValue] | None:
    """The same for Endpoints."""
    left: list[JsonValue] = []
    gone = False
    for subset in _dicts(found.get("subsets")):
        every = _dicts(subset.get("addresses"))
        others: list[JsonValue] = [each for each in every if each.get("ip") != host]
        gone = gone or len(others) < len(every)
        if others:
            left.append({**subset, "addresses": others})
    return {**_named(found), "subsets": left} if left and gone else None


def _dicts(listed: JsonValue) -> list[dict[str, JsonValue]]:
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _named(found: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        "apiVersion": found["apiVersion"],
        "kind": found["kind"],
        "metadata": {"name": "kubernetes", "namespace": "default"},
    }
