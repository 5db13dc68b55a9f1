"""Trials of mutants: which of the planner's unit tests and searches notices a small change to a rule.

``./test mutants`` changes each line of the planner in every way that ``mutants.py`` knows, and runs the planner's unit
tests and then the searches until one of them fails. A change that none of them notices is printed. It needs a claim
or a test, or a line in ``equivalent.py`` with the reason why it harms nobody. ``--searches none`` runs only the unit
tests, and ``--searches small`` no search that takes minutes; ``--modules view,traffic`` and ``--part 3/10`` try fewer
mutants.

With ``--log FILE`` a later run continues where the one before ended: a mutant that was noticed is not tried again as
long as its function is the same (a change of the tests alone does not count).

A test that does not execute a changed line cannot notice the change. So each is first run once under a tracer, and a
mutant is tried only with those that execute it, the shortest first. Each trial is a child process, in which only the
code of the changed function is replaced. A change to the table of rules is tried with all of them, in a child in which
only the table is replaced; any other change to what runs when a module is imported, in a child that imports the planner
with it.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import pickle
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

from model.equivalent import EQUIVALENT
from model.mutants import MODULES, PLANNER, Mutant, mutants

if TYPE_CHECKING:
    from model.detectors import Check, Rounds  # it imports the planner

#: Seconds of the processor that a check may take beyond ten times what it takes with the rules as they are.
SPARE = 3.0
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Trace:
    """What a check takes and executes with the rules as they are: seconds of the processor, and lines by file."""

    seconds: float
    lines: dict[str, frozenset[int]]


#: Of a check that was not traced: it may take minutes.
UNKNOWN = Trace(24.0, {})
#: The searches that may be asked for, each with how many rounds of checks that means.
SEARCHES = {"none": 1, "small": 2, "all": 3}


# --- one trial, in a process of its own -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended(Generic[T, R]):
    """A piece of work that was done in a child process: its result, or the name of the exception that it raised."""

    work: T
    result: R | None
    raised: str = ""


def in_children(jobs: int, work: Iterable[T], run: Callable[[T], R]) -> Iterator[Ended[T, R]]:
    """Do each piece of work in a child process of its own, ``jobs`` at a time, and yield them as they end."""
    running: dict[int, tuple[T, IO[bytes]]] = {}
    for each in work:
        if len(running) >= jobs:
            yield _ended(running)
        answer = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the child has ended
        child = os.fork()
        if child == 0:
            _work(each, run, answer)
        running[child] = (each, answer)
    while running:
        yield _ended(running)


def _work(work: T, run: Callable[[T], R], answer: IO[bytes]) -> None:
    """The child: it never returns."""
    try:
        nothing = Path(os.devnull).open("w")  # noqa: SIM115 - this process ends
        with contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
            outcome = ("", run(work))
    except BaseException as error:  # noqa: BLE001 - the parent says what it means
        outcome = (type(error).__name__, None)
    pickle.dump(outcome, answer)
    answer.flush()
    os._exit(0)


def _ended(running: dict[int, tuple[T, IO[bytes]]]) -> Ended[T, Any]:
    child, _ = os.wait()
    work, answer = running.pop(child)
    with answer:
        answer.seek(0)
        raised, result = pickle.load(answer)
    return Ended(work, result, raised)


# --- what each check executes ---------------------------------------------------------------------------------------


def traces(jobs: int, checks: Sequence[Check]) -> dict[str, Trace]:
    """Run each check once, and trace the planner's lines. Raises RuntimeError for one that fails."""
    found = {}
    for ended in in_children(jobs, checks, _traced):
        if ended.result is None:
            raise RuntimeError(f"{ended.work.name} fails with the planner as it is {ended.raised}")
        found[ended.work.name] = ended.result
    return found


