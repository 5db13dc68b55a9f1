"""An etcd member."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from quarterdeck.components.arguments import Arguments, boolean, milliseconds
from quarterdeck.components.ciphers import suites
from quarterdeck.components.credentials import PlaneSecrets, ReplicaSecrets
from quarterdeck.components.files import Folder
from quarterdeck.components.settings import InitialCluster, PlaneSettings, ReplicaSettings, unit_name
from quarterdeck.components.upstream_versions import FEATURE_GATES, EtcdGate, EtcdOption, etcd_flag, etcd_gate
from quarterdeck.model.clusters import MEMBER, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import UnitSpec

#: Below the member's volume: its data folder, and the folder that is there once it has any data.
DATA = "etcd"
_DATABASE = PurePosixPath("member", "snap", "db")
#: Where in a replica's volume its database is.
DATABASE = PurePosixPath(DATA) / _DATABASE
WRITE_AHEAD_LOG = f"{DATA}/member/wal"
#: etcd takes a folder without any of these files for one that never held data (server/storage/wal: Exist).
LOG_FILE = "*.wal"


@dataclass(frozen=True, slots=True)
class MemberPorts:
    """The ports of a member of a cluster."""

    client: PortName
    peer: PortName
    metrics: PortName


#: How many learners a cluster takes at once, so that seven replicas can move. All members must agree on that number:
#: each decides by itself whether it applies a change.
MAX_LEARNERS = 7

PORTS: Mapping[Cluster, MemberPorts] = {
    Cluster.MAIN: MemberPorts(PortName.ETCD_CLIENT, PortName.ETCD_PEER, PortName.ETCD_METRICS),
    Cluster.EVENTS: MemberPorts(PortName.EVENTS_CLIENT, PortName.EVENTS_PEER, PortName.EVENTS_METRICS),
}


def etcd_unit(
    plane: PlaneSettings,
    replica: ReplicaSettings,
    secrets: PlaneSecrets,
    certificates: ReplicaSecrets,
    initial: InitialCluster,
    cluster: Cluster = Cluster.MAIN,
) -> UnitSpec:
    """The unit of a member of a cluster. ``initial`` matters at its first start only, and so is no part of the digest.

    Clients and peers show certificates, and so do readers of metrics and health at a port of their own: these answer
    from the first moment, also on a learner, and https asks there for what the client port asks for (etcd: embed,
    createMetricsListener).
    Raises InvalidInput for extra arguments that cannot be.
    """
    extra = {flag: value for flag, value in _extra(plane).items() if flag != FEATURE_GATES}
    component = MEMBER[cluster]
    folder = Folder(replica.folders[component])
    defaults = {
        **_tls(extra),
        # Lets the apiserver answer lists from its cache without waiting (kubernetes KEP-2340; as kubeadm does).
        etcd_flag(EtcdOption.WATCH_PROGRESS, plane.etcd): "5s",
        "enable-grpc-gateway": boolean(False),
        "logger": "zap",
    }
    owned = {
        **_owned(plane, replica),
        **_addresses(plane, replica, PORTS[cluster]),
        **_identity(folder, secrets, certificates),
        "quota-backend-bytes": str(_quota(plane, cluster)),
    }
    arguments = Arguments(owned=owned, defaults=defaults)
    return UnitSpec(
        name=unit_name(plane.name, replica.name, component),
        argv=(
            str(replica.programs[component]),
            *arguments.command_line(Component.ETCD, extra),
        ),
        boot_argv=boot_arguments(plane, initial),
        files=folder.files,
        stop_timeout=15.0,
        needs=log_files(replica.volume),
        owns=(replica.volume,),
    )


def _owned(plane: PlaneSettings, replica: ReplicaSettings) -> dict[str, str]:
    """What nobody may change: where its data is, who it is, how the members of a cluster agree."""
    return {
        "name": replica.name,
        "data-dir": str(replica.volume / DATA),
        "heartbeat-interval": milliseconds(plane.tuning.heartbeat),
        "election-timeout": milliseconds(plane.tuning.election),
        etcd_flag(EtcdOption.MAX_LEARNERS, plane.etcd): str(MAX_LEARNERS),
        "strict-reconfig-check": boolean(True),
        "auto-compaction-retention": "0",  # the apiserver compacts, every 5 minutes
    }


def _quota(plane: PlaneSettings, cluster: Cluster) -> int:
    return plane.quota_bytes if cluster is Cluster.MAIN else plane.events_quota_bytes


def _tls(extra: Mapping[str, str]) -> dict[str, str]:
    """etcd does not start with suites of TLS 1.2 where the user allows only 1.3 (etcd: embed, config.Validate)."""
    if extra.get("tls-min-version") == "TLS1.3":
        return {}
    return {"tls-min-version": "TLS1.2", "cipher-suites": suites()}


def log_files(volume: PurePosixPath) -> PurePosixPath:
    """What a member with this volume must not start without, once it has started."""
    return volume / WRITE_AHEAD_LOG / LOG_FILE


def holds_a_log(names: Iterable[str]) -> bool:
    """Whether a folder of these entries is a write-ahead log to etcd."""
    return any(fnmatchcase(name, LOG_FILE) for name in names)


def _identity(folder: Folder, secrets: PlaneSecrets, certificates: ReplicaSecrets) -> dict[str, str]:
    """What it proves itself with, and whom it believes: clients and peers show certificates, too."""
    return {
        "cert-file": folder.file("server.crt", certificates.etcd_server.certificate),
        "key-file": folder.file("server.key", certificates.etcd_server.key),
        "trusted-ca-file": folder.file("ca.crt", secrets.etcd_ca.bundle),
        "client-cert-auth": boolean(True),
        "peer-cert-file": folder.file("peer.crt", certificates.etcd_peer.certificate),
        "peer-key-file": folder.file("peer.key", certificates.etcd_peer.key),
        "peer-trusted-ca-file": folder.file("ca.crt", secrets.etcd_ca.bundle),
        "peer-client-cert-auth": boolean(True),
    }


def _addresses(plane: PlaneSettings, replica: ReplicaSettings, ports: MemberPorts) -> dict[str, str]:
    """Every listener on the seat's own address, never on all of them: loopback machines share the wildcard."""
    seat = replica.seat
    return {
        "listen-client-urls": seat.listen(ports.client).url(),
        "advertise-client-urls": seat.advertised(ports.client).url(),
        "listen-peer-urls": seat.listen(ports.peer).url(),
        "initial-advertise-peer-urls": seat.advertised(ports.peer).url(),
        "listen-metrics-urls": seat.listen(ports.metrics).url(),
    }


