"""Etcd clusters for tests: one in memory and one of real processes, behind the same few handles."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol, TypeVar

import grpc
import pytest
from fakes.etcd import FakeEtcd
from fakes.etcd_cluster import FakeCluster, MemberAddress

from quarterdeck.components.credentials import KeyPair
from quarterdeck.errors import QuarterdeckError, Unavailable
from quarterdeck.etcd.calls import ClientTls, target_of
from quarterdeck.etcd.client import EtcdMember
from quarterdeck.etcd.facts import Alarm
from quarterdeck.etcd.kv import Put
from quarterdeck.etcd.maintenance import ROOT
from quarterdeck.etcd.port import EtcdCluster
from quarterdeck.etcd.real import RealEtcd
from quarterdeck.pki.authority import create_authority, issue
from quarterdeck.pki.certificate import CertificateRequest, Usage
from quarterdeck.upstream.catalog import UpstreamProgram, Versions
from quarterdeck.upstream.upstream import Upstream
from support.conditions import freeze

Result = TypeVar("Result")
MAX_LEARNERS = 2
VOTERS = 3
SPARES = 3
#: The quota of the database of small clusters, in bytes.
QUOTA = 16 << 20


@pytest.fixture(scope="session")
def etcd_binary() -> Path:
    """The real etcd of the default version, fetched or built if it is not there."""
    return asyncio.run(_etcd(str(Versions().etcd)))


async def _etcd(version: str) -> Path:
    upstream = Upstream.from_environment(os.environ)
    return (await upstream.ensure([UpstreamProgram.ETCD], Versions.parse(etcd=version)))[UpstreamProgram.ETCD]


async def eventually(attempt: Callable[[], Awaitable[Result]], within: float = 60.0) -> Result:
    """The result of ``attempt`` as soon as it neither raises Unavailable nor AssertionError."""
    loop = asyncio.get_running_loop()
    until = loop.time() + within
    while True:
        try:
            return await attempt()
        except (Unavailable, AssertionError):
            if loop.time() > until:
                raise
        await asyncio.sleep(0.05)


class Lab(Protocol):
    """A cluster of three voters, and what a test can do to it."""

    etcd: EtcdCluster
    founders: tuple[MemberAddress, ...]
    spares: tuple[MemberAddress, ...]

    async def start(self, address: MemberAddress) -> None:
        """Start a member's process: a listed spare, or a founder that was stopped."""
        ...

    async def come_back(self, address: MemberAddress) -> None:
        """Start a member that was killed on its data, at another address than the others know."""
        ...

    async def restart_as(self, address: MemberAddress, version: str) -> None:
        """Restart a founder with another version of etcd."""
        ...

    async def kill(self, address: MemberAddress) -> None: ...

    async def freeze(self, address: MemberAddress) -> None: ...

    async def write(self, count: int) -> None: ...

    async def overwrite(self, size: int) -> None:
        """Write over one key with so many bytes in all. Raises EtcdFault (NO_SPACE)."""
        ...

    async def raise_alarm(self, alarm: Alarm) -> None: ...

    async def enable_authentication(self) -> KeyPair:
        """Turn etcd's authentication on, as a person may. A client certificate of its user root."""
        ...


def urls(addresses: Sequence[MemberAddress]) -> tuple[str, ...]:
    return tuple(address.client_url for address in addresses)


async def leader(lab: Lab, among: Sequence[MemberAddress] = ()) -> MemberAddress:
    """The member that leads, once there is one."""

    async def look() -> MemberAddress:
        for address in among or lab.founders:
            try:
                if (await lab.etcd.status(address.client_url)).is_leader:
                    return address
            except Unavailable:
                continue
        raise AssertionError("nobody leads")

    return await eventually(look)


