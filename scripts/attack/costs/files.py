"""Classifier files and recipes: headers of very many entries, of great depth, of long numbers."""

from __future__ import annotations

import json

import numpy as np

from scripts.attack.classifiers import classifier_seeds
from scripts.attack.costs.costly import Builder, Costly, repeated, written

__all__ = ["CLASSIFIER", "RECIPE"]

_ABOUT = json.dumps(json.dumps({"format": "visionshare-classifier", "version": 3})).encode()
_ENTRY = b'"%d": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}'


def _header(start: bytes, part: bytes, end: bytes = b"") -> Builder:
    """A file that is a header alone, as large as one may be."""

    def build(size: int, rng: np.random.Generator) -> bytes:
        text = start + repeated(part, min(size, 4 << 20) - 1000) + end
        return len(text).to_bytes(8, "little") + text

    return build


def _arrays(size: int, rng: np.random.Generator) -> bytes:
    entries = b", ".join(_ENTRY % number for number in range(min(size, 4 << 20) // 80))
    text = b'{"__metadata__": {"visionshare": ' + _ABOUT + b"}, " + entries + b"}"
    return len(text).to_bytes(8, "little") + text


def _load(content: bytes) -> int:
    from visionshare import load

    load(written(content, ".safetensors"))
    return 0


_TABLE = b'{"__metadata__": {"visionshare": ' + _ABOUT + b'}, "a": '

_SHAPE = _TABLE + b'{"dtype": "F32", "data_offsets": [0, 0], "shape": ['

CLASSIFIER = Costly(
    {
        "arrays": _arrays,
        "a list": _header(_TABLE + b"[", b"1,", b"1]}"),
        "floats": _header(_TABLE + b"[", b"1.5,", b"1]}"),
        "brackets": _header(b"", b"["),
        "objects": _header(b"", b'{"a":'),
        "digits": _header(b'{"a": ', b"9", b"}"),
        "text": _header(b'{"a": "', b"\\u0041", b'"}'),
        "a list in the values": _header(
            b'{"__metadata__": {"visionshare": "{\\"format\\": \\"visionshare-classifier\\", '
            b'\\"version\\": 3, \\"path\\": [', b"1,", b'1]}"}}',
        ),
        "sides": _header(_SHAPE, b"9,", b"0]}}"),
    },
    classifier_seeds,
    _load,
)  # fmt: skip


def _recipe(start: str, part: str, end: str = "") -> Builder:
    return lambda size, rng: (start + part * (size // len(part)) + end).encode()


def _numbered(line: str) -> Builder:
    """A line for each number."""
    return lambda size, rng: "".join(
        line.format(number) for number in range(size // (len(line) + 4))
    ).encode()


def _small(builder: Builder) -> Builder:
    """The same of a hundredth of the size: what is large is refused at once."""
    return lambda size, rng: builder(size // 100, rng)


def _load_recipe(content: bytes) -> int:
    from visionshare.recipes import load_recipe

    load_recipe(written(content, ".toml"))
    return 0


_RECIPES = {
    "a long key": _recipe("a", ".a", " = 1"),
    "long keys": _recipe("", "a" + ".a" * 400 + " = 1\n"),
    "a deep table": _recipe("[a", ".a", "]"),
    "tables": _numbered("[a{}]\n"),
    "tables of a table": _numbered("[a.b{}]\n"),
    "arrays of tables": _recipe("", "[[a]]\n"),
    "keys": _numbered("a{} = 1\n"),
    "an array": _recipe("a = [", "1,", "]"),
    "brackets": _recipe("a = ", "["),
    "a table in a line": _recipe("a = {", "b = 1, ", "}"),
    "a text": _recipe('a = "', "b", '"'),
    "a key": _recipe("", "b", " = 1"),
    "digits": _recipe("a = ", "1"),
    "comments": _recipe("", "#\n"),
    "blanks": _recipe("", " "),
}

RECIPE = Costly(
    {name: builder for case, build in _RECIPES.items() for name, builder in (
        (case, build), (f"{case}, 1 %", _small(build)))},
    lambda: [b'name = "a"\ndata.source = "digits"\nfeatures.pool = "pixels"\n'],
    _load_recipe,
)  # fmt: skip
