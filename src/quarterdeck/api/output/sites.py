"""Sites, machines, upstream programs and the service."""

from __future__ import annotations

from typing_extensions import override

from quarterdeck.api.output.base import NamedOutput, OutputModel
from quarterdeck.api.output.operations import ChangeResult, CheckFinding


class SiteRow(NamedOutput):
    """A site."""

    #: The site's name.
    name: str
    #: `local` or `ssh`.
    driver: str
    #: What keeps the machines of a local site apart; null for a site of hosts.
    isolation: str | None
    #: Its zones.
    zones: tuple[str, ...]
    #: The number of its machines that replicas can be placed on.
    machines: int
    #: Its storage classes.
    storage_classes: tuple[str, ...]
    #: Those of them whose volumes can move to another machine.
    reattachable: tuple[str, ...]
    #: The planes at the site.
    planes: tuple[str, ...]
    #: The machines that are cordoned; `all` for the whole site.
    cordoned: tuple[str, ...]

    @property
    @override
    def full_name(self) -> str:
        return f"site/{self.name}"


class MachineRow(NamedOutput):
    """A machine of a site."""

    #: The machine's name.
    name: str
    #: Its site.
    site: str
    #: Its zone.
    zone: str
    #: `replica` or `edge`.
    role: str
    #: Its address.
    address: str
    #: Its state, such as `up`.
    state: str
    #: Why it is in that state; null for nothing.
    message: str | None
    #: What is on it, as PLANE/REPLICA; null for nothing.
    replicas: str | None
    #: Whether it is cordoned.
    cordoned: bool
    #: Who cordoned it, and when; null where it is not cordoned.
    reason: str | None

    @property
    @override
    def full_name(self) -> str:
        return f"machine/{self.name}"


class HostFindingRow(CheckFinding):
    """The answer of a check about a host, or about the way between two."""

    #: The host, or `HOST -> HOST`.
    host: str


class SiteCheck(OutputModel):
    """What was found at the hosts of a site."""

    #: Whether anything prevents planes from running.
    refused: bool
    #: All findings in one line.
    message: str
    #: What is not well.
    findings: tuple[HostFindingRow, ...]


class StoragePromise(OutputModel):
    """A promise of a storage class that was tested."""

    #: The promise.
    message: str
    #: Whether it was kept.
    kept: bool
    #: What was seen instead; null where it was kept.
    reason: str | None


class DrainResult(ChangeResult):
    """A machine or a site that was drained."""

    #: The planes whose replicas there were replaced.
    planes: tuple[str, ...]
    #: What is still there, as PLANE/REPLICA; empty with `--detach`.
    remaining: tuple[str, ...]


class ProgramRow(NamedOutput):
    """An upstream program."""

    #: The program's name, such as `etcd`.
    name: str
    #: Its version.
    version: str
    #: Its state in the cache.
    state: str
    #: Where it comes from.
    source: str
    #: Its size; null where it is not in the cache.
    size_bytes: int | None
    #: Its path.
    path: str

    @property
    @override
    def full_name(self) -> str:
        return f"program/{self.name}"


class FetchedProgram(NamedOutput):
    """An upstream program that is in the cache now."""

    #: The program's name.
    name: str
    #: Its path.
    path: str

    @property
    @override
    def full_name(self) -> str:
        return f"program/{self.name}"


class ManagerRow(OutputModel):
    """A process that manages the planes on one network."""

    #: `loopback` or `netns`.
    network: str
    #: The process.
    holder: str


class ServiceStatus(OutputModel):
    """Whether planes are managed, also after a reboot."""

    #: The path of the systemd unit, or `crontab`.
    file: str
    #: Whether the service is installed there.
    installed: bool
    #: The processes that manage planes now.
    managers: tuple[ManagerRow, ...]
