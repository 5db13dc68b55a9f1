"""What a person sees while programs are fetched."""

from __future__ import annotations

import io

from rich.console import Console

from quarterdeck.cli.fetching import RichProgress


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


def test_off_a_terminal_there_are_plain_lines_in_order() -> None:
    assert shown(terminal=False).splitlines() == [
        "downloading [kubectl] ...",
        "building etcd 3.6.16 ...",
        "dl.k8s.io cannot be reached",
        "downloading [kubectl]: 60 MB (0 s)",
        "building etcd 3.6.16: done (0 s)",
    ]


def test_on_a_terminal_there_are_bars_and_the_same_lines_stay() -> None:
    text = shown(terminal=True)
    assert "/60.0 MB" in text
    assert "dl.k8s.io cannot be reached" in text
    assert "building etcd 3.6.16: done (0 s)" in text
