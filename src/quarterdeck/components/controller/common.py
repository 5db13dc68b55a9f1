"""What the controller managers and the scheduler have in common."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.admission_plugins import listed
from quarterdeck.components.arguments import Arguments, Folder, boolean, suites
from quarterdeck.components.controller.sets import ALL, own, turned_off
from quarterdeck.components.credentials import CertificateSpec
from quarterdeck.components.kubeconfig import Server, kubeconfig
from quarterdeck.components.settings import Inputs
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import Priority, UnitSpec
from quarterdeck.yaml_text import dumped

#: How often a candidate checks a lock, plus up to 20 %: so long a released lock has no holder.
_RETRY_OF_SETS = "1s"


def shared_flags(
    inputs: Inputs, folder: Folder, *, port: PortName, client: CertificateSpec, serving: CertificateSpec
) -> dict[str, str]:
    """Flags for the local apiserver, leader election, and a ``port`` that requires client certificates."""
    seat, authority = inputs.replica.seat, inputs.secrets.kubernetes_ca
    server = Server(url=seat.advertised(PortName.APISERVER).url(), ca=authority.bundle)
    shown, listen = inputs.pair(serving), seat.listen(port)
    pair = inputs.pair(client)
    config = folder.file("kubeconfig.yaml", kubeconfig(inputs.plane, client.user, server, pair))
    return {
        "kubeconfig": config,
        "authentication-kubeconfig": config,
        "authorization-kubeconfig": config,
        "bind-address": listen.host,
        "secure-port": str(listen.port),
        "leader-elect": boolean(True),
        "leader-elect-resource-lock": "leases",
        "client-ca-file": folder.file("ca.crt", authority.bundle),
        # These ports serve no front proxy: none is trusted, neither one from a file, which would need one more inotify
        # instance, nor one that the apiserver names.
        "authentication-skip-lookup": boolean(True),
        "tls-cert-file": folder.file("server.crt", shown.certificate),
        "tls-private-key-file": folder.file("server.key", shown.key),
    }


def shared_defaults() -> dict[str, str]:
    """Upstream's timing of the election (15 s, 10 s, 2 s), no profiling, and nothing weak on their port."""
    return {
        "leader-elect-lease-duration": "15s",
        "leader-elect-renew-deadline": "10s",
        "leader-elect-retry-period": "2s",
        "profiling": boolean(False),
        "tls-cipher-suites": suites(),
        "tls-min-version": "VersionTLS12",
    }


def set_flags(template: ReplicaTemplate, manager: ControllerProgram, folder: Folder) -> dict[str, str]:
    """Flags for the set that a manager runs under the set's own lock: at most one."""
    mine = own(template.controller_sets or (), manager)
    if mine is None:
        return {}
    config = {
        "apiVersion": "controllermanager.config.k8s.io/v1",
        "kind": "LeaderMigrationConfiguration",
        "leaderName": mine.lock,
        "controllerLeaders": [{"name": name, "component": manager.value} for name in mine.controllers],
    }
    return {
        "enable-leader-migration": boolean(True),
        "leader-migration-config": folder.file("leader-migration.yaml", dumped(config, sort_keys=False)),
    }


def set_defaults(template: ReplicaTemplate) -> dict[str, str]:
    """Where locks pass from one manager to another, candidates check them more often."""
    return {"leader-elect-retry-period": _RETRY_OF_SETS} if template.controller_sets else {}


def without_others(
    template: ReplicaTemplate, manager: ControllerProgram, extra: Mapping[str, str]
) -> Mapping[str, str]:
    """A manager's flags with the controllers turned off that another manager, or temporarily none, runs. They come
    first: of two words about one controller the first counts.
    """
    others = [f"-{name}" for name in turned_off(template.controller_sets or (), manager, template.kubernetes_version)]
    if not others:
        return extra
    named = listed(extra.get("controllers", ALL))
    return {**extra, "controllers": ",".join((*others, *(each for each in named if each not in others)))}


def controller_unit(
    inputs: Inputs, component: Component, arguments: Arguments, extra: Mapping[str, str], folder: Folder
) -> UnitSpec:
    """A unit with background priority. Raises InvalidInput for invalid extra arguments."""
    return UnitSpec(
        name=inputs.unit_name(component),
        argv=inputs.command(component, arguments.command_line(component, extra)),
        files=folder.files,
        priority=Priority.BACKGROUND,
    )
