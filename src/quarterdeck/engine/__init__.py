"""Observe, plan, act, until it is as wanted."""
