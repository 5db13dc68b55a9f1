"""What the controller manager and the scheduler have in common."""

from __future__ import annotations

from quarterdeck.components.arguments import boolean
from quarterdeck.components.ciphers import suites
from quarterdeck.components.credentials import KeyPair, PlaneSecrets
from quarterdeck.components.files import Folder
from quarterdeck.components.kubeconfig import Server, kubeconfig
from quarterdeck.components.settings import PlaneSettings, ReplicaSettings
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName


def shared_flags(
    plane: PlaneSettings,
    replica: ReplicaSettings,
    secrets: PlaneSecrets,
    folder: Folder,
    *,
    user: str,
    port: PortName,
    client: KeyPair,
    serving: KeyPair,
) -> dict[str, str]:
    """The local apiserver, leader election, and a ``port`` that asks for certificates. ``user`` names ``client``."""
    server = Server(url=replica.seat.advertised(PortName.APISERVER).url(), ca=secrets.kubernetes_ca.bundle)
    listen = replica.seat.listen(port)
    config = folder.file("kubeconfig.yaml", kubeconfig(plane.name, user, server, client))
    return {
        "kubeconfig": config,
        "authentication-kubeconfig": config,
        "authorization-kubeconfig": config,
        "bind-address": listen.host,
        "secure-port": str(listen.port),
        "leader-elect": boolean(True),
        "leader-elect-resource-lock": "leases",
        "client-ca-file": folder.file("ca.crt", secrets.kubernetes_ca.bundle),
        # Nobody asks these ports on behalf of others: no front proxy is trusted, neither one from a file, which would
        # be watched by one more inotify instance, nor one that the apiserver names.
        "authentication-skip-lookup": boolean(True),
        "tls-cert-file": folder.file("server.crt", serving.certificate),
        "tls-private-key-file": folder.file("server.key", serving.key),
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


def command(replica: ReplicaSettings, component: Component, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The whole command line of a component."""
    return (str(replica.programs[component]), *arguments)
