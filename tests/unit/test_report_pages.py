"""What a reader sees: the page, the chart, the terminal."""

from __future__ import annotations

import json
import random
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from plotly.offline import get_plotlyjs
from report_lab import MACHINE, STARTED, Journal, journal, operation, probe_result, report
from rich.console import Console
from support.golden import Golden
from support.resources import with_status

from quarterdeck.probe.schema import Samples
from quarterdeck.report.build import build
from quarterdeck.report.chart import figure, legend
from quarterdeck.report.downsample import downsampled
from quarterdeck.report.html import render_html
from quarterdeck.report.schema import Moment, PromiseVerdict, Role
from quarterdeck.report.spans import Span, SpanStyle, member_spans
from quarterdeck.report.text import render_text

HOSTILE = "</script><script>alert('1')</script><img src=x onerror=alert(2)> & \"quoted\""


class Page(HTMLParser):
    """Tags, what they load, and the text outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.words: list[str] = []
        self._inside: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "link", "img"):
            self._inside.append(tag)
        self.loads += [str(value) for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self._inside):
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


@pytest.fixture(scope="module")
def page() -> str:
    return render_html(report(failing=True))


def own(page: str) -> str:
    """The page without plotly's script."""
    script = get_plotlyjs()
    assert page.count(script) == 1
    return page.replace(script, "")


def drawn_in(page: str) -> dict:
    match = re.search(r'<script type="application/json" id="figure">(.*?)</script>', own(page), re.DOTALL)
    assert match is not None
    return json.loads(match[1])


def test_the_page_says_the_verdict_first_and_all_that_it_rests_on(page: str) -> None:
    text = Page(own(page)).text
    order = [
        "demo moved east → west in 14.2 s",
        "2 failed",
        "What was measured",
        "Clients",
        "Timeline",
        "Steps",
    ]
    positions = [text.index(words) for words in order]
    assert positions == sorted(positions)
    for words in (
        "2 of 2,100",
        "new-connection",
        "status 429",
        "transfer-leadership demo-4",
        "v1.36.3",
        "9.0 ms",
    ):
        assert words in text


def test_every_count_of_requests_is_of_all_of_them_or_names_its_period(page: str) -> None:
    text = Page(own(page)).text
    assert set(re.findall(r"([\d,]+) requests", text)) == {"2,100"}
    for words in (
        "2 failed of 2,100 requests in all",
        "2 of 2,100",
        "2,100 requests in all: 1,050 in 'quiet', 1,050 in 'migrate'",
        "Failed and re-sent are those of 'migrate'",
        "all clients 1,050 1,050 2",
    ):
        assert words in text, text


def test_the_page_loads_nothing(page: str) -> None:
    rest = own(page)
    assert Page(rest).loads == []
    assert re.findall(r"(?:https?:)?//\w|@import|url\(", rest) == []


def test_hostile_text_stays_text() -> None:
    it = Journal()
    it.saw(0, ["demo-1"], leader="demo-1", backends={HOSTILE: [HOSTILE]}, record=HOSTILE)
    it.step(1, 2, f"promote-learner {HOSTILE}", HOSTILE, site=HOSTILE, error=HOSTILE)
    op = operation()
    op = with_status(op, message=HOSTILE)
    made = build(
        op, it.entries, machine=MACHINE.model_copy(update={"kernel": HOSTILE}), now=STARTED, probe=probe_result()
    )
    rest = own(render_html(made))
    tags = Page(rest).tags
    assert tags.count("script") == 3
    assert "img" not in tags
    assert HOSTILE in Page(rest).text
    texts = [text for trace in drawn_in(render_html(made))["data"] for text in trace.get("hovertext", [])]
    assert any("alert" in text for text in texts)
    assert not any("<img" in text or "<script" in text for text in texts)


def test_every_member_backend_record_step_and_failure_is_in_the_chart(page: str, golden: Golden) -> None:
    data = drawn_in(page)["data"]
    rows = {row for trace in data if trace["type"] == "bar" for row in trace["y"]}
    assert {f"demo-{number} · {'east' if number < 4 else 'west'}" for number in range(1, 7)} <= rows
    assert {"east ▸ demo-1", "west ▸ demo-6", "name", "join", "swap"} <= rows
    failed = next(trace for trace in data if trace.get("name") == "failed")
    assert len(failed["text"]) == 2
    golden(failed["text"][0])
    kinds = {trace.get("name") for trace in data if trace["type"] == "scatter"}
    assert {"writer", "reader", "watcher", "new-connection", "keep-alive", "pinned", "http2", "failed"} == kinds


