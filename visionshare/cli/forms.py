"""The form that a classifier is exported in: options of `export` and `measure` alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.listing import completes
from visionshare.cli.options import DataFolder
from visionshare.errors import InputError
from visionshare.errors.names import choices

if TYPE_CHECKING:
    import numpy as np

    from visionshare.classifier import CompactClassifier
    from visionshare.export import CProgram, OnnxProgram, TfliteProgram

_QUANTIZE = ("auto", "none", "int16", "int8", "int4")
# Random images where a classifier takes no pictures.
_N_RANDOM = 1000


@dataclass(frozen=True)
class Form:
    """Form."""

    quantize: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="none, int16, int8, int4 or auto: int8 in C if everything can then be computed in "
            "integers, otherwise none.",
        ),
    ] = "auto"
    calibrate: Annotated[
        str | None,
        typer.Option(
            metavar="IMAGES",
            help="Training images that set the ranges for int8 and int4: a name of the catalog, a "
            "folder or a file. Networks need them to compute in integers.",
            autocompletion=completes("datasets"),
        ),
    ] = None
    data: DataFolder = None
    pixel: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE",
            help="Pixel type: uint8 or float32. Default: uint8, for vectors float32.",
        ),
    ] = None
    rounds: Annotated[
        int | None, typer.Option(help="Use only the features of the first N training rounds.")
    ] = None
    early_exit: Annotated[
        bool,
        typer.Option(
            "--early-exit",
            help="In C: stop early on easy images, using the classifier's exit rule.",
        ),
    ] = False

    def check(self, to: str) -> None:
        """Check that the options go together, before a file is read."""
        as_model = to in ("onnx", "tflite")
        if self.quantize not in _QUANTIZE:
            raise InputError("--quantize", self.quantize, choices(self.quantize, _QUANTIZE))
        if as_model and self.quantize == "int16":
            raise InputError("--quantize", self.quantize, f"'none', 'int8' or 'int4' with {to}")
        if as_model and self.early_exit:
            raise InputError("--early-exit", "set", f"C; for {to}, --rounds")
        needs_examples = self.quantize == "int4" or (as_model and self.quantize == "int8")
        if needs_examples and self.calibrate is None:
            accepted = f"training images, with --quantize {self.quantize}"
            raise InputError("--calibrate", None, accepted)
        if self.calibrate is not None and self.quantize in ("none", "int16"):
            raise InputError("--calibrate", self.calibrate, "nothing without int8 or int4")

    def load(self, file: Path) -> CompactClassifier:
        """Return the classifier of a file, after as many rounds as are asked for."""
        from visionshare import load

        classifier = load(file)
        if self.rounds is None:
            return classifier
        if not classifier.path:
            raise InputError("--rounds", self.rounds, "no rounds: this classifier has no path")
        return classifier.at(self.rounds)

    def c_program(
        self,
        classifier: CompactClassifier,
        name: str = "classifier",
        probabilities: bool = False,
        blob: bool = False,
    ) -> tuple[CompactClassifier, CProgram]:
        """Return the classifier that is exported and its C, in the arithmetic that is asked for."""
        from visionshare.export import c_program

        def written(quantize: str) -> CProgram:
            return c_program(
                classifier,
                name,
                self.pixel,
                quantize,
                probabilities,
                self.early_exit,
                examples,
                blob=blob,
            )

        # 1) Networks become integers on examples.
        examples = self._examples(classifier)
        if examples is not None and self.pixel != "float32" and not self.early_exit:
            integers = self._in_integers(classifier, examples)
            if integers is not None:
                classifier = integers
                examples = None
                return classifier, written("none")
        # 2) Other families have tables of integers, where these are asked for.
        if self.quantize != "auto":
            return classifier, written(self.quantize)
        # 3) Where all is then computed in integers, they are the better choice on any core.
        program = written("none")
        if program.score == "float32":
            rounded = written("int8")
            program = rounded if rounded.score == "int32" else program
        return classifier, program

    def model_program(
        self, classifier: CompactClassifier, to: str, name: str = "classifier", **options: Any
    ) -> OnnxProgram | TfliteProgram:
        """Return the model for ONNX or TensorFlow Lite, in integers where examples are given."""
        from visionshare.export import onnx_program, tflite_program

        examples = self._examples(classifier)
        if examples is not None:
            integers = self._in_integers(classifier, examples)
            if integers is None:
                accepted = f"nothing: the features of this classifier have no integers in {to}"
                raise InputError("--calibrate", type(classifier.family).name, accepted)
            classifier = integers
        if to == "tflite":
            return tflite_program(classifier, name, self.pixel)
        return onnx_program(classifier, name, self.pixel, **options)

    def _examples(self, classifier: CompactClassifier) -> np.ndarray | None:
        from visionshare.cli.images import labeled_images

        if self.calibrate is None:
            return None
        return labeled_images(classifier, self.calibrate, self.data, "train").images

    def _in_integers(
        self, classifier: CompactClassifier, examples: np.ndarray
    ) -> CompactClassifier | None:
        """Return the classifier in integers; None where its features have none."""
        from visionshare.classifier import can_be_quantized, quantize

        if not can_be_quantized(classifier):
            return None
        return quantize(classifier, examples, 4 if self.quantize == "int4" else 8)


def sample_images(
    classifier: CompactClassifier,
    pixel: str,
    source: str | None = None,
    data: Path | None = None,
    most: int | None = None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return images as an export takes them, and their classes' indices where these are known."""
    import numpy as np

    from visionshare.cli.images import labeled_images
    from visionshare.datasets.intake import as_rasters

    labels: np.ndarray | None = None
    if source is None:
        images = _digits_as_pictures(classifier)
    elif len(classifier.image_shape) == 1:
        raise InputError("IMAGES", source, "nothing: examples are vectors")
    else:
        found = labeled_images(classifier, source, data, "test")
        images = found.images
        labels = found.labels
    if most is not None and most < len(images):
        # Evenly drawn: folders are often sorted by class.
        chosen = np.linspace(0, len(images) - 1, most).astype(np.int64)
        images = images[chosen]
        labels = None if labels is None else labels[chosen]
    if pixel == "float32":
        largest = np.float32(255 if images.dtype == np.uint8 else 1)
        images = images.astype(np.float32) / largest
    return as_rasters(images), labels


def _digits_as_pictures(classifier: CompactClassifier) -> np.ndarray:
    """Return the bundled digits as a classifier takes pictures; noise where it takes none."""
    import numpy as np

    from visionshare.datasets import load_dataset

    shape = classifier.image_shape
    if len(shape) == 1 or shape[2:] not in ((), (1,), (3,)):
        rng = np.random.default_rng(0)
        return rng.integers(0, 256, (_N_RANDOM, *shape), dtype=np.uint8)
    digits = load_dataset("digits", "test").images
    if shape[2:] == (3,):
        digits = np.repeat(digits[..., None], 3, axis=-1)
    size = (shape[0], shape[1])
    rasters = [classifier.preprocessing.apply(digit, size) for digit in digits]
    return np.stack(rasters).reshape(len(rasters), *shape)