def boot_arguments(plane: PlaneSettings, initial: InitialCluster) -> tuple[str, ...]:
    """What matters only to a member that has no data yet, and whether one that has some compares it with its peers'
    before it serves, and ends if they differ.

    For that every peer reads all its keys, and writes wait for it meanwhile (etcd: InitialCheck, mvcc.HashByRev): not
    asked for by a joiner, which has its data from them just now and may be started twice.
    """
    members = ",".join(f"{name}={peer}" for name, peer in initial.members)
    flag, value = etcd_gate(EtcdGate.INITIAL_CORRUPT_CHECK, plane.etcd, on=initial.compares)
    gates = _extra(plane).get(FEATURE_GATES, "") if flag == FEATURE_GATES else ""
    return (
        f"--initial-cluster={members}",
        f"--initial-cluster-state={initial.state}",
        f"--initial-cluster-token={initial.token}",
        f"--{flag}={','.join(filter(None, (gates, value)))}",
    )


def _extra(plane: PlaneSettings) -> Mapping[str, str]:
    return plane.extra_args.get(Component.ETCD, {})


#: By how much revisions of data that is restored are ahead of all that anybody may have seen: more than were ever
#: written after what survived, and so far below 2^63 that it can be done again and again.
BUMP = 1_000_000_000


def restoring(
    utility: PurePosixPath, source: PurePosixPath, target: PurePosixPath, *, name: str, peer: str, token: str
) -> tuple[str, ...]:
    """The command that makes a data folder for the one member of a new cluster from the database in another one, whose
    etcd has ended. (Such a file has no hash at its end, as streamed ones do.)

    Revisions are bumped, and all before are marked as compacted, so that whoever resumes a watch has to list anew:
    clients that remember revisions of after what survived would miss what comes (kubernetes#107457).
    """
    return (
        str(utility),
        "snapshot",
        "restore",
        str(source / _DATABASE),
        "--skip-hash-check",
        f"--bump-revision={BUMP}",
        "--mark-compacted",
        f"--name={name}",
        f"--initial-cluster={name}={peer}",
        f"--initial-cluster-token={token}",
        f"--initial-advertise-peer-urls={peer}",
        f"--data-dir={target}",
    )
