"""YAML is read as Kubernetes reads it, and what is no YAML is named by file, document, line and character."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from support.golden import Golden
from support.manifests import CORPUS, exact, objects_beside

from quarterdeck.addons.manifests import parsed
from quarterdeck.errors import InvalidInput
from quarterdeck.input_files import text_in
from quarterdeck.yaml_text import dumped, dumped_all
from quarterdeck.yaml_text.invisible import visible
from quarterdeck.yaml_text.streams import documents, first_document

#: What JSON holds, with texts that YAML takes for something else.
_TRAPS = ("y", "no", "1e3", "0o644", "0b1", "1_000", "08", ".5", "~", "null", "<<", "=", "2020-01-01", "12:30", "---")
_TEXTS = st.sampled_from(_TRAPS) | st.from_regex(r"[-+]?[0-9._xobe]{1,6}", fullmatch=True) | st.text(max_size=8)
_NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(-(2**53), 2**53)
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=12,
)


def values(text: str) -> list[object]:
    return [each.value for each in documents(text, "f")]


def refusal(text: str) -> str:
    with pytest.raises(InvalidInput) as caught:
        values(text)
    line = str(caught.value)
    assert "\n" not in line
    return line.removeprefix("reading ")


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_a_manifest_holds_the_objects_that_kubectl_reads(file: Path) -> None:
    found = [dict(each) for each in parsed(text_in(file.read_bytes()), file.name)]
    assert exact(found) == exact(objects_beside(file))


def test_every_manifest_of_the_corpus_has_its_objects_beside() -> None:
    assert len(CORPUS) > 10
    assert {file.stem for file in CORPUS} == {file.stem for file in CORPUS[0].parent.glob("*.json")}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.dictionaries(_TEXTS, _VALUES, min_size=1, max_size=4), min_size=1, max_size=3))
def test_what_is_written_is_read_again_as_it_was(written: list[JsonValue]) -> None:
    assert values(dumped_all(written)) == written
    assert values("\n".join(map(json.dumps, written))) == written


def test_text_that_kubernetes_takes_for_a_number_or_a_boolean_is_written_in_quotes(golden: Golden) -> None:
    golden(dumped({"a": "1e3", "b": "y", "c": "0o644", "d": "12:30"}))


def test_servers_read_the_first_document_and_nothing_after_it() -> None:
    for text in (
        "a: 1\n---\n",
        "a: 1\n---\nb: [",
        "---\na: 1\n---\na: 2\n",
        "\ufeff# c\na: 1\n...\n%",
        '{"a": 1}\n---\n',
    ):
        assert first_document(text, "f") == {"a": 1}


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\n---\nb: [",
        "a: 1\n---\n\nb: 1\nb: 2\n",
        "a: 1\n0x1: b\n1: c",
        '\n{"a": {"b": 1, "b": 2}}',
        '{"a": 1}\n{"a": 1e999}',
        '{"a": NaN}{',
        '{"a": "\\ud800"}',
        "a: .nan",
        "a: !!int 1.5",
        "a: !!binary x",
        "a: !!binary iVBORw==",
        "a: b\n--- !!map",
        "a: 1\n-----BEGIN CERTIFICATE-----\n",
        "a: 1\n...\nb: 1\n",
        "- a\nb: 1\n",
        "[a]\nb: 1\n",
        "null: a",
        "? [1]\n: 2",
        "a: &a {b: *a}",
        "a: *b",
        "<<: 1",
        "a: &a [1]\nb: {<<: [*a]}",
        "[" * 5_000,
        '{"a":' * 50_000,
    ],
)
def test_what_is_refused_is_named_by_document_and_line(text: str, golden: Golden) -> None:
    golden(refusal(text))


@pytest.mark.parametrize(
    "text",
    [
        "a:\n  b: 1\n\u00a0 c: 1\n",
        "a:\u00a01\nb: 1\n",
        "\u00a0a: 1\n",
        "a: 1\nb\u200b: 1\n",
        "a: 1\n\ufeffb: 1\n",
        "a: 1\n\tb: 1\n",
        "a: 1\nb: \x07\n",
        "a: 1\nb: x\x00\n",
        "a: 1\n---\nb: \x7f\n",
    ],
)
def test_a_character_that_nobody_sees_is_named(text: str, golden: Golden) -> None:
    golden(refusal(text))


def test_invisible_characters_are_shown_and_others_stay(golden: Golden) -> None:
    golden(visible("a\u00a0b\ufeff"))
    assert visible("Grüße 漢字") == "Grüße 漢字"


def test_aliases_that_make_a_document_huge_are_refused(golden: Golden) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    golden(refusal("\n".join(lines)))


def test_without_the_fast_parser_manifests_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses some tabs that kubectl takes; all else is the same."""
    monkeypatch.delattr(yaml, "CSafeLoader")
    for file in CORPUS:
        if file.stem not in {"tabs", "flow"}:
            test_a_manifest_holds_the_objects_that_kubectl_reads(file)
