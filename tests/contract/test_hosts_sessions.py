"""Sessions on a real host leave nothing there, however they end."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath

import pytest
from support.conditions import eventually
from support.hosts_lab import HostsLab, why_not
from support.hosts_site import LabSite, hosts_site

from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.model.units import Program, UnitSpec, UnitState

pytestmark = [pytest.mark.hosts, pytest.mark.skipif(bool(why_not()), reason=why_not())]

A, RUN = "east-a1", "/run/quarterdeck"


def sessions(lab: HostsLab) -> set[str]:
    return set(lab.sh(A, f"find {RUN} -maxdepth 1 -name 'session.*'").split())


async def test_the_next_session_removes_the_folders_of_those_that_were_killed_and_no_others(machines: HostsLab) -> None:
    async with hosts_site(machines) as first:
        await first.site.seats(A)
        killed = sessions(machines)
        assert killed
        machines.sh(A, "pkill -KILL -f 'host [s]erve'")
        async with hosts_site(machines) as second:
            await second.site.seats(A)
            alive = sessions(machines) - killed
            assert alive
            machines.sh(A, 'touch -d "-2 min" "$@"', *killed, *alive)
            async with hosts_site(machines) as third:
                await third.site.seats(A)
                left = sessions(machines)
                assert left.isdisjoint(killed)
                assert left > alive


async def test_a_host_that_another_process_cleared_is_asked_again(machines: HostsLab) -> None:
    """What a process knows of a host, as which programs it has, is no longer so when the host was cleared meanwhile."""
    program = Program("true", PurePosixPath("/bin/true"))
    async with hosts_site(machines) as first:
        there = await first.site.install(A, program)
        async with hosts_site(machines) as second:
            await second.site._destroyed(second.site.host(A))
            await second.site.seats(A)  # it is in use again, before the first one says anything
        assert machines.run(A, ("test", "-e", str(there))).returncode != 0
        await eventually(partial(_can_be_asked, first.site), bool)
        assert await first.site.install(A, program) == there
        assert machines.run(A, (str(there),)).returncode == 0


async def test_a_program_that_is_gone_from_a_host_is_sent_again_after_a_failed_start(machines: HostsLab) -> None:
    program = Program("sleep", PurePosixPath("/bin/sleep"))
    async with hosts_site(machines) as under_test:
        site = under_test.site
        unit = UnitSpec(name="napper", argv=(str(await site.install(A, program)), "60"))
        machines.sh(A, "rm -rf /var/lib/quarterdeck/programs/*")
        with pytest.raises(PreconditionFailed, match="sleep does not exist"):
            await site.start_unit(A, unit)
        await site.install(A, program)
        await site.start_unit(A, unit)
        assert [each.state for each in await site.units(A)] == [UnitState.RUNNING]


async def _can_be_asked(site: LabSite) -> bool:
    try:
        await site.seats(A)
    except Unavailable:
        return False
    return True
