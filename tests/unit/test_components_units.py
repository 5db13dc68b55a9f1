"""What the units of a replica say."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePosixPath

import pytest
import yaml
from support.components import rules_of
from support.golden import Golden
from support.templates import but, template

from quarterdeck.api.controlplane import Encryption
from quarterdeck.api.plane.controllers import CloudControllerManager
from quarterdeck.api.revision import AuditTemplate, EventsTemplate, ReplicaTemplate
from quarterdeck.components.catalogue import CATALOGUE, programs_of, seat_ports
from quarterdeck.components.credentials import (
    Authority,
    EncryptionKey,
    KeyPair,
    ReplicaSecrets,
    SharedSecrets,
    SigningKey,
)
from quarterdeck.components.etcd import holds_a_log
from quarterdeck.components.ports import LAST_BLOCK, has_own_ports, load_balancer_port, seat_at
from quarterdeck.components.refusals import refuse_dangerous
from quarterdeck.components.replica import component_unit
from quarterdeck.components.settings import (
    ClusterState,
    InitialCluster,
    Inputs,
    ReplicaSettings,
    unit_name,
    url,
)
from quarterdeck.components.upstream_versions import minor
from quarterdeck.errors import InvalidInput
from quarterdeck.model.clusters import CLUSTER
from quarterdeck.model.components import NAMED, Component, ReplicaPrograms
from quarterdeck.model.seats import HostPort, PortName, Seat, SeatPort
from quarterdeck.model.units import UnitSpec
from quarterdeck.pki.issuance import ReplicaNames, create_plane_secrets, with_replica

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FOUNDING = InitialCluster(
    state=ClusterState.NEW,
    members=(("demo-1", "https://10.0.0.1:2380"), ("demo-2", "https://10.0.0.2:2380")),
    token="demo-a1",
)
PLANE = but(template(), kubernetes_version="v1.36.3", etcd={"version": "3.6.16"}, endpoint_name="demo.test")
EVENTS = {"events": EventsTemplate(quota_bytes=2**30, storage_class="standard")}
CLOUD = CloudControllerManager(program=PurePosixPath("/opt/ccm"), provider="fake", config="[Global]\nregion=here\n")
CLOUDS = Component.CLOUD_CONTROLLER_MANAGER


def replica_at(address: str) -> ReplicaSettings:
    return ReplicaSettings(
        name="demo-1",
        seat=seat_at("east-a1", address, 0),
        volume=PurePosixPath("/volumes/demo-1"),
        audit=PurePosixPath("/volumes/demo-audit"),
        folders={each: PurePosixPath(f"/units/{each}") for each in NAMED},
        programs={each: PurePosixPath(f"/programs/{each}") for each in NAMED},
    )


@pytest.fixture(scope="module")
def secrets() -> SharedSecrets:
    names = ReplicaNames(replica="demo-1", addresses=("10.0.0.1",), service_ip="10.96.0.1", programs=NAMED)
    return with_replica(create_plane_secrets("demo", NOW), names, NOW)


@pytest.fixture(scope="module")
def certificates(secrets: SharedSecrets) -> ReplicaSecrets:
    found = secrets.replica("demo-1")
    assert found is not None
    return found


Build = Callable[..., UnitSpec]


def inputs(
    plane: ReplicaTemplate,
    replica: ReplicaSettings,
    secrets: SharedSecrets,
    certificates: ReplicaSecrets,
    cluster: InitialCluster = FOUNDING,
) -> Inputs:
    return Inputs(
        plane="demo", template=plane, replica=replica, secrets=secrets, certificates=certificates, initial=cluster
    )


@pytest.fixture(scope="module")
def build(secrets: SharedSecrets, certificates: ReplicaSecrets) -> Build:
    def built(
        component: Component,
        plane: ReplicaTemplate = PLANE,
        address: str = "10.0.0.1",
        cluster: InitialCluster = FOUNDING,
        seat: Seat | None = None,
    ) -> UnitSpec:
        replica = replica_at(address)
        if component == Component.CLOUD_CONTROLLER_MANAGER and plane.cloud_controller_manager is None:
            plane = but(plane, cloud_controller_manager=CLOUD)
        replica = replica if seat is None else replace(replica, seat=seat)
        return component_unit(component, inputs(plane, replica, secrets, certificates, cluster))

    return built


def flags(spec: UnitSpec) -> dict[str, str]:
    """Flags and values of a command line; fails if a flag comes twice."""
    pairs = [argument.removeprefix("--").split("=", 1) for argument in spec.argv[1:]]
    found = {flag: value for flag, value in pairs}  # noqa: C416 - the pairs are lists
    assert len(found) == len(pairs)
    return found


def file(spec: UnitSpec, name: str) -> bytes:
    return next(each.content for each in spec.files if each.path.name == name)


@pytest.mark.parametrize("component", NAMED)
def test_equal_settings_give_equal_digests(build: Build, component: Component) -> None:
    assert build(component).digest == build(component).digest
    assert build(component).argv[0] == f"/programs/{component}"
    assert build(component).name == f"demo-demo-1-{component}" == unit_name("demo", "demo-1", component)


@pytest.mark.parametrize("component", NAMED)
def test_every_file_that_is_named_is_written_for_its_owner_only(build: Build, component: Component) -> None:
    spec = build(component, but(PLANE, policy="kind: Policy"))
    written = {str(each.path) for each in spec.files}
    named = {value for value in flags(spec).values() if value.startswith(f"/units/{component}/")}
    assert named == written
    assert all(each.mode == 0o600 for each in spec.files)
    assert all("PRIVATE" not in argument for argument in spec.argv)


def test_how_a_member_first_started_is_no_part_of_what_it_is(build: Build) -> None:
    joining = InitialCluster(state=ClusterState.EXISTING, members=FOUNDING.members, token="demo-a1")
    founder, joiner = build(Component.ETCD), build(Component.ETCD, cluster=joining)
    assert founder.digest == joiner.digest
    assert founder.boot_argv == (
        "--initial-cluster=demo-1=https://10.0.0.1:2380,demo-2=https://10.0.0.2:2380",
        "--initial-cluster-state=new",
        "--initial-cluster-token=demo-a1",
        "--feature-gates=InitialCorruptCheck=false",
    )
    assert "--initial-cluster-state=existing" in joiner.boot_argv


def test_a_member_needs_its_log_which_says_nothing_of_what_it_is(build: Build) -> None:
    spec = build(Component.ETCD)
    assert spec.needs == PurePosixPath("/volumes/demo-1/etcd/member/wal/*.wal")
    assert replace(spec, needs=None).digest == spec.digest
    assert not spec.fresh
    assert all(build(each).needs is None for each in NAMED if each not in CLUSTER)


@pytest.mark.parametrize(
    ("names", "holds"),
    [((), False), (("0.tmp",), False), (("0000000000000000-0000000000000000.wal", "0.tmp"), True)],
)
def test_a_folder_without_a_log_is_none_to_etcd_whatever_else_is_there(names: tuple[str, ...], holds: bool) -> None:
    assert holds_a_log(names) is holds


@pytest.mark.parametrize(
    ("etcd", "flag"),
    [
        ("3.5.31", "--experimental-initial-corrupt-check="),
        ("3.6.16", "--feature-gates=InitialCorruptCheck="),
        ("3.7.3", "--feature-gates=InitialCorruptCheck="),
    ],
)
@pytest.mark.parametrize(("compares", "value"), [(False, "false"), (True, "true")])
def test_a_member_that_has_served_compares_its_data_with_its_peers_before_it_serves_again(
    build: Build, etcd: str, flag: str, compares: bool, value: str
) -> None:
    spec = build(Component.ETCD, but(PLANE, etcd={"version": etcd}), cluster=replace(FOUNDING, compares=compares))
    assert spec.boot_argv[-1] == flag + value
    assert spec.digest == build(Component.ETCD, but(PLANE, etcd={"version": etcd})).digest


def test_feature_gates_of_the_user_are_kept_except_that_one(build: Build) -> None:
    gates = {Component.ETCD: {"feature-gates": "TxnModeWriteWithSharedBuffer=true"}}
    spec = build(Component.ETCD, but(PLANE, flags=gates), cluster=replace(FOUNDING, compares=True))
    assert spec.boot_argv[-1] == "--feature-gates=TxnModeWriteWithSharedBuffer=true,InitialCorruptCheck=true"
    assert "feature-gates" not in flags(spec)
    for flag, value in (("feature-gates", "InitialCorruptCheck=false"), ("experimental-initial-corrupt-check", "true")):
        with pytest.raises(InvalidInput):
            refuse_dangerous(rules_of(Component.ETCD), {flag: value})


def test_a_member_asks_clients_and_peers_for_certificates(build: Build) -> None:
    found = flags(build(Component.ETCD))
    assert found["client-cert-auth"] == found["peer-client-cert-auth"] == "true"
    assert found["listen-client-urls"] == found["advertise-client-urls"] == "https://10.0.0.1:2379"
    assert found["listen-peer-urls"] == found["initial-advertise-peer-urls"] == "https://10.0.0.1:2380"
    assert found["listen-metrics-urls"] == "https://10.0.0.1:2381"
    assert found["data-dir"] == "/volumes/demo-1/etcd"
    assert found["strict-reconfig-check"] == "true"
    assert found["auto-compaction-retention"] == "0"


@pytest.mark.parametrize(
    ("etcd", "learners", "progress"),
    [
        ("3.5.31", None, "experimental-watch-progress-notify-interval"),
        ("3.6.12", "max-learners", "watch-progress-notify-interval"),
        ("3.7.3", "max-learners", "watch-progress-notify-interval"),
    ],
)
def test_flags_have_the_names_of_their_version(build: Build, etcd: str, learners: str | None, progress: str) -> None:
    found = flags(build(Component.ETCD, but(PLANE, etcd={"version": etcd})))
    assert {flag: value for flag, value in found.items() if "max-learners" in flag} == (
        {learners: "7"} if learners else {}
    )
    assert found[progress] == "5s"


def test_the_timing_of_etcd_is_in_milliseconds(build: Build) -> None:
    found = flags(
        build(Component.ETCD, but(PLANE, etcd={"heartbeat_milliseconds": 200, "election_milliseconds": 2000}))
    )
    assert (found["heartbeat-interval"], found["election-timeout"]) == ("200", "2000")


def test_an_apiserver_asks_its_own_member_only(build: Build) -> None:
    assert flags(build(Component.APISERVER))["etcd-servers"] == "https://10.0.0.1:2379"


def test_an_apiserver_authorizes_nodes_and_roles_and_nothing_else(build: Build) -> None:
    found = flags(build(Component.APISERVER))
    assert found["authorization-mode"] == "Node,RBAC"
    assert "NodeRestriction" in found["enable-admission-plugins"]
    assert found["profiling"] == "false"
    assert "anonymous-auth" not in found


def test_anonymous_requests_may_see_the_health_paths_and_what_nodes_look_for_first_only(build: Build) -> None:
    health = [{"path": "/healthz"}, {"path": "/livez"}, {"path": "/readyz"}]
    info = {"path": "/api/v1/namespaces/kube-public/configmaps/cluster-info"}
    for nodes, paths in ((True, [*health, info]), (False, health)):
        unit = build(Component.APISERVER, plane=but(PLANE, node_bootstrap=nodes or None))
        configuration = yaml.safe_load(file(unit, "authentication.yaml"))
        assert configuration["anonymous"] == {"enabled": True, "conditions": paths}


def test_tokens_count_and_are_signed_and_deleted_where_nodes_join_with_them(build: Build) -> None:
    for nodes in (True, False):
        plane = but(PLANE, node_bootstrap=nodes or None)
        apiserver = flags(build(Component.APISERVER, plane=plane))
        manager = flags(build(Component.CONTROLLER_MANAGER, plane=plane))
        assert ("enable-bootstrap-token-auth" in apiserver) is nodes
        assert manager.get("controllers", "*") == (
            "*,bootstrap-signer-controller,token-cleaner-controller" if nodes else "*"
        )


@pytest.mark.parametrize(
    ("given", "rendered"),
    [
        ("*,-ttl-controller", "*,-ttl-controller,bootstrap-signer-controller,token-cleaner-controller"),
        ("*,bootstrapsigner", "*,bootstrapsigner,token-cleaner-controller"),
        ("*,-tokencleaner", "*,-tokencleaner,bootstrap-signer-controller"),
    ],
)
def test_controllers_of_the_user_are_joined_by_those_that_tokens_need(build: Build, given: str, rendered: str) -> None:
    plane = but(PLANE, flags={Component.CONTROLLER_MANAGER: {"controllers": given}})
    assert flags(build(Component.CONTROLLER_MANAGER, plane=plane))["controllers"] == rendered


@pytest.mark.parametrize(
    ("kubernetes", "api", "peers"),
    [("1.33.13", "v1beta1", False), ("1.34.4", "v1", False), ("1.35.4", "v1", False), ("1.36.3", "v1", True)],
)
def test_an_apiserver_is_configured_for_its_version(build: Build, kubernetes: str, api: str, peers: bool) -> None:
    spec = build(Component.APISERVER, but(PLANE, kubernetes_version=f"v{kubernetes}"))
    assert yaml.safe_load(file(spec, "authentication.yaml"))["apiVersion"] == f"apiserver.config.k8s.io/{api}"
    assert ("peer-ca-file" in flags(spec)) is peers


def test_secrets_are_stored_encrypted_with_the_key_of_the_plane(build: Build, secrets: SharedSecrets) -> None:
    configuration = yaml.safe_load(file(build(Component.APISERVER), "encryption.yaml"))
    (rule,) = configuration["resources"]
    assert rule["resources"] == ["secrets"]
    first, last = rule["providers"]
    assert base64.b64decode(first["secretbox"]["keys"][0]["secret"]) == secrets.encryption_keys[0].secret
    assert last == {"identity": {}}


def test_secrets_are_stored_as_they_are_where_that_is_asked_for_and_encrypted_ones_are_still_read(
    build: Build,
) -> None:
    plane = but(PLANE, encryption=Encryption(secrets=False))
    (rule,) = yaml.safe_load(file(build(Component.APISERVER, plane), "encryption.yaml"))["resources"]
    assert [list(provider) for provider in rule["providers"]] == [["identity"], ["secretbox"]]


@pytest.mark.parametrize(
    ("address", "reconciler"),
    [("10.0.0.1", "lease"), ("fd00::1", "lease"), ("127.11.0.1", "none"), ("::1", "none")],
)
def test_endpoints_are_kept_except_on_loopback(build: Build, address: str, reconciler: str) -> None:
    found = flags(build(Component.APISERVER, address=address))
    assert found["endpoint-reconciler-type"] == reconciler
    assert found["bind-address"] == found["advertise-address"] == address


@pytest.mark.parametrize(
    ("block", "nodes", "reconciler"), [(0, True, "lease"), (LAST_BLOCK, True, "none"), (LAST_BLOCK, False, "lease")]
)
def test_an_apiserver_with_other_ports_than_the_planes_sets_no_ports_for_all_endpoints(
    secrets: SharedSecrets, certificates: ReplicaSecrets, block: int, nodes: bool, reconciler: str
) -> None:
    """Unless nothing else would keep its own."""
    seat = seat_at("east-a1", "10.0.0.1", block)
    replica = replace(replica_at("10.0.0.1"), seat=seat, own_ports=has_own_ports(seat, 0))
    plane = but(PLANE, node_bootstrap=nodes or None)
    found = flags(component_unit(Component.APISERVER, inputs(plane, replica, secrets, certificates)))
    assert found["endpoint-reconciler-type"] == reconciler


def test_an_apiserver_that_has_its_machine_for_itself_may_listen_everywhere_and_says_where_it_is(
    secrets: SharedSecrets, certificates: ReplicaSecrets
) -> None:
    everywhere = replace(replica_at("10.0.0.1"), everywhere=True)
    found = flags(component_unit(Component.APISERVER, inputs(PLANE, everywhere, secrets, certificates)))
    assert (found["bind-address"], found["advertise-address"]) == ("0.0.0.0", "10.0.0.1")


def test_the_audit_log_is_on_the_planes_own_volume_and_is_kept_within_bounds(build: Build) -> None:
    found = flags(build(Component.APISERVER))
    assert found["audit-log-path"] == "/volumes/demo-audit/audit.log"
    kept = ("audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize")
    assert [found[flag] for flag in kept] == ["30", "10", "100"]
    audit = AuditTemplate(policy="kind: Policy", max_age_days=3, max_backups=4, max_size_megabytes=5)
    audited = build(Component.APISERVER, but(PLANE, audit=audit))
    assert file(audited, "audit-policy.yaml") == b"kind: Policy"
    assert [flags(audited)[flag] for flag in kept] == ["3", "4", "5"]


def test_an_apiserver_gets_the_time_that_its_shutdown_needs(build: Build) -> None:
    spec = build(Component.APISERVER)
    found = flags(spec)
    assert found["shutdown-delay-duration"] == "0s"
    assert found["shutdown-watch-termination-grace-period"] == "5s", "watches would hold it up for a minute without"
    assert found["shutdown-send-retry-after"] == "false"
    assert spec.stop_timeout == 65.0


@pytest.mark.parametrize("component", ReplicaPrograms().controllers)
def test_a_controller_talks_to_its_own_apiserver_and_waits_for_its_lease(
    build: Build, certificates: ReplicaSecrets, component: Component
) -> None:
    spec = build(component)
    found = flags(spec)
    config = yaml.safe_load(file(spec, "kubeconfig.yaml"))
    assert config["clusters"][0]["cluster"]["server"] == "https://10.0.0.1:6443"
    client = {
        Component.CONTROLLER_MANAGER: certificates.pairs["controller_manager_client"],
        Component.SCHEDULER: certificates.pairs["scheduler_client"],
        CLOUDS: certificates.pairs["cloud_controller_manager_client"],
    }[component]
    assert base64.b64decode(config["users"][0]["user"]["client-key-data"]) == client.key
    assert found["kubeconfig"] == found["authentication-kubeconfig"] == found["authorization-kubeconfig"]
    assert found["leader-elect"] == "true"
    assert found["bind-address"] == "10.0.0.1"
    assert found["profiling"] == "false"


def test_the_controller_manager_uses_an_account_for_each_controller(build: Build) -> None:
    found = flags(build(Component.CONTROLLER_MANAGER))
    assert found["use-service-account-credentials"] == "true"
    assert found["allocate-node-cidrs"] == "false"


def test_a_cloud_controller_manager_is_told_of_its_cloud_in_a_file_for_its_owner_alone(
    build: Build, golden: Golden
) -> None:
    spec = build(CLOUDS)
    found = flags(spec)
    assert (found["cloud-provider"], found["cloud-config"]) == ("fake", f"/units/{CLOUDS}/cloud.conf")
    assert (found["cluster-name"], found["allocate-node-cidrs"]) == ("demo", "false")
    assert file(spec, "cloud.conf") == b"[Global]\nregion=here\n"
    assert {each.mode for each in spec.files} == {0o600}
    for flag in ("cloud-provider", "cloud-config"):
        with golden.raises(InvalidInput):
            build(CLOUDS, but(PLANE, cloud_controller_manager=CLOUD, flags={CLOUDS: {flag: "x"}}))


def test_a_cloud_controller_manager_decides_by_itself_what_nobody_tells_it(build: Build) -> None:
    plane = but(PLANE, cloud_controller_manager=CloudControllerManager(program=PurePosixPath("/opt/ccm")))
    spec = build(CLOUDS, but(plane, flags={CLOUDS: {"cloud-provider": "own", "cluster-cidr": "10.8.0.0/16"}}))
    found = flags(spec)
    assert (found["cloud-provider"], found["cluster-cidr"]) == ("own", "10.8.0.0/16")
    assert not {"cloud-provider", "cloud-config"} & flags(build(CLOUDS, plane)).keys()


def test_the_controller_manager_leaves_the_cloud_to_another_program_where_there_is_one(build: Build) -> None:
    assert "cloud-provider" not in flags(build(Component.CONTROLLER_MANAGER))
    assert (
        flags(build(Component.CONTROLLER_MANAGER, but(PLANE, cloud_controller_manager=CLOUD)))["cloud-provider"]
        == "external"
    )


def test_extra_arguments_go_before_the_defaults(build: Build) -> None:
    plane = but(PLANE, flags={Component.APISERVER: {"event-ttl": "2h", "profiling": "true"}})
    found = flags(build(Component.APISERVER, plane))
    assert (found["event-ttl"], found["profiling"]) == ("2h", "true")
    assert flags(build(Component.SCHEDULER, plane))["profiling"] == "false"


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--event-ttl", "1h"), ("event ttl", "1h"), ("Event-TTL", "1h"), ("", "x"), ("v", "2\n--x"), ("v", "\0")],
)
def test_what_is_not_a_flag_is_refused(build: Build, flag: str, value: str) -> None:
    with pytest.raises(InvalidInput):
        build(Component.APISERVER, but(PLANE, flags={Component.APISERVER: {flag: value}}))


def test_blocks_have_ports_of_their_own_and_planes_too() -> None:
    """The peers of an etcd of events come where apiservers of other blocks are: the ledger looks."""
    taken: set[int] = set()
    for number in range(LAST_BLOCK + 1):
        seat = seat_at("east-a1", "10.0.0.1", number)
        assert len({each.listen.port for each in seat.ports}) == len(seat_ports())
        ports = {each.listen.port for each in seat.ports if each.name != PortName.EVENTS_PEER}
        assert not taken & ports
        taken |= ports
    assert len({load_balancer_port(number) for number in range(LAST_BLOCK + 1)}) == LAST_BLOCK + 1


@pytest.mark.parametrize("number", [-1, LAST_BLOCK + 1])
def test_a_number_without_ports_is_refused(number: int) -> None:
    with pytest.raises(InvalidInput):
        seat_at("east-a1", "10.0.0.1", number)
    with pytest.raises(InvalidInput):
        load_balancer_port(number)


#: The digests that units have since 0.1.0, by address and number.
DIGESTS = {
    ("10.0.0.1", 0): ("150eb5d2ab96101b", "b8428bf3cbd39742", "09122bf91983ee9b", "c57ead4b40fbc6eb"),
    ("127.11.0.2", 3): ("127feb6455e31c76", "8e11ced337b7e149", "c847169f4f085090", "55219bfd8438a7f3"),
}


@pytest.mark.parametrize(("address", "number"), DIGESTS)
def test_the_units_of_a_replica_stay_what_they_are(address: str, number: int) -> None:
    """Or all of them would be restarted by the next version."""
    pair = KeyPair(b"certificate", b"key")
    secrets = SharedSecrets(
        kubernetes_ca=Authority.of(pair),
        etcd_ca=Authority.of(pair),
        front_proxy_ca=Authority.of(pair),
        service_account=(SigningKey(b"public", b"private"),),
        encryption_keys=(EncryptionKey("key1", bytes(32)),),
        manager=pair,
        etcd_manager=pair,
    )
    certificates = ReplicaSecrets({each.name: pair for spec in CATALOGUE.values() for each in spec.certificates})
    replica = replace(replica_at(address), seat=seat_at("east-a1", address, number))
    members = (("demo-1", f"https://{address}:{2380 + 10 * number}"),)
    cluster = InitialCluster(state=ClusterState.NEW, members=members, token="t")
    plane = but(PLANE, policy="kind: Policy")
    made = inputs(plane, replica, secrets, certificates, cluster)
    found = tuple(component_unit(each, made).digest for each in programs_of(plane))
    assert found == DIGESTS[address, number]


LISTED = (
    PortName.ETCD_CLIENT,
    PortName.ETCD_PEER,
    PortName.ETCD_METRICS,
    PortName.APISERVER,
    PortName.CONTROLLER_MANAGER,
    PortName.SCHEDULER,
    PortName.EVENTS_CLIENT,
    PortName.EVENTS_PEER,
    PortName.EVENTS_METRICS,
    PortName.CLOUD_CONTROLLER_MANAGER,
)


def test_programs_listen_where_they_are_put_and_say_where_they_are_reached(build: Build) -> None:
    seat = Seat(
        machine="east-a1",
        ports=tuple(
            SeatPort(name=name, listen=HostPort("10.0.0.1", 100 + at), advertised=HostPort("10.9.0.1", 200 + at))
            for at, name in enumerate(LISTED)
        ),
    )
    etcd, events, apiserver, manager, scheduler, cloud = (flags(build(each, seat=seat)) for each in NAMED)
    assert etcd["listen-client-urls"] == "https://10.0.0.1:100"
    assert etcd["advertise-client-urls"] == apiserver["etcd-servers"] == "https://10.9.0.1:200"
    assert (etcd["listen-peer-urls"], etcd["initial-advertise-peer-urls"]) == (
        "https://10.0.0.1:101",
        "https://10.9.0.1:201",
    )
    assert etcd["listen-metrics-urls"] == "https://10.0.0.1:102"
    assert events["listen-client-urls"] == "https://10.0.0.1:106"
    assert (events["listen-peer-urls"], events["initial-advertise-peer-urls"]) == (
        "https://10.0.0.1:107",
        "https://10.9.0.1:207",
    )
    assert events["listen-metrics-urls"] == "https://10.0.0.1:108"
    where = ("bind-address", "secure-port")
    assert [apiserver[each] for each in (*where, "advertise-address")] == ["10.0.0.1", "103", "10.9.0.1"]
    assert [manager[each] for each in where] == ["10.0.0.1", "104"]
    assert [scheduler[each] for each in where] == ["10.0.0.1", "105"]
    assert [cloud[each] for each in where] == ["10.0.0.1", "109"]
    for each in ReplicaPrograms().controllers:
        assert b"https://10.9.0.1:203" in file(build(each, seat=seat), "kubeconfig.yaml")


@pytest.mark.parametrize("text", ["1.36", "latest", "", "1.36.3-rc.1"])
def test_a_version_is_three_numbers(text: str) -> None:
    with pytest.raises(InvalidInput):
        minor(text)


def test_ipv6_addresses_are_in_brackets() -> None:
    assert url("fd00::1", 6443) == "https://[fd00::1]:6443"


def test_the_etcd_of_events_is_rendered_as_the_other_one_is(build: Build) -> None:
    """With its own ports, quota and files, and the same certificates."""
    plane = but(PLANE, etcd=EVENTS)
    main, events = build(Component.ETCD, plane), build(Component.EVENTS_ETCD, plane)
    differ = {name for name, value in flags(main).items() if flags(events)[name] != value}
    of_files = {name for name, value in flags(main).items() if value.startswith("/units/")}
    assert flags(main).keys() == flags(events).keys()
    assert differ - of_files == {
        "advertise-client-urls",
        "initial-advertise-peer-urls",
        "listen-client-urls",
        "listen-metrics-urls",
        "listen-peer-urls",
        "quota-backend-bytes",
    }
    assert {each.path.name: each.content for each in main.files} == {
        each.path.name: each.content for each in events.files
    }
    assert (main.boot_argv, main.stop_timeout) == (events.boot_argv, events.stop_timeout)


def test_an_apiserver_keeps_events_elsewhere_only_where_there_is_such_an_etcd(build: Build) -> None:
    assert "etcd-servers-overrides" not in flags(build(Component.APISERVER))
    found = flags(build(Component.APISERVER, but(PLANE, etcd=EVENTS)))
    assert found["etcd-servers-overrides"] == "/events#https://10.0.0.1:2382"
    assert found["etcd-servers"] == "https://10.0.0.1:2379"


def test_the_catalogue_says_which_certificates_and_ports_a_program_has(
    build: Build, certificates: ReplicaSecrets
) -> None:
    assert sorted(each.name for each in seat_ports()) == sorted(PortName)
    for component, spec in CATALOGUE.items():
        unit = build(component, but(PLANE, etcd=EVENTS))
        content = b"\n".join(each.content for each in unit.files)
        named = {each.name for each in spec.certificates}
        for name, pair in certificates.pairs.items():
            has = pair.key in content or base64.b64encode(pair.key) in content
            assert has is (name in named), f"{component}: {name}"
