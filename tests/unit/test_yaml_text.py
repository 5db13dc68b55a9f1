"""YAML is read as Kubernetes reads it, and what is no YAML is named by file, document, line and character."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
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


def test_text_that_kubernetes_takes_for_a_number_or_a_boolean_is_written_in_quotes() -> None:
    assert dumped({"a": "1e3", "b": "y", "c": "0o644", "d": "12:30"}) == "a: '1e3'\nb: 'y'\nc: '0o644'\nd: '12:30'\n"


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
    ("text", "says"),
    [
        ("a: 1\n---\nb: [", "f, document 2, line 4, column 1: not valid YAML: "),
        ("a: 1\n---\n\nb: 1\nb: 2\n", "f, document 2, line 5, column 1: not valid YAML: 'b' is there twice"),
        ("a: 1\n0x1: b\n1: c", "line 3, column 1: not valid YAML: '1' is there twice"),
        ('\n{"a": {"b": 1, "b": 2}}', "f, document 1 (line 2): 'b' is there twice"),
        ('{"a": 1}\n{"a": 1e999}', "f, document 2 (line 2): 1e999 is not a number that JSON can hold"),
        ('{"a": NaN}{', "NaN"),
        ('{"a": "\\ud800"}', "f, document 1: it has \\ud800, which is half of a character"),
        ("a: .nan", "line 1, column 4: not valid YAML: nan is not a number"),
        ("a: !!int 1.5", "line 1, column 4: not valid YAML: '1.5' cannot be read as !!int"),
        ("a: !!binary x", "!!binary is not followed by base64"),
        ("a: !!binary iVBORw==", "!!binary holds bytes that are not text"),
        ("a: b\n--- !!map", "f, line 2: nothing but a comment may follow '---' on its line, not '!!map'"),
        ("a: 1\n-----BEGIN CERTIFICATE-----\n", "f, line 2: nothing but a comment may follow '---'"),
        (
            "a: 1\n...\nb: 1\n",
            "f, document 1, line 3, column 1: not valid YAML: this does not belong to the document above",
        ),
        ("- a\nb: 1\n", "line 2, column 1: not valid YAML: "),
        ("[a]\nb: 1\n", "line 2, column 1: not valid YAML: this does not belong to the document above"),
        ("null: a", "null cannot be a key; put it in quotes"),
        ("? [1]\n: 2", "line 1, column 3: not valid YAML: a key must be text"),
        ("a: &a {b: *a}", "line 1, column 11: not valid YAML: &a contains itself"),
        ("a: *b", "line 1, column 4: not valid YAML: there is no anchor &b above"),
        ("<<: 1", "line 1, column 5: not valid YAML: << takes a mapping"),
        ("a: &a [1]\nb: {<<: [*a]}", "line 2, column 10: not valid YAML: << takes a mapping"),
        ("[" * 5_000, "f, document 1: it is nested too deeply"),
        ('{"a":' * 50_000, "f, document 1: it is nested too deeply"),
    ],
)
def test_what_is_refused_is_named_by_document_and_line(text: str, says: str) -> None:
    assert says in refusal(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a:\n  b: 1\n\u00a0 c: 1\n", "line 3, column 1: not valid YAML"),
        ("a:\u00a01\nb: 1\n", "line 1 has U+00A0 (no-break space) in column 3"),
        ("\u00a0a: 1\n", "the key <U+00A0 (no-break space)>a has an invisible character"),
        ("a: 1\nb\u200b: 1\n", "line 2, column 1: not valid YAML: the key b<U+200B (zero width space)>"),
        ("a: 1\n\ufeffb: 1\n", "U+FEFF (byte order mark)"),
        ("a: 1\n\tb: 1\n", "line 2 has U+0009 (tab) in column 1"),
        ("a: 1\nb: \x07\n", "line 2, column 4: not valid YAML: U+0007 (control character) is not allowed"),
        ("a: 1\nb: x\x00\n", "line 2, column 5: not valid YAML: U+0000 (NUL) is not allowed"),
        ("a: 1\n---\nb: \x7f\n", "f, document 2, line 3, column 4: not valid YAML: U+007F"),
    ],
)
def test_a_character_that_nobody_sees_is_named(text: str, says: str) -> None:
    assert says in refusal(text)


def test_invisible_characters_are_shown_and_others_stay() -> None:
    assert visible("a\u00a0b\ufeff") == "a<U+00A0 (no-break space)>b<U+FEFF (byte order mark)>"
    assert visible("Grüße 漢字") == "Grüße 漢字"


def test_aliases_that_make_a_document_huge_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "aliases make it far larger than it is" in refusal("\n".join(lines))


def test_without_the_fast_parser_manifests_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses some tabs that kubectl takes; all else is the same."""
    monkeypatch.delattr(yaml, "CSafeLoader")
    for file in CORPUS:
        if file.stem not in {"tabs", "flow"}:
            test_a_manifest_holds_the_objects_that_kubectl_reads(file)
