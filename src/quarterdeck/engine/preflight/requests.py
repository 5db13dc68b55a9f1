"""Requests of users for a plane: plain data, without effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from quarterdeck.addons.content import AddonChange, Content
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation, OperationType
from quarterdeck.api.plane.certificates import Signer
from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.api.plane.keys import KeyPurpose
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
    """The plane as declared: created if it does not exist, else changed."""

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
    """Replace replicas, healthy or not, one after the other: one, or all of them."""

    name: str
    replica: str | None = None


@dataclass(frozen=True, slots=True)
class HandOver:
    """Migrate a controller set to another manager. ``downtime_allowed``: the managers of all replicas may stop at once,
    where that is shorter.
    """

    name: str
    controller_set: str
    source: ControllerProgram
    target: ControllerProgram
    downtime_allowed: bool = False


@dataclass(frozen=True, slots=True)
class HandBack:
    """Migrate a controller set back to its previous manager: by an abort of the running migration, or by another
    migration. ``downtime_allowed``: as in ``HandOver``.
    """

    name: str
    controller_set: str
    downtime_allowed: bool = False


@dataclass(frozen=True, slots=True)
class RenewCertificates:
    """Renew all certificates except those of authorities; one replica after the other is restarted with them.
    ``offline``: also where they have expired, so that no quorum answers; clients see an outage.
    """

    name: str
    offline: bool = False


class RotationStage(StrEnum):
    """A part of the rotation of a certificate authority or a key; each is an operation."""

    #: A new one is used; the former one is accepted as well.
    BEGIN = "begin"
    #: The former one is no longer accepted.
    FINISH = "finish"
    #: The former one is used again, and the new one is no longer accepted.
    BACK = "back"


@dataclass(frozen=True, slots=True)
class RotateAuthorities:
    """A part of the rotation of certificate authorities."""

    name: str
    signers: tuple[Signer, ...]
    stage: RotationStage = RotationStage.BEGIN


@dataclass(frozen=True, slots=True)
class RotateKey:
    """A part of the rotation of a key. The first part of a key that signs tokens only publishes the next key; a second
    one signs with it.
    """

    name: str
    purpose: KeyPurpose
    stage: RotationStage = RotationStage.BEGIN


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Another version of Kubernetes (``to``) or of ``etcd``, in parts of which each is an operation (without a version:
    the next part of the upgrade in progress). ``soak``: seconds to stay in each window, or with one member of the
    former version of etcd, before the manager goes on (None: nothing follows by itself but the minor versions on the
    way); ``finish``: all members at the present version of etcd or, where they are, the final window of the present
    version of Kubernetes.
    """

    name: str
    to: str | None = None
    soak: float | None = None
    finish: bool = False
    etcd: str | None = None


@dataclass(frozen=True, slots=True)
class Abort:
    """The plane as it was before the operation in progress."""

    name: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the plane with all its data."""

    name: str


Request = (
    Create
    | Apply
    | Migrate
    | Scale
    | Upgrade
    | Replace
    | HandOver
    | HandBack
    | RenewCertificates
    | RotateAuthorities
    | RotateKey
    | Abort
    | Delete
)


# The result of checking a request before anything is changed.


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A checked request. It changes nothing until it is submitted, and then only if the plane is unchanged: the
    generation is in ``wanted``.
    """

    kind: OperationType
    #: The plane after the change.
    wanted: ControlPlane
    #: The plane now; None: it does not exist.
    current: ControlPlane | None = None
    #: All effects of a changed spec, with what each needs.
    differences: Sequence[Difference] = ()
    #: The changed objects of add-ons.
    addons: Sequence[AddonChange] = ()
    #: The wanted add-ons as they were read (None: they were not), so that exactly what was shown is submitted.
    contents: tuple[Content, ...] | None = field(default=None, repr=False)
    #: The results of the checks of a change of replicas, and warnings about a changed spec.
    findings: Sequence[Finding] = ()
    #: Every step with the quorum's margin after it; None for a new plane, for one that a check refuses, and for an
    #: abort and a deletion, which depend on no answer.
    forecast: DryRun | None = None
    #: The operation that an abort would undo.
    under_way: Operation | None = None
    #: Whether submitting it would change anything.
    needed: bool = True

    @property
    def name(self) -> str:
        """The plane's name."""
        return self.wanted.metadata.name

    @property
    def refused(self) -> bool:
        """Whether a check refuses."""
        return any(each.verdict is Verdict.REFUSE for each in self.findings)

    def require(self) -> None:
        """Raise PreconditionFailed with all refusals of a change of replicas, or if the forecast does not end."""
        doing, noun = self._in_words()
        enforce(self.findings, doing)
        if noun and self.forecast is not None and self.forecast.stuck_on:
            raise PreconditionFailed(
                f"planning {noun}",
                f"it would wait for {'; '.join(map(str, self.forecast.stuck_on))}",
                "fix that first",
            )

    def _in_words(self) -> tuple[str, str]:
        """The change in words, and its noun if its forecast must end."""
        spec = self.wanted.spec
        match self.kind:
            case OperationType.MIGRATE:
                to = spec.placement.site
                return f"moving plane {self.name} to {to}", f"the move of {self.name} to {to}"
            case OperationType.SCALE:
                to = f"{spec.replicas} replica{'s' if spec.replicas > 1 else ''}"
                return f"scaling plane {self.name} to {to}", f"the scaling of {self.name} to {to}"
            case OperationType.UPGRADE:
                before = self.current.spec.etcd if self.current is not None else spec.etcd
                to = spec.kubernetes_version if before == spec.etcd else f"etcd {spec.etcd.version}"
                return f"upgrading plane {self.name}", f"the upgrade of {self.name} to {to}"
            case OperationType.ROTATE:
                return f"rotating keys of plane {self.name}", f"the rotation of keys of {self.name}"
            case OperationType.REPLACE:
                return f"replacing replicas of plane {self.name}", f"the replacement of replicas of {self.name}"
            case _:
                return f"changing plane {self.name}", ""
