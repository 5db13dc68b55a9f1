"""Units run as plain processes, without a site: for tests of what the specs themselves say."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from types import TracebackType

import pytest

from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.credentials import KeyPair, ReplicaSecrets, SharedSecrets
from quarterdeck.components.ports import seat_at
from quarterdeck.components.replica import component_unit
from quarterdeck.components.settings import ClusterState, InitialCluster, Inputs, ReplicaSettings, service_ip
from quarterdeck.files import write_atomic
from quarterdeck.kube.port import Address
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import UnitSpec
from quarterdeck.pki.issuance import ReplicaNames, create_plane_secrets, with_replica
from quarterdeck.pki.tls import client_context
from quarterdeck.upstream.catalog import UpstreamProgram, Versions
from quarterdeck.upstream.upstream import Upstream
from support.components import ALWAYS
from support.conditions import freeze
from support.templates import but, template

NAME, REPLICA = "byhand", "r1"
#: What runs of a replica whose events are where all else is.
PROGRAMS = ALWAYS
PORTS = tuple(each.listen.port for each in seat_at("any", "127.0.0.1", 0).ports)


@pytest.fixture(scope="session")
def binaries() -> Mapping[UpstreamProgram, Path]:
    """The real programs of a replica, kubectl and etcdctl, fetched or built if they are not there."""
    wanted = [*(UpstreamProgram(each) for each in PROGRAMS), UpstreamProgram.KUBECTL, UpstreamProgram.ETCDCTL]
    return asyncio.run(Upstream.from_environment(os.environ).ensure(wanted, Versions()))


def free_address(ports: tuple[int, ...]) -> str:
    """A loopback address at which none of ``ports`` is in use."""
    for _ in range(100):
        address = f"127.{random.randint(64, 127)}.{random.randint(1, 254)}.{random.randint(1, 254)}"
        with contextlib.ExitStack() as stack:
            try:
                for port in ports:
                    listener = stack.enter_context(socket.socket())
                    listener.bind((address, port))
            except OSError:
                continue
            return address
    raise AssertionError("no free loopback address")


def until(condition: Callable[[], bool], what: str, *, seconds: float = 30.0) -> float:
    """Wait until ``condition`` holds; returns how long it took, in seconds."""
    begin = time.monotonic()
    while not condition():
        elapsed = time.monotonic() - begin
        assert elapsed < seconds, f"{what}: not within {seconds} s"
        time.sleep(0.01)
    return time.monotonic() - begin


def listens(where: Address) -> bool:
    """Whether a connection is accepted there."""
    with socket.socket() as client:
        client.settimeout(1.0)
        return client.connect_ex((where.host, where.port)) == 0


@dataclass
class Processes:
    """The processes of units, all killed at the end."""

    logs: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.running.values():
            process.kill()
        for process in self.running.values():
            process.wait(10)

    def start(self, spec: UnitSpec) -> subprocess.Popen[bytes]:
        for file in spec.files:
            write_atomic(Path(file.path), file.content, mode=file.mode)
        with self.log(spec.name).open("ab") as log:
            process = subprocess.Popen(
                [*spec.argv, *spec.boot_argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.defpath, "HOME": str(self.logs), **dict(spec.env)},
                start_new_session=True,
            )
        self.running[spec.name] = process
        return process

    def freeze(self, spec: UnitSpec) -> None:
        freeze(self.running[spec.name].pid)

    def thaw(self, spec: UnitSpec) -> None:
        self.running[spec.name].send_signal(signal.SIGCONT)

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def stop(self, spec: UnitSpec) -> float:
        """SIGTERM; returns how long it took to exit, in seconds."""
        begin = time.monotonic()
        process = self.running[spec.name]
        process.send_signal(signal.SIGTERM)
        process.wait(spec.stop_timeout)
        return time.monotonic() - begin


@dataclass
class OneReplica:
    """A plane of one replica on a loopback address of its own."""

    plane: ReplicaTemplate
    replica: ReplicaSettings
    secrets: SharedSecrets
    certificates: ReplicaSecrets
    cluster: InitialCluster
    processes: Processes

    @property
    def apiserver(self) -> Address:
        return self.at(PortName.APISERVER)

    def at(self, port: PortName) -> Address:
        end = self.replica.seat.listen(port)
        return Address(end.host, end.port)

    def spec(self, component: Component) -> UnitSpec:
        inputs = Inputs(
            plane=NAME,
            template=self.plane,
            replica=self.replica,
            secrets=self.secrets,
            certificates=self.certificates,
            initial=self.cluster,
        )
        return component_unit(component, inputs)

    def start(self, component: Component) -> subprocess.Popen[bytes]:
        return self.processes.start(self.spec(component))

    def start_and_await(self, component: Component) -> float:
        """Start a component and wait until it answers; returns how long that took, in seconds."""
        process = self.start(component)

        def up() -> bool:
            if process.poll() is not None:
                raise AssertionError(f"{component}: {self.processes.log(self.spec(component).name).read_text()}")
            return self._answers(component)

        return until(up, component)

    def stop(self, component: Component) -> float:
        return self.processes.stop(self.spec(component))

    def get(
        self,
        path: str,
        *,
        client: KeyPair | None = None,
        timeout: float = 5.0,
        at: PortName = PortName.APISERVER,
    ) -> tuple[int, str]:
        """Status and body of a GET, anonymous unless ``client`` is given."""
        with self._connected(at, client, timeout) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def send(self, method: str, path: str, body: object, media: str = "application/json") -> tuple[int, str]:
        """Status and body of an administrator's request to the apiserver."""
        with self._connected(PortName.APISERVER, self.secrets.manager, 5.0) as connection:
            connection.request(method, path, json.dumps(body), {"Content-Type": media})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def _connected(
        self, port: PortName, client: KeyPair | None, timeout: float
    ) -> contextlib.closing[http.client.HTTPSConnection]:
        at, context = self.at(port), client_context(self.secrets.kubernetes_ca.bundle, client)
        return contextlib.closing(http.client.HTTPSConnection(at.host, at.port, context=context, timeout=timeout))

    def leads(self, lease: str) -> bool:
        """Whether somebody holds a lease of kube-system."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease}"
        status, body = self.get(path, client=self.secrets.manager)
        return status == 200 and bool(json.loads(body)["spec"].get("holderIdentity"))

    def _answers(self, component: Component) -> bool:
        match component:
            case Component.ETCD:
                return listens(self.at(PortName.ETCD_CLIENT))
            case Component.APISERVER:
                try:
                    return self.get("/readyz", timeout=1.0)[0] == 200
                except OSError:
                    return False
            case Component.CONTROLLER_MANAGER | Component.SCHEDULER | Component.CLOUD_CONTROLLER_MANAGER:
                return listens(self.at(PortName(component)))


@contextlib.contextmanager
def one_replica(
    folder: Path, binaries: Mapping[UpstreamProgram, Path], wanted: ReplicaTemplate | None = None
) -> Iterator[OneReplica]:
    """A replica whose files and volume are below ``folder``; nothing of it runs yet."""
    latest = but(template(), kubernetes_version="v1.37.2", etcd={"version": "3.7.3"}, endpoint_name="byhand.test")
    plane = wanted or latest
    seat = seat_at("byhand", free_address(PORTS), 0)
    now = datetime.now(UTC)
    names = ReplicaNames(
        replica=REPLICA,
        addresses=seat.hosts,
        service_ip=service_ip(plane),
        programs=PROGRAMS,
        endpoint_names=(plane.endpoint_name,),
    )
    secrets = with_replica(create_plane_secrets(NAME, now), names, now)
    certificates = secrets.replica(REPLICA)
    assert certificates is not None
    replica = ReplicaSettings(
        name=REPLICA,
        seat=seat,
        volume=PurePosixPath(folder / "volume"),
        audit=PurePosixPath(folder / "audit"),
        folders={each: PurePosixPath(folder / each) for each in PROGRAMS},
        programs={each: PurePosixPath(binaries[UpstreamProgram(CATALOGUE[each].program)]) for each in PROGRAMS},
    )
    members = ((REPLICA, seat.advertised(PortName.ETCD_PEER).url()),)
    cluster = InitialCluster(state=ClusterState.NEW, members=members, token="byhand")
    (folder / "volume").mkdir(mode=0o700)
    (folder / "audit").mkdir(mode=0o700)
    with Processes(folder) as processes:
        yield OneReplica(plane, replica, secrets, certificates, cluster, processes)


@pytest.fixture(scope="module")
def replica(binaries: Mapping[UpstreamProgram, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneReplica]:
    """A replica of a module's own, whose etcd and apiserver run."""
    with one_replica(tmp_path_factory.mktemp("replica"), binaries) as made, made.processes:
        made.start_and_await(Component.ETCD)
        made.start_and_await(Component.APISERVER)
        yield made
