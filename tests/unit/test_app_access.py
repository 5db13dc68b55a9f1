"""Kubeconfigs for people, and the binding of administrators: made once, and never against a person's will."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest
import yaml
from cryptography import x509
from support.addons_lab import AddonLab
from support.cli_lab import Cli
from support.golden import Golden
from support.resources import with_spec, with_status

from quarterdeck.actions.status import refresh, write_status
from quarterdeck.addons.rbac import ADMINISTRATORS
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.plane.endpoint import Endpoint, EndpointMode
from quarterdeck.app import requested_access
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import InvalidInput, Unavailable
from quarterdeck.kube.port import Refusal, Refused
from quarterdeck.stores.port import Event, amend

BINDING = f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{ADMINISTRATORS}"
RECORD = "/api/v1/namespaces/kube-system/configmaps/quarterdeck-administrators"
#: Times and users differ from run to run.
ENDS = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"


@pytest.fixture
async def lab() -> AddonLab:
    return await AddonLab.made()


def a_plane_that_needs_no_door(cli: Cli, *, bound: bool = True) -> None:
    """A plane whose name the user's own DNS resolves, of which nothing runs."""

    async def make(home: Home) -> None:
        endpoint = Endpoint(mode=EndpointMode.UNMANAGED, name="demo.example.com")
        wanted = with_spec(new_control_plane("demo", site="east"), endpoint=endpoint)
        await operations.create(home, wanted, Requester(name="a test"))
        if bound:
            await amend(home.store, ControlPlane, "demo", lambda seen: with_status(seen, administrators_epoch=0))

    cli.with_store(make)


def certificate_in(text: str) -> x509.Certificate:
    (user,) = yaml.safe_load(text)["users"]
    return x509.load_pem_x509_certificate(base64.b64decode(user["user"]["client-certificate-data"]))


def events(cli: Cli) -> tuple[Event, ...]:
    return cli.with_store(lambda home: home.store.events("demo"))


# The command


def test_the_kubeconfig_of_an_administrator_says_until_when(cli: Cli, golden: Golden) -> None:
    golden.hide(ENDS, "ENDS")
    a_plane_that_needs_no_door(cli)
    made = cli("kubeconfig", "demo")
    assert certificate_in(made.out).subject.rfc4514_string() == f"CN=kubernetes-admin,O={ADMINISTRATORS}"
    golden(made.err)
    assert not any(each.reason == "BreakGlass" for each in events(cli))


def test_a_plane_without_the_binding_says_so(cli: Cli, golden: Golden) -> None:
    golden.hide(ENDS, "ENDS")
    a_plane_that_needs_no_door(cli, bound=False)
    golden(cli("kubeconfig", "demo").err)
    assert "warning" not in cli("kubeconfig", "demo", "--user", "ada", "--group", "developers").err


def test_break_glass_warns_and_is_recorded(cli: Cli, golden: Golden) -> None:
    golden.hide(ENDS, "ENDS")
    golden.hide(r"\S+@\S+ \([^)]*\)", "SOMEBODY")
    a_plane_that_needs_no_door(cli, bound=False)
    made = cli("kubeconfig", "demo", "--break-glass", "--for", "30m")
    found = certificate_in(made.out)
    assert found.subject.rfc4514_string() == "CN=kubernetes-super-admin,O=system:masters"
    assert found.not_valid_after_utc - found.not_valid_before_utc == timedelta(minutes=40)
    golden(made.err)
    (event,) = (each for each in events(cli) if each.reason == "BreakGlass")
    assert event.type.value == "Warning"
    assert event.message.endswith(f"{found.not_valid_after_utc:%F %T %Z}")


def test_a_user_of_ones_own_is_written_to_a_file_of_its_owner_alone(cli: Cli, golden: Golden) -> None:
    golden.hide(ENDS, "ENDS")
    a_plane_that_needs_no_door(cli)
    path = cli.folder / "ada.kubeconfig"
    argv = ("--user", "ada", "--group", "developers", "--group", "on-call", "--for", "8h")
    made = cli("kubeconfig", "demo", *argv, "--output-file", str(path))
    assert made.out == ""
    golden(made.err)
    assert path.stat().st_mode & 0o777 == 0o600
    assert yaml.safe_load(path.read_text())["users"][0]["name"] == "demo-ada"
    assert certificate_in(path.read_text()).subject.rfc4514_string() == "CN=ada,O=on-call,O=developers"


