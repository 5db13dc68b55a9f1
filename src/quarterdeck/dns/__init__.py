"""Asking DNS servers."""
