"""Builds, carried out by a stand-in for ``go`` that answers as the real one does."""

from __future__ import annotations

import asyncio
import json
import os
import select
from pathlib import Path

import pytest
from support.upstream_lab import AMD64, Heard, elf, order

from quarterdeck.errors import Corrupt, PreconditionFailed
from quarterdeck.upstream.build import GoBuild
from quarterdeck.upstream.catalog import UpstreamProgram, Version
from quarterdeck.upstream.releases import MODULES
from quarterdeck.upstream.sources import CannotGive

KUBE, ETCD = Version(1, 36, 3), Version(3, 6, 16)
GO = """#!/bin/sh
here="$(dirname "$0")"
echo "$*" >> "$here/calls"
env | grep -E '^(GO|CGO)' | sort > "$here/environment"
case "$1 $2" in
  "version ") echo "go version go1.26.8 linux/amd64" ;;
  "mod download") cat "$here/answer"; grep -q Error "$here/answer" && exit 1; exit 0 ;;
  "mod tidy") cp go.mod "$here/go.mod.seen"; cp go.sum "$here/go.sum.seen"
    if [ -e "$here/tidy.err" ]; then cat "$here/tidy.err" >&2; exit 1; fi ;;
  build*)
    if [ -e "$here/hang" ]; then sleep 600 & echo $! > "$here/hang"; wait; fi
    if [ -e "$here/build.err" ]; then cat "$here/build.err" >&2; exit 1; fi
    while [ "$1" != -o ]; do shift; done
    out=$2; shift 2
    for package; do
      name=$(basename "${package%/v3}"); cp "$here/program" "$out/$name"
    done ;;
esac
"""


