"""One replica of real programs, started from nothing but their unit specs."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.conditions import eventually
from support.replica_processes import PORTS, PROGRAMS, OneReplica, binaries, one_replica, until

from quarterdeck.components.apiserver import AUDIT_LOG
from quarterdeck.components.controller import controller_manager, scheduler
from quarterdeck.components.kubeconfig import Server, kubeconfig
from quarterdeck.components.settings import url
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.real import RealEtcd
from quarterdeck.kube.http import HttpKube
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.pki.issuance import create_plane_secrets
from quarterdeck.pki.tls import client_context
from quarterdeck.pki.users import break_glass, issue_user
from quarterdeck.sites.kernel import PER_LEADER, PER_PLANE, PER_REPLICA
from quarterdeck.upstream.catalog import UpstreamProgram

__all__ = ["binaries"]

#: On one worker: the replica is started once, and the last test stops it.
pytestmark = [pytest.mark.smoke, pytest.mark.xdist_group("one replica")]

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: example.test/web}]
"""
EXTERNAL = """
apiVersion: v1
kind: Service
metadata: {name: theirs}
spec:
  externalIPs: [192.0.2.1]
  ports: [{port: 80}]
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: node-1}
"""
NODE_STATUS = {
    "status": {
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": ""}],
    }
}


class Kubectl:
    def __init__(self, program: Path, config: Path) -> None:
        self._command = [str(program), f"--kubeconfig={config}", f"--cache-dir={config.parent / 'cache'}"]

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [*self._command, *arguments], input=stdin, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory, binaries: Mapping[UpstreamProgram, Path]) -> Iterator[OneReplica]:
    with one_replica(tmp_path_factory.mktemp("replica"), binaries) as replica:
        for component in PROGRAMS:
            replica.start_and_await(component)
        yield replica


@pytest.fixture(scope="module")
def kubectl(
    replica: OneReplica, binaries: Mapping[UpstreamProgram, Path], tmp_path_factory: pytest.TempPathFactory
) -> Kubectl:
    """Kubectl as a person uses it: an admin's certificate, and the plane's name in the server's certificate."""
    server = Server(
        url=url(replica.apiserver.host, replica.apiserver.port),
        ca=replica.secrets.kubernetes_ca.bundle,
        tls_name=replica.plane.endpoint_name,
    )
    config = tmp_path_factory.mktemp("kubectl") / "kubeconfig"
    admin = issue_user(replica.secrets, break_glass(), datetime.now(UTC))
    config.write_text(kubeconfig("byhand", "admin", server, admin))
    return Kubectl(binaries[UpstreamProgram.KUBECTL], config)


def etcd_get(replica: OneReplica, binaries: Mapping[UpstreamProgram, Path], folder: Path, key: str) -> bytes:
    for name, content in (
        ("ca", replica.secrets.etcd_ca.bundle),
        ("crt", replica.secrets.etcd_manager.certificate),
        ("key", replica.secrets.etcd_manager.key),
    ):
        (folder / name).write_bytes(content)
    endpoint = replica.replica.seat.listen(PortName.ETCD_CLIENT).url()
    tls = [f"--cacert={folder / 'ca'}", f"--cert={folder / 'crt'}", f"--key={folder / 'key'}"]
    command = [
        str(binaries[UpstreamProgram.ETCDCTL]),
        f"--endpoints={endpoint}",
        *tls,
        "get",
        "--print-value-only",
        key,
    ]
    return subprocess.run(command, capture_output=True, timeout=30, check=True).stdout


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz"])
def test_anybody_may_ask_for_health(replica: OneReplica, path: str) -> None:
    assert replica.get(path) == (200, "ok")


@pytest.mark.parametrize("path", ["/api", "/version", "/readyz/etcd", "/metrics", "/api/v1/namespaces"])
def test_nobody_unknown_may_ask_for_anything_else(replica: OneReplica, path: str) -> None:
    assert replica.get(path)[0] == 401
    assert replica.get(path, client=replica.secrets.manager)[0] == 200


def test_a_client_of_another_authority_is_unknown(replica: OneReplica) -> None:
    stranger = create_plane_secrets("other", datetime.now(UTC))
    assert replica.get("/api", client=stranger.manager)[0] == 401


def test_profiling_is_off_also_for_admins(replica: OneReplica) -> None:
    assert replica.get("/debug/pprof/", client=replica.secrets.manager)[0] == 404


def test_an_admin_works_with_kubectl(kubectl: Kubectl) -> None:
    assert "kube-system" in kubectl("get", "namespaces", "-o", "name")


def test_a_secret_is_unreadable_in_etcd(
    replica: OneReplica, binaries: Mapping[UpstreamProgram, Path], kubectl: Kubectl, tmp_path: Path
) -> None:
    kubectl("create", "secret", "generic", "treasure", "--from-literal=where=under-the-palm")
    kubectl("create", "configmap", "map", "--from-literal=where=under-the-palm")
    stored = etcd_get(replica, binaries, tmp_path, "/registry/secrets/default/treasure")
    assert stored.startswith(b"k8s:enc:secretbox:v1:key1:")
    assert b"under-the-palm" not in stored
    assert b"under-the-palm" in etcd_get(replica, binaries, tmp_path, "/registry/configmaps/default/map")
    assert "treasure" in kubectl("get", "secrets", "-o", "name")


def test_a_deployment_gets_pods_and_they_get_a_node(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=NODE)
    kubectl("patch", "node", "node-1", "--subresource=status", "--type=merge", "-p", json.dumps(NODE_STATUS))
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)

    def bound() -> bool:
        return kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.nodeName}") == ("node-1 node-1")

    until(bound, "pods on a node", seconds=60)


