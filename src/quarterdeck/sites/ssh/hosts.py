"""What an ssh site is made of: hosts, how each is reached, and where volumes are."""

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

# The commands that attach volumes of people's own storage: what they promise is in docs/how-to/storage.md.

#: What a command ends with that was asked for a volume which there is not.
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
    """What a command is asked about. ``path``: where the volume is to be on that host; ``make``: whether one that there
    is not is to be made.
    """

    volume: str
    storage_class: str
    host: str
    address: str
    path: str
    make: bool = False
    snapshot: str = ""


def filled(argv: Sequence[str], asked: VolumeRequest) -> tuple[str, ...]:
    """A command about this volume. What stands in braces and means nothing stays."""
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
    """Run a command of people's, in a process group of its own, and no shell. Whether there is such a volume.

    Raises Unavailable with the reason that it gave where it ended otherwise, TimedOut; all of its group is killed when
    nobody waits for it any more.
    """
    words = filled(argv, asked)
    try:
        ended = await run(words, doing=doing, deadline=deadline, by=start(folder=Path("/")), wholly=True)
    except OSError as error:
        raise Unavailable(doing, f"{words[0]} cannot be run ({error.strerror or error})") from error
    if ended.code not in (0, NO_SUCH_VOLUME):
        said = last_reason(ended.errors) or last_reason(ended.output) or "it said nothing"
        raise Unavailable(doing, f"{words[0]} {ended.how}: {said}")
    return ended.code == 0


VOLUMES = PurePosixPath("/var/lib/quarterdeck/volumes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """How a host is reached. ``host`` is what ``ssh`` would be given: a name of ~/.ssh/config, a DNS name, an address.
    What is None or "" is as that file, and ssh's own defaults, say. ``identity``: a key's file.
    """

    host: str
    port: int | None = None
    user: str = ""
    identity: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SshHost:
    """A host by its ``name``. ``address``: the IP address at which its programs listen, and are reached by clients and
    peers. It may have several roles.
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
    """Where volumes are on each host: below ``path``, or below quarterdeck's own folder ("").
    ``limit_bytes`` bounds what all volumes of the class on one host may hold, as far as ``free_bytes`` tells.
    ``commands``: each volume is mounted there by itself, by these, and can be attached to another host.
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
    """A site. The first storage class is the default. ``fetch_on_host``: hosts download released programs by
    themselves. ``floating_addresses``: those of all its planes, which its edges have by turns, and which go over when
    one falls silent; none where clients are led to the edges' own. ``promoted_addresses``: each can be one plane's own,
    and at any of the hosts. ``external``: the load balancer of the user's own, where there are no edges.
    """

    name: str
    hosts: tuple[SshHost, ...]
    storage_classes: tuple[SshStorageClass, ...] = field(default=(SshStorageClass(name="standard"),))
    fetch_on_host: bool = False
    floating_addresses: tuple[str, ...] = ()
    promoted_addresses: tuple[str, ...] = ()
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
    """A machine of a site as others see it."""
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
