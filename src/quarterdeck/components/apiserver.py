"""A kube-apiserver: its local members of etcd only, mutual TLS, RBAC and the Node authorizer."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from collections.abc import Mapping
from functools import lru_cache

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.plane.apiserver import Tracing
from quarterdeck.api.plane.authentication import JwtAuthenticator
from quarterdeck.api.plane.certificates import Signer
from quarterdeck.api.plane.keys import KeyPurpose
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.admission_manifests import manifest_plugins
from quarterdeck.components.admission_plugins import NEEDED, admission_configuration, plugins
from quarterdeck.components.arguments import Arguments, Folder, Value, boolean, seconds, suites
from quarterdeck.components.authorization import HEALTH_PATHS, authorization_flags
from quarterdeck.components.credentials import MASTERS, CertificateKind, CertificateSpec, EncryptionKey, in_use
from quarterdeck.components.record import ComponentSpec, Flags, Port, Stopping
from quarterdeck.components.refusals import APISERVER_FLAGS, APISERVER_VALUES
from quarterdeck.components.settings import Inputs, service_ranges
from quarterdeck.components.transitions.issuers import issuers_of
from quarterdeck.components.transitions.upgrade_windows import behaviour, emulation_flags
from quarterdeck.components.upstream_versions import authentication_api, has_mixed_version_proxy, tracing_api
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import UnitSpec
from quarterdeck.yaml_text import dumped

#: kube-apiserver's --request-timeout: requests that are being served at SIGTERM may take this long, in seconds.
_REQUEST_TIMEOUT = 60.0
#: Seconds. It listens from its start on, long before it serves (kubernetes: SecureServingOptions.ApplyTo), and health
#: checks then wait for an answer. Where nothing listens three of them fail within 1.2 s, and clients wait no longer.
RESTART_PAUSE = 1.0
#: The name of the log that is written now; older ones have a time in their names.
AUDIT_LOG = "audit.log"


#: Seconds within which it ends watches when it stops, 200 a second at least. Never 0: watches would then delay the
#: shutdown for a minute, and be cut.
_WATCH_GRACE = 5.0

_SERVING = CertificateSpec(
    name="apiserver", purpose="kube-apiserver to its clients", kind=CertificateKind.APISERVER, signer=Signer.KUBERNETES
)
_TO_ETCD = CertificateSpec(
    name="etcd_client",
    purpose="kube-apiserver to etcd",
    kind=CertificateKind.CLIENT,
    signer=Signer.ETCD,
    user="kube-apiserver-etcd-client",
)
_TO_KUBELETS = CertificateSpec(
    name="kubelet_client",
    purpose="kube-apiserver to kubelets",
    kind=CertificateKind.CLIENT,
    signer=Signer.KUBERNETES,
    user="kube-apiserver-kubelet-client",
    groups=(MASTERS,),
)
#: Its peers accept it as well.
_TO_AGGREGATED = CertificateSpec(
    name="front_proxy",
    purpose="kube-apiserver to aggregated apiservers",
    kind=CertificateKind.CLIENT,
    signer=Signer.FRONT_PROXY,
    user="front-proxy-client",
)


def apiserver_unit(inputs: Inputs, flags: Mapping[str, str]) -> UnitSpec:
    """The unit of an apiserver. Raises InvalidInput for invalid extra arguments.

    ``stop_timeout`` leaves room for the longest request, or all watches.
    """
    replica = inputs.replica
    folder = Folder(replica.folders[Component.APISERVER])
    owned = {
        **_serving(inputs, folder),
        "endpoint-reconciler-type": "lease" if _keeps_endpoints(inputs) else "none",
        **_authentication(inputs, folder),
        **_clients(inputs, folder),
        **_shutdown(),
        "allow-privileged": boolean(True),
        "service-cluster-ip-range": service_ranges(inputs.template),
        **emulation_flags(Component.APISERVER, inputs.template),
        **_configured(inputs.template, folder),
    }
    extra = {**flags, **plugins(flags)}
    arguments = Arguments(owned=owned, defaults=_defaults(inputs, folder))
    return UnitSpec(
        name=inputs.unit_name(Component.APISERVER),
        argv=inputs.command(Component.APISERVER, arguments.command_line(Component.APISERVER, extra)),
        files=folder.files,
        writes=(replica.audit,) if replica.audit is not None else (),
        stop_timeout=max(_REQUEST_TIMEOUT, _WATCH_GRACE) + 5.0,
        restart_pause=RESTART_PAUSE,
    )


def _defaults(inputs: Inputs, folder: Folder) -> dict[str, str]:
    """Flags that users may change."""
    defaults = {
        "enable-admission-plugins": NEEDED,
        "kubelet-preferred-address-types": "InternalIP,ExternalIP,Hostname",
        "profiling": boolean(False),
        "service-account-lookup": boolean(True),
        "tls-cipher-suites": suites(),
        "tls-min-version": "VersionTLS12",
        **_audit(inputs, folder),
        **_hardened(inputs, folder),
    }
    if inputs.template.node_bootstrap:
        defaults["enable-bootstrap-token-auth"] = boolean(True)
    return defaults


def _serving(inputs: Inputs, folder: Folder) -> dict[str, str]:
    """Flags of its listener."""
    replica, pair = inputs.replica, inputs.pair(_SERVING)
    listen, advertised = replica.seat.listen(PortName.APISERVER), replica.seat.advertised(PortName.APISERVER)
    return {
        "bind-address": "0.0.0.0" if replica.everywhere else listen.host,  # noqa: S104 - of a machine of its own
        "advertise-address": advertised.host,
        "secure-port": str(listen.port),
        "tls-cert-file": folder.file("server.crt", pair.certificate),
        "tls-private-key-file": folder.file("server.key", pair.key),
    }


def _keeps_endpoints(inputs: Inputs) -> bool:
    """Whether it maintains its address in the endpoints of the Service ``kubernetes``.

    Loopback addresses are refused by validation. Endpoints have one list of ports, which an apiserver sets for all of
    them when it stops (kubernetes: leaseEndpointReconciler.RemoveEndpoints): one with other ports than the plane's
    does not use them, and has its own endpoints (``addons/nodes.py``) where nodes can join the plane.
    """
    if ipaddress.ip_address(inputs.replica.seat.advertised(PortName.APISERVER).host).is_loopback:
        return False
    return inputs.replica.own_ports or not inputs.template.node_bootstrap


def issuers(template: ReplicaTemplate) -> tuple[JwtAuthenticator, ...]:
    """The issuers whose tokens are accepted besides the plane's own."""
    return template.authentication.jwt if template.authentication is not None else ()


