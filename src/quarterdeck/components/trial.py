"""What is compared, and what is started, when programs are tried before a plane is created or changed. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from quarterdeck.components.refusals import names_host_file
from quarterdeck.components.replica import sample_units
from quarterdeck.components.settings import PlaneSettings
from quarterdeck.model.components import Component

#: The name of every plane that is tried: a configuration does not depend on whose it is.
NAME = "trial"
#: The members of the etcd for events have the flags of the main cluster's, but for a number.
_SAME = frozenset({Component.EVENTS_ETCD})


def trial_settings(plane: PlaneSettings) -> PlaneSettings:
    """What a trial starts programs with: the plane's settings, without flags that name files of the machines where
    replicas are, which need not exist where the trial runs.
    """
    extra = {
        component: {flag: value for flag, value in flags.items() if not names_host_file(flag, value)}
        for component, flags in plane.extra_args.items()
    }
    return replace(plane, name=NAME, extra_args=extra)


def configurations(plane: PlaneSettings) -> Mapping[Component, str]:
    """A digest, in hex, of all that each program is started with except its address, keys and paths: equal for equal
    versions, flags and files. Raises InvalidInput for extra arguments that cannot be.
    """
    settings = trial_settings(plane)
    found: dict[Component, str] = {}
    for component, unit in sample_units(settings).items():
        if component not in _SAME:
            version = settings.etcd if component is Component.ETCD else settings.kubernetes
            text = "\0".join((version, unit.digest, *unit.boot_argv))
            found[component] = hashlib.sha256(text.encode()).hexdigest()
    return found
