"""What users may get wrong: one clear line, an exit code that scripts can use, and nothing changed."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli_lab import Cli
from support.golden import Golden
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

from quarterdeck.api.operation import OperationPhase, OperationType
from quarterdeck.cli.main import app
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester

INVALID, MISSING, CONFLICT, PRECONDITION, UNAVAILABLE, CORRUPT = 2, 3, 4, 5, 6, 8


def plane(spec: str, name: str = "demo") -> str:
    return f"apiVersion: quarterdeck.dev/v1alpha1\nkind: ControlPlane\nmetadata: {{name: {name}}}\nspec: {spec}\n"


@pytest.mark.parametrize(
    "spec",
    [
        "{placement: {site: east}, replica: 3}",
        "{placement: {site: east}, etcd: {quota: 1Gi}}",
        "{replicas: 3}",
        "{placement: {}}",
        "{placement: {site: east}, replicas: 4}",
        "{placement: {site: east}, replicas: three}",
        "{placement: {site: east}, endpoint: {mode: address}}",
        "{placement: {site: east}, endpoint: {address: 192.0.2.1}}",
        "{placement: {site: east}, endpoint: {mode: unmanaged}}",
        "{placement: {site: east}, etcd: {events: {separate: maybe}}}",
        "{placement: {site: east}, etcd: {events: {quotaBytes: 1Mi}}}",
        "{placement: {site: east}, etcd: {events: {storageClass: No!}}}",
        "{placement: {site: east}, etcd: {events: {kept: 2h}}}",
        "{placement: {site: east}, drills: [{fail: rain, every: 7d}]}",
        "{placement: {site: east}, drills: [{fail: unit, every: 5m}]}",
        "{placement: {site: east}, drills: [{fail: unit, every: 7d, window: night}]}",
        "{placement: {site: east}, etcd: {electionMilliseconds: 200}}",
        "{placement: {site: east}, serviceCidrs: [10.96.0.0/30]}",
        "{placement: {site: east}, cloudControllerManager: {}}",
        "{placement: {site: east}, cloudControllerManager: {program: /a, image: b}}",
        "{placement: {site: east}, cloudControllerManager: {program: ccm}}",
        "{placement: {site: east}, cloudControllerManager: {program: /a, provider: a, flags: {cloud-provider: b}}}",
        "{placement: {site: east}, cloudControllerManager: {program: /a, provider: 'a b'}}",
        "{placement: {site: east}, cloudControllerManager: {image: 'a b'}}",
        "{placement: {site: east}, kubernetesVersion: latest}",
    ],
)
def test_a_wrong_field_is_named_with_its_path(cli: Cli, spec: str, golden: Golden) -> None:
    golden(cli.refused("apply", "-f", "-", stdin=plane(spec), code=INVALID).err)


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("--site", "north"), MISSING),
        (("--replicas", "2"), INVALID),
        (("--version", "v1.20.0"), INVALID),
        (("--version", "v9.99.9"), INVALID),
        (("--version", "1.36"), INVALID),
    ],
)
def test_what_create_cannot_make_is_refused(cli: Cli, argv: tuple[str, ...], code: int, golden: Golden) -> None:
    golden(cli.refused("create", "demo", *argv, code=code).err)


def test_an_etcd_below_the_floor_is_refused(cli: Cli) -> None:
    spec = "{placement: {site: east}, etcd: {version: 3.5.12}}"
    cli.refused("apply", "-f", "-", stdin=plane(spec), code=INVALID, says=("3.5.12", "3.5.31"))


@pytest.mark.parametrize(
    "spec",
    [
        "extraArgs: {kubeApiserver: {feature-gates: APIServerTracing=true}}",
        "extraArgs: {kubeControllerManager: {concurrent-service-syncs: 2}, etcd: {experimental-memory-mlock: true}}",
        "kubernetesVersion: 1.36.3, etcd: {version: 3.6.16}, extraArgs: {etcd: {feature-gates: PriorityRequest=true}}",
    ],
)
def test_flags_and_gates_that_a_version_does_not_have_are_refused(cli: Cli, spec: str, golden: Golden) -> None:
    golden(cli.refused("apply", "-f", "-", stdin=plane(f"{{placement: {{site: east}}, {spec}}}"), code=INVALID).err)


def test_a_file_that_is_no_text_is_one_line(cli: Cli, golden: Golden) -> None:
    binary = cli.folder / "program"
    binary.write_bytes(b"\x7fELF\x02\x01\x01\x00\xff\xfe\x80")
    golden(cli.refused("apply", "-f", str(binary), code=INVALID).err)
    binary.write_bytes(b"kind: \x00")
    golden(cli.refused("apply", "-f", str(binary), code=INVALID).err)


def commands(group: TyperGroup, *path: str) -> Iterator[tuple[str, ...]]:
    """The words of every command."""
    context = Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, TyperGroup):
            yield from commands(command, *path, name)
        else:
            yield (*path, name)


@pytest.mark.parametrize("words", list(commands(get_command(app))), ids=" ".join)  # type: ignore[arg-type]
def test_every_command_takes_yes_for_every_question(cli: Cli, words: tuple[str, ...]) -> None:
    result = cli(*words, "--yes", "-y", "--help")
    assert (result.code, "<bool>" in result.out) == (0, False), result


def test_help_shows_yes_only_for_commands_that_ask(cli: Cli) -> None:
    assert "--yes" in cli("delete", "--help").out
    assert "--yes" not in cli("get", "--help").out


SMALL = """
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: small}
spec:
  zones: [a, b]
  machinesPerZone: 1
