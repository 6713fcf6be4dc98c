"""Templates of sources: jinja2, where a name without a value is an error."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from visionshare.codegen.c_text import number, quoted, table


@cache
def _environment() -> Environment:
    environment = Environment(
        # Parts are included by their place in the package.
        loader=FileSystemLoader(Path(__file__).parents[1], encoding="ascii"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"c_float": number, "c_string": quoted}
    environment.globals |= {"c_table": table}
    return environment


@cache
def _read(path: Path) -> Template:
    return _environment().from_string(path.read_text(encoding="ascii"))


def render_file(path: Path, values: Mapping[str, Any]) -> str:
    """Return the template in a file with its values; the file is read once."""
    # Templates have the filters ``c_float`` and ``c_string``, which give C literals, and the
    # function ``c_table(name, values, kind)``: see :mod:`visionshare.codegen.c_text`.
    return _read(path).render(values)
