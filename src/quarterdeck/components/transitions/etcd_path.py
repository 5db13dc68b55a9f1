"""The parts of an upgrade of etcd: each is an operation. It takes a plane to the next minor version, or upgrades the
member that was kept at the former one.
"""

from __future__ import annotations

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.plane.etcd import EtcdUpgrade
from quarterdeck.components.minors import ETCD, Minor, dotted
from quarterdeck.components.upstream_versions import minor, patch
from quarterdeck.errors import InvalidInput

_NOTHING = EtcdUpgrade()


def settings_of(spec: ControlPlaneSpec) -> EtcdUpgrade:
    """How far a plane goes with its version of etcd."""
    return spec.etcd.upgrade or _NOTHING


def first_part(spec: ControlPlaneSpec, to: str, soak: float | None) -> ControlPlaneSpec:
    """The spec after the first part of an upgrade to a version: a patch release, the former minor version, or the next
    minor version on the way. Raises InvalidInput for a version further back.
    """
    here, there = minor(spec.etcd.version), minor(to)
    if there > here:
        return _begun(spec, to, soak)
    if there < former(here):
        seen, next_step = f"etcd is at {dotted(here)}", "go back one minor version at a time"
        raise InvalidInput(f"going back to etcd {to}", seen, next_step)
    return _with(spec, to, settings_of(spec) if there == here else _NOTHING)


def next_part(spec: ControlPlaneSpec) -> ControlPlaneSpec | None:
    """The spec after the part that follows once this one is reached, and its soak is over; None: none follows."""
    settings = settings_of(spec)
    if settings.keep_one:
        return finished(spec) if settings.soak is not None else None
    return _begun(spec, settings.to, settings.soak) if settings.to is not None else None


def finished(spec: ControlPlaneSpec) -> ControlPlaneSpec:
    """The spec with all members at its version."""
    settings = settings_of(spec)
    soak = settings.soak if settings.to is not None else None
    return _with(spec, spec.etcd.version, EtcdUpgrade(to=settings.to, soak=soak))


def stopped(spec: ControlPlaneSpec) -> ControlPlaneSpec:
    """The spec where it is, with nothing that follows by itself."""
    return _with(spec, spec.etcd.version, EtcdUpgrade(keep_one=settings_of(spec).keep_one))


def former(version: Minor) -> Minor:
    """The minor version before another one."""
    return version[0], version[1] - 1


def too_old(before: str, after: str) -> str:
    """The oldest patch release of the minor version ``before`` that members need before the first of them gets a newer
    minor version, ``after``; "" if it has that, or no newer one comes.
    """
    release = ETCD.get(minor(after))
    if minor(after) <= minor(before) or release is None or patch(before) >= release.upgraded_from:
        return ""
    return f"{dotted(minor(before))}.{release.upgraded_from}"


def _begun(spec: ControlPlaneSpec, to: str, soak: float | None) -> ControlPlaneSpec:
    """The next minor version on the way to a version: of those between, the newest known patch release."""
    here, there = minor(spec.etcd.version), minor(to)
    following = here[0], here[1] + 1
    last = following == there
    version = to if last else f"{dotted(following)}.{ETCD[following].newest}"
    return _with(spec, version, EtcdUpgrade(keep_one=soak is not None, to=None if last else to, soak=soak))


def _with(spec: ControlPlaneSpec, version: str, settings: EtcdUpgrade) -> ControlPlaneSpec:
    """Nothing is stored of an upgrade that is over."""
    upgrade = None if settings == _NOTHING else settings
    return spec.model_copy(update={"etcd": spec.etcd.model_copy(update={"version": version, "upgrade": upgrade})})
