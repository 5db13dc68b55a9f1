"""Programs that are sent to a real host: what is told is what comes, and what was cut goes on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest
from support.hosts_lab import HostsLab, why_not
from support.hosts_site import LabSite, hosts_site
from support.upstream_lab import Heard, sha256

from quarterdeck.errors import Unavailable
from quarterdeck.model.units import Program
from quarterdeck.progress import TransferListener
from quarterdeck.sites.ssh.programs import Sender, _pack

pytestmark = [pytest.mark.hosts, pytest.mark.skipif(bool(why_not()), reason=why_not())]

A, TASK = "east-a1", "sending to east-a1 of east"
FOLDER = "/var/lib/quarterdeck/programs"


@dataclass
class HeardOnce(Heard):
    """Does something ``first``, when some of it has come."""

    first: Callable[[], Coroutine[None, None, None]] | None = None
    doing: asyncio.Task[None] | None = None

    def advance(self, task: str, done: int) -> None:
        super().advance(task, done)
        if self.first is not None and self.doing is None:
            self.doing = asyncio.create_task(self.first())


@dataclass
class Sending:
    lab: HostsLab
    site: LabSite
    heard: HeardOnce
    file: Path

    async def install(self) -> PurePosixPath:
        return await self.site.install(A, Program("etcd", PurePosixPath(self.file)))

    def come(self) -> int:
        """Bytes of what is on its way that the host has."""
        return int(self.lab.sh(A, f"cat {FOLDER}/.part-* 2> /dev/null | wc -c"))


@pytest.fixture
async def sending(machines: HostsLab, tmp_path: Path) -> AsyncIterator[Sending]:
    file = tmp_path / "etcd"
    file.write_bytes(random.Random(tmp_path.name).randbytes(12 * 2**20))
    file.chmod(0o755)
    async with hosts_site(machines) as lab:
        heard = HeardOnce()
        site = LabSite(lab.site._settings, lab.site._hosts, Sender(listener=TransferListener(progress=heard)))
        site.lab = machines
        yield Sending(machines, site, heard, file)


async def test_progress_shows_what_arrived_and_a_cut_transfer_resumes_there(sending: Sending) -> None:
    whole = len((await asyncio.to_thread(_pack, sending.file, "zstd")).content)
    sending.heard.first = sending.site._hosts.close
    with pytest.raises(Unavailable):
        await sending.install()
    come = sending.come()
    assert sending.heard.started == {TASK: whole}
    assert 0 < sending.heard.done[TASK][-1] <= come < whole, "nothing is told that has not come"
    assert sending.heard.finished[TASK].endswith("; not all of etcd")

    sending.heard.done.clear()
    path = await sending.install()
    progress = sending.heard.done[TASK]
    # A part that had arrived when the connection was cut is written all the same, perhaps after the host was looked at.
    assert come <= progress[0] < progress[-1] == whole, "it does not go on from what has come"
    assert progress == sorted(progress)
    assert sending.heard.finished[TASK] == f"etcd, {(whole - progress[0]) / 1e6:.1f} MB"
    assert sending.lab.sh(A, 'sha256sum < "$1"', str(path)).split()[0] == sha256(sending.file.read_bytes())
    assert sending.lab.sh(A, f"ls -A {FOLDER}").split() == [sha256(sending.file.read_bytes())]
