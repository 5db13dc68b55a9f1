"""What differs between two revisions, as the user writes it, and what each difference needs of a replica that runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import JsonValue

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.differences import by_name, leaves
from quarterdeck.api.names import shortened
from quarterdeck.api.revision import Guard, ReplicaTemplate
from quarterdeck.components.catalogue import CATALOGUE, programs_of
from quarterdeck.components.controller.sets import told_anew
from quarterdeck.components.upstream_versions import tells_what_it_loaded
from quarterdeck.model.components import Component, ReplicaChange, ReplicaPrograms

#: Longer values are told by their hash: policies, certificates.
_SHORT = 60
_UNSET = "unset"


class Need(StrEnum):
    """What a difference needs."""

    NOTHING = "nothing"  # it counts from the next look on
    RELOAD = "reload"  # programs of each replica take new files up while they run
    RESTART = "restart"  # programs of each replica are started anew
    EXCHANGE = "exchange"  # replicas come and go


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One value that differs. ``before`` and ``after`` are short; ``restart`` says which programs of each replica are
    started anew for it, ``reload`` which take it up while they run; ``note`` is what a user has to know besides.
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

#: Where a part of a template is in a user's document, if it is not called the same below ``spec``.
_WRITTEN = {
    "audit.policy": "spec.audit.policyFile",
    "endpointName": "spec.endpoint.name",
    "nodeBootstrap": "spec.nodes.bootstrap",
}


def parts() -> Mapping[str, tuple[Component, ...]]:
    """Which programs each part of a template is in the units of, in the order in which they start. None: all that a
    replica has is made from it, its volume and the names in its certificates included.
    """
    made: dict[str, tuple[Component, ...]] = dict.fromkeys(_NO_UNITS, ())
    for component, spec in CATALOGUE.items():
        for part in (*spec.made_from, "certificates"):
            made[part] = (*made.get(part, ()), component)
    return made


def _written(part: str) -> str:
    """Where a user writes a part of a template."""
    return _WRITTEN.get(part, f"spec.{part}")


#: Parts that are there or not, and the field that a user switches them with.
_SWITCHES = {"etcd.events": "separate"}
#: Parts that are there or not as a whole, and are told by their first fields that are given; else all of them is shown.
_TOLD_BY = {"cloudControllerManager": ("program", "image")}
#: Words for what no user writes.
_GUARDS = {Guard.SET: "the set's own lock", Guard.MANAGER: "its owner's main lock", Guard.NONE: "nobody's"}
#: What may hold passwords: told by its hash.
_HIDDEN = frozenset({"cloudControllerManager.config"})
#: What a user has to know of a change of such a part.
_NOTES = {
    "etcd.events": "events are not copied (they are kept for an hour only): those of before are not seen any more"
}

#: Fields of the spec that no unit is rendered from, and that replicas come and go by.
_PLACING = ("placement.site", "placement.zones", "replicas", "replaceReplicas")
#: What is compared object by object, by whoever has the objects.
_ELSEWHERE = frozenset({"addons"})


def differences(before: ReplicaTemplate, after: ReplicaTemplate) -> tuple[Difference, ...]:
    """All that differs, by path."""
    each, made = (before, after), parts()
    has = {component for one in each for component in programs_of(one)}
    reloaded: frozenset[str] = frozenset()
    if tells_what_it_loaded(before.kubernetes_version):
        reloaded = reloaded.union(*(spec.reloads for spec in CATALOGUE.values()))
    told = {_SETS: told_anew(before, after)}
    leaves_of = _leaves("", _plain(before), _plain(after))
    found = [_difference(*each, made=made, has=has, reloaded=reloaded, told=told) for each in leaves_of]
    return tuple(sorted(found, key=lambda each: each.path))


def spec_differences(before: ControlPlaneSpec, after: ControlPlaneSpec) -> tuple[Difference, ...]:
    """All that differs of what no unit is rendered from, by path."""
    rendered = {_written(part).removeprefix("spec.") for part in parts()} | {"placement.storageClass"} | _ELSEWHERE
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
    """What a replica of revision ``before`` needs to be one of ``after``.

    An apiserver has its own members alone: when one of them is started anew, so is the apiserver.
    """
    found = differences(before, after)
    restart = {component for each in found for component in each.restart}
    if restart.intersection(Component.APISERVER.depends):
        restart.add(Component.APISERVER)
    reload = frozenset(component for each in found for component in each.reload)
    return ReplicaChange(
        exchange=any(each.needs is Need.EXCHANGE for each in found),
        restart=frozenset(restart),
        reload=reload
        - ReplicaPrograms(tuple(CATALOGUE)).with_dependents(restart),  # what starts anew reads all of its files
    )


def _difference(
    path: str,
    before: JsonValue,
    after: JsonValue,
    *,
    made: Mapping[str, tuple[Component, ...]],
    has: Collection[Component],
    reloaded: frozenset[str],
    told: Mapping[str, frozenset[Component]],
) -> Difference:
    """``made``: see ``parts``. ``told``: of which parts not all programs that are made from them are told."""
    part = _part(path, made)
    if part is None:
        raise ValueError(f"nobody says what a change of {path} needs")
    components = tuple(each for each in made[part] if each in has and each in told.get(part, has))
    where = _written(part) + path.removeprefix(part)
    if path in _SWITCHES:
        where, before, after = f"{where}.{_SWITCHES[path]}", before is not None, after is not None
    old, new = (_told(path, each) for each in (before, after))
    found = Difference(path=where, before=old, after=new, needs=Need.EXCHANGE, note=_NOTES.get(path, ""))
    if part in reloaded:
        return replace(found, needs=Need.RELOAD, reload=components)
    if components:
        return replace(found, needs=Need.RESTART, restart=components)
    return replace(found, needs=Need.NOTHING) if part in told else found


def _told(path: str, value: JsonValue) -> str:
    """One side of a difference in a few words."""
    if path.startswith(_SETS) and path.endswith(".guard") and isinstance(value, str):
        return _GUARDS[Guard(value)]
    if path in _TOLD_BY and isinstance(value, dict):
        return _shown(next(value[field] for field in _TOLD_BY[path] if value[field] is not None))
    return _hashed(value) if path in _HIDDEN and isinstance(value, str) else _shown(value)


def _part(path: str, parts: Iterable[str]) -> str | None:
    """The longest of the parts that the path is in."""
    inside = [each for each in parts if path == each or path.startswith((f"{each}.", f"{each}["))]
    return max(inside, key=len, default=None)


def _plain(model: ReplicaTemplate | ControlPlaneSpec) -> JsonValue:
    plain: dict[str, JsonValue] = model.model_dump(mode="json")
    return by_name(plain)


def _leaves(path: str, before: JsonValue, after: JsonValue) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """The places where two documents differ, as deep down as both have something there, in lists as well."""
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
            return _hashed(value)
        return value
    text = json.dumps(_without_nothing(value), sort_keys=True)
    return text if len(text) <= _SHORT else shortened(text, _SHORT).strip("'")


def _hashed(text: str) -> str:
    return f"{text.count(chr(10)) + 1} lines, sha256 {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _without_nothing(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _without_nothing(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nothing(each) for each in value]
    return value
