"""What nodes look for when they join: as kubeadm reads it, with the plane's own name, and nobody else's rights."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
import yaml

from quarterdeck.addons.content import decoded
from quarterdeck.addons.nodes import GROUP, Joined, for_nodes
from quarterdeck.model.seats import HostPort

JOINED = Joined(
    plane="demo",
    server="https://demo.quarterdeck.internal:6443",
    ca=b"the plane's authorities",
    kubernetes="v1.36.3",
    service_cidrs=("10.96.0.0/16",),
    cluster_domain="cluster.local",
)


def objects(joined: Joined = JOINED) -> dict[str, Any]:
    return {str(each.ref): each.manifest for each in for_nodes(joined).objects}


def config(name: str, key: str, joined: Joined = JOINED) -> Any:
    return yaml.safe_load(objects(joined)[f"ConfigMap {name}"]["data"][key])


def test_all_that_kubeadm_init_leaves_for_nodes_is_there() -> None:
    rbac = "rbac.authorization.k8s.io"
    assert set(objects()) == {
        "ConfigMap kube-public/cluster-info",
        "ConfigMap kube-system/kubeadm-config",
        "ConfigMap kube-system/kubelet-config",
        f"Role.{rbac} kube-public/kubeadm:bootstrap-signer-clusterinfo",
        f"Role.{rbac} kube-system/kubeadm:nodes-kubeadm-config",
        f"Role.{rbac} kube-system/kubeadm:kubelet-config",
        f"RoleBinding.{rbac} kube-public/kubeadm:bootstrap-signer-clusterinfo",
        f"RoleBinding.{rbac} kube-system/kubeadm:nodes-kubeadm-config",
        f"RoleBinding.{rbac} kube-system/kubeadm:kubelet-config",
        f"ClusterRole.{rbac} kubeadm:get-nodes",
        f"ClusterRoleBinding.{rbac} kubeadm:get-nodes",
        f"ClusterRoleBinding.{rbac} kubeadm:kubelet-bootstrap",
        f"ClusterRoleBinding.{rbac} kubeadm:node-autoapprove-bootstrap",
        f"ClusterRoleBinding.{rbac} kubeadm:node-autoapprove-certificate-rotation",
        f"ClusterRoleBinding.{rbac} kubeadm:apiserver-kubelet-client",
    }


def test_nodes_are_told_the_name_of_the_plane_and_whom_to_trust() -> None:
    (cluster,) = config("kube-public/cluster-info", "kubeconfig")["clusters"]
    assert cluster["name"] == "", "kubeadm looks for that one"
    assert cluster["cluster"] == {
        "server": "https://demo.quarterdeck.internal:6443",
        "certificate-authority-data": base64.b64encode(b"the plane's authorities").decode(),
    }
    found = config("kube-system/kubeadm-config", "ClusterConfiguration")
    assert found["controlPlaneEndpoint"] == "demo.quarterdeck.internal:6443"
    assert found["kubernetesVersion"] == "v1.36.3"
    assert found["networking"] == {"dnsDomain": "cluster.local", "serviceSubnet": "10.96.0.0/16"}


def test_anybody_may_read_one_object_and_those_with_a_token_two_more() -> None:
    readers: dict[str, set[str]] = {}
    found = objects()
    for name, manifest in found.items():
        if name.startswith("RoleBinding"):
            role = found[name.replace("RoleBinding", "Role")]
            (rule,) = role["rules"]
            assert (rule["verbs"], rule["resources"]) == (["get"], ["configmaps"])
            readers[f"{manifest['metadata']['namespace']}/{rule['resourceNames'][0]}"] = {
                each["name"] for each in manifest["subjects"]
            }
    assert readers == {
        "kube-public/cluster-info": {"system:anonymous"},
        "kube-system/kubeadm-config": {GROUP, "system:nodes"},
        "kube-system/kubelet-config": {GROUP, "system:nodes"},
    }


def test_who_has_a_token_may_ask_for_a_nodes_certificate_and_apiservers_may_call_kubelets() -> None:
    bound = {
        each["metadata"]["name"]: (each["roleRef"]["name"], [one["name"] for one in each["subjects"]])
        for name, each in objects().items()
        if name.startswith("ClusterRoleBinding")
    }
    approved = "system:certificates.k8s.io:certificatesigningrequests"
    assert bound == {
        "kubeadm:kubelet-bootstrap": ("system:node-bootstrapper", [GROUP]),
        "kubeadm:get-nodes": ("kubeadm:get-nodes", [GROUP]),
        "kubeadm:node-autoapprove-bootstrap": (f"{approved}:nodeclient", [GROUP]),
        "kubeadm:node-autoapprove-certificate-rotation": (f"{approved}:selfnodeclient", ["system:nodes"]),
        "kubeadm:apiserver-kubelet-client": ("system:kubelet-api-admin", ["kube-apiserver-kubelet-client"]),
    }


def test_kubelets_ask_for_certificates_and_have_what_the_user_says_besides() -> None:
    found = config("kube-system/kubelet-config", "kubelet")
    assert (found["rotateCertificates"], found["serverTLSBootstrap"]) == (True, True)
    assert found["clusterDNS"] == ["10.96.0.10"]
    assert found["authentication"]["anonymous"] == {"enabled": False}
    ours = '{"failCgroupV1": false, "clusterDNS": ["10.96.0.99"], "serverTLSBootstrap": false}'
    other = config("kube-system/kubelet-config", "kubelet", replace(JOINED, kubelet=ours))
    assert (other["failCgroupV1"], other["clusterDNS"], other["serverTLSBootstrap"]) == (False, ["10.96.0.99"], True)


@pytest.mark.parametrize(("cidr", "dns"), [("10.96.0.0/29", None), ("fd00::/112", ["fd00::a"])])
def test_the_clusters_dns_has_its_usual_address_where_there_is_one(cidr: str, dns: list[str] | None) -> None:
    joined = replace(JOINED, service_cidrs=(cidr, "fd01::/112"))
    assert config("kube-system/kubelet-config", "kubelet", joined).get("clusterDNS") == dns
    networking = config("kube-system/kubeadm-config", "ClusterConfiguration", joined)["networking"]
    assert networking["serviceSubnet"] == f"{cidr},fd01::/112"


def test_apiservers_with_other_ports_have_endpoints_of_their_own_in_the_service_kubernetes() -> None:
    """A slice for each port and kind of address: it has one list of ports."""
    beside = (HostPort("192.0.2.1", 14313), HostPort("192.0.2.2", 14313), HostPort("2001:db8::1", 14313))
    found = objects(replace(JOINED, beside=beside))
    four = found["EndpointSlice.discovery.k8s.io default/kubernetes-ipv4-14313"]
    assert four["metadata"]["labels"]["kubernetes.io/service-name"] == "kubernetes"
    assert [each["addresses"] for each in four["endpoints"]] == [["192.0.2.1"], ["192.0.2.2"]]
    assert four["ports"] == [{"name": "https", "port": 14313, "protocol": "TCP"}]
    six = found["EndpointSlice.discovery.k8s.io default/kubernetes-ipv6-14313"]
    assert (six["addressType"], [each["addresses"] for each in six["endpoints"]]) == ("IPv6", [["2001:db8::1"]])


def test_it_is_kept_as_any_add_on_is() -> None:
    made = for_nodes(JOINED)
    assert decoded(made.addon, made.encoded()) == made
    assert for_nodes(JOINED) is made
