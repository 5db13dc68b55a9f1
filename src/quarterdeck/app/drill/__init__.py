"""Failure drills."""
