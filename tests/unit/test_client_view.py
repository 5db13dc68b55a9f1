"""What the end-to-end tests take for a failure: they must not be too kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from report_lab import probe_result
from support.client_view import Watched
from support.clients import Client, Failed, Writer

from quarterdeck.probe.schema import Failure, Probe
from quarterdeck.probe.schema_part import Part

LET_GO = 100.0


@pytest.fixture
def clients() -> Watched:
    return Watched(Writer(Client(Path("no kubeconfig")), "none"))


def probed(*failures: tuple[float, str], **changes: Any) -> Probe:
    """What a probe found of which these requests failed."""
    well = probe_result().since(0.0)
    rest = {"client": "1", "request": "GET /x", "reason": "cut", "address": "", "period": "quiet"}
    return well.model_copy(
        update={
            "failures": tuple(Failure(at=at, kind=kind, **rest) for at, kind in failures),
            "writes": changed(well.writes, {"lost": 0, "stale_reads": 0, "audited": True} | changes),
            "watches": changed(well.watches, {"missed": 0, "out_of_order": 0} | changes),
        }
    )


def changed(part: Part, changes: Mapping[str, Any]) -> Part:
    """A part with those of the changes that are about it."""
    return part.model_copy(update={name: to for name, to in changes.items() if name in type(part).model_fields})


def test_a_quiet_time_is_well(clients: Watched) -> None:
    clients.check(probed(), LET_GO)


@pytest.mark.parametrize(
    "wrong",
    [
        probed((50.0, "reader")),
        probed((99.0, "pinned")),
        probed((101.0, "reader")),
        *(probed(**{name: 1}) for name in ("lost", "stale_reads", "missed", "out_of_order")),
        probed(audited=False),
        probed(acknowledged=0),
    ],
)
def test_whatever_a_client_saw_is_seen(clients: Watched, wrong: Probe) -> None:
    with pytest.raises(AssertionError):
        clients.check(wrong, LET_GO)


def test_a_failure_of_the_tests_own_writer_is_one_too(clients: Watched) -> None:
    clients.writer.failures.append(Failed("x-1", "status 500", 49.0, 50.0))
    with pytest.raises(AssertionError, match="status 500"):
        clients.check(probed(), LET_GO)


def test_who_never_resolves_the_name_again_is_let_go_with_its_address(clients: Watched) -> None:
    clients.check(probed((100.5, "pinned")), LET_GO)


def test_only_as_many_are_excused_as_were_said_and_only_then(clients: Watched) -> None:
    clients.excuse("a machine died", since=50.0, until=51.0, most=2)
    clients.check(probed((50.5, "reader"), (50.6, "writer")), LET_GO)
    for wrong in (
        probed((50.5, "reader"), (50.6, "writer"), (50.7, "http2")),
        probed((51.5, "reader")),
        probed((49.5, "reader")),
    ):
        with pytest.raises(AssertionError):
            clients.check(wrong, LET_GO)
