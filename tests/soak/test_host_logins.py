"""Hosts as people have them, one after the other on one machine: what the check lets pass can be used, and what it
refuses is named, in the words of the host.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import pytest
from support.conditions import eventually
from support.hosts_lab import HostsLab, LabHost, why_not

from quarterdeck.errors import QuarterdeckError
from quarterdeck.model.findings import Checked, Verdict
from quarterdeck.model.units import Machine, MachineRole, MachineState, UnitSpec, UnitState
from quarterdeck.sites.ssh.checks import Here
from quarterdeck.sites.ssh.connections import HostConnections
from quarterdeck.sites.ssh.host_survey import checked
from quarterdeck.sites.ssh.hosts import Login, SshHost, SshSettings, SshStorageClass
from quarterdeck.sites.ssh.site import SshSite, open_ssh_site

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(300),
    pytest.mark.hosts,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

ONE, OWNER, UNIT, FOLDER = "one", "tests", "logins-sleep", "/srv/fast"
SSHD, SUDOERS = "/etc/ssh/sshd_config.d/variation.conf", "/etc/sudoers.d/deck"
RELOADED = "systemctl reload ssh; sleep 0.3"
#: A login shell that prints before it runs anything, and leaves something behind that prints later.
NOISE = r"""
echo welcome; printf 'no newline'; echo oops >&2
head -c 3000000 /dev/zero | tr '\0' y; head -c 300000 /dev/zero | tr '\0' z >&2
(for n in 1 2 3 4 5 6; do sleep 0.5; echo "still here"; done) &
"""
SLOW = """
mv /usr/bin/sudo /usr/bin/sudo.real
printf '#!/bin/sh\nsleep 6\nexec /usr/bin/sudo.real "$@"\n' > /usr/bin/sudo
chmod 755 /usr/bin/sudo
"""


def sshd(line: str) -> str:
    return f"echo '{line}' > {SSHD}; {RELOADED}"


def sudoers(*lines: str) -> str:
    return "".join(f"echo '{line}' >> {SUDOERS}.new; " for line in lines) + f"mv {SUDOERS}.new {SUDOERS}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """How a host is changed. ``refused``: what is said of it where it cannot be used ("": it can be); ``slow``: what is
    said of one that can.
    """

    change: str
    refused: str = ""
    slow: str = ""


VARIATIONS = {
    "as installed": Variation(change="true"),
    "bashrc prints": Variation(change=f"cat > /home/deck/.bashrc << 'END'{NOISE}END"),
    "sshrc prints": Variation(change="echo 'echo sshrc says hello' > /etc/ssh/sshrc"),
    "LANG": Variation(change="printf 'LANG=de_DE.UTF-8\\nLC_ALL=de_DE.UTF-8\\n' > /etc/default/locale"),
    "shell dash": Variation(change="usermod -s /bin/sh deck"),
    "shell false": Variation(change="usermod -s /bin/false deck", refused="the login shell of user deck"),
    "shell nologin": Variation(change="usermod -s /usr/sbin/nologin deck", refused="This account is currently not"),
    "forced for all": Variation(change=sshd("ForceCommand echo go away"), refused="ForceCommand, ended with 0"),
    "forced for a key": Variation(
        change="sed -i 's/^/command=\"echo forced\" /' /etc/ssh/lab_keys", refused="command= in /etc/ssh/lab_keys:1"
    ),
    "one session": Variation(change=sshd("MaxSessions 1")),
    "no session": Variation(change=sshd("MaxSessions 0"), refused="refuses a session (open failed)"),
    "sudo is slow": Variation(change=SLOW, slow="sudo took"),
    "sudo wants a terminal": Variation(
        change=sudoers("Defaults requiretty", "deck ALL=(ALL) NOPASSWD: ALL"), refused="you must have a tty to run sudo"
    ),
    "sudo starts no programs": Variation(
        change=sudoers("Defaults noexec", "deck ALL=(ALL) NOPASSWD: ALL"), refused="Permission denied"
    ),
    "sudo for true": Variation(
        change=sudoers("deck ALL=(root) NOPASSWD: /usr/bin/true"), refused="sudo: a password is required"
    ),
    "sudo asks for all but true": Variation(
        change=sudoers("deck ALL=(ALL) ALL", "deck ALL=(root) NOPASSWD: /usr/bin/true"),
        refused="a password is required",
    ),
    "sudo for shells": Variation(
        change=sudoers("deck ALL=(root) NOPASSWD: /bin/sh, /usr/bin/sh, /bin/bash, /usr/bin/bash"),
        refused="a password is required",
    ),
}
_UNDONE = f"""
rm -f {SSHD} /etc/ssh/sshrc /etc/default/locale
[ ! -e /usr/bin/sudo.real ] || mv -f /usr/bin/sudo.real /usr/bin/sudo
echo 'deck ALL=(ALL:ALL) NOPASSWD: ALL' > {SUDOERS}
sed -i 's/^command="[^"]*" //' /etc/ssh/lab_keys
usermod -s /bin/bash deck 2> /dev/null; : > /home/deck/.bashrc
rm -rf /etc/quarterdeck /usr/local/lib/quarterdeck; mkdir -p {FOLDER}
{RELOADED}
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[HostsLab]:
    with HostsLab((LabHost(ONE, "east", "a"),)) as made:
        yield made