class FakeLab:
    """The cluster in memory."""

    def __init__(self, *, quota: int = 2 << 30) -> None:
        addresses = tuple(_fake_address(number) for number in range(VOTERS + SPARES))
        self.founders, self.spares = addresses[:VOTERS], addresses[VOTERS:]
        self.cluster = FakeCluster.founded(self.founders, max_learners=MAX_LEARNERS)
        self.cluster.quota = quota
        self.etcd = FakeEtcd(self.cluster)

    async def start(self, address: MemberAddress) -> None:
        self.cluster.start(address)

    async def come_back(self, address: MemberAddress) -> None:
        self.cluster.start(address)

    async def restart_as(self, address: MemberAddress, version: str) -> None:
        self.cluster.stop(address.client_url)
        self.cluster.at(address.client_url).version = version
        self.cluster.start(address)

    async def kill(self, address: MemberAddress) -> None:
        self.cluster.stop(address.client_url)

    async def freeze(self, address: MemberAddress) -> None:
        self.cluster.stop(address.client_url, frozen=True)

    async def write(self, count: int) -> None:
        self.cluster.write(count)

    async def overwrite(self, size: int) -> None:
        for _ in range(max(1, size >> 20)):
            self.cluster.overwrite(1 << 20)

    async def raise_alarm(self, alarm: Alarm) -> None:
        self.cluster.alarms.append(alarm)

    async def enable_authentication(self) -> KeyPair:
        self.cluster.authenticates = True
        return KeyPair(b"", b"")


def _fake_address(number: int) -> MemberAddress:
    host = f"127.0.0.{number + 10}"
    return MemberAddress(
        name=f"m{number}",
        peer_url=f"https://{host}:2380",
        client_url=f"https://{host}:2379",
        metrics_url=f"http://{host}:2381",
    )


