"""The inputs of units: a revision, a replica, and the etcd cluster that it founds or joins."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from quarterdeck.api.revision import EventsTemplate, ReplicaTemplate
from quarterdeck.components.credentials import CertificateSpec, KeyPair, ReplicaSecrets, SharedSecrets
from quarterdeck.model.components import Component
from quarterdeck.model.seats import HostPort, Seat

#: The domain of a plane's Services, which its certificates and nodes have, too.
CLUSTER_DOMAIN = "cluster.local"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSettings:
    """The settings of one replica.

    ``seat`` says where its programs listen and are reached. ``volume`` is the folder of the volume of the member that
    the unit is (of other units: of its member of the main cluster), ``audit`` that of the audit log of its seat (None
    for units that write none). ``folders`` says where on the machine a component's files go, ``programs`` where its
    program is (absolute). ``everywhere``: its apiserver listens at all addresses of its machine. ``own_ports``: its
    ports are the plane's, as those of all its replicas are where these were free.
    """

    name: str
    seat: Seat
    volume: PurePosixPath
    audit: PurePosixPath | None
    folders: Mapping[Component, PurePosixPath]
    programs: Mapping[Component, PurePosixPath]
    everywhere: bool = False
    own_ports: bool = True


class ClusterState(StrEnum):
    """Whether a member founds a cluster or joins one (etcd's --initial-cluster-state)."""

    NEW = "new"
    EXISTING = "existing"


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialCluster:
    """What of a member's start is no part of what the member is: mostly how one starts that has no data yet.

    ``members`` are (replica, peer URL) of the founders, or, to join, of exactly the membership of that moment with
    the member itself. ``token`` tells clusters apart: a new one after each restore.
    ``compares``: it has data, and compares it with its peers'.
    """

    state: ClusterState
    members: tuple[tuple[str, str], ...]
    token: str
    compares: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What the units of a replica are rendered from: ``plane`` is the plane's name, ``template`` what the replica's
    revision holds, ``secrets`` have the authorities as that revision uses them, and ``initial`` is for members of etcd.
    ``events`` is what its member of the events' etcd is, also where its revision has none (None: it has no such
    member). ``portable``: without the users' flags that name files of a machine.
    """

    plane: str
    template: ReplicaTemplate
    replica: ReplicaSettings
    secrets: SharedSecrets
    certificates: ReplicaSecrets
    initial: InitialCluster
    events: EventsTemplate | None = None
    portable: bool = False

    def pair(self, certificate: CertificateSpec) -> KeyPair:
        """One of the replica's certificates as a program presents it; raises KeyError for one that was not issued."""
        return self.secrets.authority(certificate.signer).chained(self.certificates.of(certificate))

    def unit_name(self, component: Component) -> str:
        """The name of the replica's unit of a program."""
        return unit_name(self.plane, self.replica.name, component)

    def command(self, component: Component, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """The whole command line of a program."""
        return (str(self.replica.programs[component]), *arguments)


def unit_name(plane: str, replica: str, component: Component) -> str:
    """The name of a replica's unit on its machine."""
    return f"{plane}-{replica}-{component}"


def service_ranges(template: ReplicaTemplate) -> str:
    """The value of ``--service-cluster-ip-range``: Services that name no family have addresses of the first range."""
    return ",".join(filter(None, (template.service_cidr, template.secondary_service_cidr)))


def service_ip(template: ReplicaTemplate) -> str:
    """The address of the Service ``kubernetes``: the first of the service CIDR."""
    return str(ipaddress.ip_network(template.service_cidr)[1])


def url(address: str, port: int, *, scheme: str = "https") -> str:
    """``https://10.0.0.1:6443``, with brackets around IPv6 addresses."""
    return HostPort(address, port).url(scheme)
