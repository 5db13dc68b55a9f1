"""Sessions on a real host leave nothing there, however they end."""

from __future__ import annotations

import pytest
from support.hosts_lab import HostsLab, why_not
from support.hosts_site import hosts_site

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
