"""The parts of an ssh site: hosts, their logins, and the folders of volumes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from quarterdeck.components.endings import last_reason
from quarterdeck.errors import Unavailable
from quarterdeck.model.endpoints import ExternalLoadBalancer
from quarterdeck.model.units import Machine, MachineRole, MachineState
from quarterdeck.runner import run, start

# The commands that attach volumes of users' own storage: docs/how-to/storage.md has their contract.

#: The exit code of a command for a volume that does not exist.
NO_SUCH_VOLUME = 3
#: Seconds that a command may take.
DEADLINE = 120.0
_NAMED = re.compile(r"\{([A-Za-z]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeCommands:
    """The commands of a storage class, each an argv; no ``snapshot``: its volumes have none."""

    attach: tuple[str, ...]
    detach: tuple[str, ...]
    snapshot: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeRequest:
    """The parameters of a command. ``path``: where the volume must be on that host; ``make``: whether a missing one
    must be created.
    """

    volume: str
    storage_class: str
    host: str
    address: str
    path: str
    make: bool = False
    snapshot: str = ""


def filled(argv: Sequence[str], asked: VolumeRequest) -> tuple[str, ...]:
    """A command about this volume. Unknown placeholders stay."""
    values: Mapping[str, str] = {
        "volume": asked.volume,
        "storageClass": asked.storage_class,
        "host": asked.host,
        "address": asked.address,
        "path": asked.path,
        "make": "yes" if asked.make else "no",
        "snapshot": asked.snapshot,
    }
    return tuple(_NAMED.sub(lambda found: values.get(found[1], found[0]), word) for word in argv)


async def run_command(doing: str, argv: Sequence[str], asked: VolumeRequest, *, deadline: float = DEADLINE) -> bool:
    """Run a user's command, in its own process group, without a shell. Whether the volume exists.

    Raises Unavailable with its error where it failed, TimedOut; its whole group is killed when the caller stops
    waiting.
    """
    words = filled(argv, asked)
    try:
        ended = await run(words, doing=doing, deadline=deadline, by=start(folder=Path("/")), wholly=True)
    except OSError as error:
        raise Unavailable(doing, f"{words[0]} cannot be run ({error.strerror or error})") from error
    if ended.code not in (0, NO_SUCH_VOLUME):
        reason = last_reason(ended.errors) or last_reason(ended.output) or "it printed nothing"
        raise Unavailable(doing, f"{words[0]} {ended.how}: {reason}")
    return ended.code == 0


VOLUMES = PurePosixPath("/var/lib/quarterdeck/volumes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The login of a host. ``host`` is the argument of ``ssh``: a name of ~/.ssh/config, a DNS name, an address. None
    or "" is the value of that file, or ssh's default. ``identity``: a key's file.
    """

    host: str
    port: int | None = None
    user: str = ""
    identity: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SshHost:
    """A host by its ``name``. ``address``: the IP address on which its programs listen for clients and peers. It may
    have several roles.
    """

    name: str
    address: str
    zone: str
    roles: tuple[MachineRole, ...]
    login: Login

    def machine(self, role: MachineRole) -> str:
        """The name of the machine that the host is in this role: control planes have the host's own name."""
        return self.name if role is MachineRole.CONTROL or self.roles == (role,) else f"{self.name}-{role}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SshStorageClass:
    """The volumes of a class on each host: below ``path``, or below quarterdeck's own folder (""). ``limit_bytes``
    bounds the size of all volumes of the class on one host, as far as ``free_bytes`` reports it. ``commands``: they
    mount each volume there separately, and can attach it to another host.
    """

    name: str
    path: str = ""
    limit_bytes: int | None = None
    commands: VolumeCommands | None = None

    @property
    def folder(self) -> PurePosixPath:
        """The folder of its volumes on each host."""
        return PurePosixPath(self.path) if self.path else VOLUMES / self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings:
    """A site. The first storage class is the default."""

    name: str
    hosts: tuple[SshHost, ...]
    storage_classes: tuple[SshStorageClass, ...] = field(default=(SshStorageClass(name="standard"),))
    #: Whether hosts download released programs themselves.
    fetch_on_host: bool = False
    #: Those of all its planes, which move between its edges when one fails; none where clients connect to the edges'
    #: own.
    floating_addresses: tuple[str, ...] = ()
    #: Each can be one plane's own, and at any of the hosts.
    promoted_addresses: tuple[str, ...] = ()
    #: The user's own load balancer, where there are no edges.
    external: ExternalLoadBalancer | None = None

    @property
    def balanced(self) -> bool:
        """Whether planes can have load balancers there."""
        return bool(self.edges()) or self.external is not None

    def stands(self) -> Mapping[str, tuple[SshHost, MachineRole]]:
        """The machines by name, each with its host and its role there."""
        return {host.machine(role): (host, role) for host in self.hosts for role in host.roles}

    def edges(self) -> Mapping[str, str]:
        """The machines of load balancers, each with its own address."""
        return {name: host.address for name, (host, role) in self.stands().items() if role is MachineRole.EDGE}


def machine_of(settings: SshSettings, name: str, state: MachineState, why: str = "") -> Machine:
    """A machine of a site in the model's form."""
    host, role = settings.stands()[name]
    return Machine(
        name=name,
        site=settings.name,
        zone=host.zone,
        address=host.address,
        role=role,
        state=state,
        host=host.address,
        why=why,
    )
