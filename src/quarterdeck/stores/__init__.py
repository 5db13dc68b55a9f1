"""Specs, status, journal and leases."""
