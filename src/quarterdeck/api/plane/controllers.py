"""ControllerSets: which manager runs which controllers, where two of them could."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from quarterdeck.api.base import Model
from quarterdeck.api.names import DNS_LABEL_MAX, DNS_NAME_MAX, dns_label, dns_name
from quarterdeck.api.schema import NAME, ONCE, SOME_ONCE, label
from quarterdeck.model.components import Component

#: Locks that programs of a replica have for themselves.
_TAKEN = frozenset({"kube-controller-manager", "kube-scheduler", "cloud-controller-manager"})


class Manager(StrEnum):
    """A program that runs controllers."""

    KUBE = "kube-controller-manager"
    CLOUD = "cloud-controller-manager"

    @property
    def component(self) -> Component:
        """The program of a replica."""
        return Component.CONTROLLER_MANAGER if self is Manager.KUBE else Component.CLOUD_CONTROLLER_MANAGER

    @property
    def other(self) -> Manager:
        """The one that a set can go to."""
        return Manager.CLOUD if self is Manager.KUBE else Manager.KUBE


def _lock(name: str) -> str:
    if name in _TAKEN:
        raise ValueError(f"{name!r} is the lock of all that runs in that program")
    return dns_name(name)


class ControllerSet(Model):
    """Controllers that go from one manager to another together. ``lock`` is the Lease in kube-system that guards them
    while they do (a *migration lock*), ``owner`` the manager that runs them. ``controllers`` are canonical names; what
    is in a set never changes.
    """

    name: Annotated[str, AfterValidator(dns_label), label(DNS_LABEL_MAX)]
    lock: Annotated[str, AfterValidator(_lock), NAME, Field(max_length=DNS_NAME_MAX)]
    controllers: Annotated[tuple[str, ...], Field(min_length=1), SOME_ONCE]
    owner: Manager


def _apart(sets: tuple[ControllerSet, ...]) -> tuple[ControllerSet, ...]:
    """Raises ValueError where two sets could not be told apart."""
    for what, each in (
        ("two sets are called", (one.name for one in sets)),
        ("two sets have the lock", (one.lock for one in sets)),
        ("in two sets, or twice in one, is", (name for one in sets for name in one.controllers)),
    ):
        if twice := _twice(each):
            raise ValueError(f"{what} {twice}")
    return sets


def _twice(names: Iterable[str]) -> str:
    return ", ".join(name for name, count in Counter(names).items() if count > 1)


ControllerSets = Annotated[tuple[ControllerSet, ...], AfterValidator(_apart), ONCE]
