"""An apiserver of its own for a moment, on a copy of a plane's database: it decodes what etcd stores.

It has the version of the plane, its flags that decide which APIs are served, and its keys of encryption. All else is
made for it: authorities, certificates, an address of loopback. There are no controllers, no webhooks are called, and
what it writes by itself when it starts ends with it. So objects are read as of the revision of the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Final

from quarterdeck.api.plane.certificates import Signer
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.backup.bolt.file import BoltFile
from quarterdeck.backup.database import ALARMS
from quarterdeck.backup.scratch_etcd import EtcdPrograms, LoopbackClients, scratch_etcd
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.credentials import EncryptionKey, ReplicaSecrets, SharedSecrets
from quarterdeck.components.endings import why_it_ended
from quarterdeck.components.ports import first_block, seat_with
from quarterdeck.components.replica import component_unit
from quarterdeck.components.settings import ClusterState, InitialCluster, Inputs, ReplicaSettings, service_ip
from quarterdeck.components.transitions.keys import keys_of
from quarterdeck.errors import PreconditionFailed, TimedOut
from quarterdeck.etcd.maintenance import ROOT
from quarterdeck.files import file_errors, write_secret
from quarterdeck.kube.http import HttpKube
from quarterdeck.kube.port import Address, Kube, Objects
from quarterdeck.linux.free_ports import free_loopback_ports
from quarterdeck.linux.job_init import EX_NOT_STARTED
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName, Seat
from quarterdeck.model.units import UnitSpec
from quarterdeck.pki.issuance import ReplicaNames, create_plane_secrets, issue_etcd_user, with_replica
from quarterdeck.runner import held, last_line

_NAME: Final = "scratch"
_LIFETIME: Final = timedelta(hours=1)
#: Seconds between two requests to it, and for its answer to one for objects.
_POLL, _ANSWER = 0.1, 30.0
#: The flags of users that decide which APIs it serves, and how it decodes objects.
_KEPT: Final = frozenset(
    {
        "emulated-version",
        "emulation-forward-compatible",
        "feature-gates",
        "min-compatibility-version",
        "runtime-config",
        "runtime-config-emulation-forward-compatible",
    }
)
#: It keeps the revision that is read, holds no second copy of all objects, and calls nobody.
_LAST: Final = (
    "--disable-admission-plugins=MutatingAdmissionWebhook,ValidatingAdmissionWebhook",
    "--etcd-compaction-interval=0",
    "--watch-cache=false",
)


@dataclass(frozen=True, slots=True)
class ScratchPrograms:
    """The programs of one plane."""

    etcd: EtcdPrograms
    apiserver: Path


@dataclass(frozen=True, slots=True)
class ScratchApiserver:
    """An apiserver that serves, and the revision of the database that it serves from."""

    objects: Objects
    address: Address
    revision: int


@asynccontextmanager
async def scratch_apiserver(
    database: Path,
    programs: ScratchPrograms,
    template: ReplicaTemplate,
    keys: Sequence[EncryptionKey],
    *,
    revision: int,
    deadline: float,
) -> AsyncIterator[ScratchApiserver]:
    """An apiserver on a copy of a database for the block. It takes no more than ``deadline`` seconds to serve, and its
    etcd as many.

    ``revision``: that of the database, which loses its alarms. ``keys`` are those with which Secrets may be encrypted.
    It writes files (0600) into a folder (0700) beside the database, which its user removes. Its processes outlive
    neither the block nor this process. Raises PreconditionFailed where it does not start, TimedOut, and what
    ``scratch_etcd`` raises.
    """
    doing = f"starting an apiserver on {database.name}"
    with file_errors(doing):
        address, ports = await asyncio.to_thread(free_loopback_ports, first_block())
        seat = seat_with(_NAME, address, ports)
        secrets = await asyncio.to_thread(_secrets, seat, template, keys)
        unit = _unit(database.parent / "apiserver", programs.apiserver, template, seat, secrets)
        await asyncio.to_thread(_prepare, database, unit)
        clients = LoopbackClients(seat.listen(PortName.ETCD_CLIENT), secrets.etcd_ca.issuer)
        where = Address(address, ports[PortName.APISERVER])
        async with scratch_etcd(database, programs.etcd, deadline=deadline, others=clients):
            kube = HttpKube(secrets.kubernetes_ca.bundle, secrets.manager, call_deadline=_ANSWER)
            try:
                async with _serving(unit, kube, where, doing, deadline):
                    yield ScratchApiserver(kube, where, revision)
            finally:
                await kube.close()


@asynccontextmanager
async def _serving(unit: UnitSpec, kube: Kube, where: Address, doing: str, deadline: float) -> AsyncIterator[None]:
    until = asyncio.get_running_loop().time() + deadline
    folder = Path(unit.files[0].path).parent
    output = folder / "output"
    output.touch(mode=0o600)
    with output.open("wb") as log:
        async with held((*unit.argv, *_LAST), output=log.fileno(), folder=folder) as process:
            while not (await kube.readyz(where, founded=True)).ok:
                if process.returncode is not None:
                    raise _ended(doing, process.returncode, output.read_text(errors="replace"), unit)
                if asyncio.get_running_loop().time() > until:
                    raise TimedOut(doing, f"it is not ready within {deadline:g} s")
                await asyncio.sleep(_POLL)  # between two requests
            yield


def _ended(doing: str, code: int, output: str, unit: UnitSpec) -> PreconditionFailed:
    program = unit.argv[0]
    if code == EX_NOT_STARTED:
        return PreconditionFailed(doing, last_line(output), f"have an apiserver's program at {program}")
    return PreconditionFailed(doing, f"{program} ended: {why_it_ended(output, code)}", "try another moment")


def _secrets(seat: Seat, template: ReplicaTemplate, keys: Sequence[EncryptionKey]) -> SharedSecrets:
    """Authorities and certificates for an hour, with the plane's keys of encryption."""
    now = datetime.now(UTC)
    made = replace(
        create_plane_secrets(_NAME, now, keys=keys_of(template), lifetime=_LIFETIME), encryption_keys=tuple(keys)
    )
    names = ReplicaNames(
        replica=_NAME, addresses=seat.hosts, service_ip=service_ip(template), programs=(Component.APISERVER,)
    )
    made = with_replica(made, names, now, lifetime=_LIFETIME)
    issued = made.replica(_NAME)
    assert issued is not None, "it was issued above"
    # The database may have etcd's authentication enabled.
    root = issue_etcd_user(made, ROOT, now, lifetime=_LIFETIME)
    to_etcd = {each.name: root for each in CATALOGUE[Component.APISERVER].certificates if each.signer is Signer.ETCD}
    return replace(made, replicas=((_NAME, ReplicaSecrets({**issued.pairs, **to_etcd})),))