async def test_the_controllers_hold_their_leases_and_say_so(replica: OneReplica) -> None:
    kube = HttpKube(replica.secrets.kubernetes_ca.bundle, replica.secrets.manager)
    try:
        for name, port in (
            (controller_manager.LEASE, PortName.CONTROLLER_MANAGER),
            (scheduler.LEASE, PortName.SCHEDULER),
        ):
            held = partial(kube.leader_lease, replica.apiserver, name)
            await eventually(held, lambda seen: seen is not None and bool(seen.holder))  # it has just been started
            await eventually(partial(kube.leads, replica.at(port), name), lambda leads: leads is True)
    finally:
        await kube.close()


def test_everything_listens_on_the_address_of_its_machine_only(replica: OneReplica) -> None:
    for process in replica.processes.running.values():
        listeners = [each for each in psutil.Process(process.pid).net_connections() if each.status == "LISTEN"]
        assert listeners
        assert {each.laddr.ip for each in listeners} == set(replica.replica.seat.hosts)
        assert {each.laddr.port for each in listeners} <= set(PORTS)


def test_ten_replicas_fit_below_the_kernels_usual_limit_on_inotify_instances(replica: OneReplica) -> None:
    folders = (Path(f"/proc/{each.pid}/fd") for each in replica.processes.running.values())
    opened = sum(each.readlink().name.endswith("inotify") for folder in folders for each in folder.iterdir())
    assert 0 < opened <= PER_REPLICA + PER_LEADER
    assert 10 * PER_REPLICA + PER_PLANE < 128


def ask_without_certificate(address: tuple[str, int], context: ssl.SSLContext) -> bytes:
    """In TLS 1.3 a client learns that it was refused when it reads."""
    with (
        socket.create_connection(address, timeout=5) as raw,
        context.wrap_socket(raw, server_hostname=address[0]) as secured,
    ):
        secured.send(b"GET / HTTP/1.1\r\n\r\n")
        return secured.recv(1)


def test_etcd_refuses_clients_peers_and_readers_of_metrics_without_a_certificate(replica: OneReplica) -> None:
    context = client_context(replica.secrets.etcd_ca.bundle)
    for port in (PortName.ETCD_CLIENT, PortName.ETCD_PEER, PortName.ETCD_METRICS):
        with pytest.raises(ssl.SSLError, match=r"CERTIFICATE_REQUIRED|BAD_CERTIFICATE"):
            ask_without_certificate((replica.at(port).host, replica.at(port).port), context)


async def test_its_metrics_are_read_with_the_managers_certificate(replica: OneReplica) -> None:
    etcd = RealEtcd(ClientTls(ca=replica.secrets.etcd_ca.bundle, client=replica.secrets.etcd_manager))
    try:
        assert await etcd.applied_index(replica.replica.seat.listen(PortName.ETCD_METRICS).url()) > 0
    finally:
        await etcd.close()


def test_what_users_may_not_do_is_refused_by_name(kubectl: Kubectl) -> None:
    with pytest.raises(AssertionError, match="Use of external IPs is denied by admission control"):
        kubectl("create", "-f", "-", stdin=EXTERNAL)


def test_the_audit_log_has_who_did_what_and_no_bodies(replica: OneReplica, kubectl: Kubectl) -> None:
    kubectl("create", "secret", "generic", "audited", "--from-literal=word=plaintext-word")
    assert replica.replica.audit is not None
    log = Path(replica.replica.audit, AUDIT_LOG)
    assert log.stat().st_mode & 0o777 == 0o600

    def created() -> list[dict[str, Any]]:
        events = [json.loads(line) for line in log.read_text().splitlines()]
        return [each for each in events if each.get("objectRef", {}).get("name") == "audited"]

    until(lambda: bool(created()), "the event is written")
    (event,) = created()
    assert (event["verb"], event["level"], event["responseStatus"]["code"]) == ("create", "Metadata", 201)
    assert "requestObject" not in event
    assert "plaintext-word" not in log.read_text()
    assert base64.b64encode(b"plaintext-word").decode() not in log.read_text()
    assert "/readyz" not in log.read_text()


def test_secrets_are_private_and_never_on_a_command_line(replica: OneReplica) -> None:
    for component in PROGRAMS:
        spec = replica.spec(component)
        assert all("PRIVATE" not in argument for argument in spec.argv)
        for file in spec.files:
            assert Path(file.path).stat().st_mode & 0o777 == 0o600


@contextlib.contextmanager
def watch(replica: OneReplica) -> Iterator[http.client.HTTPResponse]:
    """A watch of all namespaces, open."""
    context = client_context(replica.secrets.kubernetes_ca.bundle, replica.secrets.manager)
    connection = http.client.HTTPSConnection(*astuple(replica.apiserver), context=context, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", "/api/v1/namespaces?watch=1")
        yield connection.getresponse()


def test_every_program_ends_on_sigterm_and_watches_are_ended_not_cut(replica: OneReplica) -> None:
    """The last test: nothing of the replica runs afterwards."""
    with watch(replica) as open_watch:
        took = {component: replica.stop(component) for component in reversed(PROGRAMS)}
        assert b"kube-system" in open_watch.read()  # raises IncompleteRead for one that was cut
    assert all(seconds < replica.spec(component).stop_timeout for component, seconds in took.items())
    assert took[Component.APISERVER] < 15, "watches are ended within 5 s"
