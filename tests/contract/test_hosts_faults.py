"""What makes faults is on a host only while there is one."""

from __future__ import annotations

from functools import partial

import pytest
from support.conditions import eventually
from support.hosts_lab import HostsLab, why_not
from support.hosts_site import LabSite, hosts_site
from support.site_harness import runs, status

from quarterdeck.errors import NotFound
from quarterdeck.model.faults import Fault, FaultKind
from quarterdeck.model.units import UnitState
from quarterdeck.sites.ssh.wire import faults

pytestmark = [pytest.mark.hosts, pytest.mark.skipif(bool(why_not()), reason=why_not())]

A = "east-a1"
OFF = Fault(kind=FaultKind.POWER_OFF, machine=A)
HUNG = Fault(kind=FaultKind.HANG_UNIT, machine=A, unit="runs")
KILLED = Fault(kind=FaultKind.KILL_UNIT, machine=A, unit="runs")
LONG = 300.0
#: Where the functions of faults are on a host; what is left of them while it has none is said by name.
_FIND = "grep -rlF 'it is frozen' /var/lib/quarterdeck /usr/local/lib/quarterdeck /run/quarterdeck || true"


def has_faults(lab: HostsLab) -> list[str]:
    return lab.sh(A, _FIND).split()


async def running(site: LabSite) -> None:
    await site.start_unit(A, runs())
    await eventually(partial(status, site, A, "runs"), lambda unit: unit.state is UnitState.RUNNING)


async def test_a_host_without_drills_has_no_line_of_them(machines: HostsLab) -> None:
    assert b"it is frozen" in faults()
    async with hosts_site(machines) as under_test:
        site = under_test.site
        await running(site)
        assert await site.faults_made() == ()
        assert has_faults(machines) == []
        for fault in (OFF, HUNG):
            await site.make_fault(fault, LONG)
            assert has_faults(machines) == ["/var/lib/quarterdeck/faults"]
            assert await site.undo_fault(fault) == ""
            assert has_faults(machines) == []
            await eventually(partial(status, site, A, "runs"), lambda unit: unit.state is UnitState.RUNNING)
        await site.make_fault(KILLED, LONG)
        assert has_faults(machines) == [], "it is over at once"


async def test_nothing_of_it_stays_when_a_fault_was_refused_or_ended_by_itself(machines: HostsLab) -> None:
    async with hosts_site(machines) as under_test:
        site = under_test.site
        await running(site)
        with pytest.raises(NotFound):
            await site.make_fault(Fault(kind=FaultKind.HANG_UNIT, machine=A, unit="nobody"), LONG)
        assert has_faults(machines) == []
        await site.make_fault(HUNG, 1.0)
        await eventually(site.faults_made, lambda made: not made)
        await eventually(partial(_has_faults, machines), lambda found: not found)


async def _has_faults(lab: HostsLab) -> list[str]:
    return has_faults(lab)