@pytest.mark.parametrize(
    "argv",
    [
        ("--user", "ada", "--break-glass"),
        ("--group", "developers", "--break-glass"),
        ("--group", "developers"),
        ("--user", "ada", "--group", "system:masters"),
        ("--for", "0s"),
    ],
)
def test_what_is_refused_is_refused_before_anything_is_issued(cli: Cli, golden: Golden, argv: tuple[str, ...]) -> None:
    a_plane_that_needs_no_door(cli)
    golden(cli.refused("kubeconfig", "demo", *argv, code=2).err)


def test_no_key_is_shown_by_accident(cli: Cli) -> None:
    async def shown(home: Home) -> str:
        from quarterdeck.app import Quarterdeck

        return repr(await Quarterdeck(home, requester=Requester(name="a test")).kubeconfig("demo"))

    a_plane_that_needs_no_door(cli)
    assert "kubernetes-admin" in cli.with_store(shown)
    assert "key-data" not in cli.with_store(shown)


def test_programs_get_the_same_checks() -> None:
    with pytest.raises(InvalidInput):
        requested_access(user="ada", without_rbac=True)


# The binding


async def test_a_new_plane_gets_the_binding_once(lab: AddonLab) -> None:
    await lab.turn()
    assert lab.value(BINDING, "roleRef", "name") == "cluster-admin"
    assert lab.there(RECORD)
    assert lab.plane.resource.status.administrators_epoch == 0
    calls = list(lab.objects.calls)
    lab.another_process()
    await lab.turn()
    assert lab.objects.calls == calls


@pytest.mark.parametrize("forgotten", [False, True])
async def test_a_deleted_binding_stays_deleted_in_this_epoch_and_the_next(lab: AddonLab, *, forgotten: bool) -> None:
    await lab.turn()
    del lab.objects.objects[BINDING]
    if forgotten:  # by the store: a new epoch, a copy of the plane, or an older backup of the home
        await write_status(lab.plane, administrators_epoch=None)
    lab.another_process()
    await lab.turn(later=3600)
    assert not lab.there(BINDING)
    assert lab.plane.resource.status.administrators_epoch == 0


async def test_a_binding_that_a_person_made_or_changed_is_left_alone(lab: AddonLab) -> None:
    lab.objects.put(BINDING, {"metadata": {"name": ADMINISTRATORS}, "subjects": []})
    await lab.turn()
    assert lab.value(BINDING, "subjects") == []
    assert lab.there(RECORD)


async def test_data_of_a_moment_before_the_binding_gets_it_again(lab: AddonLab) -> None:
    """As after a restore: the epoch is another one, and its data has neither."""
    await lab.turn()
    del lab.objects.objects[BINDING], lab.objects.objects[RECORD]
    await lab.turn()
    assert not lab.there(BINDING), "the epoch is the same"
    await write_status(lab.plane, administrators_epoch=7)
    await lab.turn()
    assert lab.there(BINDING)


async def test_a_process_that_ends_in_between_is_continued(lab: AddonLab) -> None:
    lab.objects.refuses["quarterdeck-administrators"] = Refused("applying", "not now", Refusal.LATER)
    with pytest.raises(Unavailable):
        await lab.turn()
    await refresh(lab.plane)
    assert lab.there(BINDING)
    assert lab.plane.resource.status.administrators_epoch is None
    lab.objects.refuses.clear()
    await lab.turn()
    assert lab.there(RECORD)
    assert lab.plane.resource.status.administrators_epoch == 0


async def test_a_plane_in_deletion_gets_none(lab: AddonLab) -> None:
    lab.plane.resource = lab.plane.resource.model_copy(
        update={
            "metadata": lab.plane.resource.metadata.model_copy(
                update={"deletion_timestamp": lab.plane.resource.metadata.creation_timestamp}
            )
        }
    )
    await lab.turn()
    assert not lab.there(BINDING)
