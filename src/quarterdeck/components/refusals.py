"""Flags that may not be set on a component, and why: each would undo what holds a plane together or keeps it safe.

Gone through for Kubernetes 1.33 to 1.36 and etcd 3.5 and 3.6 (``--help`` of each program). Flags that quarterdeck sets
itself are refused besides (``Arguments.owned``). Flags that no supported version has any more are named where people
still know them: they get the reason here, not a program that does not start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from quarterdeck.api.flags import DUAL_STACK, KMS, SCHEDULER
from quarterdeck.components.admission_plugins import PROTECTIVE, listed
from quarterdeck.components.arguments import STRONG
from quarterdeck.components.record import Flags, Rule
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component

_ELSEWHERE = "it would make it talk to somebody else, or not wait for the lease"
_PER_REPLICA = "it differs from replica to replica, and extra arguments are equal on all"
_OPEN = "it would serve without authentication or encryption"
_SHARED_PORT = "two programs could listen on one port without anybody noticing"
_SIGNER = "it cannot be combined with the plane's own signing key"
_JWT = "it cannot be combined with the plane's authentication configuration"
_GONE = "no supported version of the program has it any more"
_FOUNDING = "quarterdeck decides how a cluster is founded and joined"

APISERVER_FLAGS: Mapping[str, str] = {
    "admission-control": "it would turn off all admission plugins that it does not name",
    "anonymous-auth": "the authentication configuration says what anonymous users may see",
    "authorization-config": "it would take the place of the Node and RBAC authorizers",
    "authorization-policy-file": "only the authorizer ABAC reads it, which is not in use",
    "authorization-webhook-config-file": "only the authorizer Webhook reads it, which is not in use",
    "basic-auth-file": "passwords in a file are never changed and cannot be withdrawn",
    "cloud-config": f"{_GONE}: see spec.cloudControllerManager",
    "cloud-provider": f"{_GONE}: see spec.cloudControllerManager",
    "debug-socket-path": _OPEN,
    "encryption-provider-config": KMS,
    "encryption-provider-config-automatic-reload": KMS,
    "etcd-prefix": "all replicas and all that is stored depend on it",
    "etcd-servers-overrides": "what it takes elsewhere would not come along when the plane moves",
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
    "secondary-service-cluster-ip-range": DUAL_STACK,
    "service-account-signing-endpoint": _SIGNER,
    "service-cluster-ip-range": f"spec.serviceCidr says it; {DUAL_STACK}",
    "storage-backend": "etcd3 is what quarterdeck keeps",
    "tls-sni-cert-key": "it would answer for the plane's name with another certificate",
    "token-auth-file": "tokens in a file are never changed and cannot be withdrawn without a restart",
}
CONTROLLER_FLAGS: Mapping[str, str] = {
    "address": _OPEN,
    "authentication-skip-lookup": "requests could not be authenticated as the plane's apiservers do",
    "authorization-always-allow-paths": "these paths would be open to everybody",
    "config": _ELSEWHERE,
    "leader-elect-resource-name": _ELSEWHERE,
    "leader-elect-resource-namespace": _ELSEWHERE,
    "master": _ELSEWHERE,
    "permit-address-sharing": _SHARED_PORT,
    "permit-port-sharing": _SHARED_PORT,
    "port": _OPEN,
    "write-config-to": "it would write its configuration and end, again and again",
}
_SIGNERS: Mapping[str, str] = {
    f"cluster-signing-{signer}-{part}-file": _SIGNER
    for signer in ("kube-apiserver-client", "kubelet-client", "kubelet-serving", "legacy-unknown")
    for part in ("cert", "key")
}
CONTROLLER_MANAGER_FLAGS: Mapping[str, str] = {
    **CONTROLLER_FLAGS,
    **_SIGNERS,
    "deployment-controller-sync-period": _GONE,
    "enable-taint-manager": _GONE,
    "horizontal-pod-autoscaler-downscale-delay": _GONE,
    "horizontal-pod-autoscaler-upscale-delay": _GONE,
    "pod-eviction-timeout": f"{_GONE}: pods say with tolerations how long they stay on a node that is not ready",
}
SCHEDULER_FLAGS: Mapping[str, str] = {
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
    "auto-tls": "anybody could make a certificate that it accepts",
    "config-file": "a configuration file makes etcd ignore every flag",
    "enable-pprof": "profiles hold what is in memory, keys included",
    "enable-v2v3": _GONE,
    "enable-v2": "the v2 store is not replicated with the rest",
    "force-new-cluster": "it makes a member forget all others: two clusters would go on, each with half of the writes",
    "initial-cluster": _FOUNDING,
    "initial-cluster-state": _FOUNDING,
    "initial-cluster-token": _FOUNDING,
    "initial-corrupt-check": "quarterdeck says which starts compare a member's data with its peers'",
    "listen-client-http-urls": "it would open a port that the plane does not know of",
    "peer-auto-tls": "anybody could make a certificate that its peers accept",
    "peer-cert-allowed-cn": "members have names of their own in their certificates",
    "peer-cert-allowed-hostname": "members are known by addresses, not by names",
    "proxy": "a proxy is no member",
    "socket-reuse-address": _SHARED_PORT,
    "socket-reuse-port": _SHARED_PORT,
    "unsafe-no-fsync": "what was acknowledged would be lost with the power",
    "v2-deprecation": "one of its values deletes data",
    "wal-dir": "a member's volume would hold only a part of its data",
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
    return f"{', '.join(named)} decides without looking" if named else ""


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
    "service-account-lookup": _never("false", "tokens of deleted accounts would go on being accepted"),
}
CONTROLLER_MANAGER_VALUES: Mapping[str, Rule] = {**TLS, "feature-gates": _gates("RotateKubeletServerCertificate")}


def refuse_dangerous(flags: Flags, extra: Mapping[str, str]) -> None:
    """Raises InvalidInput, with the reason, for the first of the extra arguments that may not be."""
    for flag, value in extra.items():
        why = reason(flags, flag, value)
        if why:
            raise InvalidInput(f"setting --{flag} of {flags.of}", why, "remove it from the extra arguments")


def reason(flags: Flags, flag: str, value: str) -> str:
    """Why ``flag`` may not be set to ``value``; "" if it may."""
    if flags.of == Component.ETCD:
        flag = flag.removeprefix("experimental-")
        if flag == _DISCOVERY or flag.startswith(f"{_DISCOVERY}-"):
            return _FOUNDING
    if flag in flags.refused:
        return flags.refused[flag]
    rule = flags.judged.get(flag)
    return rule(value) if rule is not None else ""


#: What users give instead of a flag that names a file: what every replica gets, wherever it is.
_INSTEAD: Mapping[str, str] = {
    "admission-control-config-file": "give spec.admission.plugins",
    "audit-log-path": "leave it out: the log is on a volume of the plane's own",
    "audit-policy-file": "give spec.audit.policyFile",
    "authentication-token-webhook-config-file": "give spec.authentication.jwt",
    "cloud-config": "give spec.cloudControllerManager.config",
    "tracing-config-file": "give spec.tracing",
}
_LEAVE_OUT = (
    "leave it out; what every replica gets is in spec.audit.policyFile, spec.authentication, spec.admission,"
    " spec.tracing and spec.cloudControllerManager.config"
)


def refuse_host_files(flags: Flags, extra: Mapping[str, str]) -> None:
    """Raises InvalidInput for the first of the extra arguments that names a file, or a folder, of a machine: machines
    that replicas come to later, at this site or another one, need not have it.
    """
    for flag, value in extra.items():
        if names_host_file(flag, value):
            raise InvalidInput(
                f"setting --{flag} of {flags.of}",
                f"{flags.path}.{flag}: {value} is a file of one machine, and does not go with the replicas",
                _INSTEAD.get(flag, _LEAVE_OUT),
            )


#: How the names of flags end whose value is a file or a folder (``--help`` of each program).
_FILE_FLAGS = ("-cert-key", "-dir", "-file", "-filepath-hostpath", "-filepath-nfs", "-path")
#: Values of such flags that name no file: nothing, or standard output.
_NO_FILES = frozenset({"", "-"})


def names_host_file(flag: str, value: str) -> bool:
    """Whether a user's flag names a file or a folder on the machine that its program runs on."""
    return value.startswith(("/", "./", "../")) or (flag.endswith(_FILE_FLAGS) and value not in _NO_FILES)


# Ranges of addresses that Services of a plane cannot have. Pure.

_Network = IPv4Network | IPv6Network

#: What every host treats differently (IANA's registries of special-purpose addresses).
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


def service_range_problem(text: str, addresses: Iterable[str]) -> str:
    """Why Services of a plane whose machines have these ``addresses`` cannot have a range (an address with a prefix
    length); "" if they can.
    """
    network = ip_network(text)
    for reserved, why in _RESERVED:
        if network.version == reserved.version and network.overlaps(reserved):
            return f"{text} overlaps {reserved}: {why}"
    machines = [ip_address(each) for each in addresses]
    if machines and all(each.version != network.version for each in machines):
        return f"{text} is of IPv{network.version}, and the site's machines have IPv{machines[0].version} addresses"
    inside = next((each for each in machines if each in network), None)
    return f"{text} contains {inside}, the address of a machine of the site" if inside is not None else ""
