"""Sentences that are kept: a change of one, one more and one less are noticed, and an update keeps what is said now."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.golden import Golden, GoldenFile, formatted, parsed

ENTRIES = {
    "test_b[a case: {x: 1}]": ("one sentence", "another - with a dash"),
    "test_a": ("first line\n\n  third, further in", "", "-"),
}


def test_each_kept_sentence_is_that_of_a_test(request: pytest.FixtureRequest) -> None:
    conftest = request.config.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    assert conftest is not None
    assert conftest.strays(request.config) == {}


def test_what_is_written_is_read_and_sorted() -> None:
    text = formatted(ENTRIES)
    assert parsed(text) == ENTRIES
    assert text == formatted(dict(reversed(ENTRIES.items())))
    assert text.startswith("test_a\n  - first line\n\n      third, further in\n  -\n  - -\n\ntest_b[")


def test_what_is_said_is_compared_in_order_and_to_the_end() -> None:
    golden = Golden(("first", "second", "third"))
    golden("first")
    golden(["second", "third"])
    golden.finish()


@pytest.mark.parametrize(
    ("kept", "values", "noticed"),
    [
        pytest.param(("one", "two"), ["one", "tow"], "tow", id="another sentence"),
        pytest.param(("one",), ["one", "two"], "not kept", id="one more"),
        pytest.param(("one", "two"), ["one"], "no longer said", id="one less"),
        pytest.param(("one",), [], "(nothing)", id="none"),
    ],
)
def test_whatever_differs_is_noticed(kept: tuple[str, ...], values: list[str], noticed: str) -> None:
    golden = Golden(kept)
    with pytest.raises(AssertionError) as failed:
        golden(values)
        golden.finish()
    assert noticed in str(failed.value)


def test_an_error_is_compared_by_its_sentence() -> None:
    golden = Golden(("no such thing",))
    with golden.raises(ValueError) as raised:
        raise ValueError("no such thing")
    assert raised.type is ValueError
    with pytest.raises(KeyError), golden.raises(ValueError):
        raise KeyError("another kind")


@pytest.mark.parametrize(
    ("sentence", "kept"),
    [
        ("reading /tmp/x7/file   \nfailed\n", "reading TMP/file\nfailed"),
        ("127.0.0.1:38417 and 127.0.0.1 port 45001", "127.0.0.1:PORT and 127.0.0.1 port PORT"),
        ("127.0.0.1:2379 and 192.0.2.1:38417", "127.0.0.1:2379 and 192.0.2.1:38417"),
        ("abort demo-migrate-a4a373?", "abort demo-migrate-ID?"),
    ],
)
def test_what_differs_from_run_to_run_has_one_name(sentence: str, kept: str) -> None:
    golden = Golden((kept,))
    golden.hide("/tmp/x7", "TMP")
    golden(sentence)
    golden.finish()


def test_an_update_takes_what_is_said_and_leaves_the_other_tests(tmp_path: Path) -> None:
    file = GoldenFile(tmp_path / "module.txt")
    file.keep("test_b", ("old",))
    file.keep("test_a", ("first",))
    golden = Golden(file.read()["test_b"], updating=True)
    golden(["new", "newer"])
    golden.finish()
    file.keep("test_b", tuple(golden.sentences))
    assert file.read() == {"test_a": ("first",), "test_b": ("new", "newer")}
    file.drop(["test_b"])
    assert file.read() == {"test_a": ("first",)}
    file.keep("test_a", ())
    assert not file.path.exists()
