"""A kube-apiserver: its local members of etcd only, mutual TLS, RBAC and the Node authorizer."""

from __future__ import annotations

import ipaddress

from quarterdeck.components.admission_plugins import NEEDED, admission_configuration, plugins
from quarterdeck.components.apiserver_config import (
    authentication_configuration,
    encryption_configuration,
    tracing_configuration,
)
from quarterdeck.components.arguments import Arguments, boolean, seconds
from quarterdeck.components.ciphers import suites
from quarterdeck.components.credentials import PlaneSecrets, ReplicaSecrets
from quarterdeck.components.files import Folder
from quarterdeck.components.settings import PlaneSettings, ReplicaSettings, unit_name
from quarterdeck.components.upstream_versions import has_mixed_version_proxy
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import UnitSpec

#: kube-apiserver's --request-timeout: requests that are being served at SIGTERM may take this long, in seconds.
_REQUEST_TIMEOUT = 60.0
#: Seconds. It listens from its start on, long before it serves (kubernetes: SecureServingOptions.ApplyTo), and health
#: checks then wait for an answer. Where nobody listens three of them fail within 1.2 s: that long no client waits, too.
RESTART_PAUSE = 1.0
#: The name of the log that is written now; older ones have a time in their names.
AUDIT_LOG = "audit.log"


def apiserver_unit(
    plane: PlaneSettings, replica: ReplicaSettings, secrets: PlaneSecrets, certificates: ReplicaSecrets
) -> UnitSpec:
    """The unit of an apiserver. Raises InvalidInput for extra arguments that cannot be.

    ``stop_timeout`` leaves room for the shutdown delay and the longest request, or all watches, after it.
    """
    folder = Folder(replica.folders[Component.APISERVER])
    owned = {
        **_serving(replica, folder, certificates),
        "endpoint-reconciler-type": "lease" if _keeps_endpoints(plane, replica) else "none",
        **_authentication(plane, folder, secrets),
        **_clients(plane, replica, folder, secrets, certificates),
        **_shutdown(plane),
        "allow-privileged": boolean(True),
        "service-cluster-ip-range": plane.service_cidr,
        **_configured(plane, folder),
    }
    extra = plane.extra_args.get(Component.APISERVER, {})
    defaults = {
        "enable-admission-plugins": NEEDED,
        "kubelet-preferred-address-types": "InternalIP,ExternalIP,Hostname",
        "profiling": boolean(False),
        "service-account-lookup": boolean(True),
        "tls-cipher-suites": suites(),
        "tls-min-version": "VersionTLS12",
        **_audit(plane, replica, folder),
        **_hardened(plane, folder, secrets),
    }
    if plane.node_bootstrap:
        defaults["enable-bootstrap-token-auth"] = boolean(True)
    extra = {**extra, **plugins(extra)}
    arguments = Arguments(owned=owned, defaults=defaults)
    longest = max(_REQUEST_TIMEOUT, plane.shutdown.watch_grace)
    return UnitSpec(
        name=unit_name(plane.name, replica.name, Component.APISERVER),
        argv=(
            str(replica.programs[Component.APISERVER]),
            *arguments.command_line(Component.APISERVER, extra),
        ),
        files=folder.files,
        writes=(replica.audit,) if replica.audit is not None else (),
        stop_timeout=plane.shutdown.delay + longest + 5.0,
        restart_pause=RESTART_PAUSE,
    )


def _serving(replica: ReplicaSettings, folder: Folder, certificates: ReplicaSecrets) -> dict[str, str]:
    """Where it listens."""
    listen, advertised = replica.seat.listen(PortName.APISERVER), replica.seat.advertised(PortName.APISERVER)
    return {
        "bind-address": "0.0.0.0" if replica.everywhere else listen.host,  # noqa: S104 - of a machine of its own
        "advertise-address": advertised.host,
        "secure-port": str(listen.port),
        "tls-cert-file": folder.file("server.crt", certificates.apiserver.certificate),
        "tls-private-key-file": folder.file("server.key", certificates.apiserver.key),
    }


def _keeps_endpoints(plane: PlaneSettings, replica: ReplicaSettings) -> bool:
    """Whether it keeps its address in the endpoints of the Service ``kubernetes``.

    Those of loopback addresses are refused by validation. They have one list of ports, which an apiserver sets for all
    of them when it stops (kubernetes: leaseEndpointReconciler.RemoveEndpoints): one with other ports than the plane's
    keeps out of them, and has endpoints of its own (``addons/nodes.py``) where the plane takes nodes.
    """
    if ipaddress.ip_address(replica.seat.advertised(PortName.APISERVER).host).is_loopback:
        return False
    return replica.own_ports or not plane.node_bootstrap