def _authentication(inputs: Inputs, folder: Folder) -> dict[str, Value]:
    """Flags of authentication, authorization, and the encryption of Secrets."""
    template, secrets = inputs.template, inputs.secrets
    keys = in_use(secrets.encryption_keys, template.key_use(KeyPurpose.ENCRYPTION))
    accounts = in_use(secrets.service_account, template.key_use(KeyPurpose.SERVICE_ACCOUNT))
    encryption = encryption_configuration(keys, encrypt=template.encryption.secrets)
    nodes = template.node_bootstrap is not None
    authentication = authentication_configuration(template.kubernetes_version, issuers(template), nodes=nodes)
    return {
        "authentication-config": folder.file("authentication.yaml", authentication),
        **authorization_flags(template, folder),
        "client-ca-file": folder.file("ca.crt", secrets.kubernetes_ca.bundle),
        "encryption-provider-config": folder.file("encryption.yaml", encryption),
        "requestheader-client-ca-file": folder.file("front-proxy-ca.crt", secrets.front_proxy_ca.bundle),
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-username-headers": "X-Remote-User",
        "service-account-issuer": issuers_of(template),
        "service-account-key-file": folder.file("service-account.pub", b"".join(each.public for each in accounts)),
        "service-account-signing-key-file": folder.file("service-account.key", accounts[0].private),
    }


