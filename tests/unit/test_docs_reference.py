"""The reference is what the generator makes of the code, and has a sentence for each thing that it names."""

from __future__ import annotations

from enum import Enum

import pytest
from pages import DOCS, PAGES
from pages.declared import comments
from pages.spec import models
from pydantic import BaseModel

from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.events import EventReason


@pytest.mark.parametrize("page", PAGES)
def test_a_generated_page_is_current(page: str) -> None:
    assert (DOCS / page).read_text() == PAGES[page](), "run: scripts/reference-docs"


@pytest.mark.parametrize("model", models(), ids=lambda each: each.__name__)
def test_each_field_of_a_resource_has_a_meaning(model: type[BaseModel]) -> None:
    assert set(model.model_fields) - set(comments(model)) == set()


@pytest.mark.parametrize("reasons", [ConditionType, ConditionReason, EventReason])
def test_each_condition_and_event_has_a_meaning(reasons: type[Enum]) -> None:
    assert set(reasons.__members__) - set(comments(reasons)) == set()
