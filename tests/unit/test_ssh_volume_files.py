"""Files that are put into volumes of a host: by the driver and the host's own script, which runs on this host here."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pytest
from support.golden import Golden
from support.host_script import functions
from support.upstream_lab import Heard

from quarterdeck.errors import LeaseLost, Unavailable
from quarterdeck.model.units import Fence, MachineRole
from quarterdeck.progress import TransferListener
from quarterdeck.sites.ssh import wire
from quarterdeck.sites.ssh.hosts import Login, SshHost, SshSettings, SshStorageClass
from quarterdeck.sites.ssh.programs import Sender
from quarterdeck.sites.ssh.site import SshSite

A, NAME, SENDING = "a", "restore.db", "sending to a of rack"
#: SHA-256 of nothing.
_EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#: A request as it is carried out; the user of the volume is who runs this.
_HOST = """
LIB=$1 RUN=$1 BODY=$2 PLANE=$3 TOKEN=$4; shift 4
as_user() { shift; "$@"; }
"ask_${1//-/_}" "${@:2}"
"""


@dataclass
class ScriptedHost:
    """A connection to a host whose script runs on this one. ``cut``: after so many parts the connection breaks."""

    folder: Path
    cut: int | None = None
    parts: list[int] = field(default_factory=list)
    packing: str = "gzip"
    silent: bool = False
    known: set[str] = field(default_factory=set)
    locks: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    modes: set[int] = field(default_factory=set)

    async def ask(
        self,
        *words: str,
        doing: str,
        deadline: float,
        fence: Fence | None = None,
        body: bytes = b"",
        cancels: bool = False,
    ) -> bytes:
        del deadline, cancels
        if words[0] == "fill-part" and len(self.parts) == self.cut:
            raise Unavailable(doing, "the connection broke")
        plane, token = (fence.plane, fence.token) if fence is not None else ("-", 0)
        (self.folder / "body").write_bytes(body)
        argv = ("bash", "-c", functions() + _HOST, "host", str(self.folder), str(self.folder / "body"), plane)
        done = await asyncio.to_thread(
            subprocess.run, (*argv, str(token), *words), capture_output=True, timeout=30, check=False
        )
        if done.returncode:
            raise wire.refusal(doing, done.returncode, done.stderr.decode())
        if words[0] == "fill-part":
            self.parts.append(int(words[5]))
            self.modes |= {each.stat().st_mode & 0o777 for each in self.volume.glob(".filling-*")}
        return done.stdout

    @property
    def volume(self) -> Path:
        return self.folder / "volumes/standard/data"

    def files(self) -> list[str]:
        return sorted(each.name for each in self.volume.iterdir())


@dataclass
class Lab:
    folder: Path
    host: ScriptedHost
    heard: Heard
    site: SshSite

    def at(self, login: Login) -> ScriptedHost:
        return self.host

    def source(self, name: str, size: int = 2 * 2**20) -> Path:
        file = self.folder / name
        file.write_bytes(random.Random(name).randbytes(size))
        return file

    async def fill(self, source: Path) -> PurePosixPath:
        return await self.site.fill_volume(A, "data", NAME, source)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    host = ScriptedHost(tmp_path / "host")
    for name in ("volumes/standard/data", "locks", "fences"):
        (host.folder / name).mkdir(parents=True)
    lab = Lab(tmp_path, host, Heard(), None)  # type: ignore[arg-type]
    place = SshHost(name=A, address="192.0.2.1", zone="z", roles=(MachineRole.CONTROL,), login=Login(host=A))
    settings = SshSettings(name="rack", hosts=(place,), storage_classes=(SshStorageClass(name="standard"),))
    lab.site = SshSite(settings, lab, Sender(listener=TransferListener(progress=lab.heard)))  # type: ignore[arg-type]
    return lab


async def test_a_file_comes_in_parts_that_nobody_else_can_read(lab: Lab) -> None:
    source = lab.source("one")
    umask = os.umask(0)
    try:
        assert await lab.fill(source) == PurePosixPath(lab.host.volume / NAME)
    finally:
        os.umask(umask)
    assert len(lab.host.parts) > 1
    assert lab.host.modes == {0o600}
    there = lab.host.volume / NAME
    assert (there.read_bytes(), there.stat().st_mode & 0o777) == (source.read_bytes(), 0o600)
    assert lab.host.files() == [NAME]
    assert lab.heard.finished == {SENDING: f"{NAME}, 2.1 MB"}


async def test_after_a_cut_it_goes_on_where_it_was(lab: Lab, golden: Golden) -> None:
    source = lab.source("one")
    lab.host.cut = 2
    with golden.raises(Unavailable):
        await lab.fill(source)
    assert not (lab.host.volume / NAME).exists()
    (part,) = lab.host.volume.glob(".filling-*")
    come = part.stat().st_size
    lab.host.cut = None
    await lab.fill(source)
    assert lab.host.parts[2] == come > 0
    assert (lab.host.volume / NAME).read_bytes() == source.read_bytes()


async def test_what_is_there_is_not_sent_again_and_another_file_takes_its_place(lab: Lab) -> None:
    await lab.fill(lab.source("one"))
    sent = len(lab.host.parts)
    await lab.fill(lab.source("one"))
    assert len(lab.host.parts) == sent
    other = lab.source("two")
    await lab.fill(other)
    assert (lab.host.volume / NAME).read_bytes() == other.read_bytes()


async def test_a_part_that_was_damaged_is_found_and_sent_once_more(lab: Lab, golden: Golden) -> None:
    source = lab.source("one")
    lab.host.cut = 1
    with pytest.raises(Unavailable):
        await lab.fill(source)
    (part,) = lab.host.volume.glob(".filling-*")
    part.write_bytes(bytes(part.stat().st_size))
    lab.host.cut = None
    with golden.raises(Unavailable):
        await lab.fill(source)
    assert lab.host.files() == []
    await lab.fill(source)
    assert (lab.host.volume / NAME).read_bytes() == source.read_bytes()


async def test_a_process_that_puts_another_file_there_ends_the_first_one(lab: Lab, golden: Golden) -> None:
    source = lab.source("one")
    lab.host.cut = 1
    with pytest.raises(Unavailable):
        await lab.fill(source)
    (part,) = lab.host.volume.glob(".filling-*")
    digest = part.name.removeprefix(".filling-")
    part.unlink()
    lab.host.cut = None
    size = str(source.stat().st_size)
    with golden.raises(Unavailable):
        await lab.host.ask("fill-part", "data", NAME, digest, size, "0", "gzip", "standard=", doing="x", deadline=1.0)


async def test_each_part_is_refused_once_a_newer_driver_was_there(lab: Lab) -> None:
    source = lab.source("one")
    lab.host.cut = 1
    with pytest.raises(Unavailable):
        await lab.site.fenced(Fence("alpha", 7)).fill_volume(A, "data", NAME, source)
    lab.host.cut = None
    await lab.site.fenced(Fence("alpha", 8)).fill_volume(A, "data", NAME, source)
    (lab.host.volume / f".filling-{_EMPTY}").touch()
    for verb, more in (("fill-part", ("0", "gzip")), ("fill", ()), ("fill-whole", ())):
        words = (verb, "data", "other.db", _EMPTY, "0", *more, "standard=")
        with pytest.raises(LeaseLost, match="token 8"):
            await lab.host.ask(*words, doing="filling", deadline=1.0, fence=Fence("alpha", 7))
    assert not (lab.host.volume / "other.db").exists()


async def test_a_source_that_changes_meanwhile_is_no_file_there(lab: Lab, golden: Golden) -> None:
    source = lab.source("one")
    lab.host.cut = 1
    with pytest.raises(Unavailable):
        await lab.fill(source)
    digest = await lab.site._sender.digest("", source)
    seen = source.stat()
    source.write_bytes(random.Random("three").randbytes(2 * 2**20))
    os.utime(source, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert await lab.site._sender.digest("", source) == digest, "it looks the same"
    lab.host.cut = None
    with golden.raises(Unavailable):
        await lab.fill(source)
    assert lab.host.files() == []
