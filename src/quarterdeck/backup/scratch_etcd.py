"""An etcd of its own for a moment: one member on a copy of a database, in a folder that nobody else can enter."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from quarterdeck.backup.making import made_beside, require_room
from quarterdeck.components.credentials import KeyPair
from quarterdeck.errors import Corrupt, PreconditionFailed, QuarterdeckError, TimedOut, Unavailable
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.client import EtcdMember
from quarterdeck.etcd.maintenance import ROOT
from quarterdeck.files import file_errors, remove_folder, write_secret
from quarterdeck.linux.job_init import EX_NOT_STARTED
from quarterdeck.model.seats import HostPort
from quarterdeck.pki.authority import create_authority, issue
from quarterdeck.pki.certificate import CertificateRequest, Usage
from quarterdeck.runner import held, last_line

#: Sockets in its folder; etcd wants a port in their names, and they have it.
_CLIENT, _PEER = "client:1", "peer:1"
_NAME: Final = "scratch"
#: Bytes: what its log takes from the start.
_LOG_BYTES = 2 * (64 << 20)
_POLL = 0.05


@dataclass(frozen=True, slots=True)
class EtcdPrograms:
    """The programs of one version of etcd."""

    etcd: Path
    etcdutl: Path


@dataclass(frozen=True, slots=True)
class LoopbackClients:
    """Clients in other processes: the address of loopback at which they are served, and the authority of the
    certificates that they have, and that the member has for all.
    """

    at: HostPort
    authority: KeyPair


@dataclass(frozen=True, slots=True)
class _Run:
    """Where programs run, and the file with the output of the last one."""

    doing: str
    folder: Path
    output: Path


@dataclass(frozen=True, slots=True)
class SnapshotStatus:
    """What ``etcdutl snapshot status`` says of a database, after it has checked each of its pages."""

    revision: int
    keys: int
    size_bytes: int


async def snapshot_status(database: Path, etcdutl: Path, *, deadline: float) -> SnapshotStatus:
    """Have etcd check a database, page by page. Raises Corrupt where it finds a fault, TimedOut, and Unavailable for
    errors of the file system.
    """
    doing = f"checking {database}"
    with file_errors(doing), made_beside(database.with_name(f"{database.name}.status"), doing) as output:
        argv = (str(etcdutl), "snapshot", "status", str(database), "-w", "json")
        code, printed = await _ended(argv, _Run(doing, database.parent, output), deadline)
    if code:
        raise _failed(doing, etcdutl, code, printed)
    try:
        answer = json.loads(last_line(printed))
        return SnapshotStatus(answer["revision"], answer["totalKey"], answer["totalSize"])
    except (ValueError, TypeError, KeyError) as error:
        raise _failed(doing, etcdutl, code, printed) from error


@asynccontextmanager
async def scratch_etcd(
    database: Path,
    programs: EtcdPrograms,
    *,
    deadline: float,
    flags: Sequence[str] = (),
    others: LoopbackClients | None = None,
) -> AsyncIterator[EtcdMember]:
    """A member on a copy of a database, for the block. It takes no more than ``deadline`` seconds to serve.

    It listens on sockets in a folder (0700) beside the database alone, with certificates of its own; for ``others`` on
    loopback as well. Its processes and its folder do not outlive the block, and its processes not this process either:
    a folder that a killed process left is removed by the next one. Raises Corrupt where etcd does not start on the
    database, PreconditionFailed where the disk has no room for it, Conflict where another process is at it, TimedOut,
    and Unavailable.
    """
    doing = f"starting an etcd on a copy of {database}"
    with file_errors(doing):
        await asyncio.to_thread(require_room, database.parent, database.stat().st_size + _LOG_BYTES, doing)
        folder = database.with_name(f".{database.name}.etcd")
        with made_beside(database.with_name(f"{database.name}.etcd"), doing) as output:
            await asyncio.to_thread(remove_folder, folder)
            folder.mkdir(mode=0o700)
            try:
                etcd = _etcd(programs.etcd, database, others, flags)
                run = _Run(doing, folder, output)
                tls = await asyncio.to_thread(_certificates, folder, others)
                async with _serving(database, run, programs.etcdutl, etcd, tls, deadline) as member:
                    yield member
            finally:
                await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(remove_folder, folder)))


@asynccontextmanager
async def _serving(
    database: Path, run: _Run, etcdutl: Path, etcd: Sequence[str], tls: ClientTls, deadline: float
) -> AsyncIterator[EtcdMember]:
    """Restore the database, and run etcd on that for the block."""
    until = asyncio.get_running_loop().time() + deadline
    restore = (str(etcdutl), "snapshot", "restore", str(database), "--skip-hash-check", *_identity())
    code, printed = await _ended(restore, run, deadline)
    if code:
        raise _failed(run.doing, etcdutl, code, printed)
    entry = os.open(run.folder, os.O_PATH | os.O_CLOEXEC)  # a path of a socket has at most 107 bytes
    try:
        with run.output.open("wb") as log:
            async with (
                held(etcd, output=log.fileno(), folder=run.folder) as process,
                EtcdMember(f"unixs:///proc/self/fd/{entry}/{_CLIENT}", tls) as member,
            ):
                while not await _serves(member):
                    printed = run.output.read_text(errors="replace")
                    if process.returncode is not None:
                        raise _failed(run.doing, Path(etcd[0]), process.returncode, printed)
                    if asyncio.get_running_loop().time() > until:
                        raise TimedOut(run.doing, f"it does not serve within {deadline:g} s ({_reason(printed)})")
                    await asyncio.sleep(_POLL)  # between two attempts to connect
                yield member
    finally:
        os.close(entry)


async def _serves(member: EtcdMember) -> bool:
    try:
        await member.cluster.members()
    except Unavailable:
        return False
    return True


def _identity() -> tuple[str, ...]:
    """Where it keeps its data, and the cluster that it is."""
    url = f"unix://{_PEER}"
    cluster = ("--initial-cluster", f"{_NAME}={url}", "--initial-advertise-peer-urls", url)
    return ("--name", _NAME, "--data-dir", "data", "--initial-cluster-token", _NAME, *cluster)


def _etcd(etcd: Path, database: Path, others: LoopbackClients | None, flags: Sequence[str]) -> tuple[str, ...]:
    clients = f"unixs://{_CLIENT}" + (f",{others.at.url()}" if others is not None else "")
    return (
        str(etcd),
        *_identity(),
        f"--listen-peer-urls=unix://{_PEER}",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls=unixs://{_CLIENT}",
        "--cert-file=member.crt",
        "--key-file=member.key",
        "--trusted-ca-file=ca.crt",
        "--client-cert-auth",
        "--enable-grpc-gateway=false",
        f"--quota-backend-bytes={2 * database.stat().st_size + (2 << 30)}",
        "--unsafe-no-fsync",
        "--heartbeat-interval=50",
        "--election-timeout=500",
        "--log-level=warn",
        *flags,
    )


def _certificates(folder: Path, others: LoopbackClients | None) -> ClientTls:
    """Certificates for an hour. The client is etcd's user root: the database may have etcd's authentication enabled."""
    now, lifetime = datetime.now(UTC), timedelta(hours=1)
    authority = others.authority if others is not None else create_authority("scratch", now, lifetime=lifetime)
    server = CertificateRequest(
        common_name="scratch",
        usage=Usage.SERVER | Usage.CLIENT,
        lifetime=lifetime,
        dns_names=("localhost",),
        ip_addresses=(others.at.host,) if others is not None else (),
    )
    pair = issue(authority, server, now)
    files = {"ca.crt": authority.certificate, "member.crt": pair.certificate, "member.key": pair.key}
    for name, content in files.items():
        write_secret(folder / name, content)
    client = issue(authority, CertificateRequest(common_name=ROOT, usage=Usage.CLIENT, lifetime=lifetime), now)
    return ClientTls(authority.certificate, client)


async def _ended(argv: Sequence[str], run: _Run, deadline: float) -> tuple[int, str]:
    """The exit code of a program and its output."""
    with run.output.open("wb") as file:
        try:
            async with asyncio.timeout(deadline), held(argv, output=file.fileno(), folder=run.folder) as process:
                code = await process.wait()
        except TimeoutError:
            raise TimedOut(run.doing, f"{argv[0]} has not ended within {deadline:g} s: it was killed") from None
    return code, run.output.read_text(errors="replace")


def _failed(doing: str, program: Path, code: int, printed: str) -> QuarterdeckError:
    if code == EX_NOT_STARTED:
        return PreconditionFailed(doing, last_line(printed), f"have an etcd's program at {program}")
    return Corrupt(
        doing, f"{program.name} ended with {code}: {_reason(printed)}", "use another backup, or an earlier one"
    )


def _reason(printed: str) -> str:
    """The last message of a program of etcd: a line of its log, or of text, or the first one of a panic."""
    lines = [each.strip() for each in printed.splitlines() if each.strip()]
    panics = [each for each in lines if each.startswith(("panic:", "Error:"))]
    text = (panics or lines or ["no reason given"])[-1]
    try:
        record = json.loads(text)
        return f"{record['msg']}: {record.get('error', '')}".rstrip(": ")
    except (ValueError, TypeError, KeyError):
        return text[:300]
