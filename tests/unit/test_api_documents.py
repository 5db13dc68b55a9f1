"""What users write is read whole or refused in one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from support.golden import Golden

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.documents import dump_json, dump_yaml, load
from quarterdeck.api.errors import explained
from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.api.plane.endpoint import EndpointMode
from quarterdeck.api.site import Site, default_sites
from quarterdeck.components.controller.names import Listed
from quarterdeck.engine.controller_sets.declarations import admit_sets
from quarterdeck.errors import InvalidInput

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def plane(spec: str = "placement: {site: east}", name: str = "alpha", more: str = "") -> str:
    return (
        "apiVersion: quarterdeck.dev/v1alpha1\nkind: ControlPlane\n"
        f"metadata: {{name: {name}}}\nspec: {{{spec}}}\n{more}"
    )


def refusal(text: str) -> str:
    with pytest.raises(InvalidInput) as caught:
        load(text, "plane.yaml")
    line = str(caught.value)
    assert "\n" not in line
    return line


def problem(spec: str) -> str:
    """What is said of a spec that has one problem."""
    line = refusal(plane(spec))
    prefix = "reading ControlPlane 'alpha' in plane.yaml, document 1 (line 1): "
    assert line.startswith(prefix)
    return line.removeprefix(prefix)


def one(text: str) -> ControlPlane:
    (resource,) = load(text, "plane.yaml")
    assert isinstance(resource, ControlPlane)
    return resource


def test_the_example_of_a_control_plane_loads() -> None:
    alpha = one((EXAMPLES / "controlplane.yaml").read_text())
    assert alpha.spec.etcd.quota_bytes == 4 * 2**30
    assert alpha.spec.endpoint.drain == 2.0
    assert alpha.spec.extra_args.kube_apiserver == {"max-requests-inflight": "800"}


def test_the_example_of_a_netns_site_loads() -> None:
    (north,) = load((EXAMPLES / "site-netns.yaml").read_text(), "site-netns.yaml")
    assert isinstance(north, Site)
    assert north.spec.storage_classes[1].limit_bytes == 20 * 2**30


def test_the_example_of_dynamic_dns_loads_with_both_documents() -> None:
    beta, gamma = load((EXAMPLES / "rfc2136.yaml").read_text(), "rfc2136.yaml")
    assert isinstance(beta, ControlPlane)
    assert isinstance(gamma, ControlPlane)
    assert beta.host == "beta.clusters.example.com"
    assert beta.spec.endpoint.rfc2136 is not None
    assert gamma.spec.endpoint.mode is EndpointMode.UNMANAGED


def test_the_example_of_events_in_an_etcd_of_their_own_loads() -> None:
    alpha = one((EXAMPLES / "events-etcd.yaml").read_text())
    assert alpha.spec.etcd.events.separate
    assert alpha.spec.storage_classes == (None, "standard")


def test_the_example_of_a_cloud_controller_manager_loads() -> None:
    cloud = one((EXAMPLES / "cloud.yaml").read_text()).spec.cloud_controller_manager
    assert cloud is not None
    assert (cloud.provider, cloud.flags) == ("openstack", {"cluster-cidr": "10.200.0.0/16", "v": "2"})
    assert (cloud.config or "").startswith("[Global]\nauth-url=")


def test_the_example_of_controller_sets_loads_and_is_one_that_may_be() -> None:
    alpha = one((EXAMPLES / "controller-sets.yaml").read_text())
    (nodes,) = alpha.spec.controller_sets
    assert (nodes.lock, nodes.owner) == ("node-networks-migration", ControllerProgram.KUBE)
    admit_sets(alpha, None, Listed(("cloud-node-controller", "node-ipam-controller")))


def test_every_example_is_loaded_by_a_test() -> None:
    assert {path.name for path in EXAMPLES.glob("*.yaml")} == {
        "controlplane.yaml",
        "site-netns.yaml",
        "rfc2136.yaml",
        "events-etcd.yaml",
        "cloud.yaml",
        "controller-sets.yaml",
        "hosts.yaml",  # an inventory: test_cli_site_hosts.py
    }


def test_a_plane_needs_only_a_name_and_a_site() -> None:
    alpha = one(plane())
    assert alpha == new_control_plane("alpha", site="east")
    assert alpha.spec.kubernetes_version == "v1.37.2"
    assert alpha.spec.etcd.version == "3.7.3"
    assert alpha.spec.replicas == 3
    assert alpha.spec.endpoint.ttl == 5
    assert alpha.spec.encryption.secrets
    assert alpha.spec.audit is None
    assert alpha.host == "alpha.quarterdeck.internal"


@pytest.mark.parametrize(
    "spec",
    [
        "placement: {site: east}, endpiont: {}",
        "placement: {site: east, ste: a}",
        "site: a, placement: {site: a}",
        "placement: {site: east}, kubernetes_version: v1.36.3",
        "placement: {site: a}, encryption: {foo: 1}",
        "placement: {}",
        "replicas: 1",
        "placement: {site: a}, replicas: 4",
        f"placement: {{site: {'a' * 21}}}",
        "placement: {site: a}, replicas: 9",
        "placement: {site: a}, replicas: '3'",
        "placement: {site: a}, replicas: true",
        "placement: {site: a}, paused: 1",
        "placement: {site: a, zones: [a, a]}",
        "placement: {site: a, zones: [a, 3]}",
        "placement: {site: a}, kubernetesVersion: 1.36",
        "placement: {site: a}, kubernetesVersion: latest",
        "placement: {site: a}, etcd: {quotaBytes: 8GB}",
        "placement: {site: a}, etcd: {heartbeatMilliseconds: 400}",
        "placement: {site: a}, endpoint: {ttl: 500ms}",
        "placement: {site: a}, endpoint: {mode: dns}",
        "placement: {site: a}, endpoint: {mode: address}",
        "placement: {site: a}, endpoint: {mode: address, address: 192.0.2.1, name: a.b}",
        "placement: {site: a}, endpoint: {mode: address, address: a.b}",
        "placement: {site: a}, endpoint: {address: 192.0.2.1}",
        "placement: {site: a}, endpoint: {mode: unmanaged}",
        "placement: {site: a}, endpoint: {resolvers: [{address: 192.0.2.53}]}",
        "placement: {site: a}, endpoint: {mode: unmanaged, name: a.b, leadsTo: apiservers}",
        "placement: {site: a}, endpoint: {leadsTo: promoted}",
        "placement: {site: a}, endpoint: {mode: address, address: 192.0.2.1, leadsTo: promoted, port: 7443}",
        "placement: {site: a}, endpoint: {leadsTo: apiservers, port: 7443}",
        "placement: {site: a}, endpoint: {mode: unmanaged, name: a.b, resolvers: [{address: dns.a.b}]}",
        "placement: {site: a}, endpoint: {mode: rfc2136}",
        "placement: {site: a}, endpoint: {name: 10.0.0.1}",
        "placement: {site: a}, serviceCidrs: [10.96.0.1/16]",
        "placement: {site: a}, serviceCidrs: [10.0.0.0/8]",
        "placement: {site: a}, serviceCidrs: [10.96.0.0/16, 10.97.0.0/16]",
        "placement: {site: a}, serviceCidrs: []",
        "placement: {site: a}, serviceCidrs: [10.96.0.0/16, 'fd00::/112', 'fd01::/112']",
        "placement: {site: a}, audit: {policyFile: policy.yaml}",
        "placement: {site: a}, extraArgs: {etcd: {--debug: true}}",
        "placement: {site: a}, extraArgs: {apiserver: {v: 2}}",
    ],
)
def test_a_bad_field_is_refused_with_its_path_and_what_to_write(spec: str, golden: Golden) -> None:
    golden(problem(spec))


def test_a_name_of_rfc2136_must_be_in_its_zone(golden: Golden) -> None:
    tsig = "tsig: {keyName: k, secretFile: /k}"
    settings = f"mode: rfc2136, rfc2136: {{server: 127.0.0.1, zone: a.example, {tsig}}}"
    message = problem(f"placement: {{site: a}}, endpoint: {{{settings}, name: x.b.example}}")
    golden(message)
    assert one(plane(f"placement: {{site: a}}, endpoint: {{{settings}}}")).host == "alpha.a.example"


def test_all_problems_are_told_in_one_line() -> None:
    line = refusal(plane("replicas: 2, plcement: {}, endpoint: {mode: unmanaged, ttl: 0}", name="Alpha"))
    assert line.count("; ") >= 4
    for path in ("metadata.name: ", "spec.replicas: ", "spec.plcement: ", "spec.placement: ", "spec.endpoint.ttl: "):
        assert path in line


@pytest.mark.parametrize("name", ["a" * 41, "Alpha", "-a", "a.b", "a_b", "''", "a\u00e9"])
def test_names_that_are_no_short_dns_labels_are_refused(name: str) -> None:
    assert "metadata.name: " in refusal(plane(name=name))


def test_the_longest_name_still_fits() -> None:
    assert one(plane(name="a" * 40)).name == "a" * 40


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---\n---\n",
        "[1]",
        "hello",
        "kind: ControlPlan",
        "kind: PlaneSecrets",
        "a: 1",
        "kind: Site",
        "kind: Site\napiVersion: v1",
        "a: [",
        "a: !!python/object:os.system {}",  # a tag of a mapping says nothing
        plane() + "---\n" + plane(),
        '{"kind": "List", "items": 3}',
    ],
)
def test_a_bad_document_is_refused_in_one_line(text: str, golden: Golden) -> None:
    golden(refusal(text))


def test_of_several_documents_the_bad_one_is_named(golden: Golden) -> None:
    line = refusal(plane() + "---\n" + plane(name="beta", spec="placement: {site: 3}"))
    golden(line)


def test_json_and_yaml_are_read_alike_and_what_is_dumped_loads_again() -> None:
    resources = (*default_sites(), one(plane()))
    assert load(dump_yaml(resources), "x") == resources
    assert load(dump_json(resources), "x") == resources
    assert load(dump_json(resources[:1]), "x") == resources[:1]


def test_documents_are_spelled_in_camel_case_without_empty_fields() -> None:
    (document,) = yaml.safe_load_all(dump_yaml([one(plane())]))
    assert document["spec"]["kubernetesVersion"] == "v1.37.2"
    assert "zones" not in document["spec"]["placement"]


def test_a_timestamp_in_yaml_stays_a_timestamp() -> None:
    text = plane().replace("{name: alpha}", "{name: alpha, creationTimestamp: 2026-01-02T03:04:05Z}")
    created = one(text).metadata.creation_timestamp
    assert created is not None
    assert created.isoformat() == "2026-01-02T03:04:05+00:00"


def test_flag_values_that_yaml_takes_for_other_things_stay_as_written() -> None:
    alpha = one(plane("placement: {site: a}, extraArgs: {kubeScheduler: {v: 2, profiling: false, x: '01'}}"))
    assert alpha.spec.extra_args.kube_scheduler == {"v": "2", "profiling": "false", "x": "01"}


def test_a_plane_built_in_code_is_checked_alike(golden: Golden) -> None:
    with (
        golden.raises(InvalidInput),
        explained("creating 'a'", ControlPlane),
    ):
        new_control_plane("a", site="east", replicas=2)


@pytest.mark.parametrize(
    "spec",
    [
        "replicas: null, placement: {site: east, zones: null, storageClass: ''}",
        "extraArgs: null, audit: , etcd: {storageClass: '', heartbeatMilliseconds: null}, placement: {site: east}",
        "endpoint: {mode: null, name: '', ttl: }, placement: {site: east}",
        "placement: {site: east}, replicas: 3e0, etcd: {electionMilliseconds: 1e+03}",
    ],
)
def test_what_is_left_open_is_not_set(spec: str) -> None:
    """As for a custom resource: null is pruned before defaults are set. Numbers are as helm writes them."""
    left_open = one(plane(spec))
    assert left_open.spec.replicas == 3
    without = left_open.model_dump(exclude={"spec": {"etcd": {"election_milliseconds"}}})
    assert without == one(plane()).model_dump(exclude={"spec": {"etcd": {"election_milliseconds"}}})


@pytest.mark.parametrize(
    "spec",
    [
        "placement: {site: ''}",
        "placement: {site: null}",
        "placement: {site: y}",
        "placement: {site: east}, extraArgs: {etcd: {debug: null}}",
        "placement: {site: east}, replicas: ''",
        'placement: {site: east}, ? "re\\u00a0plicas" : 1',
    ],
)
def test_what_must_be_set_is_not_left_open(spec: str, golden: Golden) -> None:
    golden(problem(spec))


def test_errors_name_the_file_the_document_and_the_line(golden: Golden) -> None:
    listed = "apiVersion: v1\nkind: List\nitems:\n- kind: Nothing\n"
    golden(refusal(f"# a comment\n---\n{plane()}---\n{listed}"))
    golden(refusal('{"kind": "Site"}\n{"kind": "Nothing"}'))
