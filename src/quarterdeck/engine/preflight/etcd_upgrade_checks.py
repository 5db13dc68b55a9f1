"""What stands in the way of another version of etcd: members that are too old, one that was kept, and backups."""

from __future__ import annotations

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.components.etcd import most_learners
from quarterdeck.components.minors import dotted
from quarterdeck.components.transitions import etcd_path, upgrade_path
from quarterdeck.components.upstream_versions import minor
from quarterdeck.components.version_rules import etcd_problems
from quarterdeck.engine.observation.move import Move
from quarterdeck.engine.preflight.upgrade_checks import backups
from quarterdeck.errors import InvalidInput, PreconditionFailed
from quarterdeck.model.findings import Finding, ok, refuse


async def members(move: Move) -> Finding:
    """Every member is new enough for the next minor version: a replica may still have an older one than the spec."""
    after, plane = move.wanted.spec.etcd.version, move.plane
    has = {each.name: plane.revisions.template(each.revision).etcd.version for each in plane.memory.replicas}
    for name, version in has.items():
        if least := etcd_path.too_old(version, after):
            seen = f"etcd of {name} is {version}; before {dotted(minor(after))} comes it must be {least} or newer"
            return refuse("etcd", seen, f"'upgrade {plane.name} --etcd {least}' first")
        if abs(minor(version)[1] - minor(after)[1]) > 1:
            seen = f"etcd of {name} is {version}, and {after} must not run beside it"
            return refuse("etcd", seen, f"let the present change end: 'wait {plane.name}'")
    return ok("etcd", f"all members can go to {after}")


async def flags(move: Move) -> Finding:
    """The new version has all flags and feature gates of the user's."""
    found = etcd_problems(move.wanted.spec, minor(move.wanted.spec.etcd.version))
    if found:
        return refuse("flags", "; ".join(found), "remove them with 'apply' before the upgrade")
    return ok("flags", f"legal for etcd {move.wanted.spec.etcd.version}")


async def way_back(move: Move) -> Finding:
    """How the change can be taken back."""
    before, after = move.plane.resource.spec, move.wanted.spec
    if minor(after.etcd.version) > minor(before.etcd.version) and not etcd_path.settings_of(after).keep_one:
        seen = "the way back is etcd's downgrade once all members have the new version, within 4 s after the last one"
        return ok("way back", f"{seen}; with --soak one member keeps the former version first")
    return ok("way back", "members start with the former version again")


UPGRADING_ETCD = (members, flags, way_back, backups)


def upgrades_etcd(current: ControlPlane, wanted: ControlPlane) -> bool:
    """Whether a change brings another version of etcd."""
    return current.spec.etcd.version != wanted.spec.etcd.version


def require_etcd_upgradable(current: ControlPlane, wanted: ControlPlane) -> None:
    """Raise InvalidInput where a version of etcd is skipped, comes with a move, or no member can keep the former one,
    and PreconditionFailed while another upgrade is under way.
    """
    doing, before, after = f"changing plane {wanted.name}", current.spec, wanted.spec
    settings = etcd_path.settings_of(after)
    if settings.keep_one and after.replicas == 1:
        seen = "spec.etcd.upgrade.keepOne: a plane of one replica has no member that could keep its version"
        raise InvalidInput(doing, seen, "upgrade without --soak, or scale it first")
    if before.etcd.version == after.etcd.version:
        return
    here, there = minor(before.etcd.version), minor(after.etcd.version)
    if after.standby is not None and most_learners(after.etcd.version) == 1:
        seen = f"spec.standby: etcd {after.etcd.version} allows one learner, and beside a standby no other could join"
        raise InvalidInput(doing, seen, "remove the standby first")
    if before.placement.site != after.placement.site:
        seen = "spec.etcd.version and spec.placement.site: both change"
        raise InvalidInput(doing, seen, f"'migrate {wanted.name}' first, or upgrade first")
    if abs(here[1] - there[1]) > 1:
        seen = f"spec.etcd.version: from {dotted(here)} to {dotted(there)} skips minor versions"
        next_step = f"'upgrade {wanted.name} --etcd {after.etcd.version}' takes one after the other"
        raise InvalidInput(doing, seen, next_step)
    if here == there and settings.keep_one and not etcd_path.settings_of(before).keep_one:
        seen = f"spec.etcd.upgrade.keepOne: {after.etcd.version} is a patch release"
        raise InvalidInput(doing, seen, "remove it: a patch release can be taken back at any time")
    if upgrade_path.next_part(before) is not None:
        seen = "its upgrade of Kubernetes is not over"
        raise PreconditionFailed(doing, seen, f"'upgrade {wanted.name} --finish', or 'abort {wanted.name}' first")
    if etcd_path.settings_of(before).keep_one and there > here:
        seen = f"one member still keeps etcd {dotted(etcd_path.former(here))}"
        raise PreconditionFailed(doing, seen, f"'upgrade {wanted.name} --finish' first")
