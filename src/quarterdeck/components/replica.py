"""All units of a replica, and those of trials. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from quarterdeck.api.plane.keys import FIRST_KEY, KeyPurpose
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.catalogue import CATALOGUE, programs_of
from quarterdeck.components.credentials import (
    Authority,
    EncryptionKey,
    KeyPair,
    ReplicaSecrets,
    SharedSecrets,
    SigningKey,
    encryption_key_name,
)
from quarterdeck.components.ports import seat_at
from quarterdeck.components.refusals import names_host_file, refuse_dangerous
from quarterdeck.components.settings import ClusterState, InitialCluster, Inputs, ReplicaSettings
from quarterdeck.components.transitions.keys import with_keys
from quarterdeck.model.clusters import CLUSTER
from quarterdeck.model.components import Component
from quarterdeck.model.units import UnitSpec


def component_unit(component: Component, inputs: Inputs) -> UnitSpec:
    """The unit of any component of a replica.

    Raises InvalidInput for invalid extra arguments.
    """
    spec = CATALOGUE[component]
    flags: Mapping[str, str] = {}
    if spec.flags is not None:
        flags = _kept(spec.flags.given(inputs.template) or {}, inputs)
        refuse_dangerous(spec.flags, flags)
    return replace(spec.build(inputs, flags), after=tuple(map(inputs.unit_name, component.depends)))


def _kept(flags: Mapping[str, str], inputs: Inputs) -> Mapping[str, str]:
    if not inputs.portable:
        return flags
    return {flag: value for flag, value in flags.items() if not names_host_file(flag, value)}


def check_extra_args(template: ReplicaTemplate) -> None:
    """Raises InvalidInput for extra arguments with which no replica could start."""
    sample_units("any", template)


def sample_units(plane: str, template: ReplicaTemplate, *, portable: bool = False) -> Mapping[Component, UnitSpec]:
    """The units of a replica that does not exist: with fixed addresses, empty keys and programs at ``/COMPONENT``. Two
    revisions of equal content have equal samples. ``portable``: see ``Inputs``. Raises InvalidInput for extra arguments
    that cannot be.
    """
    root, nothing = PurePosixPath("/"), KeyPair(b"", b"")
    replica = ReplicaSettings(
        name="any",
        seat=seat_at("any", "192.0.2.1", 0),
        volume=root,
        audit=root,
        folders={each: root / each for each in CATALOGUE},
        programs={each: root / each for each in CATALOGUE},
    )
    secrets = SharedSecrets(
        kubernetes_ca=Authority.of(nothing),
        etcd_ca=Authority.of(nothing),
        front_proxy_ca=Authority.of(nothing),
        service_account=(SigningKey(b"", b""),),
        encryption_keys=(EncryptionKey(encryption_key_name(0), bytes(32)),),
        manager=nothing,
        etcd_manager=nothing,
    )
    inputs = Inputs(
        plane=plane,
        template=with_first_keys(template),
        replica=replica,
        secrets=secrets,
        certificates=ReplicaSecrets({each.name: nothing for spec in CATALOGUE.values() for each in spec.certificates}),
        initial=InitialCluster(state=ClusterState.NEW, members=(), token=""),
        portable=portable,
    )
    return {each: component_unit(each, inputs) for each in programs_of(template)}


def with_first_keys(template: ReplicaTemplate) -> ReplicaTemplate:
    """A template for samples and trials, which have keys of their own."""
    return with_keys(template, dict.fromkeys(KeyPurpose, FIRST_KEY))


def program_version(component: Component, template: ReplicaTemplate) -> str:
    """The version of the released program that replicas of a revision run."""
    return template.etcd.version if component in CLUSTER else template.kubernetes_version


#: The name of every plane that is tried: a configuration does not depend on its plane.
NAME = "trial"
#: The members of the etcd for events have the flags of the main cluster's, but for a number.
_SAME = frozenset({Component.EVENTS_ETCD})


def trial_units(template: ReplicaTemplate) -> Mapping[Component, UnitSpec]:
    """Samples of what a trial starts: without flags that name files of the machines where replicas are, which need not
    exist where the trial runs. Raises InvalidInput for extra arguments that cannot be.
    """
    return sample_units(NAME, template, portable=True)


def configurations(template: ReplicaTemplate) -> Mapping[Component, str]:
    """A digest, in hex, of all that each program is started with except its address, keys and paths: equal for equal
    versions, flags and files. Raises InvalidInput for extra arguments that cannot be.
    """
    found: dict[Component, str] = {}
    for component, unit in trial_units(template).items():
        if component not in _SAME:
            text = "\0".join((program_version(component, template), unit.digest, *unit.boot_argv))
            found[component] = hashlib.sha256(text.encode()).hexdigest()
    return found
