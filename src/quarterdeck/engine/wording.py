"""Steps in words, for people."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.steps import (
    AddLearner,
    AdoptRevision,
    DecideBootstrap,
    ForgetCluster,
    NoteCluster,
    NoteCreated,
    NoteDraining,
    NoteLifetime,
    NoteMembers,
    NoteRecord,
    NoteUnsettled,
    PlaceReplica,
    Promote,
    RejectRevision,
    ReleaseMember,
    ReleaseReplica,
    RemoveMember,
    RemoveRecord,
    RestartUnit,
    SetBackends,
    SetRecord,
    StartUnit,
    Step,
    StopBalancer,
    StopUnit,
    Swap,
    TransferLeadership,
)

#: What people call a cluster.
CALLED: Mapping[Cluster, str] = {Cluster.MAIN: "etcd", Cluster.EVENTS: "the events' etcd"}


def what(step: Step) -> str:
    """What a step does, in a few words."""
    cluster: Cluster = getattr(step, "cluster", Cluster.MAIN)
    return _what(step) + (f" of {CALLED[cluster]}" if cluster is not Cluster.MAIN else "")


def _what(step: Step) -> str:  # noqa: C901 - a table, one line for each kind of step
    match step:
        case PlaceReplica():
            return f"place {step.replica} on machine {step.machine}"
        case DecideBootstrap():
            return f"let {', '.join(step.replicas)} found the cluster"
        case NoteCreated():
            return "note that the cluster exists"
        case NoteCluster():
            return f"note that etcd is at revision {step.revision:,}"
        case NoteMembers():
            return f"note members {', '.join(step.listed or step.started)}"
        case AdoptRevision():
            return f"have {step.replica} run revision {step.revision}"
        case RejectRevision():
            return f"give up revision {step.revision}"
        case StartUnit():
            return f"start {step.component} of {step.replica}"
        case StopUnit():
            return f"stop {step.component} of {step.replica}"
        case RestartUnit():
            return f"restart {step.component} of {step.replica}"
        case AddLearner():
            return f"add learner {step.replica}"
        case Promote():
            return f"promote {step.replica}"
        case TransferLeadership():
            return f"hand leadership to {step.to}"
        case RemoveMember():
            return f"remove member {step.replica}"
        case Swap():
            return f"swap: {', '.join(_what(change) for change in step.changes)}"
        case SetBackends():
            return f"load balancer {step.site}: {', '.join(step.backends)}"
        case StopBalancer():
            return f"take down the load balancer at {step.site}"
        case SetRecord():
            return f"lead the name to {step.to}"
        case RemoveRecord():
            return "remove the name"
        case NoteRecord():
            return f"note that the name leads to {step.to}"
        case NoteUnsettled():
            return f"note that some DNS server may lead to {', '.join(step.sites)}"
        case NoteLifetime():
            return f"note that addresses are handed out for {step.ttl:g} s{' no more' if step.over else ''}"
        case NoteDraining():
            return f"note that {', '.join(step.draining) or 'nobody'} drains"
        case ForgetCluster():
            return "note that there is no cluster any more"
        case ReleaseMember():
            return f"release the member {step.replica}"
        case ReleaseReplica():
            return f"release {step.replica}"
