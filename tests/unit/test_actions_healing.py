"""A machine that had to be healed again and again is cordoned for all planes; who did so is said, and a person's word
comes first.
"""

from __future__ import annotations

from datetime import UTC, datetime

from support.fake_plane import FakePlane

from quarterdeck.actions.healing import cordon_machine
from quarterdeck.api.site import Cordon, Site, default_sites
from quarterdeck.model.steps.healing import CordonMachine
from quarterdeck.model.world import World

STEP = CordonMachine(site="east", why="", machine="east-b1")


async def test_a_machine_is_cordoned_by_the_plane_that_met_it() -> None:
    fake = FakePlane()
    plane = await fake.open()
    await fake.store.create(default_sites()[0])
    for _ in range(2):  # whoever is killed before it is written down does it again
        await cordon_machine(plane, STEP, World(slots=(), memory=plane.memory, now=0.0))
    since = datetime.fromtimestamp(fake.clocks.wall, UTC)
    made = Cordon(machine="east-b1", by="quarterdeck for plane demo", since=since)
    assert (await fake.store.get(Site, "east")).spec.cordons == (made,)


def test_what_a_person_cordoned_stays_theirs() -> None:
    theirs = Cordon(machine="east-b1", by="mia")
    site = default_sites()[0].with_cordon(theirs)
    assert site.with_cordon(Cordon(machine="east-b1", by="quarterdeck")).spec.cordons == (theirs,)
