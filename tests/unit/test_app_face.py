"""The application face without the command line, on homes of which nothing runs."""

from __future__ import annotations

import ast
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from support.golden import Golden

from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.api.operation import OperationType
from quarterdeck.api.site import Isolation, Site
from quarterdeck.app import Abort, Apply, Delete, Migrate, Quarterdeck, Requester
from quarterdeck.app.site.sites import SiteChange
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.errors import Conflict, Gone, InvalidInput, NotFound, PreconditionFailed

ASKER = Requester(name="a test")
PAGE = Path(__file__).parents[2] / "docs" / "library.md"


@pytest.fixture
async def face(tmp_path: Path) -> AsyncIterator[Quarterdeck]:
    async with Quarterdeck.open(tmp_path / "home", requester=ASKER) as made:
        yield made


async def with_plane(face: Quarterdeck, name: str = "alpha", site: str = "east") -> None:
    await operations.create(face._home, new_control_plane(name, site=site), ASKER)


def snippet() -> str:
    """The migration that the library's page shows."""
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_page_shows_a_migration_in_ten_lines_that_ends_well_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    text = snippet()
    assert len([line for line in text.splitlines() if line]) == 10
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path / "home"))
    with golden.raises(Gone):
        exec(compile(text, str(PAGE), "exec"), {})


def test_the_page_names_only_what_there_is() -> None:
    verbs = set(re.findall(r"^\| `(\w+)\(", PAGE.read_text(), re.MULTILINE))
    assert verbs == {"examine", "plan", "ask", "carry_out", "follow"}
    used = {node.attr for node in ast.walk(ast.parse(snippet())) if isinstance(node, ast.Attribute)}
    assert used - {"run", "findings", "outcome"} == {"open", "plan", "ask", "carry_out", "report"}
    assert all(hasattr(Quarterdeck, each) for each in verbs | {"open", "report"})


async def test_a_plane_that_is_not_there_is_named_by_every_call(face: Quarterdeck, golden: Golden) -> None:
    await with_plane(face, "other")
    calls: list[Awaitable[object]] = [
        face.examine("demo"),
        face.forecast("demo"),
        face.plan(Migrate("demo", "west")),
        face.ask(Delete("demo")),
        face.carry_out("demo"),
        face.follow("demo"),
        face.history("demo"),
        face.events("demo"),
        face.kubeconfig("demo"),
        face.pause("demo"),
        anext(face.logs("demo")),
        face.probing("demo").__aenter__(),
    ]
    for call in calls:
        with golden.raises(Gone):
            await call


async def test_an_abort_and_a_deletion_need_no_programs(
    face: Quarterdeck, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    await with_plane(face)
    monkeypatch.setenv("QUARTERDECK_BIN_DIR", "/proc/nowhere")
    with pytest.raises(InvalidInput, match="/proc/nowhere"):
        await face.plan(Migrate("alpha", "west"))
    with golden.raises(Conflict):
        await face.plan(Abort("alpha"))
    operation = await face.ask(Delete("alpha"))
    assert operation is not None
    assert operation.spec.type is OperationType.DELETE


async def test_a_deletion_is_refused_when_it_is_planned_not_only_when_it_is_asked_for(
    face: Quarterdeck, golden: Golden
) -> None:
    await with_plane(face)
    current = await face.plane("alpha")
    wanted = operations.moved(current, current.spec.placement.model_copy(update={"site": "west"}), None)
    await operations.change(face._home, wanted, OperationType.MIGRATE, ASKER)
    for call in (face.plan, face.ask):
        with golden.raises(Conflict):
            await call(Delete("alpha"))
    with golden.raises(Conflict):
        await face.plan(Migrate("alpha", "east"))


async def test_a_plane_that_is_paused_says_so_until_it_is_resumed(face: Quarterdeck) -> None:
    await with_plane(face)
    await face.pause("alpha")
    assert (await face.plane("alpha")).spec.paused
    await face.resume("alpha")
    assert not (await face.plane("alpha")).spec.paused


async def test_a_report_needs_an_operation_that_has_begun(face: Quarterdeck, golden: Golden) -> None:
    await with_plane(face)
    assert [each.spec.type for each in await face.history("alpha")] == [OperationType.CREATE]
    with golden.raises(NotFound):
        await face.report("alpha")


def site(name: str, **spec: object) -> Site:
    return Site.model_validate({"metadata": {"name": name}, "spec": spec})


async def test_a_site_that_was_changed_has_its_new_machines(face: Quarterdeck) -> None:
    assert (await face.sites.apply(site("north", zones=("a",), machinesPerZone=1))).change is SiteChange.CREATED
    assert (await face.sites.apply(site("north", zones=("a",), machinesPerZone=1))).change is SiteChange.UNCHANGED
    before = await face.sites.machines("north")
    assert (await face.sites.apply(site("north", zones=("a", "b"), machinesPerZone=1))).change is SiteChange.CHANGED
    after = await face.sites.machines("north")
    assert {each.machine.zone for each in after} - {each.machine.zone for each in before} == {"b"}
    await face.sites.remove("north")
    assert sorted(await face.sites.list()) == ["east", "west"]


FROM_OUTSIDE: dict[str, Callable[[Quarterdeck], Awaitable[object]]] = {
    "examine": lambda face: face.examine("far"),
    "forecast": lambda face: face.forecast("far"),
    "plan a move": lambda face: face.plan(Migrate("far", "east")),
    "ask for a move": lambda face: face.ask(Migrate("far", "east")),
    "apply a move": lambda face: face.ask(Apply(new_control_plane("far", site="east"))),
    "carry out": lambda face: face.carry_out("far"),
    "follow": lambda face: face.follow("far"),
    "probe": lambda face: face.probing("far").__aenter__(),
    "machines": lambda face: face.sites.machines("lab"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("call", FROM_OUTSIDE.values(), ids=FROM_OUTSIDE)
async def test_a_plane_on_networks_that_we_are_not_in_is_out_of_reach_at_once(
    face: Quarterdeck, call: Callable[[Quarterdeck], Awaitable[object]], golden: Golden
) -> None:
    await face._home.store.create(site("lab", isolation=Isolation.NETNS))
    await with_plane(face, "far", "lab")
    running = await recorded.current(face._home.store, "far")
    assert running is not None
    await operations.finish(face._home.store, running, operations.OperationPhase.SUCCEEDED, "", ASKER)
    before = await face.plane("far")
    with golden.raises(PreconditionFailed):
        await call(face)
    assert await face.plane("far") == before
    assert not (face._home.folder / "netns").exists(), "nothing was started"
