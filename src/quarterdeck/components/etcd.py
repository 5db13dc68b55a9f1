"""An etcd member."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import PurePosixPath

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.plane.certificates import Signer
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.arguments import Arguments, Folder, boolean, suites
from quarterdeck.components.credentials import CertificateKind, CertificateSpec
from quarterdeck.components.record import ComponentSpec, Flags, Port
from quarterdeck.components.refusals import ETCD_FLAGS, ETCD_VALUES
from quarterdeck.components.settings import InitialCluster, Inputs
from quarterdeck.components.upstream_versions import FEATURE_GATES, EtcdGate, EtcdOption, etcd_gate, etcd_option
from quarterdeck.model.clusters import MEMBER, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName, Seat
from quarterdeck.model.units import UnitSpec

#: Below the member's volume: its data folder, and the folder that is there once it has any data.
DATA = "etcd"
_DATABASE = PurePosixPath("member", "snap", "db")
#: Where in a replica's volume its database is.
DATABASE = PurePosixPath(DATA) / _DATABASE
WRITE_AHEAD_LOG = f"{DATA}/member/wal"
#: etcd treats a folder without any of these files as one that never had data (server/storage/wal: Exist).
LOG_FILE = "*.wal"


@dataclass(frozen=True, slots=True)
class MemberPorts:
    """The ports of a member of a cluster."""

    client: PortName
    peer: PortName
    metrics: PortName


#: How many learners a cluster allows at once, so that seven replicas can move. All members must agree on that number:
#: each decides by itself whether it applies a change.
MAX_LEARNERS = 7

#: Entries of raft's log that members keep in memory for a standby that was cut off: some 50 MB at 1 kB an entry, and
#: ten times etcd's default.
CATCHUP_ENTRIES = 50_000

PORTS: Mapping[Cluster, MemberPorts] = {
    Cluster.MAIN: MemberPorts(PortName.ETCD_CLIENT, PortName.ETCD_PEER, PortName.ETCD_METRICS),
    Cluster.EVENTS: MemberPorts(PortName.EVENTS_CLIENT, PortName.EVENTS_PEER, PortName.EVENTS_METRICS),
}


_SERVER = CertificateSpec(
    name="etcd_server", purpose="etcd to its clients", kind=CertificateKind.MEMBER, signer=Signer.ETCD
)
_PEER = CertificateSpec(name="etcd_peer", purpose="etcd to its peers", kind=CertificateKind.MEMBER, signer=Signer.ETCD)


def etcd_unit(inputs: Inputs, flags: Mapping[str, str], cluster: Cluster = Cluster.MAIN) -> UnitSpec:
    """The unit of a member of a cluster. ``initial`` matters at its first start only, and so is no part of the digest.

    Clients and peers need certificates, and so do readers of metrics and health at a separate port: that answers
    from the first moment, also on a learner, and https asks there for what the client port asks for (etcd: embed,
    createMetricsListener).
    Raises InvalidInput for invalid extra arguments.
    """
    extra = {flag: value for flag, value in flags.items() if flag != FEATURE_GATES}
    component, volume = MEMBER[cluster], inputs.replica.volume
    folder = Folder(inputs.replica.folders[component])
    owned = {
        **_owned(inputs),
        **_addresses(inputs.replica.seat, PORTS[cluster]),
        **_identity(inputs, folder),
        "quota-backend-bytes": str(_quota(inputs, cluster)),
        **(_catchup(inputs.template) if cluster is Cluster.MAIN else {}),
    }
    arguments = Arguments(owned=owned, defaults=_defaults(inputs.template, extra))
    return UnitSpec(
        name=inputs.unit_name(component),
        argv=inputs.command(component, arguments.command_line(Component.ETCD, extra)),
        boot_argv=boot_arguments(inputs.template, inputs.initial),
        files=folder.files,
        stop_timeout=15.0,
        needs=log_files(volume),
        owns=(volume,),
    )


def _owned(inputs: Inputs) -> dict[str, str]:
    """Flags that users cannot set: its data folder, its identity, and settings that all members must share."""
    etcd = inputs.template.etcd
    return {
        "name": inputs.replica.name,
        "data-dir": str(inputs.replica.volume / DATA),
        "heartbeat-interval": str(etcd.heartbeat_milliseconds),
        "election-timeout": str(etcd.election_milliseconds),
        **etcd_option(EtcdOption.MAX_LEARNERS, etcd.version, str(MAX_LEARNERS)),
        "strict-reconfig-check": boolean(True),
        "auto-compaction-retention": "0",  # the apiserver compacts, every 5 minutes
    }


#: What to do where an etcd allows too few learners.
MORE_LEARNERS = "use a plane with etcd 3.6 or later, which allows more"


def most_learners(etcd: str) -> int:
    """How many learners a cluster of an etcd version allows at once."""
    return MAX_LEARNERS if etcd_option(EtcdOption.MAX_LEARNERS, etcd, "") else 1


def _defaults(template: ReplicaTemplate, extra: Mapping[str, str]) -> dict[str, str]:
    return {
        **_tls(extra),
        # Lets the apiserver answer lists from its cache without waiting (kubernetes KEP-2340; as kubeadm does).
        **etcd_option(EtcdOption.WATCH_PROGRESS, template.etcd.version, "5s"),
        "enable-grpc-gateway": boolean(False),
        "logger": "zap",
    }


def _quota(inputs: Inputs, cluster: Cluster) -> int:
    events = inputs.template.etcd.events or inputs.events
    if cluster is Cluster.EVENTS and events is not None:
        return events.quota_bytes
    return inputs.template.etcd.quota_bytes


def _catchup(template: ReplicaTemplate) -> dict[str, str]:
    """Members of a plane with a standby keep more of the log, so that it catches up after a cut without a snapshot."""
    entries = template.etcd.snapshot_catchup_entries
    if entries is None:
        return {}
    return etcd_option(EtcdOption.CATCHUP_ENTRIES, template.etcd.version, str(entries))


def _tls(extra: Mapping[str, str]) -> dict[str, str]:
    """etcd does not start with suites of TLS 1.2 where the user allows only 1.3 (etcd: embed, config.Validate)."""
    if extra.get("tls-min-version") == "TLS1.3":
        return {}
    return {"tls-min-version": "TLS1.2", "cipher-suites": suites()}


def log_files(volume: PurePosixPath) -> PurePosixPath:
    """The files without which a member with this volume must not start again."""
    return volume / WRITE_AHEAD_LOG / LOG_FILE


def holds_a_log(names: Iterable[str]) -> bool:
    """Whether etcd treats a folder with these entries as a write-ahead log."""
    return any(fnmatchcase(name, LOG_FILE) for name in names)


def _identity(inputs: Inputs, folder: Folder) -> dict[str, str]:
    """Its certificates and trusted CAs: clients and peers need certificates, too."""
    server, peer, authority = inputs.pair(_SERVER), inputs.pair(_PEER), inputs.secrets.etcd_ca
    return {
        "cert-file": folder.file("server.crt", server.certificate),
        "key-file": folder.file("server.key", server.key),
        "trusted-ca-file": folder.file("ca.crt", authority.bundle),
        "client-cert-auth": boolean(True),
        "peer-cert-file": folder.file("peer.crt", peer.certificate),
        "peer-key-file": folder.file("peer.key", peer.key),
        "peer-trusted-ca-file": folder.file("ca.crt", authority.bundle),
        "peer-client-cert-auth": boolean(True),
    }


def _addresses(seat: Seat, ports: MemberPorts) -> dict[str, str]:
    """Every listener on the seat's own address, never on all of them: loopback machines share the wildcard."""
    return {
        "listen-client-urls": seat.listen(ports.client).url(),
        "advertise-client-urls": seat.advertised(ports.client).url(),
        "listen-peer-urls": seat.listen(ports.peer).url(),
        "initial-advertise-peer-urls": seat.advertised(ports.peer).url(),
        "listen-metrics-urls": seat.listen(ports.metrics).url(),
    }


