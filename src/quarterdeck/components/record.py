"""The record of a component: all that differs between the programs of a replica."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.credentials import CertificateSpec
from quarterdeck.components.settings import Inputs
from quarterdeck.model.components import Component
from quarterdeck.model.units import Program, UnitSpec

#: Renders a unit, with the users' flags (without dashes). Raises InvalidInput for invalid flags.
Build: TypeAlias = Callable[[Inputs, Mapping[str, str]], UnitSpec]
#: Returns the problem with the value of a flag; "" if there is none.
Rule: TypeAlias = Callable[[str], str]


class Stopping(StrEnum):
    """How a healthy program is stopped."""

    ASKED = "asked"  # it exits gracefully on a signal
    UNSEEN = "unseen"  # while its clients are paused: they must not see a failure
    HANDING_ON = "handing on"  # gracefully, and if it led, its lease is released after that


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port of a seat: its ``name``, and its ``number`` in block 0."""

    name: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The users' flags of a program (without dashes): at which ``path`` of a plane they are written, and which are
    ``given`` (None: the program is not declared). ``of``: the program that messages name; programs may share flags.
    ``refused`` are the flags that nobody may set, each with the reason, ``judged`` those whose values are looked at.
    """

    of: Component
    path: str
    given: Callable[[ReplicaTemplate | ControlPlaneSpec], Mapping[str, str] | None]
    refused: Mapping[str, str]
    judged: Mapping[str, Rule] = field(default_factory=dict)


def always(template: ReplicaTemplate) -> bool:
    """Whether a revision has it: every one does."""
    del template
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentSpec:
    """A program of a replica. (Of which cluster a member of etcd is one is in ``model.clusters``.)

    ``component`` names it, also on machines, and has its dependencies. ``program`` is the upstream program; ``given``:
    the one that a revision names in place of a released one (None: a released one is downloaded). ``present``: whether
    replicas of a revision have it. ``made_from``: the parts of a revision from which its unit is rendered, besides
    ``certificates``; of two parts that contain a value, the longer one counts. ``reloads``: those of them that it
    reloads while it runs, in versions that report what they have loaded. ``ports``: its ports; the only port of a
    program other than etcd and the apiserver answers ``/healthz``. ``certificates``: those of its replica for it.
    ``flags``: None: users cannot set any. ``lease``: the lease in kube-system that elects the active one of its kind
    ("": all are active).
    """

    component: Component
    program: str
    build: Build
    ports: tuple[Port, ...]
    certificates: tuple[CertificateSpec, ...]
    made_from: tuple[str, ...]
    present: Callable[[ReplicaTemplate], bool] = always
    given: Callable[[ReplicaTemplate], Program] | None = None
    flags: Flags | None = None
    reloads: frozenset[str] = frozenset()
    stopping: Stopping = Stopping.ASKED
    lease: str = ""
