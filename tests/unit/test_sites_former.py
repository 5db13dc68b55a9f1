"""A site that is not declared any more says so to whatever is asked of it."""

from __future__ import annotations

from pathlib import PurePosixPath

from support.golden import Golden

from quarterdeck.errors import Unavailable
from quarterdeck.model.jobs import Job
from quarterdeck.model.measures import ClockOffset
from quarterdeck.model.programs import Program
from quarterdeck.model.searches import Search
from quarterdeck.model.units import Machine, MachineState, Priority, UnitSpec
from quarterdeck.sites.former import FormerSite

KNOWN = Machine(name="east-a1", site="east", zone="a", address="127.0.0.1", state=MachineState.UNREACHABLE)


async def test_its_machines_are_known_and_nothing_else_is(golden: Golden) -> None:
    site = FormerSite("east", (KNOWN,))
    assert await site.machines() == (KNOWN,)
    assert await site.storage_classes() == (), "so that data which cannot be looked at is unknown, not lost"
    assert site.folder("east-a1", "x").is_absolute()
    spec = UnitSpec(name="x", argv=("/bin/true",))
    machine = "east-a1"
    for call in (
        site.units(machine),
        site.install(machine, Program("x", PurePosixPath("/x"))),
        site.run_job(machine, Job(name="x", argv=("/x",), deadline=1.0)),
        site.search_volume(machine, "log", Search(files="*", texts=("x",), since=0.0)),
        site.start_unit(machine, spec),
        site.set_priority(machine, "x", Priority.SERVING),
        site.guard_unit(machine, "x", PurePosixPath("/data")),
        site.stop_unit(machine, "x"),
        site.hold_unit(machine, "x", 1.0),
        site.let_go_unit(machine, "x"),
        site.remove_unit(machine, "x"),
        site.write_files(machine, ()),
        site.remove_files(machine, ()),
        site.logs(machine, "x"),
        site.create_volume(machine, "v", "standard"),
        site.volumes(machine),
        site.list_volume(machine, "v"),
        site.delete_volume(machine, "v"),
        site.free_bytes(machine, "standard"),
        site.require_room("adding replicas", 1),
        site.ports_in_use(machine, (1,)),
        site.measure(machine, ClockOffset()),
        site.destroy(),
    ):
        with golden.raises(Unavailable):
            await call
