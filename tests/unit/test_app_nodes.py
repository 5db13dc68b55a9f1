"""Tokens and nodes, as commands ask for them: a token is in what is returned, and nowhere else."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from support.cli_lab import Cli
from support.golden import Golden
from support.joining_lab import JoiningLab, signing_request

from quarterdeck.addons.nodes import GROUP
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.nodes import Nodes
from quarterdeck.app import NewToken
from quarterdeck.engine.workspace.belongings import secrets_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import InvalidInput, NotFound, PreconditionFailed, Unavailable
from quarterdeck.pki.authority import public_key_hash
from quarterdeck.pki.requests import create_token, is_token_id

DAY = timedelta(days=1)


@pytest.fixture
async def lab() -> JoiningLab:
    return await JoiningLab.made()


async def made(lab: JoiningLab, ttl: timedelta = DAY) -> NewToken:
    return await lab.nodes.make_token("demo", ttl=ttl, description="for rack 7")


def secret_of(lab: JoiningLab, token: NewToken) -> dict[str, str]:
    path = f"/api/v1/namespaces/kube-system/secrets/bootstrap-token-{token.id}"
    fields = lab.objects.objects[path].fields
    assert fields["type",] == "bootstrap.kubernetes.io/token"
    data = {key[1]: str(value) for key, value in fields.items() if key[0] == "data"}
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


async def test_a_token_is_a_secret_that_ends_and_lets_nodes_ask_for_a_certificate(lab: JoiningLab) -> None:
    token = await made(lab)
    secret = secret_of(lab, token)
    ends = datetime.strptime(secret.pop("expiration"), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert ends == token.ends
    assert abs(ends - datetime.now(UTC) - DAY) < timedelta(minutes=1)
    assert f"{secret.pop('token-id')}.{secret.pop('token-secret')}" == token.token
    assert secret == {
        "auth-extra-groups": GROUP,
        "description": "for rack 7",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
    }


async def test_the_command_line_and_the_kubeconfig_lead_to_the_planes_name(lab: JoiningLab) -> None:
    token = await made(lab)
    authority = lab.plane.secrets.kubernetes_ca.issuer.certificate
    assert token.command == (
        f"kubeadm join demo.quarterdeck.internal:6443 --token {token.token} "
        f"--discovery-token-ca-cert-hash {public_key_hash(authority)}"
    )
    config = yaml.safe_load(token.kubeconfig)
    assert config["clusters"][0]["cluster"]["server"] == "https://demo.quarterdeck.internal:6443"
    assert config["users"][0]["user"] == {"token": token.token}


def test_the_hash_is_of_the_authoritys_key_as_kubeadm_has_it(lab: JoiningLab) -> None:
    import hashlib

    pem = lab.plane.secrets.kubernetes_ca.issuer.certificate
    key = x509.load_pem_x509_certificate(pem).public_key()
    encoded = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert public_key_hash(pem) == f"sha256:{hashlib.sha256(encoded).hexdigest()}"


async def test_no_token_is_shown_by_accident(lab: JoiningLab) -> None:
    token = await made(lab)
    secret = token.token.partition(".")[2]
    assert secret not in repr(token)
    assert secret not in repr(await lab.nodes.tokens("demo"))
    assert secret not in " ".join(lab.objects.calls)
    assert secret not in repr(create_token())


def test_tokens_are_of_the_form_that_upstream_takes_and_never_the_same() -> None:
    tokens = {create_token().text for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", each) for each in tokens)
    assert [is_token_id(each) for each in ("abc123", "abc12", "abc1234", "ABC123", "abc.23")] == [True] + [False] * 4


async def test_tokens_are_listed_and_deleted_by_their_id(lab: JoiningLab, golden: Golden) -> None:
    one, other = sorted([await made(lab), await made(lab)], key=lambda each: each.id)
    found = await lab.nodes.tokens("demo")
    assert [(each.id, each.ends, each.uses) for each in found] == [
        (each.id, each.ends, ("authentication", "signing")) for each in (one, other)
    ]
    await lab.nodes.delete_token("demo", one.id)
    assert [each.id for each in await lab.nodes.tokens("demo")] == [other.id]
    with pytest.raises(NotFound, match=f"token {one.id} does not exist"):
        await lab.nodes.delete_token("demo", one.id)
    with golden.raises(InvalidInput):
        await lab.nodes.delete_token("demo", "../../x")


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(seconds=59), timedelta(days=366), timedelta(days=-1)])
async def test_a_token_that_would_never_end_or_never_hold_is_refused(
    lab: JoiningLab, ttl: timedelta, golden: Golden
) -> None:
    with golden.raises(InvalidInput):
        await made(lab, ttl)


async def test_a_plane_that_takes_no_nodes_says_what_to_set(lab: JoiningLab) -> None:
    await lab.say(Nodes(bootstrap=False))
    with pytest.raises(PreconditionFailed, match=r"spec\.nodes\.bootstrap"):
        await made(lab)


async def test_a_plane_whose_replicas_do_not_take_them_yet_is_waited_for(lab: JoiningLab, golden: Golden) -> None:
    taking = lab.plane.resource
    await lab.say(Nodes(bootstrap=False))
    lab.plane.resource = taking
    with golden.raises(PreconditionFailed):
        await made(lab)


async def test_without_an_apiserver_nothing_is_made(lab: JoiningLab, golden: Golden) -> None:
    for each in lab.fake.kube.apiservers.values():
        each.up = False
    with golden.raises(Unavailable):
        await made(lab)
    assert lab.objects.calls == []


async def test_nodes_are_told_as_the_plane_has_them(lab: JoiningLab) -> None:
    lab.node("n2", "10.0.9.2", ready="Unknown")
    lab.node("n1", "10.0.9.1")
    found = await lab.nodes.list("demo")
    assert [(each.name, each.ready, each.version, each.addresses) for each in found] == [
        ("n1", True, "v1.36.3", ("10.0.9.1",)),
        ("n2", None, "v1.36.3", ("10.0.9.2",)),
    ]


async def test_a_person_can_approve_where_no_manager_does(lab: JoiningLab) -> None:
    lab.node("n1", "10.0.9.1")
    path = lab.request("csr-1", "system:node:n1", signing_request("system:node:n1", addresses=("10.0.9.1",)))
    (decided,) = await lab.nodes.approve("demo")
    assert (decided.request, decided.node, decided.why) == ("csr-1", "system:node:n1", "")
    assert lab.approved(path)
    assert await lab.nodes.approve("demo") == ()


@pytest.fixture
def cli(cli: Cli) -> Cli:
    """Its home has a plane."""
    cli.plane("demo")
    cli.with_store(_with_keys)
    return cli


async def _with_keys(home: Home) -> None:
    """As soon as anybody looks at it a plane has its keys."""
    await secrets_of(home.store, await home.store.get(ControlPlane, "demo"))


def test_commands_refuse_in_one_line_and_never_repeat_a_token(cli: Cli, golden: Golden) -> None:
    golden(cli.refused("node", "token", "demo", "--ttl", "soon", code=2).err)
    cli.refused("node", "token", "nobody", code=3, says=("nobody",))
    whole = "abcdef.0123456789abcdef"
    refused = cli.refused("node", "token", "delete", "demo", whole, code=2)
    golden(refused.err)
    assert "0123456789" not in refused.err
    golden(cli.refused("node", "list", "demo", code=6).err)


def test_token_alone_makes_one_and_its_other_commands_are_found(cli: Cli, golden: Golden) -> None:
    text = cli("node", "token", "--help").out
    assert all(each in text for each in ("create", "list", "delete"))
    golden(cli("node", "token", "demo", "--yes").err)
    golden(cli("node", "token", "--ttl", "2h", "demo").err)
    golden(cli("node", "token", "list", "demo").err)
