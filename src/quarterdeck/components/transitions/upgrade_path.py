"""The parts of an upgrade: each takes a plane to another window or to the next minor version, and is an operation."""

from __future__ import annotations

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.plane.upgrade import UpgradeSettings, UpgradeWindow
from quarterdeck.components.minors import KUBERNETES, dotted
from quarterdeck.components.transitions.upgrade_windows import TELLS_COMPATIBILITY
from quarterdeck.components.upstream_versions import minor
from quarterdeck.errors import InvalidInput


def first_part(spec: ControlPlaneSpec, to: str, soak: float | None) -> ControlPlaneSpec:
    """The spec after the first part of an upgrade to a version: a patch release, the former minor version, or the next
    minor version on the way. Raises InvalidInput for a version that cannot be reached by the windows.
    """
    here, there = minor(spec.kubernetes_version), minor(to)
    if there == here:
        return spec.model_copy(update={"kubernetes_version": to})
    if there > here:
        return _begun(spec, to, soak)
    if there != (here[0], here[1] - 1):
        seen = f"it is {here[1] - there[1]} minor versions below {dotted(here)}"
        raise InvalidInput(f"going back to Kubernetes {to}", seen, "go back one minor version at a time")
    return spec.model_copy(update={"kubernetes_version": to, "upgrade": None})


def next_part(spec: ControlPlaneSpec) -> ControlPlaneSpec | None:
    """The spec after the part that follows once this one is reached, and its soak is over; None: none follows."""
    settings = spec.upgrade
    if settings is None:
        return None
    if settings.soak is not None and settings.window is UpgradeWindow.EMULATING:
        return _with(spec, UpgradeWindow.RAISED, settings.to, settings.soak)
    if settings.to is not None:
        return _begun(spec, settings.to, settings.soak)
    if settings.soak is None or settings.window is UpgradeWindow.FINAL:
        return None
    return finished(spec) if minor(spec.kubernetes_version) >= TELLS_COMPATIBILITY else None


def finished(spec: ControlPlaneSpec) -> ControlPlaneSpec:
    """The spec in the final window of its version."""
    return _with(spec, UpgradeWindow.FINAL, None, None)


def stopped(spec: ControlPlaneSpec) -> ControlPlaneSpec:
    """The spec where it is, with nothing that follows by itself."""
    return spec if spec.upgrade is None else _with(spec, spec.upgrade.window, None, None)


def _begun(spec: ControlPlaneSpec, to: str, soak: float | None) -> ControlPlaneSpec:
    """The next minor version on the way to a version: of those between, the newest known patch release."""
    here, there = minor(spec.kubernetes_version), minor(to)
    following = here[0], here[1] + 1
    last = following == there
    version = to if last else f"v{dotted(following)}.{KUBERNETES[following].newest}"
    window = UpgradeWindow.RAISED if soak is None else UpgradeWindow.EMULATING
    moved = spec.model_copy(update={"kubernetes_version": version})
    return _with(moved, window, None if last else to, soak)


def _with(spec: ControlPlaneSpec, window: UpgradeWindow, to: str | None, soak: float | None) -> ControlPlaneSpec:
    """Nothing is stored of an upgrade whose end is the usual window."""
    settings = UpgradeSettings(window=window, to=to, soak=soak)
    return spec.model_copy(update={"upgrade": None if settings == UpgradeSettings() else settings})