"""


@pytest.mark.parametrize(
    "placement",
    [
        "{site: small}",
        "{site: east, zones: [a, x]}",
        "{site: east, storageClass: fast}",
        "{site: east, zones: [a, a]}",
    ],
)
def test_a_site_must_have_what_the_plane_asks_for(cli: Cli, placement: str, golden: Golden) -> None:
    assert cli("apply", "-f", "-", stdin=SMALL).code == 0
    golden(cli.refused("apply", "-f", "-", stdin=plane(f"{{placement: {placement}}}"), code=INVALID).err)


@pytest.mark.parametrize(
    "argv",
    [
        ("status",),
        ("get",),
        ("wait",),
        ("plan",),
        ("migrate", "--to", "west", "--yes"),
        ("scale", "--replicas", "5", "--yes"),
        ("replica list",),
        ("replica replace", "--yes"),
        ("etcd check",),
        ("certs list",),
        ("certs renew", "--yes"),
        ("abort", "--yes"),
        ("delete", "--yes"),
        ("kubeconfig",),
        ("logs",),
        ("events",),
        ("pause",),
        ("resume",),
        ("history",),
        ("probe",),
        ("drill", "--fail", "unit", "--yes"),
        ("drill list",),
    ],
)
def test_a_plane_that_is_not_there_is_named_with_those_that_are(cli: Cli, argv: tuple[str, ...]) -> None:
    cli.plane("other")
    command, *options = argv
    cli.refused(*command.split(), "demo", *options, code=MISSING, says=('"demo"', "other"))


def test_a_file_is_planned_for_alone(cli: Cli, golden: Golden) -> None:
    cli.plane()
    golden(cli.refused("plan", "demo", "-f", "-", "--to", "west", stdin=plane("{}"), code=INVALID).err)
    golden(cli.refused("plan", "demo", "-f", "/proc/nowhere", code=INVALID).err)
    cli.refused("apply", "--dry-run", "-f", "-", stdin=plane("{placement: {}}"), code=INVALID, says=("placement.site",))


def test_a_plane_that_is_wanted_there_already_but_is_not_well_is_no_success(cli: Cli, golden: Golden) -> None:
    cli.plane()
    finish(cli)
    assert cli("plan", "demo").code == 0  # whoever looks first has its authorities made
    golden(cli.refused("migrate", "demo", "--to", "east", "--yes", code=CONFLICT).err)


#: What is refused of a home with one plane, ``demo``, as wanted at east: how it ends, and the words of the command.
REFUSED = [
    # a name that is no short DNS label
    *((INVALID, ("create", "--", name)) for name in ("Demo", "de_mo", "demo.", "-", "d" * 41)),
    (CONFLICT, ("create", "demo")),
    (INVALID, ("apply", "-f", "/proc/nowhere/plane.yaml")),
    # what makes no sense of a plane that is there
    (INVALID, ("migrate", "demo", "--to", "east", "--replicas", "1", "--yes")),
    (MISSING, ("migrate", "demo", "--to", "north", "--yes")),
    (INVALID, ("migrate", "demo", "--to", "west", "--replicas", "2", "--yes")),
    (INVALID, ("migrate", "demo", "--to", "west", "--probe", "--detach", "--yes")),
    (INVALID, ("migrate", "demo", "--to", "west", "--probe-from", "cp-1", "--detach", "--yes")),
    *((INVALID, ("scale", "demo", "--replicas", count, "--yes")) for count in ("4", "0", "7")),
    (MISSING, ("replica", "replace", "demo", "demo-9", "--yes")),
    (CONFLICT, ("delete", "demo")),  # nobody is there to be asked
    (CONFLICT, ("abort", "demo", "--yes")),  # nothing is to be undone
    # sites
    (INVALID, ("site", "add", "s" * 21)),
    (INVALID, ("site", "add", "North")),
    (INVALID, ("site", "add", "north", "--zones", "a,a")),
    (INVALID, ("site", "add", "north", "--machines", "100")),
    (INVALID, ("site", "add", "north", "--machines", "0")),
    (INVALID, ("site", "add", "north", "--floating-addresses")),
    (CONFLICT, ("site", "add", "east")),
    (MISSING, ("site", "show", "north")),
    (MISSING, ("site", "machines", "north")),
    (MISSING, ("site", "remove", "north", "--yes")),
    (CONFLICT, ("site", "remove", "east", "--yes")),
]


@pytest.mark.parametrize(("code", "argv"), REFUSED, ids=[" ".join(argv) for _, argv in REFUSED])
def test_what_makes_no_sense_is_refused(cli: Cli, code: int, argv: tuple[str, ...], golden: Golden) -> None:
    cli.plane()
    finish(cli)
    golden(cli.refused(*argv, code=code).err)


def finish(cli: Cli) -> None:
    """The plane's operation is over, as far as the books say."""

    async def work(home: Home) -> None:
        running = await recorded.current(home.store, "demo")
        assert running is not None
        await operations.finish(home.store, running, OperationPhase.SUCCEEDED, "", Requester(name="a test"))

    cli.with_store(work)


