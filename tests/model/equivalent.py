"""Mutants that nobody notices, and why each harms nobody: they change nothing, or only what may be either way.

The keys are those of ``mutants.py``: function, text before, text after. One that is no mutant any more is refused by
``test_mutants.py``.
"""

from __future__ import annotations

EQUIVALENT: dict[str, str] = {}
