"""Versions, and where releases and modules are."""

from __future__ import annotations

import pytest
from support.golden import Golden

from quarterdeck.errors import InvalidInput
from quarterdeck.upstream.build import build_module, executable, linker_flags, module, parse_go
from quarterdeck.upstream.catalog import CONTROL_PLANE, Project, UpstreamProgram, Version, Versions, is_supported
from quarterdeck.upstream.releases import mirrored, published_sum, release_files
from quarterdeck.upstream.sources import Target

AMD64, ARM64 = Target("linux", "amd64"), Target("linux", "arm64")


@pytest.mark.parametrize("text", ["v1.36.3", "1.36.3", " 1.36.3\n"])
def test_a_version_is_read_with_and_without_its_v(text: str) -> None:
    assert Version.parse(text) == Version(1, 36, 3)
    assert str(Version.parse(text)) == "1.36.3"
    assert Version.parse(text).tag == "v1.36.3"


@pytest.mark.parametrize("text", ["", "1.36", "1.36.3-rc.1", "latest", "v1.36.x", "1.36.3.4", "../../1.2.3", "١.٢.٣"])
def test_what_is_no_release_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"major\.minor\.patch"):
        Version.parse(text)


def test_versions_order_by_number_not_by_letter() -> None:
    assert Version.parse("3.6.9") < Version.parse("3.6.12")


@pytest.mark.parametrize(
    ("project", "version", "good"),
    [
        (Project.KUBERNETES, "1.32.9", False),
        (Project.KUBERNETES, "1.33.0", True),
        (Project.KUBERNETES, "1.36.3", True),
        (Project.KUBERNETES, "1.37.0", True),
        (Project.KUBERNETES, "1.38.0", False),
        (Project.ETCD, "3.5.30", False),
        (Project.ETCD, "3.5.31", True),
        (Project.ETCD, "3.6.11", False),
        (Project.ETCD, "3.6.12", True),
        (Project.ETCD, "3.7.0", True),
        (Project.ETCD, "3.8.0", False),
    ],
)
def test_the_supported_ranges(project: Project, version: str, good: bool) -> None:
    assert is_supported(project, Version.parse(version)) is good


def test_an_unsupported_version_is_refused_with_the_range(golden: Golden) -> None:
    with golden.raises(InvalidInput):
        Versions.parse(kubernetes="v1.30.1")
    with golden.raises(InvalidInput):
        Versions.parse(etcd="3.6.1")


def test_the_defaults_are_the_ones_promised() -> None:
    assert str(Versions().kubernetes) == "1.37.2"
    assert str(Versions().etcd) == "3.7.3"


def test_a_control_plane_needs_no_bench_tools() -> None:
    assert UpstreamProgram.KWOK not in CONTROL_PLANE
    assert set(UpstreamProgram) - set(CONTROL_PLANE) == {UpstreamProgram.KWOK, UpstreamProgram.KWOKCTL}


def test_release_addresses_are_the_official_ones() -> None:
    (scheduler,) = release_files(Project.KUBERNETES, Version(1, 36, 3), [UpstreamProgram.KUBE_SCHEDULER], ARM64)
    assert scheduler.url == "https://dl.k8s.io/v1.36.3/bin/linux/arm64/kube-scheduler"
    assert scheduler.checksum_url == f"{scheduler.url}.sha256"
    (etcd,) = release_files(Project.ETCD, Version(3, 6, 16), [UpstreamProgram.ETCD, UpstreamProgram.ETCDUTL], AMD64)
    base = "https://github.com/etcd-io/etcd/releases/download/v3.6.16"
    assert etcd.url == f"{base}/etcd-v3.6.16-linux-amd64.tar.gz"
    assert etcd.checksum_url == f"{base}/SHA256SUMS"
    assert etcd.members == {
        UpstreamProgram.ETCD: "etcd-v3.6.16-linux-amd64/etcd",
        UpstreamProgram.ETCDUTL: "etcd-v3.6.16-linux-amd64/etcdutl",
    }
    (coredns,) = release_files(Project.COREDNS, Version(1, 15, 0), [UpstreamProgram.COREDNS], AMD64)
    assert coredns.url.endswith("/coredns/releases/download/v1.15.0/coredns_1.15.0_linux_amd64.tgz")


def test_a_mirror_has_the_same_paths_below_the_host() -> None:
    assert mirrored("https://dl.k8s.io/v1/x", "http://m:1/k/") == "http://m:1/k/dl.k8s.io/v1/x"
    assert mirrored("https://dl.k8s.io/v1/x", None) == "https://dl.k8s.io/v1/x"


def test_a_published_sum_is_found_alone_and_among_others() -> None:
    one, two = "a" * 64, "B" * 64
    assert published_sum(one, "etcd.tgz") == one
    assert published_sum(f"{one}  other.tgz\n{two} *./dist/etcd.tgz\n", "etcd.tgz") == two.lower()
    assert published_sum(f"{one}  other.tgz\n", "etcd.tgz") is None
    assert published_sum("<html>please log in</html>", "etcd.tgz") is None


def test_staging_modules_are_replaced_by_their_published_versions(golden: Golden) -> None:
    upstream = """
go 1.26.0
replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/apiserver => ./staging/src/k8s.io/apiserver
	example.org/forked v1.0.0 => example.org/fork v1.0.1 // why
)
"""
    text = build_module(
        Project.KUBERNETES, Version(1, 35, 4), [UpstreamProgram.KUBE_APISERVER, UpstreamProgram.KUBECTL], upstream
    )
    assert "\tk8s.io/kubernetes/cmd/kube-apiserver\n\tk8s.io/kubernetes/cmd/kubectl\n" in text
    assert text.count("k8s.io/kubernetes v1.35.4") == 1
    golden(text)


def test_etcds_own_modules_come_in_the_version_that_is_required(golden: Golden) -> None:
    text = build_module(
        Project.ETCD,
        Version(3, 6, 16),
        [UpstreamProgram.ETCD, UpstreamProgram.ETCDCTL],
        "replace go.etcd.io/etcd/api/v3 => ../api\n",
    )
    golden(text)
    assert "replace" not in text


def test_kubernetes_versions_are_stamped_in_both_places() -> None:
    flags = linker_flags(Project.KUBERNETES, Version(1, 36, 3))
    assert "-X k8s.io/component-base/version.gitVersion=v1.36.3" in flags
    assert "-X k8s.io/client-go/pkg/version.gitVersion=v1.36.3" in flags
    assert linker_flags(Project.ETCD, Version(3, 6, 16)) == "-s -w"


def test_go_names_a_program_after_the_last_part_that_is_no_major_version() -> None:
    assert executable(UpstreamProgram.ETCD) == "server"
    assert executable(UpstreamProgram.ETCDCTL) == "etcdctl"
    assert executable(UpstreamProgram.COREDNS) == "coredns"
    assert executable(UpstreamProgram.KUBE_CONTROLLER_MANAGER) == "kube-controller-manager"
    assert module(UpstreamProgram.KUBECTL) == "k8s.io/kubernetes"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26, 8)),
        ("go version go1.27 linux/amd64", (1, 27, 0)),
        ("go 1.26.0", (1, 26, 0)),
        ("go version devel linux/amd64", (0, 0, 0)),
    ],
)
def test_go_versions_are_read(text: str, version: tuple[int, int, int]) -> None:
    assert parse_go(text) == version
