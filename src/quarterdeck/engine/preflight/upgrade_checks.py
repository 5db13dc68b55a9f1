"""What stands in the way of another version of Kubernetes: nodes, APIs that clients use, webhooks, stored definitions,
flags, and backups.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from quarterdeck.actions.addresses import apiserver_address
from quarterdeck.actions.stored import stored_objects
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.names import few
from quarterdeck.api.plane.upgrade import UpgradeWindow
from quarterdeck.components.minors import dotted
from quarterdeck.components.transitions import etcd_path
from quarterdeck.components.transitions.upgrade_windows import Behaviour, behaviour, window_of
from quarterdeck.components.upstream_versions import minor
from quarterdeck.components.version_rules import problems
from quarterdeck.engine.observation.move import Move
from quarterdeck.errors import InvalidInput, PreconditionFailed, Unavailable
from quarterdeck.kube.extensions import definitions, webhook_configurations
from quarterdeck.kube.nodes import nodes
from quarterdeck.kube.port import Address
from quarterdeck.model.findings import Finding, Verdict, ok, refuse

#: By how many minor versions a kubelet may be older than the apiserver, and how many things are named in a finding.
_OLDER, _SHOWN = 3, 5
#: Seconds after which a backup is no longer a fresh one, and a verification of one no longer a recent one.
_FRESH, _RECENT = 60.0, 86_400.0


async def kubelets(move: Move) -> Finding:
    """No node is newer than the version that apiservers behave as, or more than three minor versions older.

    Upstream: the version skew policy, and KEP-4330 for versions that are emulated.
    """
    found = await nodes(move.plane.kube, _apiserver(move))
    emulated = _after(move).emulated
    versions = {each.name: each.status.info.version for each in found if each.status.info.version}
    newer = [f"{name} ({version})" for name, version in versions.items() if _minor_of(version) > emulated]
    if newer:
        seen = f"newer than {dotted(emulated)}: {few(newer, _SHOWN)}"
        return refuse("kubelets", seen, f"install kubelets of {dotted(emulated)} or older on these nodes first")
    oldest = emulated[0], emulated[1] - _OLDER
    older = [f"{name} ({version})" for name, version in versions.items() if _minor_of(version) < oldest]
    if older:
        seen = f"older than {dotted(oldest)}: {few(older, _SHOWN)}"
        return refuse("kubelets", seen, f"upgrade the kubelets of these nodes to {dotted(oldest)} or newer first")
    return ok("kubelets", f"{len(found)} nodes, all from {dotted(oldest)} to {dotted(emulated)}")


async def removed_apis(move: Move) -> Finding:
    """Whether clients have asked for APIs that the new version no longer has, since each apiserver started."""
    ready = [_address(move, each.name) for each in move.world.replicas if each.ready]
    answers = await asyncio.gather(*(move.plane.kube.deprecated_uses(each) for each in ready))
    emulated = _after(move).emulated
    used = {each.words for found in answers for each in found if each.removed and each.removed <= emulated}
    if not used:
        return ok("removed APIs", f"no client has asked for one that {dotted(emulated)} does not have")
    seen = f"clients have asked for APIs that {dotted(emulated)} does not have: {few(sorted(used), _SHOWN)}"
    advice = "find them in the audit log by the annotation k8s.io/removed-release, and change them"
    return Finding("removed APIs", Verdict.WARN, f"{seen}; {advice}")


async def flags(move: Move) -> Finding:
    """All flags and feature gates of the user's are legal in each window on the way."""
    after = _after(move)
    former = after.binary[0], after.binary[1] - 1
    found = dict.fromkeys(
        each
        for emulated in dict.fromkeys((former, after.emulated))
        for each in problems(move.wanted.spec, binary=after.binary, emulated=emulated)
    )
    if found:
        return refuse("flags", "; ".join(found), "remove them with 'apply' before the upgrade")
    return ok("flags", "legal in every window of the upgrade")


async def webhooks(move: Move) -> Finding:
    """Whether admission webhooks see requests for other versions of an API than the one that they name."""
    found = await webhook_configurations(move.plane.kube, _apiserver(move))
    exact = [
        f"{each.name} of {one.metadata.name}" for one in found for each in one.webhooks if each.match_policy == "Exact"
    ]
    if not exact:
        return ok("webhooks", "all match equivalent versions of APIs")
    seen = f"these match exact versions of APIs only, and may miss requests for newer ones: {few(exact, _SHOWN)}"
    return Finding("webhooks", Verdict.WARN, f"{seen}; set their matchPolicy to Equivalent")


async def custom_resources(move: Move) -> Finding:
    """Every version in which custom resources may be stored is one of their definition."""
    found = await definitions(move.plane.kube, _apiserver(move))
    lost = [f"{each.metadata.name} ({', '.join(each.lost)})" for each in found if each.lost]
    if lost:
        seen = f"they may be stored in versions that their definitions no longer have: {few(lost, _SHOWN)}"
        return refuse("custom resources", seen, "add these versions again, and store the resources in another one")
    return ok("custom resources", f"{len(found)} definitions, which have every version that may be stored")


