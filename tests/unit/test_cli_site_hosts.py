"""Commands on sites of hosts: what of an inventory is refused, in one line by its path, and what a site becomes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.cli_lab import Cli
from support.golden import Golden

from quarterdeck.api.site import Site
from quarterdeck.drivers.ssh import SshSites
from quarterdeck.model.findings import Checked, Finding, HostFinding, Verdict

INVALID, MISSING, CONFLICT, PRECONDITION = 2, 3, 4, 5
THREE = """\
hosts:
- {name: one, address: 192.0.2.1, zone: a, roles: [control, edge]}
- {name: two, address: 192.0.2.2, zone: b, role: control, user: admin, port: 2222}
- {address: 192.0.2.3, zone: c, roles: [control, dns], host: three.example.com, identityFile: ~/.ssh/three}
storageClasses:
- {name: fast, path: /data}
"""
MORE = "hosts: [{name: four, address: 192.0.2.4, zone: a, role: control}]"
OF_HOSTS = ("--driver", "ssh", "--inventory", "-")
ADD = ("site", "add", "rack", *OF_HOSTS)
ADD_HOSTS = ("site", "machines", "add", "rack", "--inventory", "-")
REMOVE_HOST = ("site", "machines", "remove")
REPLACE_FOUR = ("site", "machines", "replace", "rack", "four")
TRY_STORAGE = ("site", "test-storage")


@pytest.fixture
def cli(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Whose hosts are well, whatever is looked at there."""
    answer(monkeypatch)
    return cli


def add(cli: Cli, inventory: str = THREE) -> None:
    assert cli(*ADD, stdin=inventory).code == 0


def test_a_site_is_made_of_an_inventory_and_shown_as_apply_reads_it(cli: Cli, golden: Golden) -> None:
    add(cli)
    shown = cli("site", "show", "rack").out
    assert "driver: ssh" in shown
    assert "name: three\n" in shown
    assert "identityFile: ~/.ssh/three" in shown
    listed = cli("site", "list").out
    assert "a,b,c" in next(line for line in listed.splitlines() if line.startswith("rack"))
    golden(cli("apply", "-f", "-", stdin=shown).out)


@pytest.mark.parametrize(
    "inventory",
    [
        "",
        "hosts: [",
        "[]",
        "{}",
        "hosts: []",
        "host: []",
        "edges: 2\nhosts: []",
        "hosts: [{adress: 192.0.2.1, zone: a, role: control}]",
        "hosts: [{address: 192.0.2.1, zone: a}]",
        "hosts: [{address: 192.0.2.1, zone: a, role: worker}]",
        "hosts: [{address: 192.0.2.1, zone: a, role: edge}]",
        "hosts: [{address: 127.0.0.1, zone: a, role: control}]",
        "hosts: [{address: 0.0.0.0, zone: a, role: control}]",
        "hosts: [{name: x, address: node-1, zone: a, role: control}]",
        "hosts: [{address: 192.0.2.1, zone: a, role: control, port: 70000}]",
        "hosts: [{name: x, address: 192.0.2.1, zone: a, role: control},"
        " {name: z, address: 192.0.2.1, zone: b, role: control}]",
        "hosts: [{name: x, address: 192.0.2.1, zone: a, role: control}]\n"
        "storageClasses: [{name: san, attach: [mount-san]}]",
    ],
)
def test_a_wrong_inventory_is_one_line_with_the_path(cli: Cli, inventory: str, golden: Golden) -> None:
    golden(cli.refused(*ADD, stdin=inventory, code=INVALID).err)


@pytest.mark.parametrize(
    "argv",
    [
        ("--driver", "ssh"),
        ("--driver", "ssh", "--zones", "a", "--inventory", "-"),
        ("--driver", "ssh", "--edges", "1", "--machines", "3"),
        ("--inventory", "-"),
        ("--driver", "ssh", "--inventory", "/proc/nowhere/hosts.yaml"),
    ],
)
def test_options_of_the_other_kind_are_refused(cli: Cli, argv: tuple[str, ...], golden: Golden) -> None:
    golden(cli.refused("site", "add", "rack", *argv, stdin=THREE, code=INVALID).err)


def test_a_site_whose_name_is_too_long_is_refused(cli: Cli, golden: Golden) -> None:
    golden(cli.refused("site", "add", "r" * 21, *OF_HOSTS, stdin=THREE, code=INVALID).err)


def test_a_host_that_another_site_has_is_refused(cli: Cli, golden: Golden) -> None:
    add(cli)
    golden(cli.refused("site", "add", "annex", *OF_HOSTS, stdin=THREE, code=CONFLICT).err)


def test_hosts_of_a_site_can_be_checked_by_an_inventory(cli: Cli, golden: Golden) -> None:
    add(cli)
    checked = cli("site", "check", "--inventory", "-", stdin=THREE)
    assert checked.code == 0, checked.err
    golden(" ".join(checked.out.split()))


