"""What keeps the programs of a plane from writing a lease: asked of an apiserver when nobody leads."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from pydantic import JsonValue

from quarterdeck.actions.plane import Plane
from quarterdeck.addons.applyset import PART_OF, parent_of
from quarterdeck.addons.lease_webhooks import CONTROLLERS, GROUP, KINDS, Labels, LeaseWebhook, lease_webhooks
from quarterdeck.addons.objects import Manifest, items, mapping, text_of
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.engine.observation.asking import or_none
from quarterdeck.kube.address import Address
from quarterdeck.kube.port import WriteTrial
from quarterdeck.model.components import Component
from quarterdeck.model.leadership import Obstacle

#: Seconds within which a trial write must be answered. Holders have 10 s to renew, and most of their tries fail long
#: before that; what a write takes on a busy host is well below.
TRIAL_S = 2.0
_LONGEST = 300
#: How an apiserver names a webhook that it could not call, or that refused (k8s.io/apiserver: webhook/errors).
_NAMED = re.compile(r'webhook "([^"]+)"')
_NO_DRY_RUN = "does not support dry run"


async def obstacles(plane: Plane, apiserver: Address, component: Component) -> tuple[Obstacle, ...]:
    """What keeps a component's lease from being written: a webhook that refuses or delays it, whatever else refuses it,
    or rights that its program does not have. What cannot be found out is left out.
    """
    lease = CATALOGUE[component].lease
    trial = await or_none(plane.kube.try_lease(apiserver, lease, within=TRIAL_S))
    if trial is None:
        return ()
    if trial == WriteTrial():
        return await _rights(plane, apiserver, f"system:{component}", lease)
    return told(trial, await or_none(_webhooks(plane, apiserver)) or (), lease)


async def _rights(plane: Plane, apiserver: Address, user: str, lease: str) -> tuple[Obstacle, ...]:
    """The rights that a user has not. Asked only where writes go through: this question is one, too."""
    if await or_none(plane.kube.may_hold(apiserver, user, lease)) is not False:
        return ()
    seen = f"user {user} may not update lease {lease}"
    mend = f"restore ClusterRole {user} and ClusterRoleBinding {user}, which an apiserver does when it starts"
    return (Obstacle(seen=seen, mend=mend),)


def told(trial: WriteTrial, webhooks: Sequence[tuple[LeaseWebhook, str]], lease: str) -> tuple[Obstacle, ...]:
    """What a trial write and the webhooks that are called for it come to. ``webhooks``: each with the add-on that it is
    of ("": of none). Pure.
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
        return _of(those or webhooks, f"whether a write of lease {lease} is refused cannot be tried")
    seen = f"a trial write of lease {lease} is refused: {words}"
    return _of(those, seen) if those else (Obstacle(seen=seen, mend="remove what refuses it"),)


def _of(webhooks: Sequence[tuple[LeaseWebhook, str]], seen: str) -> tuple[Obstacle, ...]:
    """An obstacle that webhooks are. Each configuration is taken out once."""
    names = ", ".join(f"{each} (failurePolicy {each.policy}, timeout {each.timeout_s} s)" for each, _ in webhooks)
    mend = dict.fromkeys(_removal(each, addon) for each, addon in webhooks)
    return (Obstacle(seen=f"{seen}: {names} is called for it", mend=", then ".join(mend)),)


def _removal(webhook: LeaseWebhook, addon: str) -> str:
    delete = f"run 'kubectl delete {webhook.kind.lower()} {webhook.configuration}'"
    if not addon:
        return delete
    return f"exclude {CONTROLLERS} in its namespaceSelector in add-on {addon} and apply that (until then {delete})"


async def _webhooks(plane: Plane, apiserver: Address) -> tuple[tuple[LeaseWebhook, str], ...]:
    """The webhooks that are called for leases in kube-system, each with the add-on that it is of."""
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
            # Items of a list do not say of which kind they are.
            manifest = {**each, "apiVersion": f"{GROUP}/v1", "kind": kind}
            addon = addons.get(_labels(each).get(PART_OF, ""), "")
            webhooks = lease_webhooks(manifest, {CONTROLLERS: _labels(mapping(namespace))})
            found += [(webhook, addon) for webhook in webhooks if CONTROLLERS in webhook.namespaces]
    return tuple(found)


def _parent(manifest: Manifest) -> tuple[str, str] | None:
    """The id of the set whose parent a ConfigMap is, and the add-on's name; None if it is none."""
    annotations = {key: text_of(value) for key, value in _annotations(manifest).items()}
    parent = parent_of(_labels(manifest), annotations)
    return (parent.id, parent.addon) if parent is not None else None


def _labels(manifest: Manifest) -> Labels:
    labels = mapping(mapping(manifest.get("metadata")).get("labels"))
    return {key: text_of(value) for key, value in labels.items()}


def _annotations(manifest: Manifest) -> dict[str, JsonValue]:
    return dict(mapping(mapping(manifest.get("metadata")).get("annotations")))
