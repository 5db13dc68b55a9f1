"""What was found out about a request before anything is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from quarterdeck.addons.changes import AddonChange
from quarterdeck.addons.content import Content
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation, OperationType
from quarterdeck.components.difference import Difference
from quarterdeck.engine.notices.findings import Finding, Verdict, enforce
from quarterdeck.errors import PreconditionFailed
from quarterdeck.planner.simulated.dry_run import DryRun


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
