"""Where each project publishes its releases and their checksums. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from quarterdeck.upstream.catalog import Program, Project, Version
from quarterdeck.upstream.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFile:
    """One file to download.

    ``members`` says which file of the archive each program is; it is None when the file is the program. ``pinned`` is
    its SHA-256 in hex where it is known from elsewhere; else what ``checksum_url`` publishes must do.
    """

    url: str
    checksum_url: str
    programs: Sequence[Program]
    members: Mapping[Program, str] | None
    pinned: str | None = None

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self.url.rpartition("/")[2]


def release_files(
    project: Project,
    version: Version,
    programs: Sequence[Program],
    target: Target,
    pins: Mapping[str, str] = MappingProxyType({}),
) -> tuple[ReleaseFile, ...]:
    """The files that hold ``programs``; empty when the project publishes no checksums for its releases.

    ``pins`` maps addresses without ``https://`` to the digests that are known of what is there.
    """
    files = _files(project, version, programs, target)
    return tuple(replace(each, pinned=pins.get(each.url.removeprefix("https://"))) for each in files)


def _files(project: Project, version: Version, programs: Sequence[Program], target: Target) -> tuple[ReleaseFile, ...]:
    if project is Project.KUBERNETES:
        return tuple(_kubernetes(version, program, target) for program in programs)
    if project is Project.ETCD:
        return (_etcd(version, programs, target),)
    if project is Project.COREDNS:
        return (_coredns(version, programs, target),)
    return ()


def _kubernetes(version: Version, program: Program, target: Target) -> ReleaseFile:
    url = f"https://dl.k8s.io/{version.tag}/bin/{target.goos}/{target.goarch}/{program}"
    return ReleaseFile(url=url, checksum_url=f"{url}.sha256", programs=(program,), members=None)


def _etcd(version: Version, programs: Sequence[Program], target: Target) -> ReleaseFile:
    base = f"https://github.com/etcd-io/etcd/releases/download/{version.tag}"
    folder = f"etcd-{version.tag}-{target}"
    return ReleaseFile(
        url=f"{base}/{folder}.tar.gz",
        checksum_url=f"{base}/SHA256SUMS",
        programs=tuple(programs),
        members={program: f"{folder}/{program}" for program in programs},
    )


def _coredns(version: Version, programs: Sequence[Program], target: Target) -> ReleaseFile:
    base = f"https://github.com/coredns/coredns/releases/download/{version.tag}"
    url = f"{base}/coredns_{version}_{target.goos}_{target.goarch}.tgz"
    return ReleaseFile(
        url=url,
        checksum_url=f"{url}.sha256",
        programs=tuple(programs),
        members={p: p.value for p in programs},
    )


def mirrored(url: str, mirror: str | None) -> str:
    """``url`` on a mirror: the same path, below a folder with the name of the original host.

    ``https://dl.k8s.io/v1/x`` on ``http://mirror/k`` is ``http://mirror/k/dl.k8s.io/v1/x``.
    """
    return f"{mirror.rstrip('/')}/{url.removeprefix('https://')}" if mirror else url


def published_sum(text: str, name: str) -> str | None:
    """The SHA-256 (hex) that a checksum file gives for ``name``: the sum alone, or lines as of sha256sum."""
    for line in text.splitlines():
        words = line.split()
        if not words or not re.fullmatch(r"[0-9a-fA-F]{64}", words[0]):
            continue
        if len(words) == 1 or words[-1].lstrip("*").rpartition("/")[2] == name:
            return words[0].lower()
    return None
