"""The pages of docs that are made from code, by their names there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pages import dashboard, json_reference, metrics, report_schema

DOCS = Path(__file__).parents[2] / "docs"

PAGES: Mapping[str, Callable[[], str]] = {
    "metrics.md": metrics.page,
    "monitoring/dashboard.json": dashboard.dashboard,
    "reference/json-operations.md": json_reference.operations_page,
    "reference/json-planes.md": json_reference.planes_page,
    "reference/json.md": json_reference.commands_page,
    "report-schema.md": report_schema.document,
}
