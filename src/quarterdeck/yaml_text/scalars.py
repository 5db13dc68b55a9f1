"""The value of a YAML scalar in Kubernetes.

Kubernetes' programs and kubectl read YAML with sigs.k8s.io/yaml: go.yaml.in/yaml/v2 (resolve.go, decode.go) makes Go
values, which are written as JSON and read again (sigs.k8s.io/json). That is neither YAML 1.1 nor 1.2: ``yes`` and ``y``
are booleans, ``1e3`` and ``0o644`` are numbers, ``12:30`` and dates are text.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from decimal import Decimal
from typing import TypeAlias

Scalar: TypeAlias = str | int | float | bool | None

_PREFIX = "tag:yaml.org,2002:"
STRING, MERGE, BINARY = (f"{_PREFIX}{each}" for each in ("str", "merge", "binary"))
_TIMESTAMP = f"{_PREFIX}timestamp"
#: Tags that determine how a scalar is read; a scalar with any other tag is text.
_RESOLVED = {"", _TIMESTAMP, *(f"{_PREFIX}{each}" for each in ("bool", "int", "float", "null"))}

_WORDS: dict[str, Scalar] = {"": None, "~": None, "y": True, "Y": True, "n": False, "N": False}
for _value, _words in (
    (True, "true True TRUE yes Yes YES on On ON"),
    (False, "false False FALSE no No NO off Off OFF"),
    (None, "null Null NULL"),
    (math.nan, ".nan .NaN .NAN"),
    (math.inf, ".inf .Inf .INF +.inf +.Inf +.INF"),
    (-math.inf, "-.inf -.Inf -.INF"),
):
    _WORDS |= dict.fromkeys(_words.split(), _value)

_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_OCTAL = re.compile(r"([-+]?)0[oO]?([0-7]+)")
_HEXADECIMAL = re.compile(r"([-+]?)0[xX]([0-9a-fA-F]+)")
_BINARY = re.compile(r"([-+]?)0[bB]([01]+)")
_BINARY_SIGN_INSIDE = re.compile(r"()0b([-+][01]+)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
#: A float that begins with its point may have ``_`` between digits alone.
_POINT_FIRST = re.compile(r"\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9:.]+(Z|[-+][0-9:]+)?)?")
_LARGEST_UNSIGNED = 2**64
_LARGEST_SIGNED = 2**63
#: Go writes the shortest form of a float without an exponent from 1e-4 up to 1e6.
_EXPONENT_MIN, _EXPONENT_MAX = -4, 6


def resolved(text: str, tag: str = "") -> Scalar:
    """The value of a plain scalar, or of one with a tag. Raises ValueError where the tag and the text do not agree, and
    for a ``!!binary`` whose bytes are not text.
    """
    if tag == BINARY:
        return _binary(text)
    if tag not in _RESOLVED:
        return text
    value = _untagged(text)
    if not tag:
        return value
    name = tag.removeprefix(_PREFIX)
    if name == "float" and type(value) is int and -_LARGEST_SIGNED <= value < _LARGEST_SIGNED:
        return float(value)
    if name == "timestamp" and _DATE.fullmatch(text):
        return text
    kind = {"bool": bool, "int": int, "float": float, "null": type(None)}.get(name)
    if type(value) is not kind:
        raise ValueError(f"{text!r} cannot be read as !!{name}")
    return value


def plain(value: Scalar) -> Scalar:
    """The value after it was written as JSON and read again: a float without a fraction is an integer, and an integer
    that 64 bits do not hold is a float. Raises ValueError for a float that JSON does not have.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a number that JSON can hold")
        whole = int(Decimal(repr(value))) if value.is_integer() and abs(value) < _LARGEST_SIGNED else _LARGEST_SIGNED
        return whole if -_LARGEST_SIGNED <= whole < _LARGEST_SIGNED else value
    if isinstance(value, int) and not isinstance(value, bool) and not -_LARGEST_SIGNED <= value < _LARGEST_SIGNED:
        return float(value)
    return value


def key(value: Scalar) -> str:
    """The key of a mapping, which must be text in JSON. Raises ValueError for null."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_key(value)
    if value is None or (isinstance(value, int) and value >= _LARGEST_SIGNED):
        raise ValueError(f"{value or 'null'} cannot be a key; put it in quotes")
    return str(value)


def _untagged(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] == ".":
        return _float(text.replace("_", "")) if _POINT_FIRST.fullmatch(text) else text
    if text[0] not in "+-0123456789":
        return text
    digits = text.replace("_", "")
    whole = _integer(digits)
    if whole is not None:
        return whole
    number = _float(digits)
    return number if isinstance(number, float) else text


def _integer(digits: str) -> int | None:
    """As Go's ``strconv.ParseInt`` and ``ParseUint`` read it with base 0."""
    value: int | None = None
    if _DECIMAL.fullmatch(digits):
        value = int(digits) if len(digits) <= len(str(_LARGEST_UNSIGNED)) + 1 else None
    else:
        for pattern, base in ((_OCTAL, 8), (_HEXADECIMAL, 16), (_BINARY, 2), (_BINARY_SIGN_INSIDE, 2)):
            if found := pattern.fullmatch(digits):
                value = int(found[1] + found[2], base)
                break
    if value is None:
        return None
    longest = _LARGEST_SIGNED if digits[0] in "+-" else _LARGEST_UNSIGNED  # ParseUint takes no sign
    return value if -_LARGEST_SIGNED <= value < longest else None


def _float(digits: str) -> float | str:
    if not _FLOAT.fullmatch(digits):
        return digits
    value = float(digits)
    return value if math.isfinite(value) else digits


def _binary(text: str) -> str:
    try:
        data = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except binascii.Error as error:
        raise ValueError("!!binary is not followed by base64") from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        seen = (
            "!!binary holds bytes that are not text, which JSON cannot hold; write the base64 itself, without !!binary"
        )
        raise ValueError(seen) from error


def _float_key(value: float) -> str:
    """As Go formats it with ``strconv.FormatFloat(value, 'g', -1, 32)``."""
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    single = _single(value)
    if math.isinf(single):
        return ".inf" if value > 0 else "-.inf"
    shortest = next(form for each in range(9) if _single(float(form := f"{single:.{each}e}")) == single)
    mantissa, _, exponent = shortest.partition("e")
    if _EXPONENT_MIN <= int(exponent) < _EXPONENT_MAX:
        return f"{Decimal(shortest):f}"
    return f"{mantissa}e{exponent}"


def _single(value: float) -> float:
    """Rounded to 32 bits."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)
