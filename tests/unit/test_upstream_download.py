"""Official releases, from a mirror that the test serves."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.golden import Golden
from support.upstream_lab import AMD64, Heard, Mirror, elf, order, path_of, serving, sha256

from quarterdeck.errors import Corrupt, InvalidInput
from quarterdeck.upstream.catalog import Project, UpstreamProgram, Version
from quarterdeck.upstream.download import Releases
from quarterdeck.upstream.releases import RELEASES, release_files
from quarterdeck.upstream.sources import CannotGive, Target

KUBE, ETCD = Version(1, 36, 3), Version(3, 6, 16)
KUBE_PROGRAMS = (UpstreamProgram.KUBE_APISERVER, UpstreamProgram.KUBE_SCHEDULER, UpstreamProgram.KUBECTL)
BIG = elf(bytes(range(256)) * 4000)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
async def mirror() -> AsyncIterator[Mirror]:
    async with serving() as served:
        yield served


def kubectl_path() -> str:
    return path_of(release_files(Project.KUBERNETES, KUBE, [UpstreamProgram.KUBECTL], AMD64)[0].url)


async def test_single_programs_are_downloaded_and_shown(mirror: Mirror, tmp_path: Path) -> None:
    mirror.publish(Project.KUBERNETES, KUBE, {p: elf(p.encode()) for p in KUBE_PROGRAMS})
    heard = Heard()
    files = await Releases(mirror=mirror.url, pins={}).fetch(order(tmp_path, KUBE, *KUBE_PROGRAMS), heard)
    assert {program: path.read_bytes() for program, path in files.items()} == {
        p: elf(p.encode()) for p in KUBE_PROGRAMS
    }
    assert set(heard.finished) == {f"downloading {program}" for program in KUBE_PROGRAMS}
    assert len(heard.notes) == 3
    assert all("no digest is pinned for it; checked against http" in note for note in heard.notes)


async def test_what_is_pinned_is_held_against_the_pin_and_no_published_sum_is_believed(
    mirror: Mirror, tmp_path: Path
) -> None:
    mirror.publish(Project.KUBERNETES, KUBE, {UpstreamProgram.KUBECTL: BIG})
    heard = Heard()
    good = Releases(mirror=mirror.url, pins={kubectl_path().lstrip("/"): sha256(BIG)})
    files = await good.fetch(order(tmp_path, KUBE, UpstreamProgram.KUBECTL), heard)
    assert files[UpstreamProgram.KUBECTL].read_bytes() == BIG
    assert (mirror.asked, heard.notes) == ([kubectl_path()], []), "the checksum beside it is not asked for"
    mirror.publish(Project.KUBERNETES, KUBE, {UpstreamProgram.KUBECTL: elf(b"changed, with the checksum beside it")})
    with pytest.raises(Corrupt, match=rf"kubectl: its SHA-256 is .*, pinned is {sha256(BIG)}"):
        await good.fetch(order(tmp_path, KUBE, UpstreamProgram.KUBECTL), Heard())
    assert not (tmp_path / "kubectl").exists()


@pytest.mark.parametrize("goarch", ["amd64", "arm64"])
def test_all_programs_of_a_pinned_kubernetes_are_pinned(goarch: str) -> None:
    programs = [each for each in UpstreamProgram if each.project is Project.KUBERNETES]
    (version,) = {name.split("/")[1] for name in RELEASES}
    files = release_files(Project.KUBERNETES, Version.parse(version), programs, Target("linux", goarch), RELEASES)
    assert {each.name for each in files if each.pinned} == set(programs)
    assert len({each.pinned for each in files}) == len(programs)


async def test_progress_is_in_bytes_and_ends_with_all_of_them(mirror: Mirror, tmp_path: Path) -> None:
    mirror.publish(Project.KUBERNETES, KUBE, {UpstreamProgram.KUBECTL: BIG})
    heard = Heard()
    await Releases(mirror=mirror.url, pins={}).fetch(order(tmp_path, KUBE, UpstreamProgram.KUBECTL), heard)
    assert heard.started == {"downloading kubectl": len(BIG)}
    assert heard.done["downloading kubectl"] == sorted(heard.done["downloading kubectl"])
    assert heard.done["downloading kubectl"][-1] == len(BIG)


async def test_only_the_wanted_programs_leave_an_archive(mirror: Mirror, tmp_path: Path) -> None:
    mirror.publish(Project.ETCD, ETCD, {p: elf(p.encode()) for p in (UpstreamProgram.ETCD, UpstreamProgram.ETCDCTL)})
    files = await Releases(mirror=mirror.url, pins={}).fetch(order(tmp_path, ETCD, UpstreamProgram.ETCDCTL), Heard())
    assert files == {UpstreamProgram.ETCDCTL: tmp_path / "etcdctl"}
    assert [path.name for path in tmp_path.iterdir()] == ["etcdctl"]
    assert files[UpstreamProgram.ETCDCTL].read_bytes() == elf(b"etcdctl")


async def test_a_wrong_checksum_ends_it_and_nothing_is_kept(mirror: Mirror, tmp_path: Path) -> None:
    mirror.publish(Project.KUBERNETES, KUBE, {UpstreamProgram.KUBECTL: BIG})
    mirror.files[kubectl_path()] = BIG[:-1] + b"!"
    with pytest.raises(Corrupt, match=r"downloading http.*/kubectl: its SHA-256 is .*, published is .*"):
        await Releases(mirror=mirror.url, pins={}).fetch(order(tmp_path, KUBE, UpstreamProgram.KUBECTL), Heard())
    assert list(tmp_path.iterdir()) == []


async def test_a_checksum_file_that_is_none_ends_it_before_the_download(mirror: Mirror, tmp_path: Path) -> None:
    mirror.publish(Project.KUBERNETES, KUBE, {UpstreamProgram.KUBECTL: BIG})
    mirror.files[f"{kubectl_path()}.sha256"] = b"<html>please log in</html>"
    with pytest.raises(Corrupt, match="has no SHA-256"):
        await Releases(mirror=mirror.url, pins={}).fetch(order(tmp_path, KUBE, UpstreamProgram.KUBECTL), Heard())
    assert kubectl_path() not in mirror.asked


async def test_a_download_that_is_cut_once_is_tried_again(mirror: Mirror, tmp_path: Path) -> None:
    mirror.publish(Project.KUBERNETES, KUBE, {UpstreamProgram.KUBECTL: BIG})
    mirror.cuts[kubectl_path()] = 1
    heard = Heard()
    files = await Releases(mirror=mirror.url, pins={}).fetch(order(tmp_path, KUBE, UpstreamProgram.KUBECTL), heard)
    assert files[UpstreamProgram.KUBECTL].read_bytes() == BIG
    assert mirror.asked.count(kubectl_path()) == 2
    assert len(heard.notes) == 2
    assert "was cut" in heard.notes[1]


async def test_a_download_that_is_cut_twice_is_never_kept(mirror: Mirror, tmp_path: Path) -> None:
    mirror.publish(Project.KUBERNETES, KUBE, {UpstreamProgram.KUBECTL: BIG})
    mirror.cuts[kubectl_path()] = 9
    with pytest.raises(CannotGive, match="was cut twice") as refusal:
        await Releases(mirror=mirror.url, pins={}).fetch(order(tmp_path, KUBE, UpstreamProgram.KUBECTL), Heard())
    assert not refusal.value.absent
    assert mirror.asked.count(kubectl_path()) == 2
    assert not tmp_path.joinpath("kubectl").exists()


async def test_a_missing_version_is_said_to_be_absent(mirror: Mirror, tmp_path: Path) -> None:
    with pytest.raises(CannotGive, match=r"kubectl\.sha256 does not exist \(404\)") as refusal:
        await Releases(mirror=mirror.url, pins={}).fetch(order(tmp_path, KUBE, UpstreamProgram.KUBECTL), Heard())
    assert refusal.value.absent


async def test_a_program_that_its_archive_lacks_is_said_to_be_absent(mirror: Mirror, tmp_path: Path) -> None:
    mirror.publish(Project.ETCD, ETCD, {UpstreamProgram.ETCD: elf()})
    with pytest.raises(CannotGive, match=r"does not contain etcd-v3\.6\.16-linux-amd64/etcdutl") as refusal:
        await Releases(mirror=mirror.url, pins={}).fetch(order(tmp_path, ETCD, UpstreamProgram.ETCDUTL), Heard())
    assert refusal.value.absent


async def test_a_project_without_published_checksums_is_never_downloaded(
    mirror: Mirror, tmp_path: Path, golden: Golden
) -> None:
    with golden.raises(CannotGive):
        await Releases(mirror=mirror.url, pins={}).fetch(
            order(tmp_path, Version(0, 8, 0), UpstreamProgram.KWOK), Heard()
        )
    assert mirror.asked == []


async def test_an_unreachable_host_is_noted_once_and_not_asked_again(tmp_path: Path, golden: Golden) -> None:
    with socket.socket() as taken:  # bound but not listening: connecting to it is refused
        taken.bind(("127.0.0.1", 0))
        source = Releases(mirror=f"http://127.0.0.1:{taken.getsockname()[1]}")
        heard = Heard()
        with golden.raises(CannotGive) as refusal:
            await source.fetch(order(tmp_path, KUBE, *KUBE_PROGRAMS), heard)
        assert not refusal.value.absent
        taken.listen()  # from now on a second try would hang until the time-out
        with golden.raises(CannotGive):
            await source.fetch(order(tmp_path, ETCD, UpstreamProgram.ETCD), heard)
    assert len(heard.notes) == 1
    golden(heard.notes[0])


def test_a_mirror_that_is_no_web_address_is_refused() -> None:
    with pytest.raises(InvalidInput, match="QUARTERDECK_MIRROR"):
        Releases(mirror="mirror.example")


async def test_a_password_of_a_mirror_is_never_shown(mirror: Mirror, tmp_path: Path) -> None:
    with_password = mirror.url.replace("http://", "http://ann:secret@")
    with pytest.raises(CannotGive) as refusal:
        await Releases(mirror=with_password, pins={}).fetch(order(tmp_path, KUBE, UpstreamProgram.KUBECTL), Heard())
    assert "secret" not in str(refusal.value)
    assert "127.0.0.1" in str(refusal.value)
