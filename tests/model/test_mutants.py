"""The mutation tool works, and its list of harmless mutants is about mutants that there are (``mutants.py``)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from model.equivalent import EQUIVALENT
from model.mutants import MODULES, Mutant, mutants, noticed_before, tried


def everything() -> list[Mutant]:
    return [mutant for module in MODULES for mutant in mutants(module)]


def test_the_list_of_harmless_mutants_names_only_mutants_and_gives_each_a_reason() -> None:
    known = {mutant.key for mutant in everything()}
    assert not EQUIVALENT.keys() - known, "these are no mutants any more"
    assert all(len(reason.split()) > 4 for reason in EQUIVALENT.values())


def test_each_mutant_has_a_name_of_its_own() -> None:
    keys = [mutant.key for mutant in everything()]
    assert len(keys) == len(set(keys))
    assert len(keys) > 1_000


def test_the_table_of_rules_is_mutated_in_each_situation_by_itself() -> None:
    as_it_is = _asked(mutants("rule_table")[0].original)
    changed = Counter[frozenset[str]]()
    for mutant in mutants("rule_table"):
        found = _asked(mutant.source)
        differs = frozenset(each for each in found if found[each] != as_it_is[each])
        changed[differs] += 1
        if ", members " in mutant.key:
            assert differs == {"KNOWN" if "members known" in mutant.key else "UNKNOWN"}, mutant.key
    assert changed[frozenset(("KNOWN",))] > 80
    assert changed[frozenset(("UNKNOWN",))] > 20
    assert not changed[frozenset()]


def _asked(source: str) -> dict[str, list[tuple[object, ...]]]:
    """The rows that are asked in each situation, by a table's source."""
    names: dict[str, Any] = {}
    exec(source, names)
    return {
        each: [
            (rule.name, rule.despite, rule.beside, rule.per_cluster, rule.unread, rule.unwanted)
            for rule in names["RULES"]
            if rule.members.name in (each, "EITHER")
        ]
        for each in ("KNOWN", "UNKNOWN")
    }


@pytest.mark.soak
def test_a_rule_that_is_left_out_is_noticed() -> None:
    found = next(each for each in mutants("membership") if each.key.startswith("membership.removable: has_quorum"))
    assert tried(found, quick=True)


@pytest.mark.soak
def test_the_planner_as_it_is_is_noticed_by_nobody() -> None:
    as_it_is = mutants("slots")[0]
    unchanged = Mutant("slots", "nothing is changed", 0, as_it_is.original)
    assert tried(unchanged, quick=True) == ""


def test_a_run_goes_on_where_the_one_before_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert noticed_before(log) == set()
    noticed, unnoticed = mutants("slots")[:2]
    entries = ({"key": each.key, "around": each.around, "by": by} for each, by in ((noticed, "units"), (unnoticed, "")))
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert noticed_before(log) == {(noticed.key, noticed.around)}


def test_what_is_around_a_mutant_is_its_function() -> None:
    hashes = {(each.around, each.key.split(":")[0].split(".")[1]) for each in mutants("traffic")}
    assert len({around for around, _ in hashes}) == len(hashes) > 10


@pytest.mark.soak
@pytest.mark.parametrize(
    "key",
    [
        "reading.Reading.held: not self.expired(since) => self.expired(since)",
        "reading._carries: not servers.isdisjoint(balancer.healthy) => servers.isdisjoint(balancer.healthy)",
    ],
)
def test_a_mutant_of_a_rule_is_noticed(key: str) -> None:
    assert tried(next(each for each in everything() if each.key == key), quick=True)
