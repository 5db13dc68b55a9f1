"""What can be asked for of a plane. Nothing is looked at, and nothing happens, before one is given to a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from quarterdeck.addons.content import AddonChange, Content
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation, OperationType
from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.components.difference import Difference
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.findings import Finding, Verdict, enforce
from quarterdeck.planner.simulated.dry_run import DryRun


@dataclass(frozen=True, slots=True)
class Create:
    """A new plane, as a document declares it or as ``new_control_plane`` makes it."""

    plane: ControlPlane


@dataclass(frozen=True, slots=True)
class Apply:
    """The plane as it is declared: created if there is none of that name, else changed."""

    plane: ControlPlane


@dataclass(frozen=True, slots=True)
class Migrate:
    """The plane at another site, with as many replicas as now or with 1, 3, 5 or 7.

    ``allow_distance``: also where a round trip takes more than 180 ms.
    """

    name: str
    to: str
    replicas: int | None = None
    allow_distance: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """The plane with another number of replicas, where it is."""

    name: str
    replicas: int


@dataclass(frozen=True, slots=True)
class Replace:
    """Replicas exchanged for new ones, one after the other, whether or not they are well: one, or all of them."""

    name: str
    replica: str | None = None


@dataclass(frozen=True, slots=True)
class HandOver:
    """A set of controllers run by another manager. ``downtime_allowed``: the managers of all replicas may stop at once,
    where that is the shorter way.
    """

    name: str
    controller_set: str
    source: ControllerProgram
    target: ControllerProgram
    downtime_allowed: bool = False


@dataclass(frozen=True, slots=True)
class HandBack:
    """A set of controllers run by the manager that had it before: what is under way is taken back, or else the last
    hand-over of that set is undone by another one. ``downtime_allowed``: as of ``HandOver``.
    """

    name: str
    controller_set: str
    downtime_allowed: bool = False


@dataclass(frozen=True, slots=True)
class RenewCertificates:
    """All certificates issued anew but those of authorities, and taken up by one replica after the other."""

    name: str


@dataclass(frozen=True, slots=True)
class Abort:
    """The plane as it was before the operation that is under way."""

    name: str


@dataclass(frozen=True, slots=True)
class Delete:
    """The plane gone, with all its data."""

    name: str


Request = Create | Apply | Migrate | Scale | Replace | HandOver | HandBack | RenewCertificates | Abort | Delete


# What was found out about a request before anything is changed.


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A request, thought through. It changes nothing until it is asked for, and then only if the plane is still as it
    was: its generation is in ``wanted``.

    ``wanted``: the plane as it would be; ``current``: as it is (None: there is none). ``differences``: all that a
    change of spec changes, with what each needs; ``addons``: which objects of add-ons; ``contents``: all that these are
    to be, as it was read (None: it was not), so that what was shown is what is asked for.
    ``findings``: what each check of a change of replicas says, and what is to be known of one of spec.
    ``forecast``: every step with the quorum's margin after it; None where none is made: for a plane that is not there
    yet, for one that a check refuses, and for an abort and a deletion, which depend on nobody's answer.
    ``under_way``: the operation that an abort would undo. ``needed``: whether asking would change anything.
    """

    kind: OperationType
    wanted: ControlPlane
    current: ControlPlane | None = None
    differences: Sequence[Difference] = ()
    addons: Sequence[AddonChange] = ()
    contents: tuple[Content, ...] | None = field(default=None, repr=False)
    findings: Sequence[Finding] = ()
    forecast: DryRun | None = None
    under_way: Operation | None = None
    needed: bool = True

    @property
    def name(self) -> str:
        """The plane's name."""
        return self.wanted.metadata.name

    @property
    def refused(self) -> bool:
        """Whether a check says no."""
        return any(each.verdict is Verdict.REFUSE for each in self.findings)

    def require(self) -> None:
        """Raise PreconditionFailed for a change of replicas that a check refuses, with all that do, or that would not
        end.
        """
        doing, noun = self._in_words()
        enforce(self.findings, doing)
        if noun and self.forecast is not None and self.forecast.stuck_on:
            raise PreconditionFailed(
                f"planning {noun}",
                f"it would wait for {'; '.join(map(str, self.forecast.stuck_on))}",
                "mend that first",
            )

    def _in_words(self) -> tuple[str, str]:
        """What is done, and what it is called where it must come to an end by itself."""
        spec = self.wanted.spec
        match self.kind:
            case OperationType.MIGRATE:
                to = spec.placement.site
                return f"moving plane {self.name} to {to}", f"the move of {self.name} to {to}"
            case OperationType.SCALE:
                to = f"{spec.replicas} replica{'s' if spec.replicas > 1 else ''}"
                return f"scaling plane {self.name} to {to}", f"the scaling of {self.name} to {to}"
            case OperationType.REPLACE:
                return f"replacing replicas of plane {self.name}", f"the replacement of replicas of {self.name}"
            case _:
                return f"changing plane {self.name}", ""