def _authentication(plane: PlaneSettings, folder: Folder, secrets: PlaneSecrets) -> dict[str, str]:
    """Who may come in, what they may do, and how Secrets are stored."""
    encryption = encryption_configuration(secrets.encryption_keys, encrypt=plane.encrypt_secrets)
    return {
        "authentication-config": folder.file(
            "authentication.yaml",
            authentication_configuration(plane.kubernetes, plane.authenticators, nodes=plane.node_bootstrap),
        ),
        "authorization-mode": "Node,RBAC",
        "client-ca-file": folder.file("ca.crt", secrets.kubernetes_ca.bundle),
        "encryption-provider-config": folder.file("encryption.yaml", encryption),
        "requestheader-client-ca-file": folder.file("front-proxy-ca.crt", secrets.front_proxy_ca.bundle),
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-username-headers": "X-Remote-User",
        "service-account-issuer": plane.issuer,
        "service-account-key-file": folder.file("service-account.pub", secrets.service_account.public),
        "service-account-signing-key-file": folder.file("service-account.key", secrets.service_account.signing.private),
    }


def _clients(
    plane: PlaneSettings,
    replica: ReplicaSettings,
    folder: Folder,
    secrets: PlaneSecrets,
    certificates: ReplicaSecrets,
) -> dict[str, str]:
    """What it calls itself: its members of etcd, kubelets, aggregated apiservers and, from 1.36, its peers."""
    flags = {
        "etcd-servers": replica.seat.advertised(PortName.ETCD_CLIENT).url(),
        "etcd-cafile": folder.file("etcd-ca.crt", secrets.etcd_ca.bundle),
        "etcd-certfile": folder.file("etcd-client.crt", certificates.etcd_client.certificate),
        "etcd-keyfile": folder.file("etcd-client.key", certificates.etcd_client.key),
        "kubelet-client-certificate": folder.file("kubelet-client.crt", certificates.kubelet_client.certificate),
        "kubelet-client-key": folder.file("kubelet-client.key", certificates.kubelet_client.key),
        "proxy-client-cert-file": folder.file("front-proxy-client.crt", certificates.front_proxy.certificate),
        "proxy-client-key-file": folder.file("front-proxy-client.key", certificates.front_proxy.key),
    }
    if plane.separate_events:
        own = replica.seat.advertised(PortName.EVENTS_CLIENT).url()
        flags["etcd-servers-overrides"] = f"/events#{own}"
    if has_mixed_version_proxy(plane.kubernetes):
        flags["peer-ca-file"] = folder.file("ca.crt", secrets.kubernetes_ca.bundle)
    return flags


def _shutdown(plane: PlaneSettings) -> dict[str, str]:
    return {
        "shutdown-delay-duration": seconds(plane.shutdown.delay),
        "shutdown-send-retry-after": boolean(plane.shutdown.send_retry_after),
        "shutdown-watch-termination-grace-period": seconds(plane.shutdown.watch_grace),
    }


def _configured(plane: PlaneSettings, folder: Folder) -> dict[str, str]:
    """The files of what the user configured: then no flag may name others."""
    flags: dict[str, str] = {}
    if plane.admission:
        flags |= _admission(plane, folder)
    if plane.tracing is not None:
        file = tracing_configuration(plane.kubernetes, plane.tracing)
        flags["tracing-config-file"] = folder.file("tracing.yaml", file)
    return flags


def _admission(plane: PlaneSettings, folder: Folder) -> dict[str, str]:
    file = admission_configuration(plane.admission)
    return {"admission-control-config-file": folder.file("admission.yaml", file)}


def _hardened(plane: PlaneSettings, folder: Folder, secrets: PlaneSecrets) -> dict[str, str]:
    """What makes an apiserver stricter than upstream's defaults."""
    return {
        **_admission(plane, folder),
        "kubelet-certificate-authority": folder.file("ca.crt", secrets.kubernetes_ca.bundle),
        "service-account-extend-token-expiration": boolean(False),
    }


def _audit(plane: PlaneSettings, replica: ReplicaSettings, folder: Folder) -> dict[str, str]:
    """One log for all replicas of the plane that a machine ever hosts: the apiserver that writes it turns it over, and
    deletes what is too old or too much, whoever wrote it.
    """
    audit = plane.audit
    assert replica.audit is not None, "an apiserver has a place for its log"
    return {
        "audit-policy-file": folder.file("audit-policy.yaml", audit.policy),
        "audit-log-path": str(replica.audit / AUDIT_LOG),
        "audit-log-maxage": str(audit.max_age_days),
        "audit-log-maxbackup": str(audit.max_backups),
        "audit-log-maxsize": str(audit.max_size_megabytes),
    }
