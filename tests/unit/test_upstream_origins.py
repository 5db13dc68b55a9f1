"""Where hosts can have programs from: what came from a release, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.upstream_lab import elf

from quarterdeck.model.units import Origin
from quarterdeck.upstream.cache import Cache
from quarterdeck.upstream.catalog import Project, UpstreamProgram, Version
from quarterdeck.upstream.sources import Target
from quarterdeck.upstream.upstream import Origins

TARGET = Target("linux", "amd64")
V = Version(1, 36, 3)
KUBECTL = "dl.k8s.io/v1.36.3/bin/linux/amd64/kubectl"
ETCD = "github.com/etcd-io/etcd/releases/download/v3.6.16/etcd-v3.6.16-linux-amd64.tar.gz"
PINS = {ETCD: "ab" * 32}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", TARGET)


async def stored(cache: Cache, program: UpstreamProgram, version: Version, source: str) -> Path:
    async with cache.work_folder(Project(program.project), version, lambda: None) as folder:
        (folder / "file").write_bytes(elf())
        return cache.put(program, version, folder / "file", source).path


async def test_a_released_file_is_where_it_came_from(cache: Cache) -> None:
    file = await stored(cache, UpstreamProgram.KUBECTL, V, "release")
    assert Origins(cache, pins=PINS)(file) == Origin(f"https://{KUBECTL}")


async def test_an_archive_has_its_digest_and_the_name_of_the_file_in_it(cache: Cache) -> None:
    file = await stored(cache, UpstreamProgram.ETCDCTL, Version(3, 6, 16), "release")
    member = "etcd-v3.6.16-linux-amd64/etcdctl"
    assert Origins(cache, pins=PINS)(file) == Origin(f"https://{ETCD}", PINS[ETCD], member)


async def test_a_mirror_takes_the_place_of_the_official_address(cache: Cache) -> None:
    file = await stored(cache, UpstreamProgram.KUBECTL, V, "release")
    assert Origins(cache, mirror="http://mirror/k", pins={})(file) == Origin(f"http://mirror/k/{KUBECTL}")


@pytest.mark.parametrize("source", ["build", "package"])
async def test_what_was_made_here_is_nowhere_else(cache: Cache, source: str) -> None:
    file = await stored(cache, UpstreamProgram.KUBECTL, V, source)
    assert Origins(cache)(file) is None


@pytest.mark.parametrize(
    "path", ["/usr/bin/kubectl", "kubectl", "upstream/kubectl/1.36.3/linux-amd64/other", "upstream"]
)
async def test_what_is_not_of_the_cache_is_nowhere_else(cache: Cache, path: str) -> None:
    await stored(cache, UpstreamProgram.KUBECTL, V, "release")
    assert Origins(cache)(cache.root / path) is None


async def test_what_was_changed_in_the_cache_is_nowhere_else(cache: Cache) -> None:
    file = await stored(cache, UpstreamProgram.KUBECTL, V, "release")
    file.write_bytes(b"x")
    assert Origins(cache)(file) is None
