"""Faults that are made on local machines, and what ends them."""