def boot_arguments(template: ReplicaTemplate, initial: InitialCluster) -> tuple[str, ...]:
    """Arguments that matter only to a member without data, and whether one with data compares it with its peers' before
    it serves, and exits if they differ.

    For that every peer reads all its keys, and writes wait until then (etcd: InitialCheck, mvcc.HashByRev): a joining
    member does not do it, because it has its data from them and may be started twice.
    """
    members = ",".join(f"{name}={peer}" for name, peer in initial.members)
    flag, value = etcd_gate(EtcdGate.INITIAL_CORRUPT_CHECK, template.etcd.version, on=initial.compares)
    gates = template.extra_args.etcd.get(FEATURE_GATES, "") if flag == FEATURE_GATES else ""
    return (
        f"--initial-cluster={members}",
        f"--initial-cluster-state={initial.state}",
        f"--initial-cluster-token={initial.token}",
        f"--{flag}={','.join(filter(None, (gates, value)))}",
    )


#: By how much revisions of restored data are bumped: more than were ever written after the survivor's last one, and so
#: far below 2^63 that it can be repeated many times.
BUMP = 1_000_000_000


def restoring(
    utility: PurePosixPath, database: PurePosixPath, target: PurePosixPath, *, name: str, peer: str, token: str
) -> tuple[str, ...]:
    """The command that makes a data folder for the one member of a new cluster from a database that no etcd uses. (It
    has no hash at its end, as streamed ones do.)

    Revisions are bumped, and all earlier ones are marked as compacted, so that clients that resume a watch must list
    again: clients with revisions from after the last one of the database would miss changes (kubernetes#107457).
    """
    return (
        str(utility),
        "snapshot",
        "restore",
        str(database),
        "--skip-hash-check",
        f"--bump-revision={BUMP}",
        "--mark-compacted",
        f"--name={name}",
        f"--initial-cluster={name}={peer}",
        f"--initial-cluster-token={token}",
        f"--initial-advertise-peer-urls={peer}",
        f"--data-dir={target}",
    )


