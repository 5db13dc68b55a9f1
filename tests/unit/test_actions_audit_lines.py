"""Reading audit logs: of every seat, and what cannot be read is said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.golden import Golden
from support.lock_histories import ZERO, line
from support.small_plane import SmallPlane, small_plane

from quarterdeck.actions.audit import AuditLog, Placed, audit_logs
from quarterdeck.actions.volumes import audit_volume, audit_volumes
from quarterdeck.model.units import MachineState

TEXTS = ('"system:kube-controller-manager"', "node-controller")


@pytest.fixture
async def small() -> SmallPlane:
    return await small_plane()


async def write(small: SmallPlane, machine: str, volume: str, *lines: str, file: str = "audit.log") -> None:
    site = small.sites["east"]
    made = await site.create_volume(machine, volume, "standard")
    disk = site._machine(machine).disk
    disk.put(made.path / file, 1, at=ZERO + 100)
    disk.texts[made.path / file] = "".join(f"{each}\n" for each in lines)


async def write_all(small: SmallPlane) -> None:
    for record in small.plane.memory.replicas:
        await write(small, record.machine, audit_volume(small.plane, record), line(1.0), '{"user": "jane"}')


def missing(logs: tuple[AuditLog, ...]) -> list[str]:
    return [each.missing for each in logs if each.missing]


async def test_each_replicas_log_is_read_for_the_lines_that_matter(small: SmallPlane) -> None:
    await write_all(small)
    logs = await audit_logs(small.plane, TEXTS, ZERO, ())
    assert [(each.replica_at(ZERO), each.lines, each.missing) for each in logs] == [
        (f"east-{number}", (line(1.0),), "") for number in (1, 2, 3)
    ]
    later = await audit_logs(small.plane, TEXTS, ZERO + 101, ())
    assert [each.lines for each in later] == [(), (), ()], "nothing was written there since"


async def test_files_that_were_moved_away_come_first_and_the_oldest_says_how_far_back_the_log_reaches(
    small: SmallPlane,
    golden: Golden,
) -> None:
    await write_all(small)
    (first, *_) = small.plane.memory.replicas
    moved = "audit-2027-01-15T08-00-0{}.000.log"  # ZERO is 08:00:00
    await write(small, first.machine, audit_volume(small.plane, first), line(0.5), file=moved.format(1))
    (log, *_) = await audit_logs(small.plane, TEXTS, ZERO, ())
    assert (log.lines, log.missing) == ((line(0.5), line(1.0)), "")
    for number in range(2, 10):
        await write(small, first.machine, audit_volume(small.plane, first), file=moved.format(number))
    await write(small, first.machine, audit_volume(small.plane, first), file=moved.format("0").replace("-00.", "-10."))
    (log, *_) = await audit_logs(small.plane, TEXTS, ZERO, ())
    golden(log.missing)  # ten are kept
    (log, *_) = await audit_logs(small.plane, TEXTS, ZERO + 5, ())
    assert log.missing == ""


async def test_what_is_not_there_and_who_does_not_answer_is_said(small: SmallPlane, golden: Golden) -> None:
    first, _, third = small.plane.memory.replicas
    await write(small, first.machine, audit_volume(small.plane, first), line(1.0), file="other")
    await write(small, third.machine, audit_volume(small.plane, third), line(1.0))
    await small.sites["east"].kill_machine(third.machine)
    lines = missing(await audit_logs(small.plane, TEXTS, ZERO, ()))
    golden(lines[:2])
    golden(lines[2])
    assert small.plane.machines["east", third.machine].state is MachineState.UP, "as it was when it was opened"


async def test_logs_of_removed_replicas_are_attributed_while_their_seats_are_known(
    small: SmallPlane,
) -> None:
    await write_all(small)
    gone = Placed("east-0", "east", "east-a2", at=ZERO - 50, until=ZERO + 20)
    long_gone = Placed("east-00", "east", "east-b2", at=ZERO - 50, until=ZERO - 20)
    await write(small, "east-a2", audit_volumes(small.plane), line(2.0))
    logs = await audit_logs(small.plane, TEXTS, ZERO, (gone, long_gone))
    assert missing(logs) == []
    assert ("east-0", (line(2.0),)) in [(each.replica_at(ZERO + 2), each.lines) for each in logs]
    assert [each.replica_at(ZERO + 30) for each in logs if gone in each.replicas] == [""]


async def test_of_a_seat_that_went_from_one_to_the_other_it_is_known_who_had_it_when(small: SmallPlane) -> None:
    await write_all(small)
    placed = (
        Placed("east-0", "east", "east-a1", at=ZERO - 50, until=ZERO + 20),
        Placed("east-1", "east", "east-a1", at=ZERO + 25),
    )
    log = next(each for each in await audit_logs(small.plane, TEXTS, ZERO, placed) if placed[0] in each.replicas)
    assert [log.replica_at(ZERO + at) for at in (10, 22, 30)] == ["east-0", "", "east-1"]
    unknown = replace(log, replicas=(placed[0], replace(placed[1], at=ZERO)))
    assert unknown.replica_at(ZERO + 10) == "", "two may have sat there"
