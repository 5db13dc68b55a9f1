"""docs/metrics.md, made from the catalogue of metrics."""

from __future__ import annotations

from quarterdeck.metrics.catalogue import METRICS


def page() -> str:
    """The whole page."""
    lines = [
        "# Metrics",
        "",
        "What is told to Prometheus at `/metrics`. `cluster` is `main`, or `events` where events have an etcd of their",
        "own; `health` is `healthy`, `suspect`, `unreachable` or `down`",
        "([failure detection](design/failure-detection-and-healing.md#one-observers-view-is-not-enough)). What is not",
        "known is absent, never 0. What etcd tells of its disks, and when certificates end, is read once a minute, all",
        "else is of the last look. Alert rules, with what to do next, and a dashboard are in",
        "[monitoring](monitoring). `/healthz` says that the process answers, `/readyz` that it does its work.",
        "",
        "| metric | type | labels | unit | meaning |",
        "|---|---|---|---|---|",
    ]
    for each in METRICS:
        labels = ", ".join(f"`{label}`" for label in each.labels)
        lines.append(f"| `{each.name}` | {each.kind} | {labels} | {each.unit} | {each.says} |")
    return "\n".join(lines) + "\n"
