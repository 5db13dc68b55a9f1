"""The differences between two revisions, in the user's terms, and what each needs of a running replica."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import JsonValue
from pydantic.alias_generators import to_camel

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.differences import by_name, hashed, leaves, without_secrets
from quarterdeck.api.names import shortened
from quarterdeck.api.revision import Guard, ReplicaTemplate
from quarterdeck.components.catalogue import CATALOGUE, programs_of
from quarterdeck.components.controller.sets import changed_managers
from quarterdeck.components.transitions.keys import drops
from quarterdeck.components.transitions.upgrade_windows import lowers
from quarterdeck.components.upstream_versions import tells_what_it_loaded
from quarterdeck.model.components import Component, ReplicaChange, ReplicaPrograms

#: Longer values are shown by their hash: policies, certificates.
_SHORT = 60
_UNSET = "unset"


class Need(StrEnum):
    """What a difference needs."""

    NOTHING = "nothing"  # it takes effect with the next observation
    RELOAD = "reload"  # programs of each replica reload new files
    RESTART = "restart"  # programs of each replica are restarted
    EXCHANGE = "exchange"  # replicas are replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One value that differs. ``before`` and ``after`` are short; ``restart``: the programs of each replica that are
    restarted for it, ``reload``: those that reload it; ``note``: a further remark for users.
    """

    path: str
    before: str
    after: str
    needs: Need
    restart: tuple[Component, ...] = ()
    reload: tuple[Component, ...] = ()
    note: str = ""


_SETS = "controllerSets"

#: Parts of a template that no unit is rendered from: of the replica's volumes, and of the names in its certificates.
_NO_UNITS = ("etcd.storageClass", "etcd.events.storageClass", "serviceCidr", "endpointName")

#: The path of a part of a template in a user's document, if it differs from that below ``spec``.
_WRITTEN = {
    "audit.policy": "spec.audit.policyFile",
    "encryptionKey": "spec.keys.encryption",
    "endpointName": "spec.endpoint.name",
    "nodeBootstrap": "spec.nodes.bootstrap",
    "serviceAccountKey": "spec.keys.serviceAccount",
    "secondaryServiceCidr": "spec.serviceCidrs[1]",
    "serviceCidr": "spec.serviceCidrs[0]",
    "serviceAccountIssuers": "spec.serviceAccounts.issuers",
    "upgradeWindow": "spec.upgrade.window",
}


def parts() -> Mapping[str, tuple[Component, ...]]:
    """The programs whose units contain each part of a template, in start order. None: the whole replica is made from
    it, including its volume and the names in its certificates.
    """
    made: dict[str, tuple[Component, ...]] = dict.fromkeys(_NO_UNITS, ())
    for component, spec in CATALOGUE.items():
        signers = dict.fromkeys(each.signer for each in spec.certificates)
        for part in (*spec.made_from, "certificates", *(f"certificates.{to_camel(each.field)}" for each in signers)):
            made[part] = (*made.get(part, ()), component)
    return made


def _written(part: str) -> str:
    """The path at which a user writes a part of a template."""
    return _WRITTEN.get(part, f"spec.{part}")


#: Optional parts, and the field with which a user switches them.
_SWITCHES = {"etcd.events": "separate"}
#: Parts that exist or not as a whole, and are shown by their first given fields; else they are shown completely.
_NAMED_BY = {"cloudControllerManager": ("program", "image")}
#: Words for values that no user writes.
_GUARDS = {Guard.SET: "the set's own lock", Guard.MANAGER: "its owner's main lock", Guard.NONE: "none"}
#: Remarks about changes of such a part.
_NOTES = {
    "etcd.events": "events are not copied (they are kept for an hour only): previous events are no longer visible"
}

#: Fields of the spec that are in no unit, and whose changes replace replicas.
_PLACING = ("placement.site", "placement.zones", "replicas", "replaceReplicas")
#: Fields of the spec that are in units under other names.
_RENDERED_TOO = frozenset({"placement.storageClass", "serviceCidrs"})
#: Fields that are compared object by object elsewhere.
_ELSEWHERE = frozenset({"addons"})


def differences(before: ReplicaTemplate, after: ReplicaTemplate) -> tuple[Difference, ...]:
    """All differences, by path."""
    each, made = (before, after), parts()
    has = {component for one in each for component in programs_of(one)}
    reloaded: frozenset[str] = frozenset()
    if tells_what_it_loaded(before.kubernetes_version):
        reloaded = reloaded.union(*(spec.reloads for spec in CATALOGUE.values()))
    limited = {_SETS: changed_managers(before, after)}
    leaves_of = _leaves("", _plain(before), _plain(after))
    found = [_difference(*each, made=made, has=has, reloaded=reloaded, limited=limited) for each in leaves_of]
    return tuple(sorted(found, key=lambda each: each.path))


