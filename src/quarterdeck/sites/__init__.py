"""Machines, units and volumes."""
