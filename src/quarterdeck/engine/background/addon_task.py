"""The add-ons of a plane: applied after each change, and checked for drift periodically."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from quarterdeck.actions.addons import Addons, NeedsAPerson, Waits, kept_for_locks
from quarterdeck.actions.administrators import bind_administrators
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import refresh, write_status
from quarterdeck.addons.content import Content
from quarterdeck.api.base import Condition, ConditionStatus, instant, with_condition
from quarterdeck.api.belongings import AddonContent, AddonManifests
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.events import EventReason
from quarterdeck.api.plane.addons import AddonStatus
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.observation.queries import ready_apiserver
from quarterdeck.engine.workspace import addons
from quarterdeck.engine.workspace.own_addons import kept_for_cloud, kept_for_nodes
from quarterdeck.errors import NotApplied, QuarterdeckError, Unavailable
from quarterdeck.model.world import World
from quarterdeck.stores.port import EventType

#: Seconds between two checks of add-ons that are up to date.
DRIFT_EVERY = 60.0
#: Seconds that a change of add-ons waits for its dependencies, in a command and in a manager, and between two attempts.
PATIENCE = 60.0
KEPT_PATIENCE = 5.0
_AGAIN = 0.3


@dataclass(kw_only=True)
class AddonTask:
    """Applies and checks a plane's add-ons, under its lease. ``monotonic`` is a clock in seconds."""

    monotonic: Callable[[], float] = time.monotonic
    _looked: float = -math.inf
    _manifests: AddonManifests | None = None
    _contents: dict[str, Content] = field(default_factory=dict)
    _own: dict[str, Content] = field(default_factory=dict)

    async def turn(self, plane: Plane, world: World) -> None:
        """See ``ShortTurn``. Does nothing while no apiserver is ready, and for a plane in deletion."""
        if any(fact.ready for fact in world.replicas):
            await self.see_to(plane)

    async def finish(
        self,
        plane: Plane,
        *,
        asked: bool,
        patience: float,
        changed: Callable[[Plane], bool],
        tell: Callable[[QuarterdeckError], Awaitable[None]],
    ) -> None:
        """Apply all add-ons, until ``changed`` reports a new spec. ``asked``: the operation requested them, so their
        dependencies are waited for, for ``patience`` seconds, and NotApplied is raised when they cannot be applied;
        else they are tried once. ``tell`` gets what is waited for.
        """
        until, reported = self.monotonic() + patience, ""
        while not changed(plane):
            words = await self._tried(plane)
            hopeless = any(each.why and not _waits(each) for each in plane.resource.status.addons)
            if not words or not asked:
                return
            error = NotApplied(f"applying the add-ons of plane {plane.name}", words, f"fix that, then {_then(plane)}")
            if hopeless or self.monotonic() >= until:
                raise error
            if words != reported:
                reported = words
                then = f"fix that: the operation fails after {patience:g} s"
                await tell(Unavailable(f"applying the add-ons of plane {plane.name}", f"waiting: {words}", then))
            await asyncio.sleep(_AGAIN)
            await refresh(plane)

    async def _tried(self, plane: Plane) -> str:
        """Why the add-ons are not up to date after another attempt; "" if they are."""
        try:
            await self.see_to(plane)
        except Unavailable as error:
            return error.seen
        problems = (
            f"{each.name}: {each.why.removeprefix(_WAITING)}" for each in plane.resource.status.addons if each.why
        )
        return "; ".join(problems)

    async def see_to(self, plane: Plane) -> None:
        """Apply changed add-ons, remove unwanted ones, and check the others for drift when it is time to.

        Raises Unavailable when no apiserver answers, Corrupt when the manifests are gone.
        """
        resource, doing = plane.resource, f"applying the add-ons of plane {plane.name}"
        if resource.metadata.deletion_timestamp is not None:
            return
        if resource.status.administrators_epoch != plane.memory.epoch:
            await bind_administrators(plane, await ready_apiserver(plane, doing))
        self._own = {each.addon: each for each in _quarterdecks(plane)}
        if not (self._own or resource.status.addon_manifests or resource.status.addons):
            return
        if self._settled(plane) and self.monotonic() - self._looked < DRIFT_EVERY:
            return
        name = resource.status.addon_manifests
        if name != addons.named(self._manifests):
            self._manifests = await addons.stored(plane.store, resource, name) if name else None
            self._contents = {each.addon: each for each in addons.contents_of(self._manifests)}
        contents = (*self._contents.values(), *self._own.values())
        objects = [each for content in contents for each in content.objects]
        found = await Addons.seen(plane, await ready_apiserver(plane, doing), objects)
        await self._announce(plane)
        states = [await self._kept(plane, found, each) for each in self._wanted()]
        states += [state for each in self._gone(plane, found) if (state := await self._removed(plane, found, each))]
        self._looked = self.monotonic()
        await _write_down(plane, tuple(states))

    async def _announce(self, plane: Plane) -> None:
        """Record the wanted add-ons before their first object is applied, so that none is forgotten."""
        known = {each.name: each for each in plane.resource.status.addons}
        new = (AddonStatus(name=each.name, why=f"{_WAITING}being applied") for each in self._wanted())
        states = {**{each.name: each for each in new}, **known}
        if states.keys() != known.keys():
            await _write_down(plane, tuple(states.values()))

    def _wanted(self) -> Sequence[AddonContent]:
        """The user's add-ons, and quarterdeck's own."""
        users = self._manifests.spec.addons if self._manifests is not None else ()
        return (*users, *map(addons.encoded, self._own.values()))

    def _gone(self, plane: Plane, found: Addons) -> Sequence[str]:
        """Unwanted add-ons that exist, or are in the status."""
        wanted = {each.name for each in self._wanted()}
        known = {*found.parents, *(each.name for each in plane.resource.status.addons)}
        return sorted(known - wanted)

    def _settled(self, plane: Plane) -> bool:
        """Whether all add-ons were up to date at the last turn of this process."""
        status = plane.resource.status
        if math.isinf(self._looked) or status.addon_manifests != addons.named(self._manifests):
            return False
        found = {each.name: each for each in status.addons}
        wanted = {each.name: each.digest for each in self._wanted()}
        return found.keys() == wanted.keys() and all(
            found[name].digest == digest and not found[name].why for name, digest in wanted.items()
        )

    async def _kept(self, plane: Plane, found: Addons, wanted: AddonContent) -> AddonStatus:
        """Apply or check one add-on; returns its status."""
        state = _known(plane, wanted.name)
        own = self._own.get(wanted.name)
        content = own or self._contents[wanted.name]
        try:
            if state.digest == wanted.digest and not state.why and await found.untouched(content, state.fields):
                return state
            # Quarterdeck's own objects are always taken back: users configure them in the plane's spec.
            applied = await found.apply(content, own or await self._earlier(plane, state))
        except Waits as error:
            return state.model_copy(update={"why": f"{_WAITING}{error.seen}"})
        except NeedsAPerson as error:
            return state.model_copy(update={"why": str(error)})
        if state.digest == wanted.digest and not state.why:
            await _tell(
                plane,
                EventReason.ADDON_REPAIRED,
                f"add-on {wanted.name} was changed by another client, and is up to date again",
            )
        else:
            await _tell(
                plane, EventReason.ADDON_APPLIED, f"add-on {wanted.name}: {applied.objects} objects are up to date"
            )
        return AddonStatus(
            name=wanted.name,
            manifests="" if own is not None else addons.named(self._manifests),
            digest=wanted.digest,
            objects=applied.objects,
            fields=applied.fields,
            applied_at=instant(plane.clock()),
        )

    async def _earlier(self, plane: Plane, state: AddonStatus) -> Content | None:
        """The content that was last applied as a whole."""
        if not state.manifests:
            return None
        stored = await addons.stored(plane.store, plane.resource, state.manifests)
        found = stored.addon(state.name)
        return addons.content_of(found) if found is not None else None

    async def _removed(self, plane: Plane, found: Addons, name: str) -> AddonStatus | None:
        """Remove an add-on. None once it is removed."""
        if name in found.parents:
            try:
                await found.remove(name)
            except Waits as error:
                return _known(plane, name).model_copy(update={"why": f"{_WAITING}to be removed: {error.seen}"})
            await _tell(plane, EventReason.ADDON_REMOVED, f"add-on {name} was removed")
        return None


