"""How an apiserver is asked whether it would serve, and whether it works."""

from __future__ import annotations

#: Of those that the events' etcd fails alone: an apiserver whose own member of it is gone serves all else (kubernetes
#: 1.33: options/etcd.go, addEtcdHealthEndpoint). Names that a version does not know, or that nothing was set up for,
#: are passed over.
_EVENTS = "exclude=etcd-override-0&exclude=etcd-override-readiness-0"
READYZ = f"/readyz?{_EVENTS}"
LIVEZ = f"/livez?{_EVENTS}"

#: The same for an apiserver of a plane that has been served before: it begins to look after the default roles and
#: priority classes, which are there already, only a second after it serves (kubernetes: storage_rbac.go). It reads
#: from etcd once, not twice one after the other: each of the checks ``etcd`` and ``etcd-readiness`` waits for 2 s, and
#: within 1 s of another one answers what it last saw (kubernetes: storagebackend/factory/etcd3.go).
READYZ_FOUNDED = (
    f"{READYZ}&exclude=poststarthook/rbac/bootstrap-roles"
    "&exclude=poststarthook/scheduling/bootstrap-system-priority-classes"
    "&exclude=etcd-readiness"
)
