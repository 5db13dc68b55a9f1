"""The declaration of a plane that begins with the data of another one: what stays the same, and what must not.

The data keeps Services, tokens and encrypted Secrets as they are, so everything that they depend on is the same: the
versions, the range of Services' addresses, encryption, and the keys. What leads clients to a plane, or acts on the
world outside of it, belongs to one plane alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.errors import explained
from quarterdeck.api.plane.endpoint import EndpointMode
from quarterdeck.api.site import Site
from quarterdeck.errors import InvalidInput

#: What belongs to the replicas of the plane as it is now, and what only one of two planes may have. The pause and the
#: consent to an epoch are requests of that moment.
_OF_ITS_OWN: Final = ("replaceReplicas", "cordonedReplicas", "newEpoch", "paused", "pausedUntil")
_OUTSIDE: Final = ("cloudControllerManager", "controllerSets")


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedPlane:
    """A plane that is not stored yet. ``differences``: how it differs from its original."""

    plane: ControlPlane
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRequest:
    """What a copy is asked to be. ``endpoint``: its name or address, where that of the original is given in its spec.
    ``external_controllers``: it has the original's cloud controller manager and controller sets.
    """

    name: str
    site: str | None = None
    endpoint: str | None = None
    external_controllers: bool = False


@dataclass(slots=True)
class _Copying:
    original: ControlPlane
    asked: CopyRequest
    site: Site
    spec: dict[str, Any]
    differences: list[str]

    @property
    def doing(self) -> str:
        return f"restoring plane {self.original.name} as {self.asked.name}"

    def lead_clients(self) -> None:
        """The name or address that clients connect to is its own."""
        endpoint, asked = self.original.spec.endpoint, self.asked.endpoint
        field = "address" if endpoint.mode is EndpointMode.ADDRESS else "name"
        given = getattr(endpoint, field)
        if given is not None and asked in (None, given):
            seen = f"spec.endpoint.{field}: {given} is that of {self.original.name}, and two planes cannot share it"
            raise InvalidInput(self.doing, seen, f"give another {field} with --endpoint")
        if asked is not None:
            self._part("endpoint")[field] = asked
        self._part("endpoint")["takeOver"] = False
        if endpoint.port is not None and self.site.name == self.original.spec.placement.site:
            del self._part("endpoint")["port"]
            self.differences.append(
                f"endpoint.port: chosen by quarterdeck, as {self.original.name} has {endpoint.port}"
            )

    def place(self) -> None:
        """At another site, it is spread over all zones, and has storage classes that the site has. It has no standby:
        that of the original may be at its site.
        """
        if self.spec.pop("standby", None) is not None:
            self.differences.append("standby: none; set spec.standby once the plane runs")
        if self.site.name == self.original.spec.placement.site:
            return
        self.spec["placement"] = {**self._part("placement"), "site": self.site.name}
        if self.spec["placement"].pop("zones", None) is not None:
            self.differences.append(f"placement.zones: all zones of site {self.site.name}")
        known = {each.name for each in self.site.spec.storage_classes}
        etcd = self._part("etcd")
        parts = {"placement": self.spec["placement"], "etcd": etcd, "etcd.events": etcd.get("events", {})}
        for path, part in parts.items():
            named = part.get("storageClass")
            if named is not None and named not in known:
                del part["storageClass"]
                default = self.site.spec.storage_classes[0].name
                self.differences.append(f"{path}.storageClass: {default}, as site {self.site.name} has no {named}")

    def keep_inside(self) -> None:
        """Nothing acts for it on the world outside, unless that was asked for."""
        if self.asked.external_controllers:
            return
        for field in _OUTSIDE:
            if self.spec.pop(field, None):
                self.differences.append(f"{field}: off, as it would act on what belongs to {self.original.name}")

    def rename(self, host: str) -> None:
        """Flags that have the name or address of the original have that of the copy."""
        former = re.compile(rf"(?<![\w.-]){re.escape(self.original.host)}(?![\w.-])")
        for program, flags in self._part("extraArgs").items():
            for flag, value in flags.items():
                flags[flag] = former.sub(host, value)
                if flags[flag] != value:
                    self.differences.append(f"extraArgs.{program}.{flag}: {flags[flag]}")

    def _part(self, name: str) -> dict[str, Any]:
        part: dict[str, Any] = self.spec.setdefault(name, {})
        return part


def copied_plane(original: ControlPlane, asked: CopyRequest, site: Site) -> CopiedPlane:
    """The plane that ``asked`` describes, at ``site``. ``original`` is as the backup has it.

    Raises InvalidInput for a name that no plane can have, and for an address or name of the original that two planes
    cannot share.
    """
    spec = original.spec.model_dump(mode="json", exclude_unset=True)
    for field in _OF_ITS_OWN:
        spec.pop(field, None)
    copying = _Copying(original, asked, site, spec, [])
    copying.lead_clients()
    copying.place()
    copying.keep_inside()
    copying.rename(_validated(copying).host)
    return CopiedPlane(plane=_validated(copying), differences=tuple(copying.differences))


def _validated(copying: _Copying) -> ControlPlane:
    metadata: Mapping[str, Any] = {"name": copying.asked.name, "labels": copying.original.metadata.labels}
    with explained(copying.doing, ControlPlane):
        return ControlPlane.model_validate_json(json.dumps({"metadata": metadata, "spec": copying.spec}))


def backed_up_at(plane: ControlPlane, url: str, options: PurePosixPath | None) -> ControlPlane:
    """The plane with its backups, and those that it begins with, at that store."""
    backup = plane.spec.backup.model_copy(update={"store": url, "options_file": options})
    return plane.with_spec(backup=backup)
