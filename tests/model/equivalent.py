"""Mutants that nobody notices, and why each harms nobody: they change nothing, or only what may be either way.

The keys are those of ``mutants.py``: function, text before, text after. One that is no mutant any more is refused by
``test_mutants.py``.
"""

from __future__ import annotations

#: Why any slot tells the site.
_ONE_SITE = "all slots of a plane are at one site, and where one is lent there is but one"

EQUIVALENT: dict[str, str] = {
    # --- view -------------------------------------------------------------------------------------------------------
    "view.view: 0 => -1": _ONE_SITE,
    "view.view: 0 => -1 (number 2)": _ONE_SITE,
}
