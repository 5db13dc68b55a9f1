"""Writes all of them: ``PYTHONPATH=src:scripts python -m pages``."""

from __future__ import annotations

from pages import DOCS, PAGES

for name, made in PAGES.items():
    (DOCS / name).write_text(made())
