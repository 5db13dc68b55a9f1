"""The programs of a replica."""

from __future__ import annotations

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
