"""The Grafana dashboard, docs/monitoring/dashboard.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

#: Grafana's grid has so many columns.
_WIDTH = 24
_SOURCE: dict[str, JsonValue] = {"type": "prometheus", "uid": "${source}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A panel: what it asks Prometheus, each with its legend. ``kind`` and ``unit`` are Grafana's words."""

    title: str
    queries: tuple[tuple[str, str], ...]
    kind: str = "timeseries"
    unit: str = "short"
    width: int = 8
    height: int = 7


_OF = 'plane=~"$plane"'
_REPLICA = "{{plane}} {{replica}} {{cluster}}"
PANELS = (
    Panel(
        title="API reached",
        queries=((f"quarterdeck_plane_available{{{_OF}}}", "{{plane}}"),),
        kind="stat",
        unit="bool_yes_no",
        height=5,
    ),
    Panel(
        title="As wanted",
        queries=((f"quarterdeck_plane_settled{{{_OF}}}", "{{plane}}"),),
        kind="stat",
        unit="bool_yes_no",
        height=5,
    ),
    Panel(
        title="Not seen for",
        queries=((f"time() - quarterdeck_plane_look_timestamp_seconds{{{_OF}}}", "{{plane}}"),),
        kind="stat",
        unit="s",
        height=5,
    ),
    Panel(
        title="Survives one failure of",
        queries=((f'quarterdeck_plane_failure_survived{{{_OF}, answer="yes"}}', "{{plane}}: {{failure}}"),),
        kind="state-timeline",
        unit="bool_yes_no",
        width=16,
    ),
    Panel(
        title="Not well",
        queries=((f"quarterdeck_plane_warnings{{{_OF}}}", "{{plane}}: {{reason}}"),),
    ),
    Panel(
        title="Controllers led",
        queries=((f"quarterdeck_plane_controllers_led{{{_OF}}}", "{{plane}}: {{component}}"),),
        kind="state-timeline",
        unit="bool_yes_no",
    ),
    Panel(
        title="Members of etcd",
        queries=((f"quarterdeck_etcd_members{{{_OF}}} > 0", "{{plane}} {{cluster}}: {{role}} {{health}}"),),
    ),
    Panel(
        title="Voters that may fail", queries=((f"quarterdeck_etcd_quorum_margin{{{_OF}}}", "{{plane}} {{cluster}}"),)
    ),
    Panel(title="Behind the leader", queries=((f"quarterdeck_etcd_member_lag_entries{{{_OF}}}", _REPLICA),)),
    Panel(
        title="Sync of the log, 99 %",
        queries=((f"quarterdeck_etcd_member_wal_fsync_p99_seconds{{{_OF}}}", _REPLICA),),
        unit="s",
    ),
    Panel(
        title="Commit to the database, 99 %",
        queries=((f"quarterdeck_etcd_member_backend_commit_p99_seconds{{{_OF}}}", _REPLICA),),
        unit="s",
    ),
    Panel(
        title="Database in use, of its quota",
        queries=(
            (
                f"quarterdeck_etcd_member_database_in_use_bytes{{{_OF}}} "
                f"/ quarterdeck_etcd_member_database_quota_bytes{{{_OF}}}",
                _REPLICA,
            ),
        ),
        unit="percentunit",
    ),
    Panel(
        title="Database files",
        queries=((f"quarterdeck_etcd_member_database_bytes{{{_OF}}}", _REPLICA),),
        unit="bytes",
    ),
    Panel(
        title="Alarms of etcd", queries=((f"quarterdeck_etcd_alarm{{{_OF}}} > 0", "{{plane}} {{cluster}}: {{alarm}}"),)
    ),
    Panel(
        title="Connections of clients",
        queries=((f"quarterdeck_load_balancer_connections{{{_OF}}}", "{{plane}} at {{site}}"),),
    ),
    Panel(
        title="Backends that are well",
        queries=((f'quarterdeck_load_balancer_backends{{{_OF}, state="healthy"}}', "{{plane}} at {{site}}"),),
    ),
    Panel(
        title="Ready apiservers, and replicas missing",
        queries=(
            (f"quarterdeck_plane_apiservers_ready{{{_OF}}}", "{{plane}} ready"),
            (f'quarterdeck_plane_replicas{{{_OF}, state="missing"}}', "{{plane}} missing"),
        ),
    ),
    Panel(
        title="First certificate ends in",
        queries=((f"quarterdeck_certificate_expiry_timestamp_seconds{{{_OF}}} - time()", "{{plane}}"),),
        kind="stat",
        unit="s",
    ),
    Panel(
        title="Operations that are not over",
        queries=((f'quarterdeck_operations{{{_OF}, phase!="Succeeded"}} > 0', "{{plane}}: {{phase}}"),),
    ),
    Panel(
        title="Steps per second",
        queries=(
            (
                f"sum by (plane, outcome) (rate(quarterdeck_steps_total{{{_OF}}}[$__rate_interval]))",
                "{{plane}} {{outcome}}",
            ),
        ),
    ),
    Panel(
        title="A step takes, 90 %",
        queries=(
            (
                "histogram_quantile(0.9, sum by (step, le) "
                "(rate(quarterdeck_step_duration_seconds_bucket[$__rate_interval])))",
                "{{step}}",
            ),
        ),
        unit="s",
    ),
    Panel(
        title="A look takes",
        queries=((f"quarterdeck_plane_look_duration_seconds{{{_OF}}}", "{{plane}}"),),
        unit="s",
    ),
    Panel(
        title="Troubles per second",
        queries=((f"rate(quarterdeck_troubles_total{{{_OF}}}[$__rate_interval])", "{{plane}}"),),
    ),
)


def dashboard() -> str:
    """It, as Grafana imports it."""
    variables: list[JsonValue] = [
        {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        {
            "name": "plane",
            "label": "Plane",
            "type": "query",
            "datasource": _SOURCE,
            "query": "label_values(quarterdeck_plane_settled, plane)",
            "includeAll": True,
            "multi": True,
            "refresh": 2,
            "current": {"text": "All", "value": "$__all"},
        },
    ]
    made: dict[str, JsonValue] = {
        "title": "quarterdeck",
        "uid": "quarterdeck-planes",
        "tags": ["kubernetes", "etcd"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": variables},
        "panels": [*_placed(PANELS)],
    }
    return json.dumps(made, indent=1) + "\n"


def _placed(panels: Sequence[Panel]) -> list[JsonValue]:
    """From the left to the right, row by row."""
    found: list[JsonValue] = []
    left, top, tallest = 0, 0, 0
    for number, panel in enumerate(panels, 1):
        if left + panel.width > _WIDTH:
            left, top, tallest = 0, top + tallest, 0
        found.append(_panel(number, panel, left, top))
        left, tallest = left + panel.width, max(tallest, panel.height)
    return found


def _panel(number: int, panel: Panel, left: int, top: int) -> dict[str, JsonValue]:
    targets: list[JsonValue] = [
        {"refId": chr(ord("A") + at), "datasource": _SOURCE, "expr": query, "legendFormat": legend}
        for at, (query, legend) in enumerate(panel.queries)
    ]
    return {
        "id": number,
        "title": panel.title,
        "type": panel.kind,
        "datasource": _SOURCE,
        "gridPos": {"h": panel.height, "w": panel.width, "x": left, "y": top},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}} if panel.kind == "timeseries" else {},
        "targets": targets,
    }
