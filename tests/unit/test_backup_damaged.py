"""A backup store in which anything was damaged: each moment is restored as it was, or there is one clear error."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.objects import MemoryObjects
from support.damaged_backups import BackedUp, backed_up_planes, damage, rows_of
from support.databases import IDENTITIES
from support.tiers import in_each_tier, sized

from quarterdeck.backup.build import build, opened
from quarterdeck.backup.chain import Chain
from quarterdeck.errors import Corrupt, NotFound, PreconditionFailed

_EXAMPLES = sized(smoke=150, full=300, soak=100_000)


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder whose files need not reach a disk, if there is one: each example writes a database."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        yield Path(folder)


async def restored(store: MemoryObjects, plane: BackedUp, folder: Path, lots: random.Random) -> None:
    """Restore the newest moment, an earlier one, and the belongings: what comes is what there was."""
    chain = await plane.chains(store).read()
    for reference in (each.stored for each in chain.belongings):
        async with opened(store, reference, IDENTITIES) as parts:
            assert b"".join([part async for part in parts]) == plane.belongings[reference.name]
    for revision in {_newest(chain), lots.randint(1, _newest(chain))}:
        moment = chain.at_revision("main", revision, 0)
        built = await build(store, moment, IDENTITIES, folder / "db")
        assert built.revision == revision
        assert rows_of(built.path) == plane.rows[revision]
        built.path.unlink()


def its(store: MemoryObjects, plane: BackedUp) -> dict[str, object]:
    """The objects of a plane."""
    return {name: each for name, each in store.objects.items() if name.startswith(plane.folder)}


def _newest(chain: Chain) -> int:
    return chain.latest("main", 0).revision


@in_each_tier
@pytest.mark.timeout(sized(smoke=900, full=900, soak=36_000))
async def test_what_is_restored_of_a_damaged_backup_is_right_or_one_clear_error(memory: Path) -> None:
    whole, planes = await backed_up_planes(memory)
    for plane in planes:
        await restored(whole, plane, memory, random.Random(0))
    refused = 0
    for number in range(_EXAMPLES):
        lots, store = random.Random(number), MemoryObjects()
        store.objects = dict(whole.objects)
        done = [damage(store, lots) for _ in range(lots.choice((1, 1, 1, 2, 3)))]
        for plane in (each for each in planes if its(store, each) != its(whole, each)):
            try:
                await restored(store, plane, memory, lots)
            except (Corrupt, NotFound) as error:
                refused += 1
                assert "\n" not in str(error), (number, done)
            except BaseException as error:
                # Where the hash fits the damage, for whom a part is encrypted may be what was damaged.
                if not (isinstance(error, PreconditionFailed) and any(each.startswith("claimed") for each in done)):
                    error.add_note(f"example {number}: {done}")
                    raise
            assert [*memory.iterdir()] == [], (number, done)
        if number % 100 == 0:
            await asyncio.sleep(0)  # a test that is cancelled ends
    assert _EXAMPLES / 4 < refused < 2 * _EXAMPLES
