"""Steps: all actions of the engine, as data.

A step names the one site that it touches, its reason (one sentence for people), its action in a few words, whether it
can be undone, and its change of the plane's memory. Each family of steps is a module; the modules of the same names in
``planner.simulated`` and ``actions`` simulate them and carry them out.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil

from quarterdeck.model.steps.base import Step


def all_kinds() -> tuple[type[Step], ...]:
    """Every class of step, by family and name. Base classes have no ``kind`` and are left out."""
    families = [importlib.import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__)]
    found = [each for family in families for _, each in inspect.getmembers(family, inspect.isclass)]
    return tuple(dict.fromkeys(each for each in found if issubclass(each, Step) and hasattr(each, "kind")))
