"""What a person sees while programs are fetched."""

from __future__ import annotations

import io

import structlog
from rich.console import Console
from support.golden import Golden

from quarterdeck.cli.commands.serve import LoggedProgress
from quarterdeck.cli.fetch_progress import RichProgress


def shown(*, terminal: bool) -> str:
    stream = io.StringIO()
    with RichProgress(Console(file=stream, force_terminal=terminal, width=120)) as progress:
        progress.start("downloading [kubectl]", 60_000_000)
        progress.start("building etcd 3.6.16", None)
        progress.advance("downloading [kubectl]", 30_000_000)
        progress.note("dl.k8s.io cannot be reached")
        progress.finish("downloading [kubectl]", "60 MB")
        progress.finish("building etcd 3.6.16", "done")
    return stream.getvalue()


def test_off_a_terminal_what_takes_long_is_told_each_ten_seconds(golden: Golden) -> None:
    stream, now = io.StringIO(), [0.0]
    with RichProgress(Console(file=stream, width=120), lambda: now[0]) as progress:
        progress.start("sending to cp-1 of rack", 9_000_000)
        for second in range(1, 25):
            now[0] = second
            progress.advance("sending to cp-1 of rack", second * 400_000)
            if second == 12:
                progress.resize("sending to cp-1 of rack", 12_000_000)
        progress.finish("sending to cp-1 of rack", "2 files, 9.6 MB")
    golden(stream.getvalue().splitlines())


def test_a_log_has_the_beginning_and_the_end() -> None:
    log, now = structlog.testing.CapturingLogger(), [0.0]
    progress = LoggedProgress(structlog.wrap_logger(log, processors=[]), lambda: now[0])
    progress.start("sending to cp-1 of rack", 9_000_000)
    progress.advance("sending to cp-1 of rack", 1_000_000)
    progress.resize("sending to cp-1 of rack", 12_000_000)
    now[0] = 14.04
    progress.finish("sending to cp-1 of rack", "2 files, 12.0 MB")
    assert [each.kwargs for each in log.calls] == [
        {"event": "sending to cp-1 of rack", "bytes": 9_000_000},
        {"event": "sending to cp-1 of rack", "outcome": "2 files, 12.0 MB", "seconds": 14.0},
    ]


def test_off_a_terminal_there_are_plain_lines_in_order(golden: Golden) -> None:
    golden(shown(terminal=False).splitlines())


def test_on_a_terminal_there_are_bars_and_the_same_lines_stay() -> None:
    text = shown(terminal=True)
    assert "/60.0 MB" in text
    assert "dl.k8s.io cannot be reached" in text
    assert "building etcd 3.6.16: done (0 s)" in text