class RealLab:
    """Real etcd processes on 127.x addresses, with TLS on client and peer ports. ``close`` kills them all."""

    #: Quick elections and no waiting for disks: for tests only.
    tuning: tuple[str, ...] = ("--heartbeat-interval=50", "--election-timeout=500", "--unsafe-no-fsync")

    def __init__(self, binary: Path, folder: Path, network: str, *, quota: int = 0) -> None:
        """``network``: the first three numbers of the addresses, for this cluster only; ``quota``: of the database, in
        bytes (0: etcd's own).
        """
        self._binary, self._folder, self._quota = binary, folder, quota
        addresses = tuple(_free_address(f"{network}.{number + 10}", number) for number in range(VOTERS + SPARES))
        self.founders, self.spares = addresses[:VOTERS], addresses[VOTERS:]
        self.tls, self._root = _certificates(folder, [f"{network}.{number + 10}" for number in range(VOTERS + SPARES)])
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._restarted = False
        self.etcd: RealEtcd

    async def found(self) -> None:
        """Start the founders and wait until one leads."""
        cluster = ",".join(f"{address.name}={address.peer_url}" for address in self.founders)
        for address in self.founders:
            self._run(address, cluster, "new")
        await leader(self)
        for address in self.founders:
            await eventually(lambda url=address.client_url: self.etcd.status(url))

    async def start(self, address: MemberAddress) -> None:
        """Start the member and wait until it answers on its peer port."""
        members = await eventually(lambda: self.etcd.members(urls(self.founders)))
        named = {peer.peer_url: peer.name for peer in (*self.founders, *self.spares)}
        listed = [member.peer_urls[0] for member in members]
        self._run(address, ",".join(f"{named[url]}={url}" for url in listed), "existing")
        await self._until_it_answers(address)

    async def come_back(self, address: MemberAddress) -> None:
        self._run(address, f"{address.name}={address.peer_url}", "existing")
        await self._until_it_answers(address)

    async def restore(self, address: MemberAddress, database: Path, etcdutl: Path) -> None:
        """Start a cluster of one member with this database, at the address of a spare, and wait until it answers."""
        cluster, folder = f"{address.name}={address.peer_url}", self._folder / address.name
        shutil.rmtree(folder, ignore_errors=True)
        argv = [etcdutl, "snapshot", "restore", database, "--skip-hash-check", "--data-dir", folder]
        argv += ["--name", address.name, "--initial-cluster", cluster]
        argv += ["--initial-advertise-peer-urls", address.peer_url]
        done = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        self._run(address, cluster, "existing")
        await eventually(lambda: self.etcd.revision((address.client_url,)))

    async def _until_it_answers(self, address: MemberAddress) -> None:
        async def answers() -> None:
            assert await self.etcd.peer_version_answers(address.peer_url), self.log(address)

        await eventually(answers)

    async def restart_as(self, address: MemberAddress, version: str) -> None:
        self._binary, self._restarted = await _etcd(version), True
        await self.stop(address)
        self._run(address, f"{address.name}={address.peer_url}", "existing")
        await eventually(lambda: self.etcd.status(address.client_url))

    async def kill(self, address: MemberAddress) -> None:
        process = self.processes.pop(address.name)
        process.kill()
        process.wait()

    async def stop(self, address: MemberAddress) -> None:
        """End a member's process in order, as its machine does."""
        process = self.processes.pop(address.name)
        process.terminate()
        await asyncio.to_thread(process.wait)

    def database(self, address: MemberAddress) -> Path:
        """The file with a member's database."""
        return self._folder / address.name / "member" / "snap" / "db"

    async def freeze(self, address: MemberAddress) -> None:
        await asyncio.to_thread(freeze, self.processes[address.name].pid)

    async def write(self, count: int) -> None:
        async with EtcdMember((await leader(self)).client_url, self.tls) as member:
            for number in range(count):
                await member.kv.put(Put(b"/written", b"%d" % number))

    async def overwrite(self, size: int) -> None:
        async with EtcdMember((await leader(self)).client_url, self.tls) as member:
            for _ in range(max(1, size >> 20)):
                await member.kv.put(Put(b"/overwritten", bytes(1 << 20)))

    async def raise_alarm(self, alarm: Alarm) -> None:
        async with EtcdMember(self.founders[0].client_url, self.tls) as member:
            await member.maintenance.raise_alarm(alarm)

    async def enable_authentication(self) -> KeyPair:
        await enable_authentication(self.founders[0].client_url, self.tls)
        return self._root

    async def is_calm(self) -> bool:
        """Whether only the founders are members, of one version, all voters, all serving: then another test can have
        it.
        """
        if self._restarted or any(process.poll() is not None for process in self.processes.values()):
            return False
        members = await self.etcd.members(urls(self.founders))
        for member in members:
            if member.is_learner:
                await self.etcd.remove(urls(self.founders), member.id)
        for spare in self.spares:
            if spare.name in self.processes:
                await self.kill(spare)
            shutil.rmtree(self._folder / spare.name, ignore_errors=True)
        statuses = [await self.etcd.status(url) for url in urls(self.founders)]
        voters = {member.name for member in members if not member.is_learner}
        return voters == {founder.name for founder in self.founders} and not any(status.errors for status in statuses)

    def log(self, address: MemberAddress) -> str:
        return (self._folder / f"{address.name}.log").read_text()[-2000:]

    def close(self) -> None:
        """Kill every process that is left, frozen ones too."""
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        self.processes.clear()

    def _run(self, address: MemberAddress, cluster: str, state: str) -> None:
        files = self._folder
        argv = [
            str(self._binary),
            f"--name={address.name}",
            f"--data-dir={files / address.name}",
            f"--listen-client-urls={address.client_url}",
            f"--advertise-client-urls={address.client_url}",
            f"--listen-peer-urls={address.peer_url}",
            f"--initial-advertise-peer-urls={address.peer_url}",
            f"--listen-metrics-urls={address.metrics_url}",
            f"--initial-cluster={cluster}",
            f"--initial-cluster-state={state}",
            f"--initial-cluster-token={files.name}",
            f"--max-learners={MAX_LEARNERS}",
            *self.tuning,
            "--log-level=warn",
        ]
        if self._quota:
            argv.append(f"--quota-backend-bytes={self._quota}")
        for kind in ("", "peer-"):
            argv += [
                f"--{kind}cert-file={files / 'member.crt'}",
                f"--{kind}key-file={files / 'member.key'}",
                f"--{kind}trusted-ca-file={files / 'ca.crt'}",
                f"--{kind}client-cert-auth",
            ]
        with (files / f"{address.name}.log").open("ab") as log:
            self.processes[address.name] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=files
            )


