"""What is compared, and what is started, when programs are tried before a plane is created or changed. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.replica import sample_units
from quarterdeck.model.components import Component
from quarterdeck.model.units import UnitSpec

#: The name of every plane that is tried: a configuration does not depend on whose it is.
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
            version = template.etcd.version if component == Component.ETCD else template.kubernetes_version
            text = "\0".join((version, unit.digest, *unit.boot_argv))
            found[component] = hashlib.sha256(text.encode()).hexdigest()
    return found