def spec_differences(before: ControlPlaneSpec, after: ControlPlaneSpec) -> tuple[Difference, ...]:
    """All differences in fields that are in no unit, by path."""
    rendered = {_written(part).removeprefix("spec.") for part in parts()} | _RENDERED_TOO | _ELSEWHERE
    return tuple(
        Difference(
            path=f"spec.{path}",
            before=_shown(old),
            after=_shown(new),
            needs=Need.EXCHANGE if _part(path, _PLACING) else Need.NOTHING,
        )
        for path, old, new in _leaves("", _plain(before), _plain(after))
        if _part(path, rendered) is None
    )


def change(before: ReplicaTemplate, after: ReplicaTemplate) -> ReplicaChange:
    """The change that brings a replica from revision ``before`` to ``after``.

    An apiserver uses only its own members: when one of them is restarted, so is the apiserver.
    """
    found = differences(before, after)
    restart = {component for each in found for component in each.restart}
    if restart.intersection(Component.APISERVER.depends):
        restart.add(Component.APISERVER)
    reload = frozenset(component for each in found for component in each.reload)
    return ReplicaChange(
        exchange=any(each.needs is Need.EXCHANGE for each in found),
        restart=frozenset(restart),
        downgrade=lowers(before, after) or drops(before, after),
        reload=reload
        - ReplicaPrograms(tuple(CATALOGUE)).with_dependents(restart),  # a restarted program reads all of its files
    )


def _difference(
    path: str,
    before: JsonValue,
    after: JsonValue,
    *,
    made: Mapping[str, tuple[Component, ...]],
    has: Collection[Component],
    reloaded: frozenset[str],
    limited: Mapping[str, frozenset[Component]],
) -> Difference:
    """``made``: see ``parts``. ``limited``: the programs that a part concerns, where not all are."""
    part = _part(path, made)
    if part is None:
        raise ValueError(f"it is not defined what a change of {path} needs")
    components = tuple(each for each in made[part] if each in has and each in limited.get(part, has))
    where = _written(part) + path.removeprefix(part)
    if path in _SWITCHES:
        where, before, after = f"{where}.{_SWITCHES[path]}", before is not None, after is not None
    old, new = (_side(path, each) for each in (before, after))
    found = Difference(path=where, before=old, after=new, needs=Need.EXCHANGE, note=_NOTES.get(path, ""))
    if part in reloaded:
        return replace(found, needs=Need.RELOAD, reload=components)
    if components:
        return replace(found, needs=Need.RESTART, restart=components)
    return replace(found, needs=Need.NOTHING) if part in limited else found


def _side(path: str, value: JsonValue) -> str:
    """One side of a difference in a few words."""
    if path.startswith(_SETS) and path.endswith(".guard") and isinstance(value, str):
        return _GUARDS[Guard(value)]
    if path in _NAMED_BY and isinstance(value, dict):
        return _shown(next(value[field] for field in _NAMED_BY[path] if value[field] is not None))
    return _shown(value)


def _part(path: str, parts: Iterable[str]) -> str | None:
    """The longest part that contains the path."""
    inside = [each for each in parts if path == each or path.startswith((f"{each}.", f"{each}["))]
    return max(inside, key=len, default=None)


def _plain(model: ReplicaTemplate | ControlPlaneSpec) -> JsonValue:
    plain: dict[str, JsonValue] = model.model_dump(mode="json")
    return by_name(without_secrets(plain))


def _leaves(path: str, before: JsonValue, after: JsonValue) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """The paths at which two documents differ, as deep as both have values there, in lists as well."""
    for where, old, new in leaves(path, before, after):
        if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            for number, (one, other) in enumerate(zip(old, new, strict=True)):
                yield from _leaves(f"{where}[{number}]", one, other)
        else:
            yield where, old, new


def _shown(value: JsonValue) -> str:
    """A value in a few words."""
    if value is None:
        return _UNSET
    if isinstance(value, str):
        if "\n" in value or len(value) > _SHORT:
            return hashed(value)
        return value
    text = json.dumps(_without_nothing(value), sort_keys=True)
    return text if len(text) <= _SHORT else shortened(text, _SHORT).strip("'")


def _without_nothing(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _without_nothing(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nothing(each) for each in value]
    return value
