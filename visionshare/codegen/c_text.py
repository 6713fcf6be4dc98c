"""Numbers, tables and names as C text: nothing else of a classifier gets into a source."""

from __future__ import annotations

import re
import textwrap
from keyword import iskeyword
from typing import Any

import numpy as np

from visionshare.errors import InputError

_WIDTH = 96
_INDENT = "    "
# Longer text literals are beyond what C99 promises to accept.
_LONGEST_TEXT = 1000
_TYPES: dict[str, Any] = {
    "uint8_t": np.uint8, "int8_t": np.int8, "uint16_t": np.uint16, "int16_t": np.int16,
    "int32_t": np.int32,
}  # fmt: skip
# Words of C, files that stand beside the source, and headers that one of this name would hide.
_RESERVED = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|"
    "example|extern|float|for|goto|if|inline|int|long|main|makefile|"
    "register|restrict|return|short|signed|sizeof|static|struct|switch|"
    "typedef|union|unsigned|void|volatile|while|"
    "assert|complex|ctype|errno|fenv|inttypes|iso646|limits|locale|math|setjmp|signal|"
    "stdarg|stdbool|stddef|stdint|stdio|stdlib|string|tgmath|time|wchar|wctype"
)


def check_identifier(argument: str, name: object) -> str:
    """Return a name that C files and functions can have."""
    accepted = (
        "1 to 31 of a-z, 0-9 and _, first a letter; no word of C or Python, no standard header"
    )
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name):
        raise InputError(argument, name, accepted)
    if _RESERVED.fullmatch(name) or iskeyword(name) or name.endswith("_t"):
        raise InputError(argument, name, accepted)
    return name


def number(value: float) -> str:
    """Return a float32 as a C literal that reads back as the same float32."""
    if not isinstance(value, np.float32):
        with np.errstate(over="ignore"):
            value = np.float32(value)
    # Most numbers: they need no look at their exponent.
    if 1e-4 <= abs(value) < 1e7:
        return np.format_float_positional(value, unique=True, trim="0") + "f"
    if not np.isfinite(value):
        raise InputError("value", float(value), "numbers in the range of float32")
    text = np.format_float_scientific(value, unique=True, trim="0", exp_digits=1)
    mantissa, exponent = text.split("e")
    if -5 < int(exponent) < 7:
        return np.format_float_positional(value, unique=True, trim="0") + "f"
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}f"


def integer_type(values: np.ndarray) -> str:
    """Return the smallest C type that holds all integers of an array."""
    values = np.asarray(values)
    low = int(values.min(initial=0))
    high = int(values.max(initial=0))
    for name, kind in _TYPES.items():
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return name
    raise InputError("values", (low, high), "integers of 32 bits")


def table(name: str, values: np.ndarray, kind: str | None = None, space: str = "") -> str:
    """Return the definition of a constant table, flat, its numbers in C order."""
    flat = np.asarray(values).ravel()
    real = flat.dtype.kind == "f"
    kind = kind or ("float" if real else integer_type(flat))
    # C has no arrays without elements.
    words = [number(v) if real else str(int(v)) for v in flat] or ["0"]
    body = textwrap.fill(
        ", ".join(words),
        _WIDTH,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"static const {space}{kind} {name}[{len(words)}] = {{\n{body}\n}};"


def quoted(text: str) -> str:
    r"""Return a text as a C literal: ASCII letters and digits unchanged, other bytes in octal."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > _LONGEST_TEXT:
        raise InputError("classes", f"a name of {len(data)} bytes", f"at most {_LONGEST_TEXT}")
    plain = [chr(b) if chr(b).isascii() and chr(b).isalnum() else f"\\{b:03o}" for b in data]
    return '"' + "".join(plain) + '"'
