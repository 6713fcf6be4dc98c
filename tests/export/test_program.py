"""The text of exported sources."""

import re

import numpy as np
import pytest

from visionshare import CompactClassifier, Pixels, SourceClassifiers
from visionshare.codegen.c_text import number, quoted, table
from visionshare.errors import InputError
from visionshare.export import c_program

TEXT = re.compile(r'"(?:[A-Za-z0-9]|\\[0-7]{3})*"')


@pytest.mark.parametrize("kind", ["patches", "gabor", "fourier", "union", "sources", "gaussian"])
def test_sources_allocate_print_and_differ_in_nothing(kind, classifier):
    model = classifier(kind)
    program = c_program(model, quantize="int8", probabilities=True)
    assert program.files == c_program(model, quantize="int8", probabilities=True).files
    source = program.files["classifier.h"] + program.files["classifier.c"]
    assert source.isascii()
    for word in ("malloc", "calloc", "free(", "stdio", "printf", "$"):
        assert word not in source
    assert set(re.findall(r"#include (\S+)", source)) == {
        "<stdint.h>", "<math.h>", '"classifier.h"'
    }  # fmt: skip


def test_without_need_there_is_no_mathematical_library(classifier):
    assert "math.h" not in c_program(classifier("patches")).files["classifier.c"]
    assert "math.h" in c_program(classifier("gaussian")).files["classifier.c"]


def test_class_names_are_no_code():
    names = ['"};int x;/*', "*/", "??/", "a\nb", "%s", "\\", "日本", "a" * 900]
    family = Pixels().fit(np.zeros((1, 2, 2)))
    model = CompactClassifier(family, np.zeros((8, 4)), np.zeros(8), np.array(names))
    source = c_program(model).files["classifier.c"]
    listed = source.split("_names[CLASSIFIER_CLASSES] = {")[1].split("};")[0]
    literals = [line.strip().rstrip(",") for line in listed.strip().splitlines()]
    assert len(literals) == 8
    assert all(TEXT.fullmatch(text) for text in literals)
    octal = re.compile(rb"\\([0-7]{3})")
    for text, name in zip(literals, names, strict=True):
        read = octal.sub(lambda m: bytes([int(m[1], 8)]), text[1:-1].encode())
        assert read.decode() == name
    with pytest.raises(InputError, match="1000"):
        quoted("x" * 1001)


def test_numbers_read_back_bit_for_bit():
    bits = np.random.default_rng(0).integers(0, 2**32, 20_000, dtype=np.uint64).astype(np.uint32)
    values = bits.view(np.float32)
    values = values[np.isfinite(values)]
    for value in (*values, np.float32(0), np.float32(-0.0), np.float32(1e7), np.float32(3e-5)):
        text = number(value)
        assert re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?f", text)
        assert "." in text or "e" in text
        assert np.float32(text[:-1]).tobytes() == value.tobytes()
    with pytest.raises(InputError):
        number(np.inf)


def test_tables_of_nothing_are_c():
    assert "t[1]" in table("t", np.empty(0, np.int64))


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"name": "Int"}, "name"), ({"name": "int"}, "name"), ({"name": "a-b"}, "name"),
        ({"name": "a\n"}, "name"), ({"name": "x" * 32}, "name"), ({"name": "size_t"}, "name"),
        ({"pixel": "int8"}, "pixel"), ({"quantize": "int4"}, "examples"),
        ({"quantize": "int2"}, "quantize"),
    ],
)  # fmt: skip
def test_wrong_arguments(arguments, argument, classifier):
    with pytest.raises(InputError) as raised:
        c_program(classifier("patches"), **arguments)
    assert raised.value.argument == argument


def test_what_cannot_be_written(images):
    family = SourceClassifiers([lambda images: images.mean(axis=(1, 2))]).fit(images[0])
    model = CompactClassifier(family, np.ones((2, 1)), np.zeros(2), np.arange(2))
    with pytest.raises(InputError, match="sources"):
        c_program(model)
    empty = Pixels().fit(images[0]).take(np.empty(0, np.int64))
    with pytest.raises(InputError, match="no features"):
        c_program(CompactClassifier(empty, np.ones((2, 0)), np.zeros(2), np.arange(2)))
