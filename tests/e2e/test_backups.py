"""Planes come back from their backups: in place to a moment before a mass deletion, and out of a bucket alone after the
home and everything that ran are gone.
"""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from support.clients import CONFIGMAPS, Client
from support.conditions import CALL, until
from support.leftovers import processes_of
from support.plane_lab import PlaneLab, managed
from support.s3_lab import BUCKET, S3Lab, s3_server
from support.widgets import DEFINITION, DEFINITIONS, WIDGETS

from quarterdeck.components.etcd import BUMP

pytestmark = pytest.mark.timeout(300)

_PLANE = """
apiVersion: quarterdeck.dev/v1alpha1
kind: ControlPlane
metadata: {{name: alpha}}
spec:
  replicas: {replicas}
  placement: {{site: east}}
  endpoint: {{ttl: 1}}
  backup: {{{backup}}}
"""
_DEFAULT = "/api/v1/namespaces/default"
_RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
#: What is created of each kind; the names are added.
_OBJECTS: dict[str, dict[str, Any]] = {
    CONFIGMAPS: {"data": {"text": "a value with ü and \n a second line"}},
    f"{_DEFAULT}/secrets": {"data": {"bytes": b64encode(bytes(range(256))).decode()}},
    f"{_DEFAULT}/services": {"spec": {"ports": [{"port": 80}], "selector": {"app": "none"}}},
    f"{_RBAC}/roles": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    WIDGETS: {"apiVersion": "tests.example/v1", "kind": "Widget", "spec": {"size": 3}},
}

_MADE = {"labelSelector": "made-by=tests"}

Objects = dict[str, dict[str, Any]]


def answered(http: httpx2.Client, method: str, path: str, **request: Any) -> httpx2.Response:
    """The answer once an apiserver serves a kind: another one than serves it already may still be about to."""

    def answer() -> httpx2.Response | None:
        got = http.request(method, path, **request)
        return None if got.status_code in (404, 429) else got.raise_for_status()

    got = until(answer, f"{path} is served")
    assert got is not None
    return got


def created(client: Client, prefix: str, count: int) -> None:
    """Objects of each kind."""
    with client.http(timeout=60.0) as http:
        for path, body in _OBJECTS.items():
            for number in range(count):
                labels = {"made-by": "tests"}
                made = {**body, "metadata": {"name": f"{prefix}-{number}", "labels": labels}}
                answered(http, "POST", path, json=made)


def with_widgets(client: Client) -> None:
    """The plane serves widgets."""
    with client.http(timeout=60.0) as http:
        http.post(DEFINITIONS, json=DEFINITION).raise_for_status()
        answered(http, "GET", WIDGETS)


def deleted(client: Client) -> None:
    """All objects of each kind."""
    with client.http(timeout=60.0) as http:
        for path in _OBJECTS:
            answered(http, "DELETE", path, params=_MADE)


def listed(client: Client) -> dict[str, Objects]:
    """All objects as the apiserver lists them, with their uids and revisions."""
    with client.http(timeout=60.0) as http:
        return {path: _by_name(answered(http, "GET", path, params=_MADE)) for path in _OBJECTS}


def _by_name(answer: httpx2.Response) -> Objects:
    items = answer.raise_for_status().json()["items"]
    return {each["metadata"]["name"]: each for each in items}


@dataclass
class Informer:
    """A client that lists and watches ConfigMaps as informers do: it goes on watching from where it was, and lists
    again only when it is told that this is not possible.
    """

    client: Client
    known: Objects = field(default_factory=dict)
    #: How often it had to list again after the first time.
    relists: int = 0
    _since: str = ""
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def watching(self) -> Iterator[Informer]:
        """For the block. It must have listed once before that begins."""
        self._list()
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join(CALL)
        assert not thread.is_alive()

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            try:
                if not self._since:
                    self._list()
                    self.relists += 1
                self._watch()
            except httpx2.HTTPError:
                continue  # nothing answers now: it tries again, from where it was

    def _list(self) -> None:
        with self.client.http() as http:
            answer = http.get(CONFIGMAPS, params=_MADE)
            self.known = _by_name(answer)
            self._since = answer.json()["metadata"]["resourceVersion"]

    def _watch(self) -> None:
        params = {
            **_MADE,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._since,
            "timeoutSeconds": "5",
        }
        with self.client.http() as http, http.stream("GET", CONFIGMAPS, params=params) as answer:
            if answer.status_code == 410:
                self._since = ""
                return
            answer.raise_for_status()
            for line in answer.iter_lines():
                self._take(json.loads(line))
                if not self._since:
                    return

    def _take(self, event: dict[str, Any]) -> None:
        what = event["object"]
        if event["type"] == "ERROR":
            self._since = "" if what["code"] == 410 else self._since
            return
        name, self._since = what["metadata"].get("name"), what["metadata"]["resourceVersion"]
        if event["type"] == "DELETED":
            self.known.pop(name, None)
        elif event["type"] != "BOOKMARK":
            self.known[name] = what


