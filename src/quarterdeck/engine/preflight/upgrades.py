"""Upgrades of Kubernetes and etcd: what a request comes to, and which versions a plane can go to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date

from quarterdeck.api.controlplane import ControlPlane, ControlPlaneSpec
from quarterdeck.api.operation import OperationType
from quarterdeck.components.minors import ETCD, KUBERNETES, Minor, MinorRelease, dotted
from quarterdeck.components.transitions import etcd_path, upgrade_parts, upgrade_path
from quarterdeck.components.transitions.upgrade_windows import TELLS_COMPATIBILITY, behaviour
from quarterdeck.components.upstream_versions import minor, patch
from quarterdeck.engine import status
from quarterdeck.engine.preflight.etcd_upgrade_checks import require_etcd_upgradable
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
    at = f"etcd {current.spec.etcd.version}" if request.etcd is not None else current.spec.kubernetes_version
    doing, already = f"upgrading plane {request.name}", f"it is to be at {at} already"
    require_done(doing, request.name, already, (await status.look(engine.home, request.name)).plan)
    return Examined(kind=OperationType.UPGRADE, wanted=wanted, current=current, needed=False)


def _spec_after(current: ControlPlane, request: Upgrade) -> ControlPlaneSpec:
    spec, doing = current.spec, f"upgrading plane {current.name}"
    if request.to is not None:
        Versions.parse(kubernetes=request.to)
        return upgrade_path.first_part(spec, f"v{request.to.removeprefix('v')}", request.soak)
    if request.etcd is not None:
        Versions.parse(etcd=request.etcd)
        return etcd_path.first_part(spec, request.etcd.removeprefix("v"), request.soak)
    if not request.finish:
        return upgrade_parts.next_part(spec) or spec
    if etcd_path.settings_of(spec).keep_one:
        return etcd_path.finished(spec)
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
    """A version of Kubernetes or etcd (``program``) that a plane could go to. ``parts``: the minor versions on the way;
    ``supported_until``: the last day of upstream's support (None: upstream names none); ``findings``: of the checks of
    the first part that warn or refuse.
    """

    program: str
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
    options, known = list[UpgradeOption](), dict[tuple[str, str], tuple[Finding, ...]]()
    for project in _PROJECTS:
        for version in _candidates(project.of(current.spec), project):
            spec = project.first_part(current.spec, version, None)
            first = project.name, project.of(spec)
            if first not in known:  # all later versions begin with the next one
                known[first] = await _notable(home, current, current.model_copy(update={"spec": spec}))
            option = UpgradeOption(
                program=project.name,
                version=version,
                parts=_parts(spec, project),
                supported_until=project.minors[minor(version)].supported_until,
                findings=known[first],
            )
            options.append(option)
    return tuple(options)


@dataclass(frozen=True, slots=True)
class _Project:
    """An upstream project: its name, its minor versions, how its versions begin, and the parts of an upgrade."""

    name: str
    minors: Mapping[Minor, MinorRelease]
    prefix: str
    of: Callable[[ControlPlaneSpec], str]
    first_part: Callable[[ControlPlaneSpec, str, float | None], ControlPlaneSpec]
    next_part: Callable[[ControlPlaneSpec], ControlPlaneSpec | None]


_PROJECTS = (
    _Project(
        name="Kubernetes",
        minors=KUBERNETES,
        prefix="v",
        of=lambda spec: spec.kubernetes_version,
        first_part=upgrade_path.first_part,
        next_part=upgrade_path.next_part,
    ),
    _Project(
        name="etcd",
        minors=ETCD,
        prefix="",
        of=lambda spec: spec.etcd.version,
        first_part=etcd_path.first_part,
        next_part=etcd_path.next_part,
    ),
)


def _candidates(present: str, project: _Project) -> tuple[str, ...]:
    """The newest known patch releases of the former minor version, the present one, and all later ones."""
    here = minor(present)
    near = [each for each in sorted(project.minors) if each >= (here[0], here[1] - 1)]
    versions = [f"{project.prefix}{dotted(each)}.{project.minors[each].newest}" for each in near]
    return tuple(each for each in versions if minor(each) != here or patch(each) > patch(present))


def _parts(spec: ControlPlaneSpec, project: _Project) -> tuple[str, ...]:
    """The versions of the parts of an upgrade, of which ``spec`` is the first."""
    following = project.next_part(spec)
    return (project.of(spec), *(_parts(following, project) if following is not None else ()))


async def _notable(home: Home, current: ControlPlane, wanted: ControlPlane) -> tuple[Finding, ...]:
    """The findings about a part that warn or refuse."""
    try:
        require_upgradable(current, wanted)
        require_etcd_upgradable(current, wanted)
        findings, _ = await preview(home, current, wanted)
    except QuarterdeckError as error:
        findings = (refuse("way", error.seen, error.next_step),)
    return tuple(each for each in findings if each.verdict is not Verdict.OK)
