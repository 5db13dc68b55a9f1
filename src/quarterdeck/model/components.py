"""The programs of a replica."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache


class Component(StrEnum):
    """The programs of a replica, in the order in which they start."""

    ETCD = "etcd"
    EVENTS_ETCD = "etcd-events"  # of replicas whose revision has a cluster for events alone
    APISERVER = "kube-apiserver"
    CONTROLLER_MANAGER = "kube-controller-manager"
    SCHEDULER = "kube-scheduler"
    CLOUD_CONTROLLER_MANAGER = "cloud-controller-manager"  # of replicas whose revision has one


#: The components that need an apiserver and do nothing for clients.
CONTROLLERS = (Component.CONTROLLER_MANAGER, Component.SCHEDULER, Component.CLOUD_CONTROLLER_MANAGER)

#: Those of them that can run the same controllers.
MANAGERS = frozenset({Component.CONTROLLER_MANAGER, Component.CLOUD_CONTROLLER_MANAGER})

#: What a program asks on its own replica: an apiserver its own members of etcd only, and controllers their own
#: apiserver.
DEPENDS: Mapping[Component, tuple[Component, ...]] = {
    Component.ETCD: (),
    Component.EVENTS_ETCD: (),
    Component.APISERVER: (Component.ETCD, Component.EVENTS_ETCD),
    Component.CONTROLLER_MANAGER: (Component.APISERVER,),
    Component.SCHEDULER: (Component.APISERVER,),
    Component.CLOUD_CONTROLLER_MANAGER: (Component.APISERVER,),
}


@cache
def programs(*, events: bool = False, cloud: bool = False) -> tuple[Component, ...]:
    """The programs of a replica. ``events``: it has a member of a cluster for these alone; ``cloud``: its revision has
    a cloud controller manager.
    """
    has = {Component.EVENTS_ETCD: events, Component.CLOUD_CONTROLLER_MANAGER: cloud}
    return tuple(each for each in Component if has.get(each, True))


@cache
def controllers(*, cloud: bool = False) -> tuple[Component, ...]:
    """The controllers among these."""
    return tuple(each for each in programs(cloud=cloud) if each in CONTROLLERS)


def with_dependents(components: Iterable[Component]) -> frozenset[Component]:
    """These, and all that depend on any of them."""
    found = set(components)
    for each in Component:  # in the order in which they start
        if found.intersection(DEPENDS[each]):
            found.add(each)
    return frozenset(found)