def epochs(lab: PlaneLab) -> dict[int, tuple[int, int]]:
    """The first and the last revision that ``backup list`` prints of each epoch; each has the whole plane."""
    rows = lab.run("backup", "list", "alpha", "-o", "json").json
    assert all(each["wholePlane"] for each in rows), rows
    assert len({each["epoch"] for each in rows}) == len(rows), f"no gaps: {rows}"
    return {each["epoch"]: (each["firstRevision"], each["lastRevision"]) for each in rows}


def test_a_plane_goes_back_in_place_to_a_moment_before_a_mass_deletion(lab: PlaneLab) -> None:
    with managed(lab):
        lab.run("apply", "-f", str(lab.file(_PLANE.format(replicas=3, backup="enabled: true"))))
        client = lab.client("alpha")
        with_widgets(client)
        created(client, "kept", 5)
        before = listed(client)
        taken = lab.run("backup", "create", "alpha", "-o", "json").json
        assert taken["wholePlane"]
        at = datetime.now(UTC)
        with Informer(client).watching() as informer:
            created(client, "later", 2)
            deleted(client)
            lost = lab.run("backup", "create", "alpha", "-o", "json").json["revision"]
            until(lambda: not informer.known, "the client has seen the deletion")
            assert not informer.relists

            found = lab.run("backup", "diff", "alpha", "--at", at.isoformat(), "-o", "json").json["objects"]
            gone = {each["name"] for each in found if (each["resource"], each["change"]) == ("secrets", "removed")}
            assert gone == {f"kept-{number}" for number in range(5)}
            verified = lab.run("backup", "verify", "alpha", "-o", "json").json
            assert verified["liveHashCompared"], verified
            drill = lab.run("drill", "alpha", "--fail", "total-loss", "-o", "json").json
            assert drill["phase"] == "Passed", drill
            assert drill["equalObjects"] > 50
            times = drill["recoveryTimeSeconds"], drill["recoveryPointSeconds"]
            print(f"\na restore beside the plane: recovery time and recovery point in seconds: {times}")
            back = ("backup", "get", "alpha", "secret", "kept-0", "--at", at.isoformat(), "--apply", "--yes")
            assert lab.run(*back, "-o", "json").json["action"] == "created"
            secrets = f"{_DEFAULT}/secrets"
            assert listed(client)[secrets]["kept-0"]["data"] == before[secrets]["kept-0"]["data"]
            # The losses are told up to the newest moment of the backup, which is behind by the time of a flush.
            assert lab.run("backup", "create", "alpha", "-o", "json").json["revision"] > lost

            done = lab.run("restore", "alpha", "--to", at.isoformat(), "--yes", "-o", "json")
            assert min(identities(client)) > at, "those of the stopped apiservers are gone"
            assert taken["revision"] <= done.json["revision"] < lost
            assert done.json["lostRevisions"] >= lost - done.json["revision"]
            lost_objects = {(each["resource"], each["name"]): each for each in done.json["losses"]["objects"]}
            assert lost_objects["configmaps", "kept-1"]["change"] == "removed"
            assert lost_objects["secrets", "kept-0"]["recreated"], "it is another one than it was"
            assert listed(client) == before, "what was there then is there, and nothing later"
            until(lambda: informer.known == before[CONFIGMAPS], "a client that watches sees what is restored")
            assert informer.relists, "it was told to list again"

            assert client.writes("in-the-new-epoch")
            again = lab.run("backup", "create", "alpha", "-o", "json").json
            assert again["revision"] > BUMP
            found = epochs(lab)
            former, new = sorted(found)
            assert found[former][1] >= lost
            assert found[new][0] > BUMP
            assert found[new][1] >= again["revision"]
            lab.run("wait", "alpha")
            seen = lab.status("alpha", code=0)
            assert seen["voters"] == 3


