"""A kube-scheduler, warm under leader election."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.plane.scheduler import Scheduler
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.arguments import Arguments, Folder, boolean
from quarterdeck.components.controller.common import controller_unit, shared_defaults, shared_flags
from quarterdeck.components.credentials import asking, serving
from quarterdeck.components.record import ComponentSpec, Flags, Port
from quarterdeck.components.refusals import SCHEDULER_FLAGS, TLS
from quarterdeck.components.settings import Inputs
from quarterdeck.components.transitions.upgrade_windows import emulation_flags
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import UnitSpec
from quarterdeck.yaml_text import dumped

#: Its lease, in kube-system.
LEASE = "kube-scheduler"

_SERVING = serving("kube-scheduler", "scheduler")
_CLIENT = asking("kube-scheduler", "scheduler_client")


def scheduler_unit(inputs: Inputs, flags: Mapping[str, str]) -> UnitSpec:
    """The unit of a scheduler. Raises InvalidInput for invalid extra arguments."""
    folder = Folder(inputs.replica.folders[Component.SCHEDULER])
    owned = {
        **shared_flags(inputs, folder, port=PortName.SCHEDULER, client=_CLIENT, serving=_SERVING),
        **emulation_flags(Component.SCHEDULER, inputs.template),
    }
    arguments = Arguments(owned=owned, defaults=shared_defaults())
    if inputs.template.scheduler is not None:
        arguments = _configured(arguments, inputs.template.scheduler, folder)
    return controller_unit(inputs, Component.SCHEDULER, arguments, flags, folder)


def _configured(arguments: Arguments, scheduler: Scheduler, folder: Folder) -> Arguments:
    """The flags of a scheduler with a configuration. Flags that it ignores beside one are fields there; those of the
    election count for both (kubernetes: cmd/kube-scheduler/app/options, ApplyTo).
    """
    owned, defaults = dict(arguments.owned), dict(arguments.defaults)
    configuration: dict[str, object] = dict(scheduler.configuration)
    connection = configuration.get("clientConnection")
    configuration["clientConnection"] = {
        **(connection if isinstance(connection, dict) else {}),
        "kubeconfig": owned.pop("kubeconfig"),
    }
    configuration.setdefault("enableProfiling", defaults.pop("profiling") == boolean(True))
    owned["config"] = folder.file("scheduler.yaml", dumped(configuration))
    return Arguments(owned=owned, defaults=defaults)


def _given(declared: ReplicaTemplate | ControlPlaneSpec) -> Mapping[str, str]:
    return declared.extra_args.kube_scheduler


SCHEDULER = ComponentSpec(
    component=Component.SCHEDULER,
    program="kube-scheduler",
    build=scheduler_unit,
    ports=(Port(name=PortName.SCHEDULER, number=10259),),
    certificates=(_SERVING, _CLIENT),
    made_from=("kubernetesVersion", "upgradeWindow", "scheduler", "extraArgs.kubeScheduler"),
    flags=Flags(
        of=Component.SCHEDULER,
        path="spec.extraArgs.kubeScheduler",
        given=_given,
        refused=SCHEDULER_FLAGS,
        judged=TLS,
    ),
    lease=LEASE,
)
