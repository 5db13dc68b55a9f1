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

#: Renders a unit, with the users' flags (without dashes) that it is to have. Raises InvalidInput for flags that cannot
#: be.
Build: TypeAlias = Callable[[Inputs, Mapping[str, str]], UnitSpec]
#: Says what is wrong with the value of a flag; "" when nothing is.
Rule: TypeAlias = Callable[[str], str]


class Stopping(StrEnum):
    """How a program that is well is stopped."""

    ASKED = "asked"  # it ends by itself when it is asked to
    UNSEEN = "unseen"  # while its clients wait: they are not to see how it ends
    HANDING_ON = "handing on"  # and if it led, its lease is handed on after it


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
    """Every revision has it."""
    del template
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentSpec:
    """A program of a replica. (Of which cluster a member of etcd is one is in ``model.clusters``.)

    ``component`` names it, also on machines, and says what it depends on. ``program`` is the upstream program that it
    is; ``given``: the one that a revision names in place of a released one (None: a released one is fetched).
    ``present``: whether replicas of a revision have it. ``made_from``: the parts of a revision from which its unit is
    rendered, besides ``certificates``; of two parts that a value is in, the longer one counts. ``reloads`` are those of
    them that it takes up while it runs, in versions that tell what they have taken up.
    ``ports``: those that it listens at; of a program that is neither a member of etcd nor an apiserver the only one
    answers ``/healthz``. ``certificates`` are what its replica has for it. ``flags``: None: users give it none.
    ``lease``: of programs of its kind one works, the one that has this lease in kube-system ("": all work).
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
