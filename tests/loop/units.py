"""What the units of replicas are told to do, read from their command lines as their programs would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from quarterdeck.components.settings import ClusterState
from quarterdeck.model.components import NAMED, Component
from quarterdeck.model.units import UnitSpec

PLANE = "demo"


@lru_cache(maxsize=4096)
def replica_of(unit: str) -> tuple[str, Component]:
    """The replica that a unit belongs to, and which of its components it is."""
    component = next(each for each in NAMED if unit.endswith(f"-{each}"))
    return unit.removeprefix(f"{PLANE}-").removesuffix(f"-{component}"), component


def owner_of(volume: str) -> str:
    """The replica that a volume belongs to."""
    return volume.removeprefix(f"{PLANE}-").partition("-events-")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Etcd:
    """The command line of a member. ``version``: of its program; ``members``: the initial cluster, name to peer URL."""

    name: str
    data: PurePosixPath
    peer_url: str
    client_url: str
    metrics_url: str
    founds: bool
    version: str
    members: Mapping[str, str]


def etcd_of(spec: UnitSpec) -> Etcd:
    return _etcd((*spec.argv, *spec.boot_argv))


@lru_cache(maxsize=4096)
def flags_of(argv: tuple[str, ...]) -> Mapping[str, str]:
    return dict(each.removeprefix("--").split("=", 1) for each in argv[1:] if "=" in each)


@lru_cache(maxsize=4096)
def _etcd(argv: tuple[str, ...]) -> Etcd:
    flags = flags_of(argv)
    return Etcd(
        name=flags["name"],
        data=PurePosixPath(flags["data-dir"]),
        peer_url=flags["initial-advertise-peer-urls"],
        client_url=flags["advertise-client-urls"],
        metrics_url=flags["listen-metrics-urls"],
        version=PurePosixPath(argv[0]).parent.name,
        founds=flags["initial-cluster-state"] == ClusterState.NEW,
        members=dict(each.split("=", 1) for each in flags["initial-cluster"].split(",") if each),
    )
