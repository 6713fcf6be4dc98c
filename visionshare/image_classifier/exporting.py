"""From a fitted ImageClassifier to C, ONNX, TensorFlow Lite or a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from visionshare.classifier import CompactClassifier
from visionshare.datasets.intake import as_rasters
from visionshare.errors import InputError
from visionshare.files.durable import write_text
from visionshare.recipes.reading import parse_recipe
from visionshare.recipes.writing import toml_text

_FORMATS = ("c", "onnx", "tflite")


def exported(
    model: CompactClassifier, path: Path, format: str, calibrate: Any, n_jobs: int
) -> list[Path]:
    """Write a classifier, in integers where images calibrate; return the files."""
    from visionshare.export import (
        c_program,
        onnx_program,
        tflite_program,
        write_model,
        write_program,
    )

    if format not in _FORMATS:
        raise InputError("format", format, " or ".join(map(repr, _FORMATS)))
    options = dict[str, Any]()
    if calibrate is not None:
        model, options = _in_integers(model, calibrate, format, n_jobs)
    if format == "c":
        return write_program(c_program(model, **options), path, "path")
    program = onnx_program(model) if format == "onnx" else tflite_program(model)
    return [write_model(program, path, "path")]


def _in_integers(
    model: CompactClassifier, images: Any, format: str, n_jobs: int
) -> tuple[CompactClassifier, dict[str, Any]]:
    """Return the classifier in integers, or with options by which its C computes in them."""
    from visionshare.classifier import can_be_quantized, quantize
    from visionshare.export import c_program

    rasters = as_rasters(model.rasters(images))
    if can_be_quantized(model):
        return quantize(model, rasters, n_jobs=n_jobs), {}
    if c_program(model).score == "int32":
        # Learned in integers: nothing is rounded.
        return model, {}
    options: dict[str, Any] = {"quantize": "int8", "examples": rasters}
    if format != "c" or c_program(model, **options).score != "int32":
        given = f"images, for features {type(model.family).name!r}"
        raise InputError("calibrate", given, f"None: they have no integers in {format}")
    return model, options


def written_recipe(text: str, path: Path, source: str) -> Path:
    """Write a recipe with another source of its images; return the file."""
    recipe = parse_recipe(text)
    data = recipe.data.model_copy(update={"source": source})
    remark = text.splitlines()[0].removeprefix("# ")
    write_text(path, toml_text(recipe.model_copy(update={"data": data}), [remark]))
    return path