def settings(lab: HostsLab) -> SshSettings:
    """A site of one host, with a folder that root has to allow."""
    host = SshHost(
        name=ONE,
        address=lab.address(ONE),
        zone="a",
        roles=(MachineRole.CONTROL,),
        login=Login(host=ONE, user="deck"),
    )
    classes = (SshStorageClass(name="standard"), SshStorageClass(name="fast", path=FOLDER))
    return SshSettings(name="east", hosts=(host,), storage_classes=classes)


@asynccontextmanager
async def opened(lab: HostsLab) -> AsyncIterator[SshSite]:
    """The site, as a new process would have it."""
    hosts = HostConnections(OWNER)
    try:
        yield open_ssh_site(settings(lab), hosts)
    finally:
        await hosts.close()


async def used(site: SshSite) -> None:
    """Whether what a plane needs can be had there. Raises QuarterdeckError."""
    volume = await site.create_volume(ONE, "v", "fast")
    spec = UnitSpec(name=UNIT, argv=("/usr/bin/sleep", "600"), owns=(volume.path,), fresh=True)
    await site.start_unit(ONE, spec)
    (unit,) = await site.units(ONE)
    assert unit.state is UnitState.RUNNING
    await site.remove_unit(ONE, UNIT)
    await site.delete_volume(ONE, "v")
    await site.destroy()


def in_the_way(found: Checked) -> list[str]:
    return [each.finding.seen for each in found.findings if each.finding.verdict is Verdict.REFUSE]


async def is_up(site: SshSite) -> bool:
    (machine,) = await site.machines()
    return machine.state is MachineState.UP


async def seen(lab: HostsLab) -> Machine:
    async with opened(lab) as site:
        (machine,) = await site.machines()
        if machine.state is MachineState.UP:
            await used(site)
        else:
            with pytest.raises(QuarterdeckError):
                await used(site)
        return machine


@pytest.mark.parametrize("name", VARIATIONS)
async def test_what_the_check_lets_pass_can_be_used_and_what_it_refuses_is_named(
    lab: HostsLab, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variation = VARIATIONS[name]
    monkeypatch.setenv("HOME", str(lab.access.folder))
    await asyncio.to_thread(lab.sh, ONE, _UNDONE)
    await asyncio.to_thread(lab.sh, ONE, variation.change)
    began = time.monotonic()
    with lab.inside():
        found = await checked(settings(lab), Here(architecture=os.uname().machine, owner=OWNER))
        machine = await seen(lab)
        refused = in_the_way(found)
        print(f"\n{name}: {time.monotonic() - began:.1f} s, check {refused}, machine {machine.state}: {machine.why}")
        if variation.refused:
            assert variation.refused in "\n".join(refused)
            assert machine.state is MachineState.UNREACHABLE
            assert variation.refused in machine.why
        else:
            assert refused == []
            assert machine.state is MachineState.UP
            assert variation.slow in machine.why


async def test_a_host_that_is_corrected_is_used_by_the_process_that_was_refused(
    lab: HostsLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(lab.access.folder))
    for name in ("no session", "shell false", "sudo for true"):
        await asyncio.to_thread(lab.sh, ONE, _UNDONE)
        await asyncio.to_thread(lab.sh, ONE, VARIATIONS[name].change)
        with lab.inside():
            async with opened(lab) as site:
                assert not await is_up(site), name
                await asyncio.to_thread(lab.sh, ONE, _UNDONE)
                await eventually(partial(is_up, site), bool)
                await used(site)
