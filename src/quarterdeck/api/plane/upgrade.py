"""The window of a Kubernetes version: how far its programs behave as that version, and what stays possible."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from quarterdeck.api.base import Model
from quarterdeck.api.values import KubernetesVersion, Seconds

#: Seconds. A manager looks at its planes each second or so; a shorter soak observes nothing.
SHORTEST_SOAK = 1.0


class UpgradeWindow(StrEnum):
    """The windows of an upgrade to another minor version, in their order.

    Kubernetes' KEP-4330: `--emulated-version` and `--min-compatibility-version`.
    """

    #: The programs behave as the former minor version. The way back is free.
    EMULATING = "emulating"
    #: They behave as their own version, and store nothing that the former one cannot read. There is a way back.
    RAISED = "raised"
    #: They store what only their own version reads. Only a restore leads back.
    FINAL = "final"


class UpgradeSettings(Model):
    """How far a plane goes with its version of Kubernetes."""

    #: The window of `kubernetesVersion` that the plane goes to.
    window: UpgradeWindow = UpgradeWindow.RAISED
    #: The version at the end of an upgrade over several minor versions; without it, `kubernetesVersion` is.
    to: KubernetesVersion | None = None
    #: How long the plane stays in each window before the manager takes it to the next one; without it, for ever.
    soak: Annotated[Seconds, Field(ge=SHORTEST_SOAK)] | None = None