async def backups(move: Move) -> Finding:
    """Whether there is a fresh backup that was verified: the way back once the upgrade is final."""
    plane = move.plane.resource
    if not plane.spec.backup.enabled:
        return Finding("backups", Verdict.WARN, "the plane has none: once the upgrade is final, there is no way back")
    status, name, now = plane.status.backup, plane.name, datetime.now(UTC)
    if status is None or (now - status.restorable_at).total_seconds() > _FRESH:
        seen = f"the newest backup is of {status.restorable_at:%F %T %Z}" if status is not None else "there is none yet"
        return Finding("backups", Verdict.WARN, f"{seen}; 'backup create {name}' takes one")
    if status.verified_at is None or (now - status.verified_at).total_seconds() > _RECENT:
        seen = "the newest backup is fresh, and none was verified within a day"
        return Finding("backups", Verdict.WARN, f"{seen}; 'backup verify {name}' does so")
    return ok("backups", f"fresh, and verified at {status.verified_at:%F %T %Z}")


async def stored(move: Move) -> Finding:
    """An older minor version can read everything that is stored now. It is checked again before it runs."""
    now, after = behaviour(move.plane.resource.spec).binary, _after(move).binary
    if after >= now:
        return ok("stored", f"{dotted(after)} reads what {dotted(now)} stores")
    found = await stored_objects(move.plane, after, move.plane.secrets.encryption_keys)
    if found.lost:
        seen = f"{dotted(after)} cannot read {found.lost:,} of {found.number:,} objects: {found.named}"
        return refuse("stored", seen, f"delete them, or store them in a version that {dotted(after)} has")
    return ok("stored", f"{dotted(after)} can read all {found.number:,} objects")


UPGRADING = (kubelets, removed_apis, flags, webhooks, custom_resources, stored, backups)


def upgrades(current: ControlPlane, wanted: ControlPlane) -> bool:
    """Whether a change brings another version of Kubernetes, or another window of it."""
    before, after = current.spec, wanted.spec
    return (before.kubernetes_version, behaviour(before)) != (after.kubernetes_version, behaviour(after))


def require_upgradable(current: ControlPlane, wanted: ControlPlane) -> None:
    """Raise InvalidInput where a version of Kubernetes is skipped or comes with another change of versions, and
    PreconditionFailed where the way back is closed.
    """
    doing = f"changing plane {wanted.name}"
    before, after = behaviour(current.spec), behaviour(wanted.spec)
    if before == after:
        return
    if current.spec.etcd.version != wanted.spec.etcd.version:
        seen = "spec.kubernetesVersion and spec.etcd.version: both change"
        raise InvalidInput(doing, seen, "change one, wait until the plane is settled, then change the other")
    settings = etcd_path.settings_of(current.spec)
    if settings.keep_one or settings.to is not None:
        seen = "its upgrade of etcd is not over"
        raise PreconditionFailed(doing, seen, f"'upgrade {wanted.name} --finish', or 'abort {wanted.name}' first")
    if current.spec.placement.site != wanted.spec.placement.site:
        seen = "spec.kubernetesVersion and spec.placement.site: both change"
        raise InvalidInput(doing, seen, f"'migrate {wanted.name}' first, or upgrade first")
    if abs(after.binary[1] - before.binary[1]) > 1:
        seen = f"spec.kubernetesVersion: from {dotted(before.binary)} to {dotted(after.binary)} skips minor versions"
        next_step = f"'upgrade {wanted.name} --to {wanted.spec.kubernetes_version}' takes one after the other"
        raise InvalidInput(doing, seen, next_step)
    final = UpgradeWindow.FINAL
    if after.binary > before.binary and window_of(wanted.spec) is final:
        seen = f"spec.upgrade.window: final, together with the upgrade to {dotted(after.binary)}"
        raise InvalidInput(doing, seen, f"remove spec.upgrade, and 'upgrade {wanted.name} --finish' later")
    if after.compatible < before.compatible and window_of(current.spec) is final:
        seen = f"its upgrade to {dotted(before.binary)} is final: older programs cannot read what is stored"
        raise PreconditionFailed(doing, seen, f"'restore {wanted.name}' brings back a backup from before the upgrade")


def _after(move: Move) -> Behaviour:
    return behaviour(move.wanted.spec)


def _apiserver(move: Move) -> Address:
    ready = next((each.name for each in move.world.replicas if each.ready), None)
    if ready is None:
        raise Unavailable(f"asking an apiserver of plane {move.plane.name}", "none is ready")
    return _address(move, ready)


def _address(move: Move, replica: str) -> Address:
    return apiserver_address(move.plane.memory.replica(replica))


def _minor_of(version: str) -> tuple[int, int]:
    """Of the version of a kubelet, which may have a suffix (``v1.36.3-eks-1234``)."""
    return minor(version.partition("-")[0].partition("+")[0])
