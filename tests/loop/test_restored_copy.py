"""A plane that begins with a backup of another one, whatever becomes of the process that drives it. (There is one plane
in this world: the other one, which it is a copy of, is gone.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from support.resources import with_spec
from support.tiers import in_each_tier, sized

from loop.faults import Faults, Kind, NoFaults, OneFault, Recorded
from loop.lives import EAST3, Story, many, new_plane, spread
from loop.secrets import plane_secrets
from loop.session import Books, Session
from loop.test_manager import Kept, ready_apiservers
from loop.units import PLANE
from quarterdeck.api.operation import OperationPhase
from quarterdeck.api.plane.epochs import NewEpoch, RestoreFrom
from quarterdeck.engine.reconcile import drive
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.restores import RestoredDatabase
from quarterdeck.model.epochs import BackupOrigin

#: Calls of a restore before and after which its driver is killed.
MOST = sized(smoke=2, full=6, soak=200)
CONSENT = NewEpoch(epoch=1, restore=RestoreFrom(store="file:///backups", folder="alpha/1", epoch=0, revision=40))


@pytest.fixture(autouse=True, scope="module")
def cheap() -> Iterator[None]:
    with many():
        yield


@pytest.fixture(autouse=True)
def backups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which this host builds databases of backups."""

    async def built(
        home: Home, upstream: object, plane: object, origin: BackupOrigin, *what: object
    ) -> RestoredDatabase:
        assert origin == BackupOrigin(store="file:///backups", folder="alpha/1", epoch=0)
        database = tmp_path / "db"
        database.write_bytes(b"a database")
        return RestoredDatabase(database, None)

    monkeypatch.setattr(drive, "restored_database", built)
    return tmp_path


@dataclass(kw_only=True)
class Restored(Kept):
    """A plane that is created from a backup, under managers of which another one starts where one is dead."""

    story: Story = field(default_factory=lambda: Story("restored", None, EAST3))
    faults: Faults = field(default_factory=NoFaults)
    folder: Path

    async def begins(self) -> None:
        """The user creates it, and then the faults begin."""
        user = Session(name="the user", world=self.world, truths=self.truths, books=Books(), happens=self._happens)
        engine = user.engine()
        plane = with_spec(new_plane(EAST3), new_epoch=CONSENT)
        secrets = plane_secrets(PLANE, datetime.now(UTC))
        await operations.create(engine.home, plane, engine.requester, (), secrets=secrets)
        self.books.calls, self.books.faults = 0, self.faults

    async def until_it_serves(self) -> None:
        """Managers drive until the operation is over."""

        async def over() -> bool:
            if self.sessions[-1].dead:
                self.start(f"manager {len(self.sessions) + 1}")
            return self.operations()[-1].status.phase is OperationPhase.SUCCEEDED

        await self.until(over, 400)


async def lived(life: Kept) -> None:
    assert isinstance(life, Restored)
    await life.begins()
    await life.until_it_serves()
    memory = (await life.plane()).status.memory
    assert (memory.epoch, memory.served_site, len(memory.replicas)) == (1, "east", 3)
    assert memory.kept == ()
    assert len(ready_apiservers(life)) == 3
    for site in life.world.sites.values():
        for machine in await site.machines():
            names = {each.name for each in await site.volumes(machine.name)}
            assert f"{PLANE}-east-1-restore" not in names, "no copy of the database stays"
    assert not list(life.folder.iterdir()), "nor on this host"
    if len(life.sessions) > 1:
        life.sessions[-1].stop()


@pytest.mark.smoke
def test_a_plane_begins_with_a_backup_and_no_copy_of_that_stays(backups: Path) -> None:
    Restored(lived=lived, folder=backups).run()


@cache
def calls(folder: Path) -> tuple[int, ...]:
    """The calls of a restore at which its driver may be killed."""
    recorded = Recorded()
    Restored(lived=lived, folder=folder, faults=recorded).run()
    return tuple(sorted({*recorded.effects, *recorded.points.values()}))


@in_each_tier
@pytest.mark.parametrize("kind", [Kind.DIES, Kind.DIES_AFTER], ids=lambda kind: kind.name.lower())
def test_a_manager_that_is_killed_at_any_call_of_a_restore_is_followed_by_one_that_goes_on(
    kind: Kind, backups: Path
) -> None:
    killed = 0
    for number in spread(calls(backups), MOST, kind.name):
        life = Restored(lived=lived, folder=backups, faults=OneFault(number, kind))
        life.run()
        killed += life.sessions[0].dead  # (a call that fails has no moment after it)
    assert killed