def _clients(inputs: Inputs, folder: Folder) -> dict[str, str]:
    """Flags of its own clients: to its members of etcd, kubelets, aggregated apiservers and, from 1.36, its peers."""
    seat, secrets = inputs.replica.seat, inputs.secrets
    etcd, kubelets, aggregated = (inputs.pair(each) for each in (_TO_ETCD, _TO_KUBELETS, _TO_AGGREGATED))
    flags = {
        "etcd-servers": seat.advertised(PortName.ETCD_CLIENT).url(),
        "etcd-cafile": folder.file("etcd-ca.crt", secrets.etcd_ca.bundle),
        "etcd-certfile": folder.file("etcd-client.crt", etcd.certificate),
        "etcd-keyfile": folder.file("etcd-client.key", etcd.key),
        "kubelet-client-certificate": folder.file("kubelet-client.crt", kubelets.certificate),
        "kubelet-client-key": folder.file("kubelet-client.key", kubelets.key),
        "proxy-client-cert-file": folder.file("front-proxy-client.crt", aggregated.certificate),
        "proxy-client-key-file": folder.file("front-proxy-client.key", aggregated.key),
    }
    if inputs.template.etcd.events is not None:
        own = seat.advertised(PortName.EVENTS_CLIENT).url()
        flags["etcd-servers-overrides"] = f"/events#{own}"
    if has_mixed_version_proxy(behaviour(inputs.template).emulated):
        flags["peer-ca-file"] = folder.file("ca.crt", secrets.kubernetes_ca.bundle)
    return flags


def _shutdown() -> dict[str, str]:
    """How it stops after SIGTERM.

    It needs no delay, in which it would still serve with a failing /readyz: load balancers remove an apiserver before
    it is stopped. Connections are closed as soon as they are idle, which clients without retries survive; they do not
    survive a 429 to new requests on old connections (``shutdown-send-retry-after``).
    """
    return {
        "shutdown-delay-duration": seconds(0.0),
        "shutdown-send-retry-after": boolean(False),
        "shutdown-watch-termination-grace-period": seconds(_WATCH_GRACE),
    }


def _configured(template: ReplicaTemplate, folder: Folder) -> dict[str, str]:
    """The files of the user's configuration: then no flag may name others."""
    flags: dict[str, str] = {}
    if template.admission is not None:
        flags |= _admission(template, folder)
    if template.tracing is not None:
        file = tracing_configuration(template.kubernetes_version, template.tracing)
        flags["tracing-config-file"] = folder.file("tracing.yaml", file)
    return flags


def _admission(template: ReplicaTemplate, folder: Folder) -> dict[str, str]:
    given = template.admission.plugins if template.admission is not None else ()
    file = admission_configuration(given, manifest_plugins(template, folder))
    return {"admission-control-config-file": folder.file("admission.yaml", file)}


def _hardened(inputs: Inputs, folder: Folder) -> dict[str, str]:
    """Flags that are stricter than upstream's defaults."""
    return {
        **_admission(inputs.template, folder),
        "kubelet-certificate-authority": folder.file("ca.crt", inputs.secrets.kubernetes_ca.bundle),
        "service-account-extend-token-expiration": boolean(False),
    }


def _audit(inputs: Inputs, folder: Folder) -> dict[str, str]:
    """One log for all replicas of the plane that a machine ever hosts: the apiserver that writes it rotates it, and
    deletes old or excess files of any of them.
    """
    audit, place = inputs.template.audit, inputs.replica.audit
    assert place is not None, "an apiserver has a volume for its log"
    return {
        "audit-policy-file": folder.file("audit-policy.yaml", audit.policy),
        "audit-log-path": str(place / AUDIT_LOG),
        "audit-log-maxage": str(audit.max_age_days),
        "audit-log-maxbackup": str(audit.max_backups),
        "audit-log-maxsize": str(audit.max_size_megabytes),
    }


