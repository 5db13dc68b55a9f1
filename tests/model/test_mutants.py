"""The mutation tool works, and its list of harmless mutants is about mutants that there are (``mutants.py``)."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from model.detectors import SEARCHING, UNITS, Check
from model.equivalent import EQUIVALENT
from model.mutant_trials import Trace, first_failing, in_children, noticed_before, traces
from model.mutants import MODULES, PLANNER, Mutant, mutants, source


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
    as_it_is = _asked(source("rule_table"))
    changed = Counter[frozenset[str]]()
    for mutant in mutants("rule_table"):
        found = _asked(ast.unparse(mutant.tree))
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


def test_each_mutant_can_be_compiled_and_keeps_the_lines_of_the_module() -> None:
    for module in ("slots", "membership", "rule_table"):
        for mutant in mutants(module):
            compile(mutant.tree, module, "exec")
            assert mutant.line in mutant.lines, mutant.key


def test_the_planner_as_it_is_fails_no_check_and_what_a_check_executes_is_known() -> None:
    slots = str(PLANNER / "slots.py")

    def calls() -> bool:
        from quarterdeck.planner.slots import slots as planned

        return not planned(site="north", zones=("one",), replicas=3)

    found = traces(2, [Check("a call", calls), Check("nothing", lambda: False)])
    assert found["a call"].lines[slots]
    assert slots not in found["nothing"].lines
    with pytest.raises(RuntimeError, match="one that fails fails with the planner as it is"):
        traces(1, [Check("one that fails", lambda: True)])


def test_the_tests_that_may_notice_a_mutant_are_there() -> None:
    assert not [each for each in (*UNITS, *SEARCHING) if not each.is_file()]


def test_a_check_that_does_not_end_notices() -> None:
    def never() -> bool:
        while True:
            pass

    short = {"never": Trace(-0.2, {})}
    (ended,) = in_children(1, [Check("never", never)], lambda check: first_failing([check], short))
    assert ended.result == "never: no end"


def test_what_a_child_raises_is_named() -> None:
    (ended,) = in_children(1, [0], lambda number: 1 // number)
    assert (ended.result, ended.raised) == (None, "ZeroDivisionError")


@pytest.mark.soak
@pytest.mark.parametrize(
    "key",
    [
        "membership.removable: has_quorum",
        "reading.Reading.held: not self.expired(since) => self.expired(since)",
        "reading._carries: not servers.isdisjoint(balancer.healthy) => servers.isdisjoint(balancer.healthy)",
        "rule_table: RULES, members known: membership.remove => nothing",
    ],
)
def test_a_mutant_of_a_rule_is_noticed(key: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    module = key.split(".")[0].split(":")[0]
    command = (sys.executable, "-m", "model.mutant_trials", "--searches", "small", "--modules", module, "--only", key)
    subprocess.run([*command, "--log", str(log)], check=True, cwd=Path(__file__).parents[1])
    assert noticed_before(log)


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
