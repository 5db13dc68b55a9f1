"""The problems of a document, as text: every problem with its full path, all in one line."""

from __future__ import annotations

import contextlib
import difflib
import types
from collections.abc import Iterator
from typing import Union, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from quarterdeck.api.flags import FIELDS
from quarterdeck.api.names import shortened
from quarterdeck.api.schema import PROBLEMS
from quarterdeck.errors import InvalidInput
from quarterdeck.yaml_text.invisible import visible

_PLAIN = {
    "missing": "required, but missing",
    "string_type": "must be text (in quotes)",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "tuple_type": "must be a list",
    "path_type": "must be a path",
    "finite_number": "must be a finite number",
}


@contextlib.contextmanager
def explained(doing: str, root: type[BaseModel]) -> Iterator[None]:
    """Turns pydantic's ValidationError of a ``root`` into InvalidInput."""
    try:
        yield
    except ValidationError as error:
        raise InvalidInput(doing, "; ".join(problems_in(error, root))) from error


def problems_in(error: ValidationError, root: type[BaseModel]) -> tuple[str, ...]:
    """One ``path: what is wrong`` for each problem, in the order of the document's model."""
    found = [problem for detail in error.errors(include_url=False) for problem in _problems(detail, root)]
    return tuple(dict.fromkeys(found))


def _problems(detail: ErrorDetails, root: type[BaseModel]) -> list[str]:
    where, model = _resolved(root, detail["loc"])
    kind = detail["type"]
    context = detail.get("ctx", {})
    if kind == PROBLEMS:
        return [f"{_path((*where, *path.split('.')))}: {text}" for path, text in context["problems"]]
    if kind == "extra_forbidden" and (why := FIELDS.get(str(where[-1]).lower())) is not None:
        return [f"{_path(where)}: {why}"]
    if kind == "extra_forbidden":
        return [f"{_path(where)}: unknown field{_suggestion(model, str(where[-1]))}"]
    if kind == "value_error":
        return [f"{_path(where)}: {context['error']}"]
    if kind in {"literal_error", "enum"}:
        return [f"{_path(where)}: must be {context['expected']}, not {shortened(detail['input'])}"]
    if kind == "missing":
        return [f"{_path(where)}: {_PLAIN[kind]}"]
    message = _PLAIN.get(kind) or detail["msg"].replace("Input should be", "must be", 1)
    return [f"{_path(where)}: {message}, not {_seen(detail['input'])}"]


def _seen(value: object) -> str:
    """A value, and why its type is not what it looks like."""
    if isinstance(value, bool):
        words = "y, yes, on and true" if value else "n, no, off and false"
        return f"{value} (that is what {words} mean without quotes)"
    return shortened(value)


def _path(where: tuple[int | str, ...]) -> str:
    """``("spec", "zones", 0)`` as ``spec.zones[0]``."""
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{visible(part)}" if text else visible(part)
    return text or "document"


def _suggestion(model: type[BaseModel] | None, wrong: str) -> str:
    """The field that was probably meant: a similar one at its place, or one of its name further down."""
    if model is None:
        return ""
    alike = difflib.get_close_matches(wrong.lower(), {name.lower(): name for name in _fields(model)}, n=1)
    if alike:
        meant = next(name for name in _fields(model) if name.lower() == alike[0])
        return f"; did you mean {meant!r}?"
    below = next((path for path in _paths(model) if path.rsplit(".", 1)[-1] == wrong), None)
    return f"; did you mean {below!r}?" if below else f"; there are {', '.join(_fields(model))}"


def _resolved(
    root: type[BaseModel], where: tuple[int | str, ...]
) -> tuple[tuple[int | str, ...], type[BaseModel] | None]:
    """A place as documents have it, and the model that its last part is, or would be, a field of. Pydantic names the
    kind as well (``spec``, ``ssh``, ``hosts``) where a field has one of several.
    """
    path: list[int | str] = []
    model: type[BaseModel] | None = root
    below, kinds = model, dict[str, type[BaseModel]]()
    for part in where:
        if isinstance(part, str) and part in kinds:
            below, kinds = kinds[part], {}
            continue
        path.append(part)
        if isinstance(part, int):
            continue  # an item of a list is of the model that the list's field names
        model, info = below, _info(below, part)
        below = _model_in(info.annotation) if info is not None else None
        kinds = _kinds(info.annotation) if info is not None else {}
    return tuple(path), model


def _info(model: type[BaseModel] | None, name: str) -> FieldInfo | None:
    fields = model.model_fields if model is not None else {}
    return next((info for own, info in fields.items() if (info.alias or own) == name), None)


def _kinds(annotation: object) -> dict[str, type[BaseModel]]:
    """The models that a field may have, by their discriminator."""
    found: dict[str, type[BaseModel]] = {}
    for each in get_args(annotation):
        tag = next((extra.tag for extra in getattr(each, "__metadata__", ()) if isinstance(extra, Tag)), None)
        model = _model_in(each)
        if tag is not None and model is not None:
            found[tag] = model
    return found


def _fields(model: type[BaseModel]) -> dict[str, type[BaseModel] | None]:
    """A model's fields by the names that documents have, each with its model, if it has one."""
    return {info.alias or name: _model_in(info.annotation) for name, info in model.model_fields.items()}


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in {Union, types.UnionType, tuple} or hasattr(annotation, "__metadata__"):
        return next((found for each in get_args(annotation) if (found := _model_in(each)) is not None), None)
    return None


def _paths(model: type[BaseModel]) -> Iterator[str]:
    for name, inner in _fields(model).items():
        yield name
        if inner is not None:
            yield from (f"{name}.{path}" for path in _paths(inner))
