"""In which order a volume is taken from a host, and what is done where that cannot be: fake hosts, real commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.golden import Golden

from quarterdeck.errors import Conflict, NotFound, PreconditionFailed, Unavailable
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.ssh.hosts import Login, SshHost, SshSettings, SshStorageClass, VolumeCommands
from quarterdeck.sites.ssh.programs import Sender
from quarterdeck.sites.ssh.site import SshSite

A, B, C = "a", "b", "c"
_SAN = """\
echo "$1 $3" >> {log}
[ ! -e {root}/broken-$1 ] || {{ echo no way; exit 1; }}
if [ ! -e {root}/volume-$2 ]; then [ "$4" = yes ] || exit 3; touch {root}/volume-$2; fi
case $1 in attach) touch {root}/mounted-$3-$2 ;; detach) rm -f {root}/mounted-$3-$2 ;; esac
"""


@dataclass
class FakeHost:
    """What the script of a host says of volumes."""

    name: str
    root: Path
    silent: bool = False
    uses: bool = False
    local: tuple[str, ...] = ()
    claims: dict[str, int] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)

    async def ask(self, *words: str, doing: str, deadline: float, **_: object) -> bytes:
        if self.silent:
            raise Unavailable(doing, f"host {self.name} does not answer")
        verb, *rest = words
        self.log(f"{verb} {self.name}")
        if verb == "where":
            name = rest[0]
            rows = ["standard local"] * (name in self.local)
            if name in self.claims:
                stand = "attached" if self.mounted(name) else "claimed"
                rows.append(f"san {stand} {self.claims[name]}")
            return "\n".join(rows).encode()
        if verb in ("volumes", "settle"):
            names = [rest[1]] if verb == "settle" else [each for each in self.claims if self.mounted(each)]
            if not all(map(self.mounted, names)):
                raise Unavailable(doing, "nothing is mounted")
            return "\n".join(f"{each}\tsan\t/san/{each}\t0\t" for each in names).encode()
        if verb == "release" and self.uses:
            raise Conflict(doing, "unit x uses it")
        if verb == "claim":
            self.claims[rest[1]] = int(rest[2])
        if verb in ("release", "disclaim"):
            self.claims.pop(rest[1], None)
        return b""

    def mounted(self, name: str) -> bool:
        return (self.root / f"mounted-{self.name}-{name}").exists()

    def log(self, line: str) -> None:
        with (self.root / "log").open("a") as file:
            file.write(f"{line}\n")


@dataclass
class Lab:
    root: Path
    hosts: dict[str, FakeHost]
    site: SshSite

    def at(self, login: Login) -> FakeHost:
        return self.hosts[login.host]

    def did(self) -> list[str]:
        """What was done, without looks."""
        quiet = ("where", "admit", "volumes")
        lines = (self.root / "log").read_text().splitlines()
        (self.root / "log").write_text("")
        return [each for each in lines if not each.startswith(quiet)]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    san = tmp_path / "san"
    san.write_text(_SAN.format(log=tmp_path / "log", root=tmp_path))
    lab = Lab(tmp_path, {name: FakeHost(name, tmp_path) for name in (A, B, C)}, None)
    commands = VolumeCommands(
        attach=("sh", str(san), "attach", "{volume}", "{host}", "{make}"),
        detach=("sh", str(san), "detach", "{volume}", "{host}"),
    )
    settings = SshSettings(
        name="rack",
        hosts=tuple(
            SshHost(name=name, address="192.0.2.1", zone="z", roles=(MachineRole.CONTROL,), login=Login(host=name))
            for name in lab.hosts
        ),
        storage_classes=(SshStorageClass(name="standard"), SshStorageClass(name="san", commands=commands)),
    )
    lab.site = SshSite(settings, lab, Sender())
    (tmp_path / "log").touch()
    return lab


async def made(lab: Lab) -> None:
    await lab.site.create_volume(A, "data", "san")
    lab.did()


async def test_a_volume_is_claimed_then_attached_then_settled(lab: Lab) -> None:
    await lab.site.create_volume(A, "data", "san")
    assert lab.did() == ["claim a", "attach a", "settle a"]
    await lab.site.create_volume(A, "data", "san")
    assert lab.did() == []


async def test_a_volume_that_cannot_be_made_is_nobodys(lab: Lab, golden: Golden) -> None:
    (lab.root / "broken-attach").touch()
    with golden.raises(Unavailable):
        await lab.site.create_volume(A, "data", "san")
    assert lab.hosts[A].claims == {}


async def test_a_host_that_answers_lets_go_before_it_is_detached(lab: Lab) -> None:
    await made(lab)
    await lab.site.attach_volume(B, "data", A)
    assert lab.did() == ["claim b", "release a", "detach a", "attach b", "settle b", "disclaim a"]


async def test_a_host_that_does_not_answer_is_detached_all_the_same(lab: Lab) -> None:
    await made(lab)
    lab.hosts[A].silent = True
    await lab.site.attach_volume(B, "data", A)
    assert lab.did() == ["claim b", "detach a", "attach b", "settle b"]


async def test_what_is_used_is_not_taken_and_nobody_else_has_a_claim(lab: Lab, golden: Golden) -> None:
    await made(lab)
    lab.hosts[A].uses = True
    with golden.raises(Conflict):
        await lab.site.attach_volume(B, "data", A)
    assert lab.did() == ["claim b", "release a", "disclaim b"]
    assert (set(lab.hosts[A].claims), lab.hosts[B].claims) == ({"data"}, {})


@pytest.mark.parametrize("broken", ["detach", "attach"])
async def test_what_was_cut_short_is_on_its_way_and_goes_on(lab: Lab, broken: str, golden: Golden) -> None:
    await made(lab)
    (lab.root / f"broken-{broken}").touch()
    with golden.raises(Unavailable):
        await lab.site.attach_volume(B, "data", A)
    assert (lab.hosts[A].claims, set(lab.hosts[B].claims)) == ({}, {"data"})
    assert not lab.hosts[B].mounted("data")
    lab.did()
    (lab.root / f"broken-{broken}").unlink()
    await lab.site.attach_volume(B, "data", A)
    assert lab.did() == ["claim b", "release a", "detach a", "attach b", "settle b", "disclaim a"]


async def test_a_volume_that_another_host_has_is_not_taken_from_it(lab: Lab, golden: Golden) -> None:
    await made(lab)
    await lab.site.attach_volume(B, "data", A)
    lab.did()
    lab.hosts[A].silent = True
    with golden.raises(NotFound):
        await lab.site.attach_volume(C, "data", A)
    with golden.raises(Conflict):
        await lab.site.create_volume(C, "data", "san")
    assert lab.did() == []


async def test_of_a_volume_that_nobody_knows_the_commands_are_asked(lab: Lab, golden: Golden) -> None:
    lab.hosts[A].silent = True
    with golden.raises(NotFound):
        await lab.site.attach_volume(B, "data", A)
    assert lab.did() == ["claim b", "detach a", "disclaim b"]


async def test_a_local_volume_stays_where_it_is(lab: Lab, golden: Golden) -> None:
    lab.hosts[A].local = ("data",)
    with golden.raises(PreconditionFailed):
        await lab.site.attach_volume(B, "data", A)
    assert lab.did() == []


async def test_a_claim_that_is_older_than_what_another_host_has_is_nobodys(lab: Lab) -> None:
    await made(lab)
    lab.hosts[A].silent = True
    await lab.site.attach_volume(B, "data", A)
    lab.hosts[A].silent = False
    lab.hosts[A].claims["data"] = 1
    (lab.root / "mounted-a-data").touch()  # as storage may leave it, that lets nobody write there
    assert (await lab.site.attach_volume(B, "data", A)).name == "data"


async def test_what_is_claimed_and_may_be_another_hosts_is_not_deleted(lab: Lab, golden: Golden) -> None:
    lab.hosts[A].claims["data"] = 1
    lab.hosts[B].silent = True
    with golden.raises(Unavailable):
        await lab.site.delete_volume(A, "data")
    assert lab.did() == []
