"""Manifests are read as the real kubectl reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.manifests import CORPUS, exact, objects_beside, read_by_kubectl
from support.plane_lab import kubectl_program

from quarterdeck.addons.manifests import parsed
from quarterdeck.errors import InvalidInput

#: Pieces of scalars; glued together they are numbers, booleans, dates, tags and what only looks like them.
_SCALARS = st.lists(
    st.sampled_from(
        [
            *"0123456789+-._eExobyn~<=:#'\" ",
            "1e",
            "0x",
            "0o",
            "0b",
            ".5",
            "08",
            "yes",
            "No",
            "null",
            ".inf",
            "!!str ",
            "!!int ",
            "!!float ",
        ]
    ),
    max_size=6,
).map("".join)
_LINES = st.sampled_from(
    [
        "a: 1",
        "b: &x {p: 1, q: 2}",
        "c: {<<: *x, p: 3}",
        "d: {p: 3, <<: *x}",
        "<<: *x",
        "e:\t1\t# tab",
        "f: |",
        "f: >-",
        "    text",
        "      more",
        "- 1",
        "  - a: 2",
        "  g: [1.0, 0o7,",
        "  2]",
        "# comment",
        "\t# comment",
        "h: 'it''s'",
        'i: "\\x41\\u00e9"',
        "on: 1",
        "1.5: x",
        "j: !!binary aGk=",
        "k: !!set {a, b}",
        "l: !x 5",
        "---",
        "--- # c",
        "...",
        "",
    ]
)


@pytest.fixture(scope="module")
def kubectl() -> Path:
    return kubectl_program()


def test_the_corpus_is_what_this_kubectl_reads(kubectl: Path) -> None:
    for file in CORPUS:
        found, refusal = read_by_kubectl(kubectl, file)
        assert found is not None, refusal
        assert exact(found) == exact(objects_beside(file)), file


def agrees(kubectl: Path, file: Path, text: str) -> None:
    """What is read here is what kubectl reads; what is refused here and not there is refused for a reason of ours."""
    file.write_text(text)
    theirs, _ = read_by_kubectl(kubectl, file)
    try:
        ours = [dict(each) for each in parsed(text, "f")]
    except InvalidInput as error:
        own = ("appears twice", "does not belong to the document above", "is not text")
        assert theirs is None or any(words in str(error) for words in own), (text, error)
        return
    if theirs is not None:
        assert exact(ours) == exact(theirs), text


@settings(max_examples=25, deadline=None)
@given(st.lists(_SCALARS, min_size=40, max_size=40))
def test_scalars_are_what_kubectl_takes_them_for(
    kubectl: Path, tmp_path_factory: pytest.TempPathFactory, scalars: list[str]
) -> None:
    """Many in one file, as far as each is YAML at all."""
    head = "apiVersion: v1\nkind: X\nmetadata: {name: a}\n"
    kept = []
    for number, scalar in enumerate(scalars):
        try:
            parsed(f"{head}data:\n  k{number}: {scalar}\n", "f")
        except InvalidInput:
            continue
        kept.append(f"  k{number}: {scalar}")
    agrees(kubectl, tmp_path_factory.mktemp("scalars") / "f.yaml", head + "data:\n" + "\n".join(kept) + "\n")


@settings(max_examples=25, deadline=None)
@given(st.lists(_LINES, max_size=8))
def test_lines_of_any_kind_are_what_kubectl_takes_them_for(
    kubectl: Path, tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    text = "apiVersion: v1\nkind: X\nmetadata: {name: a}\n" + "\n".join(lines) + "\n"
    agrees(kubectl, tmp_path_factory.mktemp("lines") / "f.yaml", text)