def test_a_plane_that_moves_is_not_deleted_nor_moved_again(cli: Cli, golden: Golden) -> None:
    cli.plane()

    async def move(home: Home) -> None:
        current = await recorded.existing(home.store, "demo")
        placement = current.spec.placement.model_copy(update={"site": "west"})
        wanted = operations.moved(current, placement, None)
        await operations.change(home, wanted, OperationType.MIGRATE, Requester(name="a test"))

    cli.with_store(move)
    golden(cli.refused("delete", "demo", "--yes", code=CONFLICT).err)
    golden(cli.refused("migrate", "demo", "--to", "east", "--yes", code=CONFLICT).err)
    for argv in (("scale", "demo", "--replicas", "5"), ("certs", "renew", "demo"), ("replica", "replace", "demo")):
        golden(cli.refused(*argv, "--yes", code=CONFLICT).err)
    golden(cli.refused("apply", "-f", "-", stdin=plane("{placement: {site: west}, replicas: 5}"), code=CONFLICT).err)
    golden(cli.refused("site", "remove", "west", "--yes", code=CONFLICT).err)


def test_a_report_needs_an_operation_that_has_begun(cli: Cli, golden: Golden) -> None:
    cli.plane()
    golden(cli.refused("report", "demo", code=MISSING).err)


def test_a_paused_plane_is_not_driven(cli: Cli) -> None:
    cli.plane()
    assert cli("pause", "demo").code == 0
    assert "true" in cli("get", "demo", "-o", "yaml").out.split("paused:")[1].split("\n")[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kind: [", ("-",)),
        ("", ("-",)),
        ("just words", ("-",)),
        ("apiVersion: quarterdeck.dev/v1alpha1\nkind: ControlPlan\n", ("ControlPlan", "ControlPlane")),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", ("ConfigMap", "ControlPlane")),
    ],
)
def test_a_file_that_declares_nothing_is_refused(cli: Cli, text: str, says: tuple[str, ...]) -> None:
    cli.refused("apply", "-f", "-", stdin=text, code=INVALID, says=says)


def test_one_bad_resource_keeps_the_whole_file_from_being_applied(cli: Cli, golden: Golden) -> None:
    text = SMALL + "---\n" + plane("{placement: {site: small}, replicas: 2}")
    golden(cli.refused("apply", "-f", "-", stdin=text, code=INVALID).err)
    assert "small" not in cli("site", "list").out


def site(name: str, spec: str) -> str:
    return f"apiVersion: quarterdeck.dev/v1alpha1\nkind: Site\nmetadata: {{name: {name}}}\nspec: {spec}\n"


@pytest.mark.parametrize(
    "spec",
    [
        "{zones: [b, c]}",
        "{machinesPerZone: 1}",
        "{storageClasses: [{name: fast}]}",
    ],
)
def test_a_site_is_not_changed_under_a_plane_that_uses_it(cli: Cli, spec: str, golden: Golden) -> None:
    cli.plane()
    golden(cli.refused("apply", "-f", "-", stdin=site("east", spec), code=CONFLICT).err)
    assert cli("apply", "-f", "-", stdin=site("west", spec)).code == 0


