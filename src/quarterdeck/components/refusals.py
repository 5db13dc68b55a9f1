"""Flags that users must not set on a component, and why: each would break a plane or make it unsafe.

Reviewed for Kubernetes 1.33 to 1.37 and etcd 3.5 to 3.7 (``--help`` of each program). Flags that quarterdeck sets
itself are refused as well (``Arguments.owned``). Well-known flags that no supported version has are listed, so that
users get the reason here, and not a program that does not start; ``minors`` has those that only some versions have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from quarterdeck.api.flags import KMS, SCHEDULER, SERVICE_RANGES
from quarterdeck.components.admission_plugins import PROTECTIVE, listed
from quarterdeck.components.arguments import STRONG
from quarterdeck.components.record import Flags, Rule
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component

_ELSEWHERE = "it would use another apiserver, or not wait for the lease"
_PER_REPLICA = "it differs from replica to replica, and extra arguments are equal on all"
_OPEN = "it would serve without authentication or encryption"
_WINDOWS = "spec.upgrade.window sets it: programs must agree on it, and on what may be stored"
#: Of an apiserver, a controller manager and a scheduler.
_EMULATION = dict.fromkeys(("emulated-version", "min-compatibility-version"), _WINDOWS)
_SHARED_PORT = "two programs could listen on one port unnoticed"
_SIGNER = "it cannot be combined with the plane's own signing key"
_JWT = "it cannot be combined with the plane's authentication configuration"
_AUTHORIZERS = "Node and RBAC always decide; spec.authorization.webhooks adds webhooks to them"
_GONE = "no supported version of the program has it"
_FOUNDING = "quarterdeck decides how a cluster is founded and joined"

APISERVER_FLAGS: Mapping[str, str] = {
    **_EMULATION,
    "emulation-forward-compatible": _WINDOWS,
    "admission-control": "it would turn off all admission plugins that it does not name",
    "anonymous-auth": "the authentication configuration decides what anonymous users can see",
    "authorization-config": _AUTHORIZERS,
    "authorization-mode": _AUTHORIZERS,
    "authorization-policy-file": "only the authorizer ABAC reads it, which is not in use",
    "authorization-webhook-cache-authorized-ttl": _AUTHORIZERS,
    "authorization-webhook-cache-unauthorized-ttl": _AUTHORIZERS,
    "authorization-webhook-config-file": _AUTHORIZERS,
    "authorization-webhook-version": _AUTHORIZERS,
    "basic-auth-file": "passwords in a file never change and cannot be revoked",
    "cloud-config": f"{_GONE}: see spec.cloudControllerManager",
    "cloud-provider": f"{_GONE}: see spec.cloudControllerManager",
    "debug-socket-path": _OPEN,
    "encryption-provider-config": KMS,
    "encryption-provider-config-automatic-reload": KMS,
    "etcd-prefix": "all replicas and all stored data depend on it",
    "etcd-servers-overrides": "what it stores elsewhere would not move with the plane",
    "insecure-bind-address": _OPEN,
    "insecure-port": _OPEN,
    "oidc-ca-file": _JWT,
    "oidc-client-id": _JWT,
    "oidc-groups-claim": _JWT,
    "oidc-groups-prefix": _JWT,
    "oidc-issuer-url": _JWT,
    "oidc-required-claim": _JWT,
    "oidc-signing-algs": _JWT,
    "oidc-username-claim": _JWT,
    "oidc-username-prefix": _JWT,
    "peer-advertise-ip": _PER_REPLICA,
    "peer-advertise-port": _PER_REPLICA,
    "permit-address-sharing": _SHARED_PORT,
    "permit-port-sharing": _SHARED_PORT,
    "secondary-service-cluster-ip-range": SERVICE_RANGES,
    "service-account-signing-endpoint": _SIGNER,
    "service-cluster-ip-range": SERVICE_RANGES,
    "storage-backend": "quarterdeck supports only etcd3",
    "tls-sni-cert-key": "it would serve the plane's name with another certificate",
    "token-auth-file": "tokens in a file never change and cannot be revoked without a restart",
}
CONTROLLER_FLAGS: Mapping[str, str] = {
    "address": _OPEN,
    "authentication-skip-lookup": "requests could not be authenticated like those to the plane's apiservers",
    "authorization-always-allow-paths": "these paths would be open to everybody",
    "config": _ELSEWHERE,
    "leader-elect-resource-name": _ELSEWHERE,
    "leader-elect-resource-namespace": _ELSEWHERE,
    "master": _ELSEWHERE,
    "permit-address-sharing": _SHARED_PORT,
    "permit-port-sharing": _SHARED_PORT,
    "port": _OPEN,
    "write-config-to": "it would write its configuration and exit, repeatedly",
}
_SIGNERS: Mapping[str, str] = {
    f"cluster-signing-{signer}-{part}-file": _SIGNER
    for signer in ("kube-apiserver-client", "kubelet-client", "kubelet-serving", "legacy-unknown")
    for part in ("cert", "key")
}
CONTROLLER_MANAGER_FLAGS: Mapping[str, str] = {
    **_EMULATION,
    **CONTROLLER_FLAGS,
    **_SIGNERS,
    "deployment-controller-sync-period": _GONE,
    "enable-taint-manager": _GONE,
    "horizontal-pod-autoscaler-downscale-delay": _GONE,
    "horizontal-pod-autoscaler-upscale-delay": _GONE,
    "pod-eviction-timeout": f"{_GONE}: tolerations of pods decide how long they stay on a node that is not ready",
}
SCHEDULER_FLAGS: Mapping[str, str] = {
    **_EMULATION,
    **CONTROLLER_FLAGS,
    "algorithm-provider": f"{_GONE}; {SCHEDULER}",
    "config": SCHEDULER,
    "policy-config-file": f"{_GONE}; {SCHEDULER}",
    "policy-configmap": f"{_GONE}; {SCHEDULER}",
    "policy-configmap-namespace": f"{_GONE}; {SCHEDULER}",
    "scheduler-name": f"{_GONE}; {SCHEDULER}",
    "use-legacy-policy-config": f"{_GONE}; {SCHEDULER}",
}
ETCD_FLAGS: Mapping[str, str] = {
    "auto-tls": "anyone could create a certificate that it accepts",
    "config-file": "a configuration file makes etcd ignore every flag",
    "enable-pprof": "profiles contain memory, including keys",
    "enable-v2v3": "it would serve the v2 API as well, which no supported Kubernetes uses",
    "enable-v2": "the v2 store is not replicated with the rest",
    "force-new-cluster": "it makes a member drop all others: two clusters with different writes would continue",
    "initial-cluster": _FOUNDING,
    "initial-cluster-state": _FOUNDING,
    "initial-cluster-token": _FOUNDING,
    "initial-corrupt-check": "quarterdeck decides which starts compare a member's data with its peers'",
    "listen-client-http-urls": "it would open a port that quarterdeck does not know",
    "peer-auto-tls": "anyone could create a certificate that its peers accept",
    "peer-cert-allowed-cn": "members have their own names in their certificates",
    "peer-cert-allowed-hostname": "members are known by addresses, not by names",
    "proxy": "a proxy is not a member",
    "socket-reuse-address": _SHARED_PORT,
    "socket-reuse-port": _SHARED_PORT,
    "unsafe-no-fsync": "acknowledged writes would be lost in a power failure",
    "v2-deprecation": "one of its values deletes data",
    "wal-dir": "a member's volume would have only a part of its data",
}
_DISCOVERY = "discovery"


def _never(value: str, why: str) -> Rule:
    return lambda given: why if given.strip().lower() == value else ""


def _ciphers(given: str) -> str:
    weak = sorted(set(listed(given)) - STRONG)
    return f"without forward secrecy or authenticated encryption, or unknown: {', '.join(weak)}" if weak else ""


def _versions(*accepted: str) -> Rule:
    return lambda given: "" if given in accepted else f"choose {' or '.join(accepted)}: older ones are broken"


def _disabled(given: str) -> str:
    named = [plugin for plugin in listed(given) if plugin in PROTECTIVE]
    return f"{', '.join(named)} protects the plane or what users rely on" if named else ""


def _enabled(given: str) -> str:
    named = [plugin for plugin in listed(given) if plugin in ("AlwaysAdmit", "AlwaysDeny")]
    return f"{', '.join(named)} decides without checking the request" if named else ""


def _gates(*needed: str) -> Rule:
    """Gates that must not be turned off. Since 1.31 a gate may be written ``component:gate=value``."""

    def rule(given: str) -> str:
        pairs = [each.rpartition(":")[2].split("=", 1) for each in listed(given)]
        off = [pair[0] for pair in pairs if pair[0] in needed and pair[-1].lower() != "true"]
        return f"{', '.join(off)} must stay on" if off else ""

    return rule


TLS: Mapping[str, Rule] = {
    "tls-cipher-suites": _ciphers,
    "tls-min-version": _versions("VersionTLS12", "VersionTLS13"),
}
ETCD_VALUES: Mapping[str, Rule] = {
    "cipher-suites": _ciphers,
    "feature-gates": _gates("InitialCorruptCheck"),
    "tls-min-version": _versions("TLS1.2", "TLS1.3"),
    "tls-max-version": _versions("", "TLS1.2", "TLS1.3"),
    "pre-vote": _never("false", "a member that comes back would unseat the leader"),
}
APISERVER_VALUES: Mapping[str, Rule] = {
    **TLS,
    "aggregator-reject-forwarding-redirect": _never("false", "CVE-2022-3172: requests could be sent elsewhere"),
    "disable-admission-plugins": _disabled,
    "enable-admission-plugins": _enabled,
    "enable-logs-handler": _never("true", "it would serve the machine's log files"),
    "feature-gates": _gates("AnonymousAuthConfigurableEndpoints", "StructuredAuthenticationConfiguration"),
    "service-account-lookup": _never("false", "tokens of deleted accounts would still be accepted"),
}
CONTROLLER_MANAGER_VALUES: Mapping[str, Rule] = {**TLS, "feature-gates": _gates("RotateKubeletServerCertificate")}


def refuse_dangerous(flags: Flags, extra: Mapping[str, str]) -> None:
    """Raises InvalidInput, with the reason, for the first forbidden extra argument."""
    for flag, value in extra.items():
        why = reason(flags, flag, value)
        if why:
            raise InvalidInput(f"setting --{flag} of {flags.of}", why, "remove it from the extra arguments")


def reason(flags: Flags, flag: str, value: str) -> str:
    """Why ``flag`` must not be set to ``value``; "" if it may be."""
    if flags.of == Component.ETCD:
        flag = flag.removeprefix("experimental-")
        if flag == _DISCOVERY or flag.startswith(f"{_DISCOVERY}-"):
            return _FOUNDING
    if flag in flags.refused:
        return flags.refused[flag]
    rule = flags.judged.get(flag)
    return rule(value) if rule is not None else ""


#: What users set instead of a flag that names a file, so that every replica gets it on every machine.
_INSTEAD: Mapping[str, str] = {
    "admission-control-config-file": "set spec.admission.plugins",
    "audit-log-path": "remove it: the log is on the plane's own volume",
    "audit-policy-file": "set spec.audit.policyFile",
    "authentication-token-webhook-config-file": "set spec.authentication.jwt",
    "cloud-config": "set spec.cloudControllerManager.config",
    "tracing-config-file": "set spec.tracing",
}
_LEAVE_OUT = (
    "leave it out; what every replica gets is in spec.audit.policyFile, spec.authentication, spec.authorization,"
    " spec.admission, spec.tracing, spec.scheduler and spec.cloudControllerManager.config"
)


def refuse_host_files(flags: Flags, extra: Mapping[str, str]) -> None:
    """Raises InvalidInput for the first extra argument that names a file, or a folder, of a machine: later machines of
    replicas, at this site or another one, may not have it.
    """
    for flag, value in extra.items():
        if names_host_file(flag, value):
            raise InvalidInput(
                f"setting --{flag} of {flags.of}",
                f"{flags.path}.{flag}: {value} is a file of one machine, and does not move with the replicas",
                _INSTEAD.get(flag, _LEAVE_OUT),
            )


#: Suffixes of flags whose value is a file or a folder (``--help`` of each program).
_FILE_FLAGS = ("-cert-key", "-dir", "-file", "-filepath-hostpath", "-filepath-nfs", "-path")
#: Values of such flags that name no file: nothing, or standard output.
_NO_FILES = frozenset({"", "-"})


def names_host_file(flag: str, value: str) -> bool:
    """Whether a user's flag names a file or a folder on the machine that its program runs on."""
    return value.startswith(("/", "./", "../")) or (flag.endswith(_FILE_FLAGS) and value not in _NO_FILES)