class StandIn:
    """A ``go`` in a folder of its own, and the builder that finds it in its PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "go-bin"
        self.folder.mkdir()
        go = self.folder / "go"
        go.write_text(GO)
        go.chmod(0o755)
        (self.folder / "program").write_bytes(elf())
        self.answer("go 1.26.0\nreplace k8s.io/api => ./staging/src/k8s.io/api\n")
        self.cache = folder / "cache"
        self.work = folder / "work"
        self.work.mkdir()
        path = f"{self.folder}:{os.environ['PATH']}"
        self.build = GoBuild(self.cache, {"PATH": path, "HOME": str(folder), "GOPROXY": "https://proxy.example"})

    def answer(self, go_mod: str, go_sum: str = "") -> None:
        (self.folder / "module").write_text(go_mod)
        source = self.folder / "source"
        source.mkdir(exist_ok=True)
        (source / "go.sum").write_text(go_sum)
        (self.folder / "answer").write_text(json.dumps({"GoMod": str(self.folder / "module"), "Dir": str(source)}))

    def refuse(self, error: str) -> None:
        (self.folder / "answer").write_text(json.dumps({"Error": error}))

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def stand_in(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path)


async def test_all_programs_of_an_order_are_built_by_one_go_build(stand_in: StandIn) -> None:
    heard = Heard()
    programs = (UpstreamProgram.KUBE_APISERVER, UpstreamProgram.KUBECTL)
    files = await stand_in.build.fetch(order(stand_in.work, KUBE, *programs), heard)
    assert {program: path.read_bytes() for program, path in files.items()} == dict.fromkeys(programs, elf())
    (build,) = [call for call in stand_in.calls() if call.startswith("build")]
    assert build.endswith("k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubectl")
    assert "-trimpath" in build
    assert heard.finished == {"building kubernetes 1.36.3 (kube-apiserver, kubectl)": "done"}
    assert "replace k8s.io/api => k8s.io/api v0.36.3" in (stand_in.folder / "go.mod.seen").read_text()


async def test_go_is_given_the_pinned_digests_and_the_projects_own(stand_in: StandIn) -> None:
    """The module is pinned, its go.sum is part of it, and so all that it needs is; ours come first."""
    stand_in.answer("go 1.26.0\n", "example.com/dep v1.0.0 h1:dep=\nk8s.io/kubernetes v1.36.3 h1:of-its-own=\n")
    heard = Heard()
    await stand_in.build.fetch(order(stand_in.work, KUBE, UpstreamProgram.KUBECTL), heard)
    seen = (stand_in.folder / "go.sum.seen").read_text().splitlines()
    assert "example.com/dep v1.0.0 h1:dep=" in seen
    assert [line for line in MODULES.splitlines() if line.startswith("k8s.io/")] == [
        line for line in seen if line.startswith("k8s.io/")
    ]
    assert heard.notes == []


async def test_a_version_without_a_pinned_digest_is_built_with_a_word(stand_in: StandIn) -> None:
    heard = Heard()
    await stand_in.build.fetch(order(stand_in.work, Version(3, 5, 31), UpstreamProgram.ETCD), heard)
    assert heard.notes == ["etcd 3.5.31: no digest is pinned for it; Go's checksum database decides"]


async def test_programs_have_their_own_names_whatever_go_calls_them(stand_in: StandIn) -> None:
    files = await stand_in.build.fetch(order(stand_in.work, ETCD, UpstreamProgram.ETCD), Heard())
    assert files == {UpstreamProgram.ETCD: stand_in.work / "out" / "server"}


async def test_gos_caches_are_ours_and_the_rest_of_its_environment_is_the_users(stand_in: StandIn) -> None:
    await stand_in.build.fetch(order(stand_in.work, ETCD, UpstreamProgram.ETCD), Heard())
    seen = dict(line.split("=", 1) for line in (stand_in.folder / "environment").read_text().splitlines())
    assert seen["GOCACHE"] == str(stand_in.cache / "go" / "build")
    assert seen["GOMODCACHE"] == str(stand_in.cache / "go" / "mod")
    assert (seen["CGO_ENABLED"], seen["GOOS"], seen["GOARCH"]) == ("0", AMD64.goos, AMD64.goarch)
    assert seen["GOPROXY"] == "https://proxy.example"


async def test_a_version_that_the_module_proxy_does_not_know_is_absent(stand_in: StandIn) -> None:
    stand_in.refuse("k8s.io/kubernetes@v1.36.3: reading https://proxy.example/v1.36.3.info: 404 Not Found")
    with pytest.raises(CannotGive, match="404 Not Found") as refusal:
        await stand_in.build.fetch(order(stand_in.work, KUBE, UpstreamProgram.KUBECTL), Heard())
    assert refusal.value.absent


async def test_a_module_proxy_out_of_reach_is_not_taken_for_a_missing_version(stand_in: StandIn) -> None:
    stand_in.refuse('k8s.io/kubernetes@v1.36.3: Get "https://proxy.example": dial tcp: connection refused')
    with pytest.raises(CannotGive, match="connection refused") as refusal:
        await stand_in.build.fetch(order(stand_in.work, KUBE, UpstreamProgram.KUBECTL), Heard())
    assert not refusal.value.absent


async def test_a_failed_build_shows_its_last_lines(stand_in: StandIn) -> None:
    (stand_in.folder / "build.err").write_text("".join(f"line {n}\n" for n in range(50)))
    heard = Heard()
    with pytest.raises(CannotGive, match=r"compiling it failed \(line 49\)"):
        await stand_in.build.fetch(order(stand_in.work, ETCD, UpstreamProgram.ETCD), heard)
    assert heard.notes == [f"  line {n}" for n in range(38, 50)]
    assert list(heard.finished.values()) == ["failed"]


async def test_a_changed_module_is_corrupt(stand_in: StandIn) -> None:
    (stand_in.folder / "tidy.err").write_text("go: verifying x@v1: checksum mismatch\nSECURITY ERROR\n")
    with pytest.raises(Corrupt, match="not what its author published"):
        await stand_in.build.fetch(order(stand_in.work, ETCD, UpstreamProgram.ETCD), Heard())


async def test_a_disk_that_fills_up_while_building_is_named(stand_in: StandIn) -> None:
    (stand_in.folder / "build.err").write_text("link: write /tmp/x: no space left on device\n")
    with pytest.raises(PreconditionFailed, match=r"no room in .*QUARTERDECK_CACHE"):
        await stand_in.build.fetch(order(stand_in.work, ETCD, UpstreamProgram.ETCD), Heard())


async def test_a_cancelled_build_leaves_no_process_behind(stand_in: StandIn) -> None:
    hang = stand_in.folder / "hang"
    os.mkfifo(hang)  # the stand-in writes the number of its child to it, once both are there
    task = asyncio.create_task(stand_in.build.fetch(order(stand_in.work, ETCD, UpstreamProgram.ETCD), Heard()))
    child = os.pidfd_open(int(await asyncio.wait_for(asyncio.to_thread(hang.read_text), 20)))
    try:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        ended, _, _ = await asyncio.to_thread(select.select, [child], [], [], 20)
        assert ended == [child]
    finally:
        os.close(child)
