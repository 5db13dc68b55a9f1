"""Hosts that download released programs by themselves."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import pytest
from support.hosts_lab import HostsLab, why_not
from support.hosts_site import LabSite, hosts_site
from support.upstream_lab import Mirror, serving, sha256, tar_gz

from quarterdeck.errors import InvalidInput, Unavailable
from quarterdeck.model.units import Origin, Program
from quarterdeck.sites.netns.layout import CLIENT_ADDRESS
from quarterdeck.sites.ssh.programs import Sender

pytestmark = [pytest.mark.hosts, pytest.mark.skipif(bool(why_not()), reason=why_not())]

A = "east-a1"
PATH, ARCHIVE, MEMBER = "/dl.k8s.io/v1/kubectl", "/github.com/etcd.tar.gz", "etcd-v3/etcd"


@dataclass
class Fetching:
    lab: HostsLab
    site: Callable[[Origin], LabSite]
    mirror: Mirror
    file: Path
    content: bytes

    async def installed(self, origin: Origin) -> PurePosixPath:
        program = Program("kubectl", PurePosixPath(self.file))
        return await self.site(origin).install(A, program)

    def left(self) -> str:
        return self.lab.sh(A, "find /var/lib/quarterdeck/programs -type f")


@pytest.fixture
async def fetching(machines: HostsLab, tmp_path: Path) -> AsyncIterator[Fetching]:
    content = random.Random(tmp_path.name).randbytes(3 * 2**20)
    file = tmp_path / "kubectl"
    file.write_bytes(content)
    file.chmod(0o755)
    async with hosts_site(machines) as lab, serving(CLIENT_ADDRESS) as mirror:
        mirror.files = {PATH: content, ARCHIVE: tar_gz({"README": b"x", MEMBER: content})}

        def site(origin: Origin) -> LabSite:
            known = lab.site
            settings = replace(known._settings, fetch_on_host=True)
            made = LabSite(settings, known._hosts, Sender(origins=lambda found: origin if found == file else None))
            made.lab = machines
            return made

        yield Fetching(machines, site, mirror, file, content)


async def test_a_host_has_what_is_released_from_where_it_is_released(fetching: Fetching) -> None:
    path = await fetching.installed(Origin(f"{fetching.mirror.url}{PATH}", sha256(fetching.content)))
    assert path == PurePosixPath("/var/lib/quarterdeck/programs", sha256(fetching.content), "kubectl")
    assert fetching.lab.sh(A, 'sha256sum < "$1"; stat -c %a "$1"', str(path)).split() == [
        sha256(fetching.content),
        "-",
        "755",
    ]
    assert fetching.mirror.asked == [PATH]
    assert fetching.left().split() == [str(path)]
    await fetching.installed(Origin(f"{fetching.mirror.url}{PATH}"))
    assert fetching.mirror.asked == [PATH], "it is there"


async def test_what_was_cut_goes_on_from_there(fetching: Fetching) -> None:
    fetching.mirror.cuts[PATH] = 2
    await fetching.installed(Origin(f"{fetching.mirror.url}{PATH}"))
    half = len(fetching.content) // 2
    assert fetching.mirror.froms == [0, half, half + (len(fetching.content) - half) // 2]


async def test_one_file_of_an_archive_is_taken(fetching: Fetching) -> None:
    archive = fetching.mirror.files[ARCHIVE]
    path = await fetching.installed(Origin(f"{fetching.mirror.url}{ARCHIVE}", sha256(archive), MEMBER))
    assert fetching.left().split() == [str(path)]


@pytest.mark.parametrize(
    ("origin", "reason"),
    [
        (Origin(PATH), "is not the requested program"),
        (Origin(PATH, "ab" * 32), "is not the released one"),
        (Origin(ARCHIVE, "", "etcd-v3/other"), "is not an archive with etcd-v3/other in it"),
        (Origin(ARCHIVE, "", "README"), "is not the requested program"),
        (Origin("/nowhere"), "404"),
    ],
)
async def test_a_download_that_is_not_the_requested_program_is_refused(
    fetching: Fetching, origin: Origin, reason: str
) -> None:
    if reason == "is not the requested program" and not origin.member:
        fetching.mirror.files[PATH] = b"another" + fetching.content[7:]
    with pytest.raises(Unavailable, match=reason) as error:
        await fetching.installed(replace(origin, url=f"{fetching.mirror.url}{origin.url}"))
    assert "fetchOnHost: false" in error.value.next_step
    assert fetching.left().replace(f"/var/lib/quarterdeck/programs/.part-{sha256(fetching.content)}-fetched", "") in (
        "",
        "\n",
    )


async def test_an_address_that_cannot_be_reached_is_said(fetching: Fetching) -> None:
    with pytest.raises(Unavailable, match=r"east-a1.*cannot download http://10\.89\.0\.2:1/x: curl: \(7\)") as error:
        await fetching.installed(Origin("http://somebody:secret@10.89.0.2:1/x"))
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("url", ["file:///etc/shadow", "ftp://x/y", 'http://x/" -o /etc/passwd', "https://x y"])
async def test_only_addresses_of_the_web_are_taken(fetching: Fetching, url: str) -> None:
    with pytest.raises(InvalidInput, match="not an http or https address"):
        await fetching.installed(Origin(url))
