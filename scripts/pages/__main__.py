"""Writes all of them: ``scripts/reference-docs``."""

from __future__ import annotations

from pages import DOCS, PAGES

for name, made in PAGES.items():
    (DOCS / name).write_text(made())