def identities(client: Client) -> list[datetime]:
    """When each Lease by which an apiserver shows that it lives was created."""
    with client.http() as http:
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
        leases = http.get(path, params={"labelSelector": "apiserver.kubernetes.io/identity=kube-apiserver"})
        items = leases.raise_for_status().json()["items"]
        return [datetime.fromisoformat(each["metadata"]["creationTimestamp"]) for each in items]


def options_file(lab: PlaneLab, s3: S3Lab) -> Path:
    """With the options of a store, for this user alone."""
    path = lab.scratch()
    path.touch(mode=0o600)
    path.write_text("".join(f"{name}={value}\n" for name, value in s3.options().items()))
    return path


def authority(client: Client) -> str:
    """The CA that a kubeconfig trusts."""
    config = yaml.safe_load(client.kubeconfig.read_text())
    return str(config["clusters"][0]["cluster"]["certificate-authority-data"])


def test_a_plane_comes_back_out_of_the_bucket_after_its_home_and_its_machines_are_gone(
    lab: PlaneLab, tmp_path: Path
) -> None:
    with s3_server(tmp_path) as s3:
        options, url = options_file(lab, s3), f"s3://{BUCKET}/home"
        backup = f"enabled: true, store: '{url}', optionsFile: {options}"
        lab.run("apply", "-f", str(lab.file(_PLANE.format(replicas=1, backup=backup))))
        client = lab.client("alpha")
        with_widgets(client)
        created(client, "kept", 3)
        token = issued(client)
        before, ca = listed(client), authority(client)
        taken = lab.run("backup", "create", "alpha", "-o", "json").json
        assert (taken["store"], taken["wholePlane"]) == (url, True)
        key = lab.scratch()
        key.touch(mode=0o600)
        key.write_bytes(Path(lab.run("backup", "key", "-o", "json").json["file"]).read_bytes())
        assert options.stat().st_mode & 0o077 == 0

        lab.lose_home()

        lost = ("--from", url, "--key", str(key), "--options-file", str(options), "--yes")
        done = lab.run("restore", "alpha", *lost, "-o", "json")
        assert done.json["revision"] >= taken["revision"]
        client = lab.client("alpha")
        assert authority(client) == ca
        assert listed(client) == before
        assert whoami(client, token) == "system:serviceaccount:default:default"
        lab.status("alpha", code=0)
        again = lab.run("backup", "create", "alpha", "-o", "json").json
        found = epochs(lab)
        former, new = sorted(found)
        assert found[former][1] == done.json["revision"]
        assert found[new][1] >= again["revision"] > BUMP
        copied(lab, client, token, url)


def copied(lab: PlaneLab, alpha: Client, token: str, url: str) -> None:
    """Another plane begins with the backup of one that lives, which notices nothing of it."""
    before, running = listed(alpha), {each.pid for each in processes_of(lab.root)}
    stored = metadata(lab, "alpha")
    done = lab.run("restore", "alpha", "--as", "beta", "--yes", "-o", "json").json
    assert (done["name"], done["copyOf"], done["store"]) == ("beta", "alpha", url)
    assert {each.pid for each in processes_of(lab.root)} > running
    assert metadata(lab, "alpha") == stored
    beta = lab.client("beta")
    assert listed(beta) == before
    assert whoami(beta, token) == "system:serviceaccount:default:default"
    assert beta.writes("in-the-copy")
    with alpha.http() as http:
        assert http.get(f"{CONFIGMAPS}/in-the-copy").status_code == 404, "they share no etcd"
    assert lab.status("beta", code=0)["voters"] == 1


def metadata(lab: PlaneLab, name: str) -> tuple[str, str]:
    """The uid and the version of a plane's resource."""
    found = lab.run("get", name, "-o", "json").json["metadata"]
    return found["uid"], found["resourceVersion"]


def issued(client: Client) -> str:
    """A token of a service account."""
    path = f"{_DEFAULT}/serviceaccounts/default"
    with client.http() as http:
        until(lambda: http.get(path).is_success, "the service account is there")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return str(http.post(f"{path}/token", json=body).raise_for_status().json()["status"]["token"])


def whoami(client: Client, token: str) -> str:
    """Whose token that is."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    with client.http(anonymous=True) as http:
        answer = http.post(
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            json=body,
            headers={"Authorization": f"Bearer {token}"},
        )
        return str(answer.raise_for_status().json()["status"]["userInfo"]["username"])
