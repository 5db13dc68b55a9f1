"""The programs of a replica."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum


class Component(StrEnum):
    """The programs of a replica, in the order in which they start."""

    ETCD = "etcd"
    EVENTS_ETCD = "etcd-events"  # of replicas whose revision has a cluster for events alone
    APISERVER = "kube-apiserver"
    CONTROLLER_MANAGER = "kube-controller-manager"
    SCHEDULER = "kube-scheduler"


#: The components that need an apiserver and do nothing for clients.
CONTROLLERS = (Component.CONTROLLER_MANAGER, Component.SCHEDULER)

#: What a program asks on its own replica: an apiserver its own members of etcd only, and controllers their own
#: apiserver.
DEPENDS: Mapping[Component, tuple[Component, ...]] = {
    Component.ETCD: (),
    Component.EVENTS_ETCD: (),
    Component.APISERVER: (Component.ETCD, Component.EVENTS_ETCD),
    Component.CONTROLLER_MANAGER: (Component.APISERVER,),
    Component.SCHEDULER: (Component.APISERVER,),
}


def with_dependents(components: Iterable[Component]) -> frozenset[Component]:
    """These, and all that depend on any of them."""
    found = set(components)
    for each in Component:  # in the order in which they start
        if found.intersection(DEPENDS[each]):
            found.add(each)
    return frozenset(found)
