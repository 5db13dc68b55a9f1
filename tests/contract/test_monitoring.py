"""The alert rules, the dashboard and the metrics, by Prometheus' own judgement."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from fakes.store import MemoryStore
from model.stories import serving
from support.prometheus_lab import Prometheus, prometheus, promtool

from quarterdeck.metrics.metrics import Metrics
from quarterdeck.metrics.server import ListenAddress, serve_metrics
from quarterdeck.planner.planner import plan

MONITORING = Path(__file__).parents[2] / "docs" / "monitoring"
pytestmark = pytest.mark.timeout(1_800)  # Prometheus is built the first time
CONFIGURATION = """
global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: [%s]
scrape_configs:
  - job_name: quarterdeck
    static_configs: [{targets: ['%s']}]
"""


def metrics() -> Metrics:
    found, world = Metrics(), serving()
    found.observed("demo", world, plan(world))
    return found


async def test_the_rules_are_good_and_each_tells_of_what_it_is_for_and_of_nothing_else() -> None:
    checked = await promtool("check", "rules", "--lint=all", "--lint-fatal", str(MONITORING / "rules.yml"))
    assert checked.code == 0, checked
    tested = await promtool("test", "rules", str(MONITORING / "rules.test.yml"))
    assert tested.code == 0, tested


async def test_metrics_are_called_as_prometheus_wants_them(tmp_path: Path) -> None:
    text = tmp_path / "metrics"
    text.write_bytes(metrics().text())
    checked = await promtool("check", "metrics", stdin=text)
    assert (checked.code, checked.errors) == (0, "")


async def test_a_real_prometheus_reads_them_takes_the_rules_and_answers_what_the_dashboard_asks(tmp_path: Path) -> None:
    found = metrics()
    async with serve_metrics(found, ListenAddress("127.0.0.1", 0), store=MemoryStore()) as address:
        configuration = CONFIGURATION % (MONITORING / "rules.yml", address)
        async with prometheus(tmp_path, configuration) as there:
            await _scraped(there)
            assert await _value(there, 'quarterdeck_plane_failure_survived{failure="machine", answer="yes"}') == "1"
            assert await _value(there, 'sum(quarterdeck_etcd_members{health="healthy"})') == "3"
            assert await there.query('count(ALERTS{alertstate="firing"})') == []
            for query in _asked():
                await there.query(query)
            rules = (await there.get("/api/v1/rules"))["data"]
            assert isinstance(rules, dict)
            assert [rule for group in rules["groups"] for rule in group["rules"] if rule["health"] == "err"] == []


def _asked() -> list[str]:
    """What the dashboard asks, for all planes, as Grafana would."""
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    return [query.replace("$plane", ".+").replace("$__rate_interval", "1m") for query in queries]


async def _scraped(there: Prometheus) -> None:
    """Until it has read them."""
    async with asyncio.timeout(60):
        while not await there.query("quarterdeck_plane_settled"):  # noqa: ASYNC110 - it is another process
            await asyncio.sleep(0.2)


async def _value(there: Prometheus, query: str) -> object:
    (series,) = await there.query(query)
    value = series["value"]
    assert isinstance(value, list)
    return value[1]
