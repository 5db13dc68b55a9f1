"""Members of two minor versions of etcd: none panics, and none reads what it cannot."""

from __future__ import annotations

from model.faulty_truth import FaultyTruth
from quarterdeck.model.clusters import MEMBER, Cluster
from quarterdeck.model.membership import EtcdMinor
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.units import RestartUnit, ReviveUnit, StartUnit


def why_not_started(plane: FaultyTruth, step: Step) -> str:
    """Why a step must not start a member with the etcd of its revision; "" where it starts none, or may."""
    if not plane.etcd_minors or not isinstance(step, StartUnit | RestartUnit | ReviveUnit):
        return ""
    cluster = next((each for each, component in MEMBER.items() if component == step.component), None)
    minor = dict(plane.etcd_minors).get(plane.memory.replica(step.replica).revision)
    if cluster is None or minor is None:
        return ""
    truth = plane.of(cluster)
    newest = newest_cluster(truth)
    if newest is not None and minor < newest:
        return f"{step.replica} starts with etcd {minor}, and the cluster may work as {newest}"
    if truth.works_as is not None and minor[1] - truth.works_as[1] > 1:
        return f"{step.replica} starts with etcd {minor}, and the cluster works as {truth.works_as}"
    others = [name for name in truth.following if name != step.replica]
    if any(abs(truth.etcds.get(name, minor)[1] - minor[1]) > 1 for name in others):
        return f"{step.replica} starts with etcd {minor}, two minor versions from others"
    member = truth.members.get(step.replica)
    if member is not None and member.storage is not None and member.storage > minor:
        return f"{step.replica} starts with etcd {minor} on data for {member.storage}"
    if truth.downgrade != minor:
        return ""
    stores = {name: truth.members[name].storage or minor for name in others if truth.etcds.get(name, minor) > minor}
    newer = sorted(name for name, storage in stores.items() if storage > minor)
    return f"{step.replica} starts with etcd {minor} while {newer} store as a newer one" if newer else ""


def newest_cluster(truth: FaultyTruth) -> EtcdMinor | None:
    """The newest version that the cluster may work as at any moment now: it rises as soon as the leader has heard that
    no listed member is older.
    """
    works_as = truth.works_as
    if works_as is None or truth.downgrade is not None or not truth.following.issuperset(truth.members):
        return works_as
    return max(works_as, min((truth.etcds.get(name, works_as) for name in truth.members), default=works_as))


def panics(plane: FaultyTruth) -> str:
    """Which running member is older than the cluster works as; "": none."""
    for cluster in Cluster if plane.etcd_minors else ():
        truth = plane.of(cluster)
        for name in truth.following:
            if truth.works_as is not None and truth.etcds.get(name, truth.works_as) < truth.works_as:
                return f"{name} has etcd {truth.etcds[name]}, and the cluster works as {truth.works_as}"
    return ""


def lowered_for_nothing(truth: FaultyTruth) -> frozenset[str]:
    """The members that are newer than a downgrade which is enabled."""
    target = truth.downgrade
    return frozenset(name for name, minor in truth.etcds.items() if target is not None and minor > target)