def _traced(check: Check) -> Trace | None:
    """None for a check that fails."""
    lines: dict[str, set[int]] = {}
    ours = str(PLANNER)

    def called(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        path = frame.f_code.co_filename
        if not path.startswith(ours):
            return None
        executed = lines.setdefault(path, set())
        executed.add(frame.f_lineno)

        def stepped(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
            executed.add(frame.f_lineno)
            return stepped

        return stepped

    began = time.process_time()
    sys.settrace(called)
    try:
        failed = check.fails()
    finally:
        sys.settrace(None)
    taken = time.process_time() - began
    return None if failed else Trace(taken, {path: frozenset(each) for path, each in lines.items()})


# --- who notices a mutant -------------------------------------------------------------------------------------------


def first_failing(checks: Sequence[Check], known: dict[str, Trace], likely: Collection[str] = ()) -> str:
    """The name of the first check that fails or does not end, or "". The ``likely`` ones are run first, and of the
    others the shortest.
    """
    signal.signal(signal.SIGPROF, _too_long)
    order = {name: number for number, name in enumerate(likely)}

    def rank(check: Check) -> tuple[float, float]:
        return order.get(check.name, len(order)), known.get(check.name, UNKNOWN).seconds

    for check in sorted(checks, key=rank):
        signal.setitimer(signal.ITIMER_PROF, SPARE + 10 * known.get(check.name, UNKNOWN).seconds)
        try:
            if check.fails():
                return check.name
        except _TooLongError:
            return f"{check.name}: no end"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def changed_in_place(
    jobs: int, tried: Iterable[Mutant], checks: Sequence[Check], known: dict[str, Trace]
) -> Iterator[tuple[Mutant, str]]:
    """Each mutant of a function's body or of a table with the check that notices it, or ""."""
    #: By module, the checks that have noticed a mutant of it: the last one first, as it may well notice the next.
    likely: dict[str, list[str]] = {}
    functions: dict[str, list[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(str(PLANNER)):
            functions.setdefault(each.__code__.co_filename, []).append(each)

    def trial(mutant: Mutant) -> str:
        if mutant.table:
            _replace_table(mutant)
            return first_failing(checks, known, likely.get(mutant.name, ()))
        path = str(sys.modules[mutant.name].__file__)
        _replace_code(mutant, path, functions[path])
        lines = set(mutant.lines)
        able = [each for each in checks if lines & known[each.name].lines.get(path, set())]
        return first_failing(able, known, likely.get(mutant.name, ()))

    gc.freeze()  # the children collect none of what is there, which they would have to copy
    for ended in in_children(jobs, tried, trial):
        if ended.result is None:
            raise RuntimeError(f"{ended.work.key} could not be tried: {ended.raised}")
        if ended.result:
            before = likely.get(ended.work.name, [])
            likely[ended.work.name] = [ended.result, *(each for each in before if each != ended.result)]
        yield ended.work, ended.result


def _replace_code(mutant: Mutant, path: str, functions: Sequence[FunctionType]) -> None:
    """Raises RuntimeError for a mutant that changes no function that there is."""
    codes = {(each.co_qualname, each.co_firstlineno): each for each in _codes(compile(mutant.tree, path, "exec"))}
    changed = 0
    for function in functions:
        code = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
        if code is not None and code != function.__code__:
            function.__code__ = code
            changed += 1
    if not changed:
        raise RuntimeError(f"no function is changed by {mutant.key}")


def _replace_table(mutant: Mutant) -> None:
    """Replace the table in each module that has it."""
    changed: dict[str, Any] = {"__name__": mutant.name}
    exec(compile(mutant.tree, f"<{mutant.key}>", "exec"), changed)
    before = getattr(sys.modules[mutant.name], mutant.table)
    for module in tuple(sys.modules.values()):
        if vars(module).get(mutant.table) is before:
            setattr(module, mutant.table, changed[mutant.table])


def _codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


def changed_imports(jobs: int, tried: Iterable[Mutant], first: Callable[[], str]) -> Iterator[tuple[Mutant, str]]:
    """The same for other mutants of what runs at import. ``first`` imports the planner, which this process has not
    done.
    """

    def trial(mutant: Mutant) -> str:
        sys.meta_path.insert(0, _Finder(mutant))
        return first()

    yield from ((ended.work, ended.raised or ended.result or "") for ended in in_children(jobs, tried, trial))


class _Finder(MetaPathFinder, Loader):
    """Imports one module with a mutant."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == self.mutant.name else None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.mutant.tree, f"<{self.mutant.key}>", "exec"), module.__dict__)


class _TooLongError(BaseException):
    """A check takes too long."""


def _too_long(*_: object) -> None:
    raise _TooLongError


# --- the command ----------------------------------------------------------------------------------------------------


class Record:
    """What is noticed: on the terminal, and, with a ``path``, in a file with a line of JSON for each mutant."""

    def __init__(self, path: Path | None, total: int) -> None:
        self.path = path
        self.total = total
        self.ended = 0
        self.unnoticed = 0
        self.began = time.monotonic()

    def add(self, mutant: Mutant, by: str) -> None:
        self.ended += 1
        if self.path:
            with self.path.open("a") as log:
                log.write(json.dumps({"key": mutant.key, "around": mutant.around, "by": by}) + "\n")
        if not by:
            self.unnoticed += 1
            print(f"NOTHING NOTICES line {mutant.line}: {mutant.key}", flush=True)
        if self.ended % 100 == 0:
            print(f"{self.ended} of {self.total} mutants, {time.monotonic() - self.began:.0f} s", flush=True)


def noticed_before(log: Path) -> set[tuple[str, str]]:
    """The mutants that something noticed by a log, each with what is around it."""
    lines = log.read_text().splitlines() if log.exists() else []
    return {(entry["key"], entry["around"]) for entry in map(json.loads, lines) if entry["by"]}


def try_all(chosen: Sequence[Mutant], jobs: int, record: Record, number: int) -> None:
    """Try mutants with the checks of so many rounds."""

    def first() -> str:
        detectors = importlib.import_module("model.detectors")
        found: list[str] = []
        detectors.with_checks(
            lambda rounds: found.append(next(filter(None, (first_failing(each, {}) for each in rounds[:number])), ""))
        )
        return found[0]

    in_place = [each for each in chosen if each.in_function or each.table]
    at_import = [each for each in chosen if not (each.in_function or each.table)]
    for mutant, by in changed_imports(jobs, at_import, first):
        record.add(mutant, by)
    if in_place:
        detectors = importlib.import_module("model.detectors")
        detectors.with_checks(lambda rounds: _in_rounds(in_place, jobs, record, rounds[:number]))


def _in_rounds(tried: Sequence[Mutant], jobs: int, record: Record, rounds: Rounds) -> None:
    """Try mutants with one round of checks after another, each time those that nothing has noticed."""
    for number, checks in enumerate(rounds):
        known = traces(jobs, checks) if tried else {}
        left = []
        for mutant, by in changed_in_place(jobs, tried, checks, known):
            if by or number == len(rounds) - 1:
                record.add(mutant, by)
            else:
                left.append(mutant)
        tried = left


def main() -> int:
    """Try all mutants. The exit code is the number, at most 100, of those that nothing notices and without a reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", default=",".join(MODULES))
    parser.add_argument("--part", default="1/1", help="the Nth of M parts")
    parser.add_argument("--only", default="", help="only mutants whose key contains this text")
    parser.add_argument(
        "--searches", choices=tuple(SEARCHES), default="all", help="which searches follow the unit tests"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="the number of processes")
    parser.add_argument("--log", default="", help="a file that gets a line of JSON for each mutant")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    log = Path(options.log) if options.log else None
    before = noticed_before(log) if log else set[tuple[str, str]]()
    everything = [each for name in options.modules.split(",") for each in mutants(name) if options.only in each.key]
    chosen = [
        each
        for each in everything[part - 1 :: parts]
        if each.key not in EQUIVALENT and (each.key, each.around) not in before
    ]
    record = Record(log, len(chosen))
    try_all(chosen, options.jobs, record, SEARCHES[options.searches])
    print(f"{record.ended} mutants, {record.unnoticed} unnoticed, {time.monotonic() - record.began:.0f} s", flush=True)
    return min(record.unnoticed, 100)


if __name__ == "__main__":
    sys.exit(main())
