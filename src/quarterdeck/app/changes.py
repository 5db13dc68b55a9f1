"""Planning the creation, change and deletion of a plane without changing anything; and storing any request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from quarterdeck.api.apply import applied_plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation, OperationType
from quarterdeck.engine.controller_sets.declarations import warnings_of
from quarterdeck.engine.preflight.admission import admit, findings_of_issuers, findings_of_versions
from quarterdeck.engine.preflight.etcd_upgrade_checks import upgrades_etcd
from quarterdeck.engine.preflight.local_changes import (
    compared,
    compared_addons,
    examined_hand_back,
    examined_hand_over,
    examined_replacement,
    examined_scale,
)
from quarterdeck.engine.preflight.moves import examined_abort, examined_move
from quarterdeck.engine.preflight.preview import forecast, preview
from quarterdeck.engine.preflight.reach import require_in_reach
from quarterdeck.engine.preflight.requests import (
    Abort,
    Apply,
    Create,
    Delete,
    Examined,
    HandBack,
    HandOver,
    Migrate,
    RenewCertificates,
    Replace,
    Request,
    RotateAuthorities,
    RotateKey,
    Scale,
    Upgrade,
)
from quarterdeck.engine.preflight.secret_changes import examined_secrets
from quarterdeck.engine.preflight.standby_site import examine_standby
from quarterdeck.engine.preflight.upgrade_checks import upgrades
from quarterdeck.engine.preflight.upgrades import examined_upgrade
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.engine.workspace.addons import findings
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import InvalidInput, NotFound
from quarterdeck.model.findings import Finding, enforce
from quarterdeck.planner.simulated.dry_run import DryRun
from quarterdeck.stores.port import amend


async def examined(home: Home, engine: Callable[[], Engine], request: Request) -> Examined:
    """All facts that are needed before a request is stored. Programs that a new spec needs are downloaded.

    An abort and a deletion need no ``engine``: they can be requested where there are no programs and no member answers.
    """
    match request:
        case Create(plane):
            await operations.require_new(home.store, plane.metadata.name)  # before programs are downloaded
            return await _new(engine(), plane)
        case Apply(plane):
            return await _applied(engine(), plane)
        case Migrate():
            return await examined_move(engine(), request)
        case Scale():
            return await examined_scale(engine(), request)
        case Replace():
            return await examined_replacement(engine(), request)
        case HandOver():
            return await examined_hand_over(engine(), request)
        case HandBack():
            return await examined_hand_back(engine, home.store, request)
        case Upgrade():
            return await examined_upgrade(engine(), request)
        case RenewCertificates() | RotateAuthorities() | RotateKey():
            return await examined_secrets(engine(), request)
        case Abort():
            return await examined_abort(home.store, request)
        case Delete(name):
            plane = await operations.require_deletable(home.store, name)
            return Examined(kind=OperationType.DELETE, wanted=plane, current=plane)


async def _applied(engine: Engine, declared: ControlPlane) -> Examined:
    try:
        current = await engine.home.store.get(ControlPlane, declared.metadata.name)
    except NotFound:
        return await _new(engine, declared)
    wanted = applied_plane(current, declared)
    if wanted.spec != current.spec:
        await operations.require_changeable(engine.home.store, current)
    if wanted.spec.placement.site != current.spec.placement.site:
        await require_in_reach(engine.home, current)  # the plane is observed
    await admit(engine, wanted, current=current)
    standby = await examine_standby(engine.home, wanted, current)
    checked, steps = await _previewed(engine.home, current, wanted)
    differences = await compared(engine.home, current, wanted)
    contents, addons = await compared_addons(engine.home, current, wanted)
    return Examined(
        kind=OperationType.APPLY,
        wanted=wanted,
        current=current,
        differences=differences,
        addons=addons,
        contents=contents,
        # The checks of an upgrade have the findings of versions.
        findings=(
            *(checked or findings_of_versions(wanted)),
            *standby,
            *findings_of_issuers(current, wanted),
            *warnings_of(wanted.spec),
            *findings(contents),
        ),
        forecast=steps,
        needed=wanted.spec != current.spec or bool(differences) or bool(addons),
    )


async def _previewed(
    home: Home, current: ControlPlane, wanted: ControlPlane
) -> tuple[tuple[Finding, ...], DryRun | None]:
    """The findings about a plane that a change of its spec moves or upgrades, and the forecast; nothing for another
    change. Raises PreconditionFailed for everything that the checks of a move find.
    """
    if current.spec.placement.site != wanted.spec.placement.site:
        checked, steps = await preview(home, current, wanted)
        enforce(checked, f"moving plane {wanted.metadata.name} to {wanted.spec.placement.site}")
        return (), steps
    if upgrades(current, wanted) or upgrades_etcd(current, wanted):
        return await preview(home, current, wanted)
    return (), None


async def _new(engine: Engine, declared: ControlPlane) -> Examined:
    contents, addons = await compared_addons(engine.home, None, declared)
    await admit(engine, declared)
    standby = await examine_standby(engine.home, declared, None)
    return Examined(
        kind=OperationType.CREATE,
        wanted=declared,
        addons=addons,
        contents=contents,
        findings=(*standby, *findings_of_versions(declared), *warnings_of(declared.spec), *findings(contents)),
    )


async def planned(home: Home, engine: Callable[[], Engine], request: Request) -> Examined:
    """``examined``, plus the forecast of a change of spec."""
    found = await examined(home, engine, request)
    if found.kind is not OperationType.APPLY or not found.needed or found.forecast is not None:
        return found
    await require_in_reach(home, found.wanted)
    return replace(found, forecast=await forecast(engine().home, found.wanted))


async def store_request(home: Home, found: Examined, requester: Requester) -> Operation | None:
    """Store the new desired state. Returns the operation; None where nothing had to be requested.

    Raises what ``Examined.require`` does, and Conflict when the plane was changed since it was examined.
    """
    found.require()
    if not found.needed:
        return found.under_way
    match found.kind:
        case OperationType.CREATE:
            return await operations.create(home, found.wanted, requester, found.contents)
        case OperationType.DELETE:
            return await operations.delete(home, found.name, requester)
        case _:
            return await operations.change(home, found.wanted, found.kind, requester, found.contents)


async def set_paused(home: Home, name: str, *, paused: bool, until: datetime | None = None) -> None:
    """Pause a plane (until then), or resume it. Raises Gone, InvalidInput."""
    await recorded.existing(home.store, name)
    if until is not None and until <= datetime.now(UTC):
        raise InvalidInput(f"pausing plane {name}", f"{until:%F %T %Z} is in the past", "give a time in the future")

    def changed(seen: ControlPlane) -> ControlPlane:
        """A plane that was brought back from a backup and is resumed keeps the data on its machines."""
        awaits = seen.status.awaits_data and paused
        return seen.with_spec(paused=paused, paused_until=until).with_status(awaits_data=awaits)

    await amend(home.store, ControlPlane, name, changed)
