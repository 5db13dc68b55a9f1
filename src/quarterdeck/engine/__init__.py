"""Observe, plan, act, until the plane matches its spec."""
