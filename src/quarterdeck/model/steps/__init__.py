"""Steps: the only things that the engine ever does, as data.

Each names the one site that it touches, why it is taken (one sentence for a person), what it does in a few words,
whether it can be undone, and what it leaves in the plane's memory. They come in families, a module each; what is
simulated of them, and how they are carried out, is in modules of the same names (``planner.simulated``, ``actions``).
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil

from quarterdeck.model.steps.base import Step


def all_kinds() -> tuple[type[Step], ...]:
    """Every class of step, by family and name. Classes that only others are made from have no ``kind``."""
    families = [importlib.import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__)]
    found = [each for family in families for _, each in inspect.getmembers(family, inspect.isclass)]
    return tuple(dict.fromkeys(each for each in found if issubclass(each, Step) and hasattr(each, "kind")))