def test_a_store_of_a_newer_version_is_left_alone(cli: Cli) -> None:
    assert cli("get").code == 0
    path = cli.home / "quarterdeck.db"
    with sqlite3.connect(path) as db:
        db.execute("UPDATE schema_version SET version = 999")
    db.close()
    result = cli.refused("get", code=CORRUPT, says=("newer", "999"))
    assert result.out == ""
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT version FROM schema_version").fetchone() == (999,)
    db.close()


def test_a_corrupted_store_is_left_alone(cli: Cli) -> None:
    cli.home.mkdir()
    path = cli.home / "quarterdeck.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 64)
    before = path.read_bytes()
    cli.refused("get", code=CORRUPT, says=(str(path),))
    cli.refused("create", "demo", code=CORRUPT, says=(str(path),))
    assert path.read_bytes() == before


@pytest.mark.parametrize("folder", ["/proc/nowhere", "/dev/null/home"])
def test_a_home_that_cannot_be_made_is_refused(cli: Cli, folder: str) -> None:
    cli.refused("get", code=UNAVAILABLE, says=(folder, "QUARTERDECK_HOME"), QUARTERDECK_HOME=folder)


@pytest.mark.parametrize("cache", ["/proc/nowhere", "/dev/null/cache"])
def test_a_cache_that_cannot_be_used_is_named_and_no_plane_is_left_behind(cli: Cli, cache: str) -> None:
    says = (cache, "QUARTERDECK_CACHE")
    cli.refused("create", "demo", code=PRECONDITION, says=says, QUARTERDECK_CACHE=cache)


def test_an_address_is_promoted_only_where_it_can_go_from_machine_to_machine(cli: Cli, golden: Golden) -> None:
    promoted = "{placement: {site: east}, endpoint: {mode: address, address: 127.0.0.9, leadsTo: promoted}}"
    golden(cli.refused("apply", "-f", "-", stdin=plane(promoted), code=PRECONDITION).err)


def test_a_plane_whose_ports_are_in_use_is_not_created(cli: Cli) -> None:
    address = f"127.{cli.with_store(home_network)}.1.254"  # where its load balancer is to be
    with socket.create_server((address, 6443)):
        cli.refused("create", "demo", code=PRECONDITION, says=("ports in use", f"{address}:6443"))


async def home_network(home: Home) -> str:
    """The number between the first two dots of every address of this home."""
    return (await home.sites.open(await home.site("east")).machines())[0].address.split(".")[1]


def test_a_program_for_another_kind_of_machine_is_refused(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    head = bytearray(Path("/bin/true").read_bytes())
    head[18:20] = b"\x16\x00"  # e_machine: IBM S/390
    (folder / "etcd").write_bytes(head)
    (folder / "etcd").chmod(0o755)
    says = (str(folder / "etcd"), "wrong architecture (s390x")
    cli.refused("create", "demo", code=PRECONDITION, says=says, QUARTERDECK_BIN_DIR=str(folder))


def test_a_program_cut_short_is_refused(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    whole = Path("/bin/sh").resolve().read_bytes()
    (folder / "etcd").write_bytes(whole[: len(whole) // 2])
    (folder / "etcd").chmod(0o755)
    says = (str(folder / "etcd"), "cut short")
    cli.refused("create", "demo", code=PRECONDITION, says=says, QUARTERDECK_BIN_DIR=str(folder))


def test_a_folder_of_programs_that_is_not_there_is_refused(cli: Cli) -> None:
    cli.refused("create", "demo", code=INVALID, says=("/proc/nowhere", "BIN_DIR"), QUARTERDECK_BIN_DIR="/proc/nowhere")


@pytest.mark.parametrize(
    "argv", [("nonsense",), ("create",), ("create", "demo", "--bogus"), ("create", "demo", "--replicas", "many")]
)
def test_a_command_line_that_is_none_is_explained(cli: Cli, argv: tuple[str, ...]) -> None:
    result = cli(*argv)
    assert result.code == INVALID
    assert "Usage: quarterdeck" in result.err
    assert "Traceback" not in result.err


def test_a_full_disk_under_the_output_is_one_line(golden: Golden) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "quarterdeck", "upstream", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == UNAVAILABLE
    assert done.stderr.count("\n") == 1
    golden(done.stderr)
