"""Upgrades of Kubernetes: what a request comes to, and which versions a plane can go to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from quarterdeck.api.controlplane import ControlPlane, ControlPlaneSpec
from quarterdeck.api.operation import OperationType
from quarterdeck.components import upgrade_path
from quarterdeck.components.minors import KUBERNETES, dotted
from quarterdeck.components.upgrade_windows import TELLS_COMPATIBILITY, behaviour
from quarterdeck.components.upstream_versions import minor, patch
from quarterdeck.engine import status
from quarterdeck.engine.preflight.local_changes import examined_in_place
from quarterdeck.engine.preflight.moves import require_done
from quarterdeck.engine.preflight.preview import preview
from quarterdeck.engine.preflight.reach import require_in_reach
from quarterdeck.engine.preflight.requests import Examined, Upgrade
from quarterdeck.engine.preflight.upgrade_checks import require_upgradable
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import InvalidInput, PreconditionFailed, QuarterdeckError
from quarterdeck.model.findings import Finding, Verdict, refuse
from quarterdeck.upstream.catalog import Versions


async def examined_upgrade(engine: Engine, request: Upgrade) -> Examined:
    """The next part of an upgrade, with all findings and the forecast. Not ``needed`` when the plane is there.

    Raises Gone, InvalidInput (the version), Conflict (the plane moves, or is not up to date yet), PreconditionFailed
    (the way back is closed; its networks are out of reach), and what ``admit`` does.
    """
    current = await recorded.existing(engine.home.store, request.name)
    wanted = current.model_copy(update={"spec": _spec_after(current, request)})
    if wanted.spec != current.spec:
        return await examined_in_place(engine, OperationType.UPGRADE, current, wanted)
    await require_in_reach(engine.home, current)
    doing, already = f"upgrading plane {request.name}", f"it is to be at {current.spec.kubernetes_version} already"
    require_done(doing, request.name, already, (await status.look(engine.home, request.name)).plan)
    return Examined(kind=OperationType.UPGRADE, wanted=wanted, current=current, needed=False)


def _spec_after(current: ControlPlane, request: Upgrade) -> ControlPlaneSpec:
    spec, doing = current.spec, f"upgrading plane {current.name}"
    if request.to is not None:
        Versions.parse(kubernetes=request.to)
        return upgrade_path.first_part(spec, f"v{request.to.removeprefix('v')}", request.soak)
    if not request.finish:
        return upgrade_path.next_part(spec) or spec
    if spec.upgrade is not None and spec.upgrade.to is not None:
        seen = f"it goes on to {spec.upgrade.to}"
        raise PreconditionFailed(doing, seen, "finish it there, or stop it with 'abort'")
    binary = behaviour(spec).binary
    if binary < TELLS_COMPATIBILITY:
        seen = f"Kubernetes {dotted(binary)} has no final window; {dotted(TELLS_COMPATIBILITY)} is the first with one"
        raise InvalidInput(doing, seen, "go on to the next minor version when it is time")
    return upgrade_path.finished(spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeOption:
    """A version that a plane could go to. ``parts``: the minor versions on the way; ``supported_until``: the last day
    of upstream's support; ``findings``: of the checks of the first part that warn or refuse.
    """

    version: str
    parts: tuple[str, ...]
    supported_until: date | None
    findings: tuple[Finding, ...]

    @property
    def possible(self) -> bool:
        """Whether the first part can begin now."""
        return not any(each.verdict is Verdict.REFUSE for each in self.findings)


async def upgrade_options(home: Home, name: str) -> tuple[UpgradeOption, ...]:
    """The versions that a plane could go to, with what stands in the way of each; nothing is changed or downloaded.

    Raises Gone, PreconditionFailed (its networks are out of reach).
    """
    current = await recorded.existing(home.store, name)
    await require_in_reach(home, current)
    options, known = list[UpgradeOption](), dict[str, tuple[Finding, ...]]()
    for version in _candidates(current.spec):
        spec = upgrade_path.first_part(current.spec, version, None)
        first = spec.kubernetes_version
        if first not in known:  # all later versions begin with the next one
            known[first] = await _notable(home, current, current.model_copy(update={"spec": spec}))
        until = KUBERNETES[minor(version)].supported_until
        options.append(UpgradeOption(version=version, parts=_parts(spec), supported_until=until, findings=known[first]))
    return tuple(options)


def _candidates(spec: ControlPlaneSpec) -> tuple[str, ...]:
    """The newest known patch releases of the former minor version, the present one, and all later ones."""
    here = minor(spec.kubernetes_version)
    near = [each for each in sorted(KUBERNETES) if each >= (here[0], here[1] - 1)]
    versions = [f"v{dotted(each)}.{KUBERNETES[each].newest}" for each in near]
    return tuple(each for each in versions if minor(each) != here or patch(each) > patch(spec.kubernetes_version))


def _parts(spec: ControlPlaneSpec) -> tuple[str, ...]:
    """The versions of the parts of an upgrade, of which ``spec`` is the first."""
    following = upgrade_path.next_part(spec)
    return (spec.kubernetes_version, *(_parts(following) if following is not None else ()))


async def _notable(home: Home, current: ControlPlane, wanted: ControlPlane) -> tuple[Finding, ...]:
    """The findings about a part that warn or refuse."""
    try:
        require_upgradable(current, wanted)
        findings, _ = await preview(home, current, wanted)
    except QuarterdeckError as error:
        findings = (refuse("way", error.seen, error.next_step),)
    return tuple(each for each in findings if each.verdict is not Verdict.OK)
