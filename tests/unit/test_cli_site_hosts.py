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


@pytest.fixture
def cli(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Whose hosts are well, whatever is looked at there."""
    answer(monkeypatch)
    return cli


def add(cli: Cli, inventory: str = THREE, name: str = "rack") -> None:
    assert cli("site", "add", name, "--driver", "ssh", "--inventory", "-", stdin=inventory).code == 0


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
    argv = ("site", "add", "rack", "--driver", "ssh", "--inventory", "-")
    golden(cli.refused(*argv, stdin=inventory, code=INVALID).err)


@pytest.mark.parametrize(
    "argv",
    [
        ("--driver", "ssh"),
        ("--driver", "ssh", "--zones", "a", "--inventory", "-"),
        ("--driver", "ssh", "--edges", "1", "--machines", "3"),
        ("--inventory", "-"),
        ("--driver", "ssh", "--inventory", "/nowhere/hosts.yaml"),
    ],
)
def test_options_of_the_other_kind_are_refused(cli: Cli, argv: tuple[str, ...], golden: Golden) -> None:
    golden(cli.refused("site", "add", "rack", *argv, stdin=THREE, code=INVALID).err)


def test_a_site_whose_name_is_too_long_is_refused(cli: Cli, golden: Golden) -> None:
    argv = ("site", "add", "r" * 21, "--driver", "ssh", "--inventory", "-")
    golden(cli.refused(*argv, stdin=THREE, code=INVALID).err)


def test_a_host_that_another_site_has_is_refused(cli: Cli, golden: Golden) -> None:
    add(cli)
    again = ("site", "add", "annex", "--driver", "ssh", "--inventory", "-")
    golden(cli.refused(*again, stdin=THREE, code=CONFLICT).err)


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
    whole = ("site", "add", "rack", "--driver", "ssh", "--inventory", "-")
    answer(monkeypatch, HostFinding("two", Finding("sudo", Verdict.REFUSE, "he may not", "let him")))
    golden(cli.refused(*whole, stdin=THREE, code=PRECONDITION).err)
    assert "rack" not in cli("site", "list").out
    answer(monkeypatch, HostFinding("two", Finding("clock", Verdict.WARN, "off by 2 s", "run NTP there")))
    said = cli(*whole, stdin=THREE).out
    golden(said)
    golden(cli.refused(*whole, stdin=THREE, code=CONFLICT).err)
    more = "hosts: [{name: four, address: 192.0.2.4, zone: a, role: control}]"
    argv = ("site", "machines", "add", "rack", "--inventory", "-")
    dead = HostFinding("four", Finding("login", Verdict.REFUSE, "nobody answers", "see what 'ssh four' says"))
    answer(monkeypatch, dead)
    golden(cli.refused(*argv, stdin=more, code=PRECONDITION).err)
    assert "name: four" not in cli("site", "show", "rack").out
    late = HostFinding("four", Finding("clock", Verdict.WARN, "off by 3 s", "run NTP there"))
    answer(monkeypatch, late)
    said = cli(*argv, stdin=more).out
    golden(said)
    replace = ("site", "machines", "replace", "rack", "four")
    answer(monkeypatch, dead)
    golden(cli.refused(*replace, "--user", "ann", code=PRECONDITION).err)
    answer(monkeypatch, late)
    said = cli(*replace, "--user", "ann").out
    golden(said)
    golden(cli(*replace, "--user", "ann").out)


def test_hosts_come_go_and_change(cli: Cli, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    add(cli)
    answer(monkeypatch)
    more = "hosts: [{name: four, address: 192.0.2.4, zone: a, role: control}]"
    golden(cli("site", "machines", "add", "rack", "--inventory", "-", stdin=more).out)
    assert "name: four" in cli("site", "show", "rack").out
    golden(cli.refused("site", "machines", "add", "rack", "--inventory", "-", stdin=more, code=INVALID).err)
    classes = f"{more}\nstorageClasses: [{{name: x}}]"
    argv = ("site", "machines", "add", "rack", "--inventory", "-")
    golden(cli.refused(*argv, stdin=classes, code=INVALID).err)
    assert cli("site", "machines", "replace", "rack", "four", "--address", "192.0.2.44").code == 0
    assert "192.0.2.44" in cli("site", "show", "rack").out
    golden(cli.refused("site", "machines", "replace", "rack", "four", code=INVALID).err)
    argv = ("site", "machines", "replace", "rack", "four", "--user", "a b")
    golden(cli.refused(*argv, code=INVALID).err)
    golden(cli.refused("site", "machines", "remove", "rack", "four", code=CONFLICT).err)
    golden(cli.refused("site", "machines", "remove", "rack", "five", "--yes", code=MISSING).err)
    golden(cli.refused("site", "machines", "remove", "east", "x", "--yes", code=INVALID).err)


def test_machines_are_listed_where_a_site_is_named_and_no_command(cli: Cli) -> None:
    assert cli("site", "machines", "east").out == cli("site", "machines", "list", "east").out
    assert (
        cli("site", "machines", "-o", "json", "east").out == cli("site", "machines", "list", "east", "-o", "json").out
    )


def test_a_site_that_is_gone_for_good_is_forgotten(cli: Cli, golden: Golden) -> None:
    add(cli)
    golden(cli.refused("site", "forget", "rack", code=CONFLICT).err)
    assert cli("site", "forget", "rack", "--yes").code == 0
    cli.refused("site", "show", "rack", code=MISSING, says=("'rack'",))
    golden(cli.refused("site", "forget", "east", "--yes", code=INVALID).err)


def test_only_storage_classes_with_commands_can_be_tried(cli: Cli, golden: Golden) -> None:
    add(cli)
    golden(
        cli.refused("site", "test-storage", "rack", "none", "--machine", "one", "--machine", "two", code=MISSING).err
    )
    golden(
        cli.refused(
            "site", "test-storage", "rack", "fast", "--machine", "one", "--machine", "two", code=PRECONDITION
        ).err
    )
    golden(cli.refused("site", "test-storage", "rack", "fast", "--machine", "one", code=INVALID).err)
    golden(cli.refused("site", "test-storage", "east", "standard", code=PRECONDITION).err)


def test_the_example_is_an_inventory(cli: Cli) -> None:
    add(cli, (Path(__file__).parents[2] / "examples" / "hosts.yaml").read_text())
    shown = cli("site", "show", "rack").out
    assert "host: cp-3.example.com" in shown
    assert "path: /data" in shown


def test_hosts_fetch_programs_themselves_where_that_is_said(cli: Cli, golden: Golden) -> None:
    add(cli)
    assert "fetchOnHost: false" in cli("site", "show", "rack").out
    said = cli("site", "add", "rock", "--driver", "ssh", "--inventory", "-", "--fetch-on-host",
               stdin=THREE.replace("192.0.2", "198.51.100").replace("three", "four"))  # fmt: skip
    assert said.code == 0, said
    assert "fetchOnHost: true" in cli("site", "show", "rock").out
    golden(cli.refused("site", "add", "here", "--fetch-on-host", code=INVALID).err)
