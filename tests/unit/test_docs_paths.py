"""Pages name only files that exist and link only to places that exist, and none grows past what one reads at a time."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = tuple(sorted((ROOT / "docs").rglob("*.md")))
PAGES = (*DOCS, *sorted(ROOT.glob("*.md")))
#: Bytes that a page of docs/ has at most, but for those that have a bound of their own.
MOST = 25_000
BOUNDS = {"docs/architecture.md": 20_000}
#: A module or a script, by its whole path or by the end of it.
_FILE = re.compile(r"(?<![\w/.])(?:\.\./)*((?:[a-z0-9_.-]+/)*[a-z0-9_.-]+\.(?:py|sh))\b")
_FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def is_there(path: str) -> bool:
    """Whether a file of the repository has this path, or ends with it."""
    below = (ROOT / each for each in ("src", "tests", "scripts", "bench"))
    return (ROOT / path).is_file() or any(next(folder.rglob(path), None) is not None for folder in below)


def links_of(text: str) -> list[str]:
    """The targets of a page's links, other than those to the web. What stands in code is no link."""
    found = _LINK.findall(_CODE.sub("", _FENCED.sub("", text)))
    return [each for each in found if not re.match(r"[a-z]+:", each)]


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub makes them: a heading that is there twice has a number added."""
    seen: Counter[str] = Counter()
    anchors: set[str] = set()
    for heading in _HEADING.findall(_FENCED.sub("", page.read_text())):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        anchors.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return frozenset(anchors)


def leads_somewhere(page: Path, link: str) -> bool:
    """Whether a link of a page leads to a file or a folder and, if it names an anchor, to a heading of that file."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.is_relative_to(ROOT) or not target.exists():
        return False
    return not anchor or (target.suffix == ".md" and anchor in anchors_of(target))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    assert [path for path in dict.fromkeys(_FILE.findall(page.read_text())) if not is_there(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_a_page_lead_to_a_file_and_a_heading(page: Path) -> None:
    assert [link for link in links_of(page.read_text()) if not leads_somewhere(page, link)] == []


@pytest.mark.parametrize("page", DOCS, ids=name_of)
def test_a_page_is_short_enough_to_be_read(page: Path) -> None:
    assert len(page.read_bytes()) <= BOUNDS.get(name_of(page), MOST)


def test_a_page_of_the_design_is_reached_from_the_architecture() -> None:
    page = ROOT / "docs/architecture.md"
    linked = {(page.parent / link.partition("#")[0]).resolve() for link in links_of(page.read_text())}
    assert [name_of(each) for each in DOCS if each.parent.name == "design" and each not in linked] == []


def test_searches_that_the_safety_rules_name_are_there() -> None:
    page, searches = ROOT / "docs/architecture.md", ROOT / "tests/model/searches.py"
    named = set(re.findall(r"\[`([A-Z_]+)`\]\[searches\]", page.read_text()))
    assert f"[searches]: ../{name_of(searches)}\n" in page.read_text()
    defined = set(re.findall(r"^([A-Z_]+) = \(", searches.read_text(), re.MULTILINE))
    assert named
    assert named <= defined


@pytest.mark.parametrize("link", ["nowhere.md", "#nothing", "planner.md#nothing", "../../outside.md", "demo.svg#rules"])
def test_a_link_that_leads_nowhere_is_noticed(link: str) -> None:
    assert not leads_somewhere(ROOT / "docs/architecture.md", link)


def test_links_are_found_in_text_and_not_in_code() -> None:
    text = "see [a](a.md#b), `[c](c.md)`, [d](https://d.example)\n```\n[e](e.md)\n```\n[`f.py`](f.py)"
    assert links_of(text) == ["a.md#b", "f.py"]


def test_a_file_that_a_test_names_beside_itself_is_there() -> None:
    """What a test runs as a program is not imported, so that nothing else notices when it is renamed."""
    modules = [each for each in (ROOT / "tests").rglob("*.py") if "__pycache__" not in each.parts]
    named = [
        (each, name)
        for each in modules
        for name in re.findall(r"Path\(__file__\)\.with_name\(\"([a-z_]+\.(?:py|sh))\"\)", each.read_text())
    ]
    assert len(named) > 5
    assert not [f"{each}: {name}" for each, name in named if not each.with_name(name).exists()]