def _given(declared: ReplicaTemplate | ControlPlaneSpec) -> Mapping[str, str]:
    return declared.extra_args.kube_apiserver


APISERVER = ComponentSpec(
    component=Component.APISERVER,
    program="kube-apiserver",
    build=apiserver_unit,
    ports=(Port(name=PortName.APISERVER, number=6443),),
    certificates=(_SERVING, _TO_ETCD, _TO_KUBELETS, _TO_AGGREGATED),
    made_from=(
        "kubernetesVersion",
        "upgradeWindow",
        "secondaryServiceCidr",
        "etcd.events",
        "encryption",
        "encryptionKey",
        "serviceAccountKey",
        "audit.policy",
        "audit",
        "extraArgs.kubeApiserver",
        "authentication",
        "serviceAccountIssuers",
        "authorization",
        "admission",
        "tracing",
        "nodeBootstrap",
    ),
    flags=Flags(
        of=Component.APISERVER,
        path="spec.extraArgs.kubeApiserver",
        given=_given,
        refused=APISERVER_FLAGS,
        judged=APISERVER_VALUES,
    ),
    # It watches that file. It does not reload a change of anonymous access; there is none between two revisions.
    reloads=frozenset({"authentication"}),
    stopping=Stopping.UNSEEN,
)


# The configuration files of an apiserver.

#: The object that a node reads before it has a certificate and a trusted CA: the CA, signed with each token. RBAC
#: allows it to read only this object.
CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"


def authentication_hash(kubernetes: str, authenticators: tuple[JwtAuthenticator, ...], *, nodes: bool) -> str:
    """The hash that an apiserver reports for its loaded authentication file."""
    file = authentication_configuration(kubernetes, authenticators, nodes=nodes)
    return f"sha256:{hashlib.sha256(file.encode()).hexdigest()}"


@lru_cache(maxsize=8)
def authentication_configuration(
    kubernetes: str, authenticators: tuple[JwtAuthenticator, ...] = (), *, nodes: bool = False
) -> str:
    """An AuthenticationConfiguration that allows anonymous requests to the health paths and, where ``nodes`` join with
    tokens, to ``CLUSTER_INFO``, and nothing else. It accepts tokens of the user's issuers.
    """
    paths = (*HEALTH_PATHS, CLUSTER_INFO) if nodes else HEALTH_PATHS
    document: dict[str, object] = {
        "apiVersion": authentication_api(kubernetes),
        "kind": "AuthenticationConfiguration",
        "anonymous": {"enabled": True, "conditions": [{"path": path} for path in paths]},
    }
    if authenticators:
        document["jwt"] = [each.model_dump(mode="json", exclude_none=True) for each in authenticators]
    return dumped(document)


def tracing_configuration(kubernetes: str, tracing: Tracing) -> str:
    """A TracingConfiguration."""
    settings = tracing.model_dump(mode="json", exclude_none=True)
    return dumped({"apiVersion": tracing_api(kubernetes), "kind": "TracingConfiguration", **settings})


@lru_cache(maxsize=8)
def encryption_configuration(keys: tuple[EncryptionKey, ...], *, encrypt: bool) -> str:
    """An EncryptionConfiguration that stores Secrets with XSalsa20 and Poly1305 by the first key, or in plain text.

    Names and bytes must be equal on all replicas. The first provider writes; the second reads what was stored
    before encryption was turned on or off.
    """
    known = [{"name": each.name, "secret": base64.b64encode(each.secret).decode()} for each in keys]
    providers: list[dict[str, object]] = [{"secretbox": {"keys": known}}, {"identity": {}}]
    return dumped(
        {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "EncryptionConfiguration",
            "resources": [{"resources": ["secrets"], "providers": providers if encrypt else providers[::-1]}],
        }
    )