def answer(monkeypatch: pytest.MonkeyPatch, *findings: HostFinding) -> None:
    """Have all hosts answer, and this be said of them."""

    async def check(_: SshSites, resource: Site, others: Sequence[Site]) -> Checked:
        del others
        return Checked(findings=findings, summary=f"of {resource.name}")

    monkeypatch.setattr(SshSites, "check", check)


def test_hosts_that_cannot_be_had_are_refused_and_what_is_odd_is_shown(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    answer(monkeypatch, HostFinding("two", Finding("sudo", Verdict.REFUSE, "he may not", "let him")))
    golden(cli.refused(*ADD, stdin=THREE, code=PRECONDITION).err)
    assert "rack" not in cli("site", "list").out
    answer(monkeypatch, HostFinding("two", Finding("clock", Verdict.WARN, "off by 2 s", "run NTP there")))
    golden(cli(*ADD, stdin=THREE).out)
    golden(cli.refused(*ADD, stdin=THREE, code=CONFLICT).err)
    dead = HostFinding("four", Finding("login", Verdict.REFUSE, "nobody answers", "see what 'ssh four' says"))
    late = HostFinding("four", Finding("clock", Verdict.WARN, "off by 3 s", "run NTP there"))
    for argv, stdin in ((ADD_HOSTS, MORE), ((*REPLACE_FOUR, "--user", "ann"), "")):
        before = cli("site", "show", "rack").out
        answer(monkeypatch, dead)
        golden(cli.refused(*argv, stdin=stdin, code=PRECONDITION).err)
        assert cli("site", "show", "rack").out == before
        answer(monkeypatch, late)
        golden(cli(*argv, stdin=stdin).out)
    golden(cli(*REPLACE_FOUR, "--user", "ann").out)


def test_hosts_come_go_and_change(cli: Cli, golden: Golden) -> None:
    add(cli)
    golden(cli(*ADD_HOSTS, stdin=MORE).out)
    assert "name: four" in cli("site", "show", "rack").out
    golden(cli.refused(*ADD_HOSTS, stdin=MORE, code=INVALID).err)
    golden(cli.refused(*ADD_HOSTS, stdin=f"{MORE}\nstorageClasses: [{{name: x}}]", code=INVALID).err)
    assert cli(*REPLACE_FOUR, "--address", "192.0.2.44").code == 0
    assert "192.0.2.44" in cli("site", "show", "rack").out
    golden(cli.refused(*REPLACE_FOUR, code=INVALID).err)
    golden(cli.refused(*REPLACE_FOUR, "--user", "a b", code=INVALID).err)
    golden(cli.refused(*REMOVE_HOST, "rack", "four", code=CONFLICT).err)
    golden(cli.refused(*REMOVE_HOST, "rack", "five", "--yes", code=MISSING).err)
    golden(cli.refused(*REMOVE_HOST, "east", "x", "--yes", code=INVALID).err)


def test_a_site_that_is_gone_for_good_is_forgotten(cli: Cli, golden: Golden) -> None:
    add(cli)
    golden(cli.refused("site", "forget", "rack", code=CONFLICT).err)
    assert cli("site", "forget", "rack", "--yes").code == 0
    cli.refused("site", "show", "rack", code=MISSING, says=('"rack"',))
    golden(cli.refused("site", "forget", "east", "--yes", code=INVALID).err)


def test_only_storage_classes_with_commands_can_be_tried(cli: Cli, golden: Golden) -> None:
    add(cli)
    for storage_class, code in (("none", MISSING), ("fast", PRECONDITION)):
        both = (storage_class, "--machine", "one", "--machine", "two")
        golden(cli.refused(*TRY_STORAGE, "rack", *both, code=code).err)
    golden(cli.refused(*TRY_STORAGE, "rack", "fast", "--machine", "one", code=INVALID).err)
    golden(cli.refused(*TRY_STORAGE, "east", "standard", code=PRECONDITION).err)


def test_the_example_is_an_inventory(cli: Cli) -> None:
    add(cli, (Path(__file__).parents[2] / "examples" / "hosts.yaml").read_text())
    shown = cli("site", "show", "rack").out
    assert "host: cp-3.example.com" in shown
    assert "path: /data" in shown


def test_hosts_fetch_programs_themselves_where_that_is_said(cli: Cli, golden: Golden) -> None:
    add(cli)
    assert "fetchOnHost: false" in cli("site", "show", "rack").out
    others = THREE.replace("192.0.2", "198.51.100").replace("three", "four")
    result = cli("site", "add", "rock", *OF_HOSTS, "--fetch-on-host", stdin=others)
    assert result.code == 0, result
    assert "fetchOnHost: true" in cli("site", "show", "rock").out
    golden(cli.refused("site", "add", "here", "--fetch-on-host", code=INVALID).err)
