"""The observation of the leaders of a plane's controllers: from their leases, and the programs' own reports."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pydantic import JsonValue

from quarterdeck.actions.addresses import apiserver_address, server_address
from quarterdeck.actions.plane import Plane
from quarterdeck.addons.applyset import PART_OF, parent_of
from quarterdeck.addons.lease_webhooks import CONTROLLERS, GROUP, KINDS, Labels, LeaseWebhook, lease_webhooks
from quarterdeck.addons.objects import Manifest, items, mapping, text_of
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.engine.observation.lead_watch import SURE_S, WatchedLease
from quarterdeck.engine.observation.queries import or_none
from quarterdeck.errors import NotFound, Unavailable
from quarterdeck.kube.port import Address, WriteTrial
from quarterdeck.model.components import Component
from quarterdeck.model.leadership import Leadership, Obstacle
from quarterdeck.model.memory import Memory, Replica

T = TypeVar("T")

#: Seconds between two readings while each showed a renewal.
EVERY_S = 9.0
#: Seconds between two readings otherwise, and between two searches for what prevents leadership.
_CLOSELY_S = 1.0
_SEARCHED_S = 20.0
#: Seconds for an answer: an observation does not wait longer for the leaders.
_WITHIN_S = 1.0


@dataclass(kw_only=True)
class LeadersObserver:
    """Observes the leaders of one plane repeatedly. It remembers its readings, and queries the programs only where the
    replica of a lease's holder is unknown.
    """

    plane: Plane
    _watched: dict[Component, WatchedLease] = field(default_factory=dict)
    _found: dict[Component, tuple[float, tuple[Obstacle, ...]]] = field(default_factory=dict)
    _read: float = -math.inf
    _leading: tuple[Leadership, ...] = ()

    async def observe(
        self, memory: Memory, ready: Mapping[str, bool | None], *, once: bool = False
    ) -> tuple[Leadership, ...]:
        """One observation through a ``ready`` apiserver of a replica whose machine answers; empty without one.
        ``once``: see ``WatchedLease.judged``.
        """
        serving = next((name for name, answer in ready.items() if answer), None)
        if serving is None:
            return ()
        now, well = self.plane.steady(), all(each.led and (each.idle_s or 0.0) < SURE_S for each in self._leading)
        if now - self._read < (EVERY_S if well and self._leading else _CLOSELY_S):
            return self._leading
        self._read = now
        apiserver = apiserver_address(memory.replica(serving))
        kinds = led_kinds(self.plane, {each.revision for each in memory.replicas})
        reached = {record: record.name in ready for record in memory.replicas}
        found = await asyncio.gather(*(self._observe(each, reached, apiserver, once=once) for each in kinds))
        self._leading = tuple(each for each in found if each is not None)
        return self._leading

    async def sure(self, memory: Memory, ready: Mapping[str, bool | None]) -> tuple[Leadership, ...]:
        """The same for a single observation: leases are read again until it is known whether they have leaders."""
        until = self.plane.steady() + SURE_S + _CLOSELY_S
        leading = await self.observe(memory, ready)
        while self._suspects() and self.plane.steady() < until:
            await asyncio.sleep(_CLOSELY_S)
            leading = await self.observe(memory, ready, once=True)
        return leading

    def _suspects(self) -> bool:
        """Whether another reading may help: an observed renewal counts more than the clocks of the last one."""
        unsure = any(each.led is None or (each.led and not each.works) for each in self._leading)
        return unsure or any(each.alone is not None and not each.foreign for each in self._watched.values())

    async def _observe(
        self, component: Component, reached: Mapping[Replica, bool], apiserver: Address, *, once: bool
    ) -> Leadership | None:
        """The leader of one component; None when the apiserver does not answer."""
        lease = CATALOGUE[component].lease
        try:
            async with asyncio.timeout(_WITHIN_S):
                seen = await self.plane.kube.leader_lease(apiserver, lease)
        except (TimeoutError, Unavailable):
            return None
        now, before = self.plane.steady(), self._watched.get(component)
        watched = WatchedLease.begun(seen, now) if before is None else before.after(seen, now)
        if seen is not None and seen.holder and not watched.replica:
            watched = watched.claimed(await claims(self.plane, component, reached))
        self._watched[component] = watched
        judged = watched.judged(component, lease, once=once)
        if judged.led is not False:
            self._found.pop(component, None)
            return judged
        return replace(judged, obstacles=await self._obstacles(component, apiserver, now))

    async def _obstacles(self, component: Component, apiserver: Address, now: float) -> tuple[Obstacle, ...]:
        """What prevents its leadership, as last found out."""
        at, known = self._found.get(component, (-math.inf, ()))
        if now - at < _SEARCHED_S:
            return known
        found = await obstacles(self.plane, apiserver, component)
        if _plain(found) == _plain(known):
            found = known  # a change of numbers, such as a port or a time, makes no new event
        self._found[component] = now, found
        return found


def _plain(found: tuple[Obstacle, ...]) -> list[str]:
    return [re.sub(r"\d+", "#", each.seen) for each in found]


def led_kinds(plane: Plane, revisions: Iterable[str]) -> tuple[Component, ...]:
    """The programs of replicas of these revisions that elect a leader by a lease."""
    there = {component for each in revisions for component in plane.revisions.programs.of(each)}
    return tuple(component for component, spec in CATALOGUE.items() if spec.lease and component in there)


async def claims(plane: Plane, component: Component, reached: Mapping[Replica, bool]) -> Mapping[str, bool | None]:
    """Whether each replica's program reports that it leads; None for one that does not answer. ``reached``: whether its
    machine answers.
    """
    (port,), lease = CATALOGUE[component].ports, CATALOGUE[component].lease

    async def asked(record: Replica) -> bool | None:
        if not reached[record]:
            return None
        try:
            return await _soon(plane.kube.leads(server_address(record, port.name), lease))
        except (NotFound, Unavailable):
            return None

    answers = await asyncio.gather(*map(asked, reached))
    return {record.name: leads for record, leads in zip(reached, answers, strict=True)}


async def _soon(asked: Awaitable[T]) -> T | None:
    try:
        async with asyncio.timeout(_WITHIN_S):
            return await asked
    except TimeoutError:
        return None


# What prevents the programs of a plane from writing a lease: found out through an apiserver when no program leads.

#: Seconds within which a trial write must be answered. Holders have 10 s to renew, and most of their attempts fail long
#: before that; a write on a busy host takes far less.
TRIAL_S = 2.0
_LONGEST = 300
#: How an apiserver names a webhook that it could not call, or that refused (k8s.io/apiserver: webhook/errors).
_NAMED = re.compile(r'webhook "([^"]+)"')
_NO_DRY_RUN = "does not support dry run"


async def obstacles(plane: Plane, apiserver: Address, component: Component) -> tuple[Obstacle, ...]:
    """What prevents a component's lease from being written: a webhook that refuses or delays it, another refusal, or
    missing permissions of its program. Unknown facts are left out.
    """
    lease = CATALOGUE[component].lease
    trial = await or_none(plane.kube.try_lease(apiserver, lease, within=TRIAL_S))
    if trial is None:
        return ()
    if trial == WriteTrial():
        return await _rights(plane, apiserver, f"system:{component}", lease)
    return obstacles_of(trial, await or_none(_webhooks(plane, apiserver)) or (), lease)


async def _rights(plane: Plane, apiserver: Address, user: str, lease: str) -> tuple[Obstacle, ...]:
    """The missing permissions of a user. Checked only where writes succeed: the check itself is a write."""
    if await or_none(plane.kube.may_hold(apiserver, user, lease)) is not False:
        return ()
    seen = f"user {user} may not update lease {lease}"
    mend = f"restore ClusterRole {user} and ClusterRoleBinding {user}, which an apiserver does when it starts"
    return (Obstacle(seen=seen, mend=mend),)


def obstacles_of(trial: WriteTrial, webhooks: Sequence[tuple[LeaseWebhook, str]], lease: str) -> tuple[Obstacle, ...]:
    """The obstacles from a trial write and the webhooks that are called for it. ``webhooks``: each with its add-on
    ("": none). Pure.
    """
    if trial.late:
        seen = f"a trial write of lease {lease} was not answered within {TRIAL_S:g} s"
        return _of(webhooks, seen) if webhooks else (Obstacle(seen=seen, mend="see the log of kube-apiserver"),)
    if not trial.refusal:
        return ()
    words = trial.refusal[:_LONGEST]
    named = _NAMED.search(trial.refusal)
    those = [each for each in webhooks if named is not None and each[0].name == named[1]]
    if _NO_DRY_RUN in trial.refusal:
        return _of(those or webhooks, f"a trial write of lease {lease} is not possible")
    seen = f"a trial write of lease {lease} is refused: {words}"
    return _of(those, seen) if those else (Obstacle(seen=seen, mend="remove what refuses it"),)


def _of(webhooks: Sequence[tuple[LeaseWebhook, str]], seen: str) -> tuple[Obstacle, ...]:
    """The obstacle of webhooks. Each configuration is named once."""
    names = ", ".join(f"{each} (failurePolicy {each.policy}, timeout {each.timeout_s} s)" for each, _ in webhooks)
    mend = dict.fromkeys(_removal(each, addon) for each, addon in webhooks)
    return (Obstacle(seen=f"{seen}: {names} is called for it", mend=", then ".join(mend)),)


def _removal(webhook: LeaseWebhook, addon: str) -> str:
    delete = f"run 'kubectl delete {webhook.kind.lower()} {webhook.configuration}'"
    if not addon:
        return delete
    return f"exclude {CONTROLLERS} in its namespaceSelector in add-on {addon} and apply that (until then {delete})"


async def _webhooks(plane: Plane, apiserver: Address) -> tuple[tuple[LeaseWebhook, str], ...]:
    """The webhooks that are called for leases in kube-system, each with its add-on."""
    paths = [f"/apis/{GROUP}/v1/{kind.lower()}s?limit=500" for kind in KINDS]
    namespace, parents, *lists = await asyncio.gather(
        plane.kube.read(apiserver, f"/api/v1/namespaces/{CONTROLLERS}"),
        plane.kube.read(apiserver, f"/api/v1/namespaces/{CONTROLLERS}/configmaps?limit=500"),
        *(plane.kube.read(apiserver, path) for path in paths),
    )
    addons = dict(filter(None, map(_parent, items(mapping(parents).get("items")))))
    found = []
    for kind, listed in zip(KINDS, lists, strict=True):
        for each in items(mapping(listed).get("items")):
            # Items of a list do not have their kind.
            manifest = {**each, "apiVersion": f"{GROUP}/v1", "kind": kind}
            addon = addons.get(_labels(each).get(PART_OF, ""), "")
            webhooks = lease_webhooks(manifest, {CONTROLLERS: _labels(mapping(namespace))})
            found += [(webhook, addon) for webhook in webhooks if CONTROLLERS in webhook.namespaces]
    return tuple(found)


def _parent(manifest: Manifest) -> tuple[str, str] | None:
    """The id of the set whose parent a ConfigMap is, and the add-on's name; None for other ConfigMaps."""
    annotations = {key: text_of(value) for key, value in _annotations(manifest).items()}
    parent = parent_of(_labels(manifest), annotations)
    return (parent.id, parent.addon) if parent is not None else None


def _labels(manifest: Manifest) -> Labels:
    labels = mapping(mapping(manifest.get("metadata")).get("labels"))
    return {key: text_of(value) for key, value in labels.items()}


def _annotations(manifest: Manifest) -> dict[str, JsonValue]:
    return dict(mapping(mapping(manifest.get("metadata")).get("annotations")))
