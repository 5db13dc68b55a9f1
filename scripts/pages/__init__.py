"""The pages of docs that are made from code, by their names there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pages import cli, dashboard, json_reference, metrics, notices, report_schema, spec, versions

DOCS = Path(__file__).parents[2] / "docs"

PAGES: Mapping[str, Callable[[], str]] = {
    "monitoring/dashboard.json": dashboard.dashboard,
    "reference/json-operations.md": json_reference.operations_page,
    "reference/json-planes.md": json_reference.planes_page,
    "reference/json.md": json_reference.commands_page,
    "reference/cli.md": cli.index,
    **{f"reference/{name}": made for name, made in cli.panel_pages().items()},
    "reference/conditions-and-events.md": notices.page,
    "reference/metrics.md": metrics.page,
    **{f"reference/{name}": made for name, made in spec.pages().items()},
    "reference/versions.md": versions.page,
    "report-schema.md": report_schema.document,
}
