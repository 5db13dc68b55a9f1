"""All units of a replica."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import PurePosixPath

from quarterdeck.components.catalogue import CATALOGUE, components_of
from quarterdeck.components.credentials import (
    Authority,
    EncryptionKey,
    KeyPair,
    PlaneSecrets,
    ReplicaSecrets,
    SigningKey,
    SigningKeys,
)
from quarterdeck.components.ports import seat_at
from quarterdeck.components.refusals import refuse_dangerous
from quarterdeck.components.settings import (
    ClusterState,
    InitialCluster,
    PlaneSettings,
    ReplicaSettings,
    unit_name,
)
from quarterdeck.model.components import DEPENDS, Component
from quarterdeck.model.units import UnitSpec


def component_unit(
    component: Component,
    plane: PlaneSettings,
    replica: ReplicaSettings,
    secrets: PlaneSecrets,
    certificates: ReplicaSecrets,
    initial: InitialCluster,
) -> UnitSpec:
    """The unit of any component of a replica; ``initial`` is for members of etcd.

    Raises InvalidInput for extra arguments that cannot be.
    """
    spec = CATALOGUE[component]
    refuse_dangerous(spec.arguments, plane.extra_args.get(spec.arguments, {}))
    unit = spec.build(plane, replica, secrets, certificates, initial)
    return replace(unit, after=tuple(unit_name(plane.name, replica.name, each) for each in DEPENDS[component]))


def check_extra_args(plane: PlaneSettings) -> None:
    """Raises InvalidInput for extra arguments that no replica could be started with."""
    sample_units(plane)


def sample_units(plane: PlaneSettings) -> Mapping[Component, UnitSpec]:
    """The units of a replica that does not exist: with fixed addresses, empty keys and programs at ``/COMPONENT``. Two
    planes of equal settings have equal samples. Raises InvalidInput for extra arguments that cannot be.
    """
    root, nothing = PurePosixPath("/"), KeyPair(b"", b"")
    replica = ReplicaSettings(
        name="any",
        seat=seat_at("any", "192.0.2.1", 0),
        volume=root,
        audit=root,
        folders={each: root / each for each in Component},
        programs={each: root / each for each in Component},
    )
    secrets = PlaneSecrets(
        kubernetes_ca=Authority(nothing),
        etcd_ca=Authority(nothing),
        front_proxy_ca=Authority(nothing),
        service_account=SigningKeys(SigningKey(b"", b"")),
        encryption_keys=(EncryptionKey("any", bytes(32)),),
        manager=nothing,
        etcd_manager=nothing,
    )
    certificates = ReplicaSecrets(**{each.name: nothing for each in fields(ReplicaSecrets)})
    cluster = InitialCluster(state=ClusterState.NEW, members=(), token="")
    return {each: component_unit(each, plane, replica, secrets, certificates, cluster) for each in components_of(plane)}