def test_all_parts_of_the_chart_share_one_axis_of_time(page: str) -> None:
    drawn = drawn_in(page)
    assert {trace.get("xaxis", "x") for trace in drawn["data"]} == {"x"}
    axes = [drawn["layout"][name]["domain"] for name in drawn["layout"] if name.startswith("yaxis")]
    assert len(axes) == 5
    for (low, _), (_, high) in pairwise(axes):
        assert low > high


def test_a_report_without_probe_or_timeline_has_a_page_too(golden: Golden) -> None:
    made = build(operation(), (), machine=MACHINE, now=STARTED)
    golden(Page(own(render_html(made))).text)
    assert "Timeline" in render_html(build(operation(), journal(), machine=MACHINE, now=STARTED))


def test_the_colours_of_the_sites_are_explained() -> None:
    assert {"joining", "voter", "learner", "leader", "not healthy", "at east", "at west"} == set(legend(report()))
    assert len(set(legend(report()).values())) == 7


def test_the_figure_is_a_plotly_figure() -> None:
    assert figure(report()).to_plotly_json()["layout"]["xaxis"]["title"]["text"].startswith("seconds")


def test_spans_hold_until_the_next_change() -> None:
    spans = member_spans(report().timeline, 14.2)
    fourth = [span for span in spans if span.row == "demo-4 · west"]
    assert [span.look for span in fourth] == [SpanStyle.LEARNER, SpanStyle.VOTER, SpanStyle.LEADER]
    assert [(span.start, span.end) for span in fourth] == [(0.25, 3.63), (3.63, 11.05), (11.05, 14.2)]
    first = [span for span in spans if span.row == "demo-1 · east"]
    assert first == [Span("demo-1 · east", SpanStyle.VOTER, 0.05, pytest.approx(11.123), "east")]


def test_a_learner_that_was_never_healthy_is_joining_and_one_that_was_is_sick() -> None:
    first = report().timeline[0]
    learner = next(each for moment in report().timeline for each in moment.members if each.role is Role.LEARNER)

    def at(time: float, *, healthy: bool) -> Moment:
        return first.model_copy(update={"at": time, "members": (learner.model_copy(update={"healthy": healthy}),)})

    spans = member_spans((at(0, healthy=False), at(1, healthy=True), at(2, healthy=False)), 3)
    assert [span.look for span in spans] == [SpanStyle.JOINING, SpanStyle.LEARNER, SpanStyle.ILL]


def test_downsampling_keeps_every_failure_and_every_kinds_slowest() -> None:
    chance = random.Random(3)
    count = 30_000
    samples = Samples(
        kinds=("a", "b"),
        addresses=("x",),
        at=tuple(number / 100 for number in range(count)),
        ms=tuple(chance.expovariate(0.1) for _ in range(count)),
        kind=tuple(number % 2 for number in range(count)),
        address=(0,) * count,
        ok=tuple(number % 997 != 0 for number in range(count)),
    )
    kept = downsampled(samples, 1000)
    assert len(kept) <= 1000 + samples.ok.count(False) + 4
    assert {row for row in range(count) if not samples.ok[row]} <= set(kept)
    for kind in (0, 1):
        rows = [row for row in range(count) if samples.kind[row] == kind]
        assert max(rows, key=samples.ms.__getitem__) in kept
    assert list(kept) == sorted(kept)
    assert downsampled(samples, count) == tuple(range(count))


def test_the_terminal_shows_the_same(golden: Golden) -> None:
    console = Console(width=140, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    with console.file:
        console.print(render_text(report(failing=True)))
    text = console.export_text()
    for words in (
        "✗ demo moved east → west in 14.2 s",
        "2 of 2,100",
        "new-connection",
        "pinned-0: status 429",
        "1.6 x",
    ):
        assert words in text
    golden(text)


def test_an_aim_that_a_busy_machine_missed_is_marked_and_breaks_no_promise() -> None:
    missed = PromiseVerdict(claim="clients wait little", measured="long", holds=False, promised=False)
    made = report().model_copy(update={"verdicts": (*report().verdicts, missed)})
    assert made.holds
    console = Console(width=100, record=True)
    console.print(render_text(made))
    assert re.search(r"^  !  clients wait little: +long", console.export_text(), re.MULTILINE)
    assert '<li class="missed"><i>!</i><span>clients wait little:</span>' in render_html(made)
