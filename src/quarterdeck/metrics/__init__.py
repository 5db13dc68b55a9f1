"""The state of planes as Prometheus metrics."""
