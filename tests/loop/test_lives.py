"""The whole loop (driver, observer, actions, books) in this process, against the joined fakes: lives without faults
and lives in which one call of one port goes wrong, each call in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache

import pytest
from support.tiers import in_each_tier, sized

from loop.calls import Call
from loop.faults import OF_THE_CALL, OF_THE_WORLD, Kind, OneFault, Recorded
from loop.lives import EAST3, EAST3_BESIDE, EAST3_CLOUD, STORIES, WEST3, Life, Story, Wish, many, spread
from quarterdeck.api.plane.service_accounts import OWN_ISSUER
from quarterdeck.engine.workspace.operations import OperationPhase
from quarterdeck.model.components import Component
from quarterdeck.stores.port import EntryOutcome

#: Of each story and kind of fault so many calls are tried, spread over all of its calls; ``loop.soak`` tries each.
MOST = sized(smoke=1, full=2, soak=60)
#: The same of what happens to the world.
FEW = sized(smoke=1, full=1, soak=30)
pytestmark = pytest.mark.timeout(sized(smoke=300, full=900, soak=7200))
KINDS = (*OF_THE_CALL, Kind.DIES, Kind.DIES_AFTER, Kind.STOPS, Kind.ABORTS, Kind.FREEZES)


@cache
def points(story: Story) -> tuple[int, ...]:
    """The calls of a story's life in which a fault may strike."""
    recorded = Recorded()
    Life(story=story, faults=recorded).run()
    return tuple(sorted(recorded.points.values()))


def some_of(story: Story, most: int, kind: Kind) -> tuple[int, ...]:
    """So many of them, spread over the life; of those that are twice as long as others, or much like one of them, half
    as many.
    """
    found, both = points(story), (story.start, story.wish)
    fewer = any(
        each is not None and (each.apart or each.cloud or each.standby or each.former or each.former_etcd)
        for each in both
    )
    return tuple(spread(found, most // 2 if fewer else most, f"{story} {kind.name}"))


@pytest.fixture(autouse=True, scope="module")
def cheap() -> Iterator[None]:
    with many():
        yield


@pytest.mark.smoke
@pytest.mark.parametrize("story", STORIES, ids=str)
def test_a_life_ends_as_wanted_and_no_step_fails(story: Story) -> None:
    life = Life(story=story).run()
    journal = life.world.store._journal
    assert life.operations()[-1].status.phase is OperationPhase.SUCCEEDED
    # All goes faster here than in reality: members that have just come are not yet connected for long enough.
    failed = [str(entry.detail["error"]) for entry in journal if entry.outcome is EntryOutcome.FAILED]
    assert all("connected for 5 seconds" in error for error in failed), failed
    begun = [(entry.kind, entry.text) for entry in journal if entry.outcome is EntryOutcome.STARTED]
    assert begun
    ended = [(entry.kind, entry.text) for entry in journal if entry.outcome in (EntryOutcome.DONE, EntryOutcome.FAILED)]
    assert sorted(begun) == sorted(ended)


@pytest.mark.smoke
def test_a_plane_in_a_cloud_moves_with_its_cloud_controller_manager() -> None:
    Life(story=Story("3 in a cloud to 3", EAST3_CLOUD, replace(WEST3, cloud=True))).run()


@pytest.mark.parametrize(
    ("name", "wish"),
    [
        ("to 3 elsewhere", replace(WEST3, standby="north")),
        ("a flag", replace(EAST3_BESIDE, count="5000")),
        ("all others", replace(EAST3_BESIDE, others=True)),
        ("without it", EAST3),
        ("no plane", Wish()),
    ],
)
def test_a_standby_follows_what_becomes_of_its_plane(name: str, wish: Wish) -> None:
    Life(story=Story(f"beside a standby: {name}", EAST3_BESIDE, wish)).run()


@dataclass(slots=True)
class Tokens:
    """Watches a life in which nothing goes wrong: the issuers of its apiservers whenever one of them is started."""

    life: Life | None = None
    seen: set[tuple[str, ...]] = field(default_factory=set)

    def of(self, call: Call, number: int) -> Kind | None:
        if self.life is not None and call.method == "start_unit":
            units = (unit for site in self.life.world.sites.values() for unit in site.everything() if unit.wanted)
            servers = (unit.spec.argv for unit in units if unit.spec.name.endswith(f"-{Component.APISERVER}"))
            flag = "--service-account-issuer="
            found = {tuple(each.removeprefix(flag) for each in argv if each.startswith(flag)) for argv in servers}
            assert all(one[0] in other for one in found for other in found), found
            self.seen |= found
        return None


def test_a_new_issuer_of_tokens_is_accepted_everywhere_before_one_signs_with_it_and_on_the_way_back() -> None:
    new = "https://tokens.example"
    orders = ((OWN_ISSUER,), (OWN_ISSUER, new), (new, OWN_ISSUER), (new,))
    for start, wish in ((EAST3, replace(EAST3, signer=new)), (replace(EAST3, signer=new), EAST3)):
        tokens = Tokens()
        tokens.life = Life(story=Story("an issuer of tokens", start, wish), faults=tokens)
        tokens.life.run()
        assert tokens.seen == {*orders}


@pytest.mark.smoke
def test_the_same_life_twice_is_the_same() -> None:
    one, two = (Life(story=STORIES[3], seed=7).run() for _ in range(2))
    assert one.tale(1000) == two.tale(1000)


@in_each_tier
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.lower())
@pytest.mark.parametrize("story", STORIES, ids=str)
def test_with_one_fault_at_any_call_it_ends_as_wanted(story: Story, kind: Kind) -> None:
    for number in some_of(story, MOST, kind):
        Life(story=story, faults=OneFault(number, kind)).run()


@in_each_tier
@pytest.mark.parametrize("kind", OF_THE_WORLD, ids=lambda kind: kind.name.lower())
@pytest.mark.parametrize("story", STORIES, ids=str)
def test_whatever_happens_to_machines_links_and_the_clock_meanwhile_it_ends_as_wanted(story: Story, kind: Kind) -> None:
    for number in some_of(story, FEW, kind):
        Life(story=story, faults=OneFault(number, kind)).run()


def test_what_an_overtaken_driver_sends_when_it_wakes_does_no_harm() -> None:
    recorded = Recorded()
    Life(story=STORIES[2], faults=recorded).run()
    for number in recorded.effects[::3]:
        for kind in (Kind.SENT_LATE, Kind.SENT_LATE_BACK):
            Life(story=STORIES[2], faults=OneFault(number, kind)).run()