#: etcdutl logs it before it bumps revisions (etcd: etcdutl/snapshot, unsafeBumpBucketsRevision).
_LATEST = re.compile(r'"latest-revision": ?(\d+)')


def restored_revision(output: str) -> int | None:
    """The newest revision of the database that ``restoring`` has read, from its output; None if it is not there."""
    found = _LATEST.search(output)
    return int(found[1]) if found is not None else None


def _given(declared: ReplicaTemplate | ControlPlaneSpec) -> Mapping[str, str]:
    return declared.extra_args.etcd


def _keeps_events_apart(template: ReplicaTemplate) -> bool:
    return template.etcd.events is not None


#: Parts of a revision that the members of either cluster are made from.
_MADE_FROM = (
    "etcd.version",
    "etcd.heartbeatMilliseconds",
    "etcd.electionMilliseconds",
    "extraArgs.etcd",
)
_FLAGS = Flags(of=Component.ETCD, path="spec.extraArgs.etcd", given=_given, refused=ETCD_FLAGS, judged=ETCD_VALUES)
MAIN = ComponentSpec(
    component=Component.ETCD,
    program="etcd",
    build=etcd_unit,
    ports=(
        Port(name=PortName.ETCD_CLIENT, number=2379),
        Port(name=PortName.ETCD_PEER, number=2380),
        Port(name=PortName.ETCD_METRICS, number=2381),
    ),
    certificates=(_SERVER, _PEER),
    made_from=(*_MADE_FROM, "etcd.quotaBytes", "etcd.snapshotCatchupEntries"),
    flags=_FLAGS,
)
EVENTS = ComponentSpec(
    component=Component.EVENTS_ETCD,
    program="etcd",
    build=partial(etcd_unit, cluster=Cluster.EVENTS),
    ports=(
        Port(name=PortName.EVENTS_CLIENT, number=2382),
        Port(name=PortName.EVENTS_PEER, number=2383),
        Port(name=PortName.EVENTS_METRICS, number=2384),
    ),
    certificates=(_SERVER, _PEER),
    made_from=(*_MADE_FROM, "etcd.events.quotaBytes"),
    present=_keeps_events_apart,
    flags=_FLAGS,
)
