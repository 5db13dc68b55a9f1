"""Versions of Kubernetes side by side: what programs of a version behave as in each window of an upgrade, which of them
may run at the same time, and the stops between two versions.

Upstream: KEP-4330, ``k8s.io/component-base/compatibility`` (``--emulated-version``: since 1.31;
``--min-compatibility-version``: since 1.35) and the version skew policy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.plane.upgrade import UpgradeWindow
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.arguments import boolean
from quarterdeck.components.minors import Minor, dotted
from quarterdeck.components.upstream_versions import minor
from quarterdeck.model.components import Component

#: The first minor version whose programs have ``--min-compatibility-version``.
TELLS_COMPATIBILITY: Minor = (1, 35)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A binary's minor version, the one that it behaves as, and the oldest one that can read what it stores."""

    binary: Minor
    emulated: Minor
    compatible: Minor


def window_of(declared: ReplicaTemplate | ControlPlaneSpec) -> UpgradeWindow:
    """The window that replicas of a revision are in, or those of a plane as its spec says."""
    if isinstance(declared, ReplicaTemplate):
        return declared.upgrade_window or UpgradeWindow.RAISED
    return declared.upgrade.window if declared.upgrade is not None else UpgradeWindow.RAISED


def written_window(window: UpgradeWindow) -> UpgradeWindow | None:
    """A window as a revision has it: None for the usual one, so that equal programs have equal revisions."""
    return None if window is UpgradeWindow.RAISED else window


def behaviour(declared: ReplicaTemplate | ControlPlaneSpec) -> Behaviour:
    """How programs behave in their window. While they emulate, and until the window is final, the former minor version
    reads everything that they store.
    """
    binary = minor(declared.kubernetes_version)
    former = binary[0], binary[1] - 1
    match window_of(declared):
        case UpgradeWindow.EMULATING:
            return Behaviour(binary, former, former)
        case UpgradeWindow.RAISED:
            return Behaviour(binary, binary, former)
        case UpgradeWindow.FINAL:
            return Behaviour(binary, binary, binary)


def emulation_flags(component: Component, template: ReplicaTemplate) -> dict[str, str]:
    """The flags of an apiserver, a controller manager or a scheduler for the window of its revision.

    A raised version has none: upstream's defaults are its own minor version, and compatibility with the former one. An
    apiserver that emulates serves the newer versions of its APIs as well, which controllers of the same binary may ask
    for; upstream refuses that flag where it does not emulate.
    """
    how, flags = behaviour(template), dict[str, str]()
    if how.emulated != how.binary:
        flags["emulated-version"] = dotted(how.emulated)
        if component == Component.APISERVER:
            flags["emulation-forward-compatible"] = boolean(True)
    if window_of(template) is not UpgradeWindow.RAISED and how.binary >= TELLS_COMPATIBILITY:
        flags["min-compatibility-version"] = dotted(how.compatible)
    return flags


def apart(one: ReplicaTemplate, other: ReplicaTemplate) -> bool:
    """Whether replicas of two revisions must not run at the same time: another binary behaves as another minor version,
    they behave as versions that are not neighbours, or one stores what the other must be able to read and cannot.
    """
    first, second = behaviour(one), behaviour(other)
    if first.binary != second.binary and first.emulated != second.emulated:
        return True
    if first.emulated[0] != second.emulated[0] or abs(first.emulated[1] - second.emulated[1]) > 1:
        return True
    return max(first.compatible, second.compatible) > min(first.emulated, second.emulated)


def lowers(before: ReplicaTemplate, after: ReplicaTemplate) -> bool:
    """Whether the programs of the second revision are of an older minor version."""
    return minor(after.kubernetes_version) < minor(before.kubernetes_version)


def stops(start: ReplicaTemplate, goal: ReplicaTemplate) -> Iterator[ReplicaTemplate]:
    """The revisions that lie between two revisions with other versions or windows, nearest to ``start`` first: the
    content of the goal, in each window of the newer binary. None where versions and windows are equal.
    """
    if (start.kubernetes_version, window_of(start)) == (goal.kubernetes_version, window_of(goal)):
        return
    newer = max(start, goal, key=lambda each: minor(each.kubernetes_version))
    order = [UpgradeWindow.EMULATING, UpgradeWindow.RAISED]
    for window in reversed(order) if lowers(start, goal) else order:
        yield goal.model_copy(
            update={
                "kubernetes_version": newer.kubernetes_version,
                "upgrade_window": written_window(window),
            }
        )
