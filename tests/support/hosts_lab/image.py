"""The root folder that all machines of tests share: a small Debian, made once of this host's own apt sources and kept
in the cache folder. ``python -m support.hosts_lab`` makes it ahead of time.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from quarterdeck.upstream.upstream import cache_root

#: What a machine has besides the few packages that every Debian has. Python is not among what these need.
PACKAGES = (
    # what a server has that is managed over ssh
    *("systemd", "systemd-sysv", "dbus", "libpam-systemd", "openssh-server", "sudo", "util-linux", "procps"),
    *("iproute2", "nftables", "curl", "ca-certificates", "zstd"),
    # what takes over addresses of edges
    "keepalived",
    # what a worker node needs besides its container runtime
    *("conntrack", "iptables", "ethtool", "kmod", "socat"),
)
_SETUP = Path(__file__).with_name("base.sh")
_BUILDING = 900.0  # seconds


@dataclass(frozen=True, slots=True)
class Source:
    """Where packages come from: the URL of a mirror, and which release of the distribution."""

    mirror: str
    release: str


def lab_cache() -> Path:
    """Where images and running labs are."""
    return cache_root(os.environ) / "lab"


def image() -> Path:
    """The image, built if nobody did so before. It takes a minute then."""
    folder = lab_cache() / f"image-{_digest()}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock", timeout=_BUILDING):
        if not folder.exists():
            _build(folder)
    return folder


def own_source() -> Source:
    """The mirror that this host gets its own release from."""
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    lines = _run("apt-get", "indextargets", "--format", "$(CREATED_BY) $(RELEASE) $(COMPONENT) $(REPO_URI)")
    for line in lines.splitlines():
        kind, of, component, mirror = line.split(" ", 3)
        if (kind, of, component) == ("Packages", release, "main"):
            return Source(mirror, release)
    raise AssertionError(f"the apt sources of this host have no packages of its own release, {release}:\n{lines}")


def _build(folder: Path) -> None:
    """Make it beside, and rename it: what is there is whole."""
    source, beside = own_source(), folder.with_name(f".{folder.name}")
    shutil.rmtree(beside, ignore_errors=True)
    # What is mounted meanwhile, and whatever a package starts, goes with the namespaces.
    alone = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private")
    packages = ",".join(PACKAGES)
    _run(
        *alone, "debootstrap", "--variant=minbase", f"--include={packages}", source.release, str(beside), source.mirror
    )
    _run(*alone, "/bin/sh", str(_SETUP), str(beside))
    python = [*beside.glob("usr/bin/python*"), *beside.glob("usr/lib/python*/os.py")]
    assert not python, f"a machine has Python, which hosts need not have: {python}"
    beside.rename(folder)


def _digest() -> str:
    """Another one whenever the image would be another one, but for newer packages of the same release."""
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    recipe = "\n".join((release, platform.machine(), *PACKAGES, _SETUP.read_text()))
    return hashlib.sha256(recipe.encode()).hexdigest()[:16]


def _run(*argv: str) -> str:
    """What a program says; the test fails, with all that it said, if the program does."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=_BUILDING, check=False)
    assert done.returncode == 0, f"{argv} ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout
