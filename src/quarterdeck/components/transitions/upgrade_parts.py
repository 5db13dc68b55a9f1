"""What follows by itself in an upgrade: of etcd, or of Kubernetes. At most one of them is under way."""

from __future__ import annotations

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.components.transitions import etcd_path, upgrade_path


def next_part(spec: ControlPlaneSpec) -> ControlPlaneSpec | None:
    """The spec after the part that follows; None: none follows."""
    return etcd_path.next_part(spec) or upgrade_path.next_part(spec)


def soak(spec: ControlPlaneSpec) -> float:
    """Seconds that the plane stays as it is before the next part."""
    if etcd_path.next_part(spec) is not None:
        settings = etcd_path.settings_of(spec)
        return settings.soak if settings.keep_one and settings.soak is not None else 0.0
    return spec.upgrade.soak or 0.0 if spec.upgrade is not None else 0.0


def stopped(spec: ControlPlaneSpec) -> ControlPlaneSpec:
    """The spec where it is, with nothing that follows by itself."""
    return etcd_path.stopped(upgrade_path.stopped(spec))
