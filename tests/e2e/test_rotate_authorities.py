"""Other authorities and keys: clients with old kubeconfigs notice neither them nor an abort, until the former
authorities are given up.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from support.client_view import watched
from support.clients import Client, Writer
from support.plane_lab import PlaneLab, did

from quarterdeck.actions.addresses import client_urls
from quarterdeck.actions.plane import Plane
from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.plane.certificates import Certificates, Signer
from quarterdeck.census.census import encrypted_by
from quarterdeck.model.clusters import Cluster
from quarterdeck.pki.codec import decode

pytestmark = pytest.mark.timeout(900)

NAME = "rotated"
TRUST = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
SECRETS = 20


def authorities(lab: PlaneLab) -> list[int]:
    """How many authorities of each purpose quarterdeck has the keys of."""

    async def known(plane: Plane) -> list[int]:
        found = decode((await plane.store.get(PlaneSecrets, NAME)).data.get_secret_value())
        return [len(found.authority(each).known) for each in Signer]

    return lab.opened(NAME, known)


def encrypted(lab: PlaneLab, key: str) -> int:
    """How many Secrets are stored with a key."""

    async def found(plane: Plane) -> int:
        urls = client_urls(plane, Cluster.MAIN)
        return len(await encrypted_by(plane.etcd, urls, "/registry/secrets/", {key}))

    return lab.opened(NAME, found)


def trusted(client: Client) -> set[int]:
    """How many authorities aggregated apiservers are told to trust."""
    with client.http() as http:
        data: dict[str, Any] = http.get(TRUST).raise_for_status().json()["data"]
    return {text.count("BEGIN CERTIFICATE") for name, text in data.items() if name.endswith("ca-file")}


def test_authorities_and_keys_are_rotated_while_clients_with_old_kubeconfigs_go_on(lab: PlaneLab) -> None:
    lab.run("create", NAME, "--replicas", "3")
    old = lab.client(NAME)
    with old.http() as http:
        for number in range(SECRETS):
            secret = {"metadata": {"name": f"secret-{number}"}, "stringData": {"password": f"{number}"}}
            http.post("/api/v1/namespaces/default/secrets", json=secret).raise_for_status()
    with watched(lab, NAME, "rotate") as seen:
        after = lab.last_entry(NAME)
        driver = lab.start("certs", "rotate-ca", NAME, "--yes")
        begun = partial(did, kind="start-unit", text="kube-apiserver")
        lab.journal(NAME, begun, "the first replica trusts the new authorities", after=after, during=driver)
        driver.kill()
        lab.run("abort", NAME, "--yes")
        assert lab.plane(NAME).spec.certificates == Certificates()
        seen.goes_on("after the abort")

        lab.run("certs", "rotate-ca", NAME, "--yes")
        seen.goes_on("with certificates of the new authorities")

        assert encrypted(lab, "key1") >= SECRETS
        lab.run("keys", "rotate", NAME, "--key", "encryption", "--yes")
        lab.run("keys", "rotate", NAME, "--key", "encryption", "--finish", "--yes")
        seen.goes_on("with another key")
    assert encrypted(lab, "key1") == 0
    assert len(old.names("secrets")) == SECRETS

    path = lab.scratch()
    lab.run("kubeconfig", NAME, "--output-file", str(path))
    new = Client(path)
    with Writer(new, "finish") as writer:
        lab.run("certs", "rotate-ca", NAME, "--finish", "--yes")
        writer.goes_on("without the former authorities")
    assert writer.failures == []
    assert not old.answers()
    assert trusted(new) == {1}
    assert authorities(lab) == [1, 1, 1]
