"""The pure parts: what Envoy and CoreDNS are given."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import PurePosixPath

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.components.credentials import KeyPair
from quarterdeck.components.traffic.coredns import DnsSettings, base_file, dns_unit, record_file, zone_path
from quarterdeck.components.traffic.envoy import BalancerSettings, BalancerTls, backends_file, balancer_unit, tls_files
from quarterdeck.model.endpoints import BackendAddress, DnsRecord

MANAGER = "CN=quarterdeck,O=system:masters"
BALANCER = BalancerSettings(
    unit="lb-demo",
    binary=PurePosixPath("/opt/envoy"),
    folder=PurePosixPath("/srv/lb-demo"),
    address="192.0.2.1",
    port=6443,
    status_port=9901,
)
DNS = DnsSettings(
    unit="dns",
    binary=PurePosixPath("/opt/coredns"),
    folder=PurePosixPath("/srv/with space/dns"),
    address="192.0.2.53",
    port=5353,
    zone="planes.test.",
)
KEY = b"-----BEGIN EC PRIVATE KEY-----"


def test_neither_backends_nor_certificates_are_part_of_the_unit_so_their_change_never_restarts_it() -> None:
    unit = balancer_unit(BALANCER, MANAGER)
    live = {backends_file(BALANCER, {}).path, *(file.path for file in tls_files(BALANCER, tls()))}
    assert live.isdisjoint(file.path for file in unit.files)
    assert {path.parent for path in live} == {PurePosixPath("/srv/lb-demo/live")}


def test_keys_are_only_in_files_that_nobody_else_can_read() -> None:
    files = tls_files(BALANCER, tls())
    assert any(KEY in file.content for file in files)
    assert {file.mode for file in files} == {0o600}
    assert KEY.decode() not in repr((tls(), files, balancer_unit(BALANCER, MANAGER)))


@given(st.permutations(["r1", "r2", "r3"]))
def test_the_backends_file_is_the_same_whatever_their_order(names: list[str]) -> None:
    backends = {name: BackendAddress("192.0.2.7", 6440 + int(name[1])) for name in names}
    assert backends_file(BALANCER, backends) == backends_file(BALANCER, dict(sorted(backends.items())))


def test_each_backend_travels_with_its_name() -> None:
    content = json.loads(backends_file(BALANCER, {"r1": BackendAddress("2001:db8::1", 6443)}).content)
    (endpoint,) = content["resources"][0]["endpoints"][0]["lb_endpoints"]
    assert endpoint["endpoint"]["hostname"] == "r1"
    assert endpoint["endpoint"]["address"]["socket_address"] == {"address": "2001:db8::1", "port_value": 6443}


def test_the_admin_api_is_on_no_network_address_and_in_the_units_own_folder() -> None:
    deep = replace(BALANCER, folder=PurePosixPath("/srv", "x" * 200))
    pipe = json.loads(bootstrap(deep))["admin"]["address"]["pipe"]
    assert pipe == {"path": "admin.sock", "mode": 0o600}, "a name in the folder that the unit runs in, and not abstract"


def test_each_name_has_a_zone_file_of_its_own() -> None:
    record = DnsRecord(("192.0.2.1", "2001:db8::1"), 5)
    file = record_file(DNS, "demo.planes.test.", record)
    assert file.path == PurePosixPath("/srv/with space/dns/zones/db.demo.planes.test")
    assert b"demo.planes.test. 5 IN A 192.0.2.1\n" in file.content
    assert b"demo.planes.test. 5 IN AAAA 2001:db8::1\n" in file.content
    assert base_file(DNS).path == zone_path(DNS, DNS.zone)
    assert file.path not in {each.path for each in dns_unit(DNS).files}


records = st.builds(
    DnsRecord, st.sampled_from([("192.0.2.1",), ("192.0.2.2",), ("192.0.2.1", "192.0.2.2")]), st.integers(1, 3)
)


@given(records, records)
def test_the_serial_differs_whenever_the_record_does(one: DnsRecord, other: DnsRecord) -> None:
    serials = {serial(record_file(DNS, "demo.planes.test.", record).content) for record in (one, other)}
    assert len(serials) == (1 if one == other else 2)


def test_a_temporary_file_is_never_taken_for_a_zone() -> None:
    (corefile,) = dns_unit(DNS).files
    assert rb'directory "/srv/with space/dns/zones" ^db\.(.*)$ {1}' in corefile.content


def tls() -> BalancerTls:
    return BalancerTls(ca=b"CA", serving=KeyPair(b"certificate", KEY), manager=MANAGER)


def bootstrap(settings: BalancerSettings) -> bytes:
    (file,) = balancer_unit(settings, MANAGER).files
    return file.content


def serial(zone: bytes) -> bytes:
    return zone.splitlines()[0].split()[6]


def listeners(settings: BalancerSettings) -> list[dict[str, object]]:
    (bootstrap,) = balancer_unit(settings, MANAGER).files
    found: list[dict[str, object]] = json.loads(bootstrap.content)["static_resources"]["listeners"]
    return found


def test_a_load_balancer_listens_where_its_machine_may_have_an_address_one_day() -> None:
    for each in listeners(replace(BALANCER, floating=("198.18.0.1", "198.18.0.2"))):
        assert each["freebind"] is True
        assert "198.18.0.2" in json.dumps(each["additional_addresses"])
    assert all("freebind" not in each and "additional_addresses" not in each for each in listeners(BALANCER))
