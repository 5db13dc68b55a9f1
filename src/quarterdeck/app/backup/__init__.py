"""Backups of planes, and restores."""