# Address ranges that Services of a plane cannot use. Pure.

_Network = IPv4Network | IPv6Network

#: Special-purpose addresses (IANA's registries).
_RESERVED: tuple[tuple[_Network, str], ...] = tuple(
    (ip_network(range_), why)
    for range_, why in (
        ("0.0.0.0/8", "addresses of it mean this host"),
        ("127.0.0.0/8", "its addresses never leave a host"),
        ("169.254.0.0/16", "its addresses are link-local, and no host routes them"),
        ("224.0.0.0/4", "its addresses are multicast"),
        ("240.0.0.0/4", "its addresses are reserved, and hosts drop them"),
        ("::/8", "addresses of it are unspecified, loopback, or IPv4 in another form"),
        ("fe80::/10", "its addresses are link-local, and no host routes them"),
        ("ff00::/8", "its addresses are multicast"),
    )
)


def service_range_problem(text: str, addresses: Iterable[str], *, first: bool) -> str:
    """Why Services of a plane whose machines have these ``addresses`` cannot have a range (an address with a prefix
    length); "" if they can. ``first``: the Service ``kubernetes`` has an address of it, and leads to the machines.
    """
    network = ip_network(text)
    for reserved, why in _RESERVED:
        if network.version == reserved.version and network.overlaps(reserved):
            return f"{text} overlaps {reserved}: {why}"
    machines = [ip_address(each) for each in addresses]
    if first and machines and all(each.version != network.version for each in machines):
        return f"{text} is of IPv{network.version}, and the site's machines have IPv{machines[0].version} addresses"
    inside = next((each for each in machines if each in network), None)
    return f"{text} contains {inside}, the address of a machine of the site" if inside is not None else ""