_WAITING = "waiting: "


def _then(plane: Plane) -> str:
    return f"'wait {plane.name}' retries, or 'abort {plane.name}' undoes the change"


def _waits(state: AddonStatus) -> bool:
    return state.why.startswith(_WAITING)


def _known(plane: Plane, name: str) -> AddonStatus:
    """The recorded status of an add-on."""
    found = (each for each in plane.resource.status.addons if each.name == name)
    return next(found, AddonStatus(name=name))


def _quarterdecks(plane: Plane) -> tuple[Content, ...]:
    """Quarterdeck's own add-ons."""
    every = (kept_for_nodes(plane), kept_for_cloud(plane), kept_for_locks(plane))
    return tuple(each for each in every if each is not None)


async def _write_down(plane: Plane, states: tuple[AddonStatus, ...]) -> None:
    """Write the status of each, and the condition, if any of it changed."""
    before = plane.resource.status.addons
    async with plane.writing:
        await refresh(plane)
        conditions = _conditions(plane, states)
        if (states, conditions) == (plane.resource.status.addons, plane.resource.status.conditions):
            return
        await write_status(plane, addons=states, conditions=conditions)
    for each in states:
        if each.why and each not in before:
            kind = EventType.NORMAL if _waits(each) else EventType.WARNING
            await _tell(
                plane,
                EventReason.ADDON_WAITING if _waits(each) else EventReason.ADDON_FAILED,
                f"add-on {each.name}: {each.why}",
                kind,
            )


def _conditions(plane: Plane, states: tuple[AddonStatus, ...]) -> tuple[Condition, ...]:
    """The plane's conditions, with whether its add-ons are applied."""
    failing = [f"{each.name}: {each.why.removeprefix(_WAITING)}" for each in states if each.why]
    hopeless = any(each.why and not _waits(each) for each in states)
    reason = ConditionReason.UP_TO_DATE
    if failing:
        reason = ConditionReason.REFUSED if hopeless else ConditionReason.WAITING
    return with_condition(
        plane.resource.status.conditions,
        ConditionType.ADDONS_APPLIED,
        ConditionStatus.FALSE if failing else ConditionStatus.TRUE,
        reason=reason,
        now=plane.clock(),
        message="; ".join(failing) or f"{sum(each.objects for each in states)} objects",
        observed_generation=plane.resource.metadata.generation,
    )


async def _tell(plane: Plane, reason: EventReason, message: str, kind: EventType = EventType.NORMAL) -> None:
    await plane.store.record(Happening(reason, message, kind).event(plane.name, plane.clock()))