class RealLabs:
    """Hands out real clusters; one that a test left as it was is handed out again, since a start takes seconds."""

    def __init__(self, binary: Path, new_folder: Callable[[], Path]) -> None:
        self._binary, self._new_folder = binary, new_folder
        self._numbers = itertools.count(1)
        self._calm: RealLab | None = None

    @contextlib.asynccontextmanager
    async def one(self, *, quota: int = 0) -> AsyncIterator[RealLab]:
        lab: RealLab | None = None
        if not quota:
            lab, self._calm = self._calm, None
        fresh = lab is None
        if lab is None:
            network = f"127.{100 + os.getpid() % 100}.{next(self._numbers)}"
            lab = RealLab(self._binary, self._new_folder(), network, quota=quota)
        keep = False
        try:
            lab.etcd = RealEtcd(lab.tls, change_deadline=3.0)
            if fresh:
                await lab.found()
            yield lab
            try:
                keep = not quota and await lab.is_calm()
            except QuarterdeckError:
                keep = False
        finally:
            if keep:
                self._calm = lab
            else:
                lab.close()
            await lab.etcd.close()

    def close(self) -> None:
        if self._calm is not None:
            self._calm.close()


@pytest.fixture(scope="module")
def real_labs(etcd_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealLabs]:
    labs = RealLabs(etcd_binary, lambda: tmp_path_factory.mktemp("etcd"))
    yield labs
    labs.close()


@pytest.fixture
async def real_lab(real_labs: RealLabs) -> AsyncIterator[RealLab]:
    async with real_labs.one() as lab:
        yield lab


@pytest.fixture
def fake_lab() -> FakeLab:
    return FakeLab()


@pytest.fixture(params=["fake", "real"])
def small_labs(request: pytest.FixtureRequest) -> RealLabs | None:
    """The real ones, begun outside of the event loop; none for the fake."""
    labs: RealLabs | None = request.getfixturevalue("real_labs") if request.param == "real" else None
    return labs


@pytest.fixture
async def small_lab(small_labs: RealLabs | None) -> AsyncIterator[Lab]:
    """A cluster of its own, with a small quota."""
    if small_labs is None:
        yield FakeLab(quota=QUOTA)
        return
    async with small_labs.one(quota=QUOTA) as lab:
        yield lab


def _free_address(host: str, number: int) -> MemberAddress:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for each in sockets:
            each.bind((host, 0))
        ports = [each.getsockname()[1] for each in sockets]
    client, peer, metrics = ports
    return MemberAddress(
        name=f"m{number}",
        peer_url=f"https://{host}:{peer}",
        client_url=f"https://{host}:{client}",
        metrics_url=f"http://{host}:{metrics}",
    )


async def enable_authentication(url: str, tls: ClientTls) -> None:
    """What a person does: 'etcdctl user add root', 'user grant-role root root', 'auth enable'."""
    credentials = grpc.ssl_channel_credentials(tls.ca, tls.client.key, tls.client.certificate)
    async with grpc.aio.secure_channel(target_of(url), credentials) as channel:
        for method, words in (
            ("UserAdd", ("root", "secret")),
            ("RoleAdd", ("root",)),
            ("UserGrantRole", ("root", "root")),
            ("AuthEnable", ()),
        ):
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                f"/etcdserverpb.Auth/{method}", request_serializer=bytes, response_deserializer=bytes
            )
            await call(_message(*words), timeout=5)


def _message(*words: str) -> bytes:
    """A message of protocol buffers whose fields are these short words, in order."""
    fields = (bytes([number << 3 | 2, len(word)]) + word.encode() for number, word in enumerate(words, 1))
    return b"".join(fields)


def _certificates(folder: Path, addresses: Sequence[str]) -> tuple[ClientTls, KeyPair]:
    """Write what the members need; the client's certificate is returned, and one of the user root."""
    now, day = datetime.now(UTC), timedelta(days=1)
    authority = create_authority("etcd-ca", now)
    both = Usage.SERVER | Usage.CLIENT
    # On loopback connections come from 127.0.0.1, whatever address their process listens on.
    wanted = CertificateRequest(
        common_name="member", usage=both, lifetime=day, ip_addresses=(*addresses, "127.0.0.1"), dns_names=("member",)
    )
    member = issue(authority, wanted, now)
    client = issue(authority, CertificateRequest(common_name="client", usage=Usage.CLIENT, lifetime=day), now)
    (folder / "ca.crt").write_bytes(authority.certificate)
    (folder / "member.crt").write_bytes(member.certificate)
    (folder / "member.key").write_bytes(member.key)
    root = issue(authority, CertificateRequest(common_name=ROOT, usage=Usage.CLIENT, lifetime=day), now)
    return ClientTls(authority.certificate, client), root
