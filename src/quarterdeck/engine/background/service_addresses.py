"""The Service ``kubernetes`` of a plane: whose machine died without a word is no address of it any more.

Apiservers keep that list by themselves: each renews a key of its own in etcd every 10 s, which lasts for 15 s, and
writes down all whose key is there. So one that died stays for up to 25 s.
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
    """A duty: the key of an apiserver whose machine is silent, and whom the cluster does not hear either, is deleted,
    and its address is taken out of what the Service leads to. Once for each time that it goes: if it is there after
    all, it puts itself back within 10 s.
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
    """The replicas of which nobody hears: neither we of their machine, nor, by what it says, the cluster."""
    membership = world.membership
    for fact in world.replicas:
        member = membership.of(fact.name) if membership is not None else None
        unheard = member is not None and member.health in (Health.SUSPECT, Health.DOWN)
        if unheard and fact.machine is not MachineState.UP and not fact.ready:
            yield fact.name


async def _take_out(plane: Plane, apiserver: Address, host: str) -> None:
    """Take an address out of both lists that there are of the Service's addresses."""
    for path, without in ((_SLICE, _slice_without), (_ENDPOINTS, _endpoints_without)):
        found = await plane.kube.read(apiserver, path)
        manifest = without(found, host) if isinstance(found, dict) else None
        if manifest is not None:
            await plane.check()
            await plane.kube.apply(apiserver, path, manifest, manager=_MANAGER, force=True)


def _slice_without(found: Mapping[str, JsonValue], host: str) -> dict[str, JsonValue] | None:
    """What an EndpointSlice is to say; None if it does not have the address, or has no other."""
    endpoints = _dicts(found.get("endpoints"))
    left: list[JsonValue] = [each for each in endpoints if each.get("addresses") != [host]]
    if not left or len(left) == len(endpoints):
        return None
    return {**_named(found), "addressType": found["addressType"], "ports": found["ports"], "endpoints": left}


def _endpoints_without(found: Mapping[str, JsonValue], host: str) -> dict[str, JsonValue] | None:
    """The same of Endpoints."""
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
