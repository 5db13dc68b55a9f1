"""Answers of a host that cannot be parsed, to whatever was asked: the error shows what the host said."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import PurePosixPath

import pytest

from quarterdeck.errors import Corrupt
from quarterdeck.model.capabilities import ClockOffset, DiskSync, FreeMemory, Job, RoundTrip, Search
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.ssh.hosts import Login, SshHost, SshSettings, SshStorageClass
from quarterdeck.sites.ssh.programs import Sender
from quarterdeck.sites.ssh.site import SshSite

JUNK = b"warning: disk\tfull \xff\x1b[31m" + b"!" * 5000
ROLES = (MachineRole.CONTROL,)
HOST = SshHost(name="one", address="192.0.2.1", zone="z", roles=ROLES, login=Login(host="one"))
MACHINE = HOST.machine(MachineRole.CONTROL)


class Junk:
    """A host that answers everything with the same."""

    silent, slowness = False, ""

    def __init__(self) -> None:
        self.known: set[str] = set()

    async def ask(self, *words: str, **_: object) -> bytes:
        return b"" if words[0] in ("allowed", "admit") else JUNK


class Hosts:
    """Every host is that one."""

    def __init__(self) -> None:
        self._host = Junk()

    def at(self, _login: Login) -> Junk:
        return self._host


def site() -> SshSite:
    settings = SshSettings(name="rack", hosts=(HOST,), storage_classes=(SshStorageClass(name="standard"),))
    return SshSite(settings, Hosts(), Sender())  # type: ignore[arg-type]


Question = Callable[[SshSite], Awaitable[object]]
QUESTIONS: dict[str, Question] = {
    "free bytes": lambda site: site.free_bytes(MACHINE, "standard"),
    "clock": lambda site: site.measure(MACHINE, ClockOffset()),
    "memory": lambda site: site.measure(MACHINE, FreeMemory()),
    "disk": lambda site: site.measure(MACHINE, DiskSync("standard")),
    "round trip": lambda site: site.measure(MACHINE, RoundTrip("192.0.2.2", 22)),
    "search": lambda site: site.search_volume(MACHINE, "v", Search(files="*.log", texts=("x",), since=0.0)),
    "volumes": lambda site: site.volumes(MACHINE),
    "faults": lambda site: site.faults_made(),
    "job": lambda site: site.run_job(MACHINE, Job(name="x", argv=("/bin/true",), deadline=1.0)),
    "where": lambda site: site.stands_at("looking for a volume", "v", HOST),
    "guard": lambda site: site.guard_unit(MACHINE, "u", PurePosixPath("/data")),
}


@pytest.mark.parametrize("asked", [*QUESTIONS])
async def test_an_answer_that_cannot_be_parsed_is_shown_as_the_host_said_it(asked: str) -> None:
    with pytest.raises(Corrupt) as caught:
        await QUESTIONS[asked](site())
    seen = caught.value.seen
    assert re.search(r"the host's output 'warning: disk\\tfull \ufffd\\x1b\[31m!+'\.\.\. cannot be parsed", seen)
    assert len(seen) < 500
    assert seen.isprintable()
    assert HOST.name in str(caught.value), "the machine, or its host, is named"
