"""docs/reference/metrics.md, made from the catalogue of metrics."""

from __future__ import annotations

from pages.declared import table
from quarterdeck.metrics.catalogue import METRICS

_OPENING = """# Metrics

`quarterdeck serve` offers these metrics to Prometheus at `/metrics`. `/healthz` says that the process answers, and
`/readyz` that it does its work. [Monitoring](../monitoring) has alert rules, with what to do next, and a dashboard.

The label `cluster` is `main`, or `events` for a separate etcd of the Kubernetes events; `health` is `healthy`,
`suspect`, `unreachable` or `down`
([failure detection](../design/failure-detection-and-healing.md#one-observers-view-is-not-enough)). A value that is not
known is absent, and never 0. The times of etcd's disks and the expiry of certificates are read once a minute; all
other values are those of the last observation.
"""


def page() -> str:
    """The whole page."""
    rows = [
        (f"`{each.name}`", str(each.kind), ", ".join(f"`{label}`" for label in each.labels), each.unit, each.says)
        for each in METRICS
    ]
    return f"{_OPENING}\n{table(('metric', 'type', 'labels', 'unit', 'meaning'), rows)}"