def _unit(folder: Path, program: Path, template: ReplicaTemplate, seat: Seat, secrets: SharedSecrets) -> UnitSpec:
    issued = secrets.replica(_NAME)
    assert issued is not None, "it was issued with the secrets"
    own = PurePosixPath(folder)
    replica = ReplicaSettings(
        name=_NAME,
        seat=seat,
        volume=own,
        audit=own,
        folders={Component.APISERVER: own},
        programs={Component.APISERVER: PurePosixPath(program)},
    )
    inputs = Inputs(
        plane=_NAME,
        template=_alone(template),
        replica=replica,
        secrets=secrets,
        certificates=issued,
        initial=InitialCluster(state=ClusterState.EXISTING, members=(), token=_NAME),
        portable=True,
    )
    return component_unit(Component.APISERVER, inputs)


def _alone(template: ReplicaTemplate) -> ReplicaTemplate:
    """The template without what concerns others: issuers, collectors of traces, nodes, a second etcd."""
    given = template.extra_args.kube_apiserver
    flags = {"kube_apiserver": {flag: value for flag, value in given.items() if flag in _KEPT}}
    return template.model_copy(
        update={
            "extra_args": template.extra_args.model_copy(update=flags),
            "etcd": template.etcd.model_copy(update={"events": None}),
            "authentication": None,
            "admission": None,
            "tracing": None,
            "node_bootstrap": None,
        }
    )


def _prepare(database: Path, unit: UnitSpec) -> None:
    """Write its files, and have etcd take writes: an apiserver needs some to start."""
    with BoltFile(database) as file:
        file.replace(ALARMS, ())
        file.commit()
    for each in unit.files:
        path = Path(each.path)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_secret(path, each.content)
