"""Add-ons of a plane, as their projects publish them (objects only): they come, change, are taken back, and go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.clients import Client
from support.plane_lab import PlaneLab

pytestmark = pytest.mark.timeout(300)

COREDNS = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:coredns"}
rules:
- {apiGroups: [""], resources: [endpoints, services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:coredns"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:coredns"}
subjects: [{kind: ServiceAccount, name: coredns, namespace: kube-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        errors
        kubernetes cluster.local in-addr.arpa ip6.arpa
        forward . /etc/resolv.conf
        cache 30
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  replicas: 2
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      serviceAccountName: coredns
      dnsPolicy: Default
      containers:
      - name: coredns
        image: registry.k8s.io/coredns/coredns:v1.12.0
        args: ["-conf", /etc/coredns/Corefile]
        resources: {limits: {memory: 170Mi}, requests: {cpu: 100m, memory: 70Mi}}
        volumeMounts: [{name: config-volume, mountPath: /etc/coredns, readOnly: true}]
        ports:
        - {containerPort: 53, name: dns, protocol: UDP}
        - {containerPort: 53, name: dns-tcp, protocol: TCP}
      volumes: [{name: config-volume, configMap: {name: coredns, items: [{key: Corefile, path: Corefile}]}}]
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  selector: {k8s-app: kube-dns}
  ports:
  - {name: dns, port: 53, protocol: UDP}
  - {name: dns-tcp, port: 53, protocol: TCP}
"""
KUBE_PROXY = """
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-proxy}
data: {config.conf: "kind: KubeProxyConfiguration"}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy}
spec:
  selector: {matchLabels: {k8s-app: kube-proxy}}
  template:
    metadata: {labels: {k8s-app: kube-proxy}}
    spec:
      hostNetwork: true
      containers:
      - {name: kube-proxy, image: "registry.k8s.io/kube-proxy:v1.37.2", securityContext: {privileged: true}}
"""
METRICS = """
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: metrics-server, namespace: kube-system}
---
apiVersion: v1
kind: Service
metadata: {name: metrics-server, namespace: kube-system}
spec: {selector: {k8s-app: metrics-server}, ports: [{name: https, port: 443, targetPort: https}]}
---
apiVersion: example.com/v1
kind: Note
metadata: {name: beside}
spec: {text: its definition comes first}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: notes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Note, plural: notes, singular: note}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


class Addons:
    """The plane ``demo``, with these add-ons written down in a file."""

    def __init__(self, lab: PlaneLab) -> None:
        self.lab = lab
        self.client: Client = lab.client("demo")

    def declared(self, *addons: dict[str, Any]) -> Path:
        document = yaml.safe_load(self.lab.run("get", "demo", "-o", "yaml").out)
        document.pop("status", None)
        document["metadata"] = {"name": "demo"}
        document["spec"]["addons"] = [*addons]
        return self.lab.file(yaml.safe_dump(document))

    def apply(self, *addons: dict[str, Any]) -> None:
        done = self.lab.run("apply", "-f", str(self.declared(*addons)))
        assert done.code == 0, done

    def names(self, *what: str) -> set[str]:
        """What there is of quarterdeck's own, by kind and name."""
        label = "applyset.kubernetes.io/part-of"
        return {*self.lab.kubectl(self.client, "get", *what, "-A", "-l", label, "-o", "name").split()}

    def field(self, path: str, *what: str) -> str:
        return self.lab.kubectl(self.client, "get", *what, "-o", f"jsonpath={path}")


@pytest.fixture
def addons(demo: PlaneLab) -> Iterator[Addons]:
    made = Addons(demo)
    try:
        yield made
    finally:
        made.apply()


KINDS = (
    "serviceaccounts,clusterroles,clusterrolebindings,configmaps,deployments.apps,daemonsets.apps,services,apiservices"
)


def test_add_ons_come_change_are_taken_back_and_go(demo: PlaneLab, addons: Addons) -> None:
    ours = addons.names(KINDS)  # what nodes look for
    folder = demo.root / "kube-proxy"
    folder.mkdir()
    (folder / "proxy.yaml").write_text(KUBE_PROXY)
    dns = {"name": "coredns", "inline": COREDNS}
    proxy = {"name": "kube-proxy", "namespace": "kube-system", "folder": str(folder)}
    metrics = {"name": "metrics-server", "file": str(demo.file(METRICS))}

    shown = demo.run("plan", "demo", "-f", str(addons.declared(dns, proxy, metrics))).out
    assert "add-on coredns: 6 added" in shown
    assert "+ Deployment.apps kube-system/coredns" in shown
    addons.apply(dns, proxy, metrics)
    assert {"deployment.apps/coredns", "daemonset.apps/kube-proxy", "service/metrics-server"} <= addons.names(KINDS)
    assert addons.field("{.spec.text}", "note", "beside") == "its definition comes first"
    assert "add-on coredns: 6 objects are up to date" in demo.run("status", "demo").out

    # Changed, and what is not wanted any more goes, though an apiserver that is aggregated does not answer.
    smaller = "---".join(each for each in COREDNS.split("---") if "kind: Service\n" not in each)
    dns["inline"] = smaller.replace("cache 30", "cache 60")
    addons.apply(dns, proxy, metrics)
    assert "cache 60" in addons.field("{.data.Corefile}", "configmap", "coredns", "-n", "kube-system")
    assert "service/kube-dns" not in addons.names(KINDS)

    # Changed by somebody else: a field that was quarterdeck's comes back, one that never was stays.
    version = addons.field("{.metadata.resourceVersion}", "daemonset", "kube-proxy", "-n", "kube-system")
    patch = {"spec": {"replicas": 7, "revisionHistoryLimit": 3}}
    demo.kubectl(addons.client, "patch", "deployment", "coredns", "-n", "kube-system", "-p", json.dumps(patch))
    assert demo.run("wait", "demo").code == 0
    seen = addons.field("{.spec.replicas} {.spec.revisionHistoryLimit}", "deployment", "coredns", "-n", "kube-system")
    assert seen == "2 3"
    untouched = addons.field("{.metadata.resourceVersion}", "daemonset", "kube-proxy", "-n", "kube-system")
    assert untouched == version, "what nobody changed is not written again"

    addons.apply()
    assert addons.names(KINDS) == ours
    assert "notes.example.com" not in demo.kubectl(addons.client, "get", "crds", "-o", "name")
