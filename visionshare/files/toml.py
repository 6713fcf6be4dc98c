"""TOML files of strangers: read within bounds of their size and of the depth of their keys."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MAX_BYTES = 1 << 17
# A key of thousands of parts is compared with each of its beginnings.
_MAX_DOTS = 500


def read_toml_file(path: Path) -> dict[str, Any]:
    """Return the values of a TOML file."""
    with open(path, "rb") as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise ValueError(f"more than {_MAX_BYTES} bytes")
    return parse_toml(content.decode("utf-8"))


def parse_toml(text: str) -> dict[str, Any]:
    """Return the values of a text in TOML."""
    if len(text) > _MAX_BYTES:
        raise ValueError(f"more than {_MAX_BYTES} characters")
    if any(line.count(".") > _MAX_DOTS for line in text.split("\n")):
        raise ValueError(f"a line of more than {_MAX_DOTS} dots")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("brackets are nested too deeply") from None
