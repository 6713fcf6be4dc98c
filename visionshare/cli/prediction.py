"""Commands that classify picture files, or write what a classifier takes them for."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from visionshare.cli.images import Images, PicturesAndTars, image_paths
from visionshare.cli.options import Classifier, Cluster, Jobs, Json, SkipPreprocessing
from visionshare.cli.outputs import (
    check_file,
    check_free,
    check_not_inputs,
    is_our_png,
    write_png,
)
from visionshare.cli.text import cell, one_line, portable, say
from visionshare.errors import DataError, InputError
from visionshare.machine.progress import stage

if TYPE_CHECKING:
    import numpy as np

    from visionshare.batch import Classified
    from visionshare.batch.resumed_file import ResumedFile
    from visionshare.classifier import CompactClassifier

_CSV_HEADER = "image,class,probability"
_VALUE_HEADER = "image,value"
# What files of each kind begin with.
_LABELS_HEADER = "image,labels"
_BEGINS: dict[str, tuple[str, ...]] = {
    ".csv": (_CSV_HEADER, _VALUE_HEADER, f"{_LABELS_HEADER}\n"),
    ".jsonl": ('{"image": ',),
}
_SOME_SKIPPED = 1
_ALL_SKIPPED = 2


def predict(
    classifier: Classifier,
    images: PicturesAndTars,
    threads: Jobs = -1,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL",
            help="Output .csv or .jsonl file, or s3://bucket/NAME.csv. Run the same command again "
            "to complete a stopped run. Files of other kinds are never overwritten.",
        ),
    ] = None,
    skip_preprocessing: SkipPreprocessing = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of known pictures that may be refused, if trained with --reject.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of most probable classes to write.")] = 1,
    as_json: Json = False,
    *,
    cluster: Cluster,
) -> None:
    """Classify images: print file, class and probability of each.

    Example: visionshare predict out/digits/classifier.safetensors scans/ --json

    Example: visionshare predict CLASSIFIER "s3://bucket/*.tar" --out classes.csv --workers 4

    A classifier of values (train --target) prints a value per image; one of several labels (train
    --labels) prints all labels above their thresholds.

    A classifier trained with --reject answers "unknown" for pictures of no class; the number is
    then the share of known pictures that look at least as strange.

    Images are preprocessed as in training (see "inspect"). Unreadable images are reported on
    standard error and skipped; the exit code is then 1, or 2 if none could be read. Workers of a
    cluster read the files themselves, so paths must be the same there.
    """
    from visionshare.answers import LabelRule
    from visionshare.batch import classify_files
    from visionshare.datasets import Preprocessing
    from visionshare.files.fingerprints import file_digest
    from visionshare.files.storage import check_takes_results, is_url

    form = "jsonl" if as_json else "text"
    if out is not None:
        suffix = os.path.splitext(out)[1]
        if suffix not in _BEGINS:
            raise InputError("--out", out, "a file .csv or .jsonl")
        if is_url(out):
            check_takes_results(out, "--out")
        else:
            check_file("--out", Path(out), *_BEGINS[suffix])
        form = suffix[1:]
    paths = image_paths(images, tars=True)
    model = _of_pictures(classifier)
    if skip_preprocessing:
        model = replace(model, preprocessing=Preprocessing())
    if threshold is not None:
        if model.unknown is None:
            accepted = "a classifier that refuses: trained with --reject 0.01"
            raise InputError("--threshold", threshold, accepted)
        if not 0 < threshold < 1:
            raise InputError("--threshold", threshold, "a share above 0 and below 1")
        model = replace(model, unknown=replace(model.unknown, reject=threshold))
    if model.answer is not None and top > 1:
        raise InputError("--top", top, "1 of a classifier that says values or several labels")
    kind = _ResultTable
    if model.answer is not None:
        kind = _LabelTable if isinstance(model.answer, LabelRule) else _ValueTable
    table = kind(model, min(top, len(model.classes_)))
    identity = f"{file_digest(classifier)} {form} {skip_preprocessing}"
    if threshold is not None or top > 1:
        identity += f" {threshold} {top}"
    with _results(out, identity, table.header) as file, cluster.mapper(threads) as mapper:
        parts = classify_files(model, file.remaining(paths), threads, mapper=mapper)
        _write_classes(file, parts, form, table, out is not None)
    read = file.counts.get("read", 0)
    broken = file.counts.get("broken", 0)
    if broken and not read:
        raise typer.Exit(_ALL_SKIPPED)
    if broken:
        say(f"error: {broken} of {read + broken} images skipped", err=True)
        raise typer.Exit(_SOME_SKIPPED)


def _of_pictures(path: Path) -> CompactClassifier:
    """Return a classifier of pictures."""
    from visionshare import load

    model = load(path)
    if model.picture_size is None:
        raise DataError(f"{path}: classifies vectors, not images")
    return model


def _write_classes(
    file: ResumedFile | _StandardOutput,
    parts: Iterable[Classified],
    form: str,
    table: _ResultTable,
    show_progress: bool,
) -> None:
    """Write the results, and name on standard error what could not be read."""
    from visionshare.datasets.notices import note_pages

    lines_of = {"text": table.text, "csv": table.csv, "jsonl": table.json}[form]
    # Results that are lines on the terminal say themselves how far it is.
    progress = stage("classifying pictures") if show_progress else nullcontext(lambda _: None)
    with progress as advance:
        for part in parts:
            for name, n_pages in part.left_out.items():
                # Another process may have read the picture.
                note_pages(name, n_pages)
            problems = [problem for problem in part.problems if problem is not None]
            read = len(part.paths) - len(problems)
            text = lines_of(table.rows(part))
            file.add(text, part.files, read=read, broken=len(problems))
            for problem in problems:
                say(f"error: {one_line(problem)}", err=True)
            advance(len(part.paths))


class _StandardOutput:
    """Standard output, as a file of results that is not resumed."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def remaining(self, inputs: Iterable[str]) -> Iterable[str]:
        return inputs

    def add(self, text: str, inputs: int, **counts: int) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
        self.counts.update(counts)


@contextmanager
def _results(
    out: str | None, identity: str, csv_header: str
) -> Iterator[ResumedFile | _StandardOutput]:
    """Yield standard output, or a file that appears when it is complete."""
    from visionshare.batch.resumed_file import resumed_file

    if out is None:
        yield _StandardOutput()
        return
    header = csv_header if out.endswith(".csv") else ""
    try:
        with resumed_file(out, identity, header) as file:
            if file.inputs:
                say(f"going on after {file.inputs} inputs", err=True)
            yield file
    except (FileNotFoundError, FileExistsError, NotADirectoryError, PermissionError) as error:
        raise InputError("--out", out, f"a file to write to ({error.strerror})") from None


class _Row(NamedTuple):
    """A picture's likeliest labels, its probabilities, and the share of known ones as strange."""

    path: str
    likeliest: list[tuple[Any, float]]
    probabilities: np.ndarray
    known: float | None


class _ResultTable:
    """Rows of results as lines of text, CSV or JSON."""

    def __init__(self, model: CompactClassifier, top: int) -> None:
        self.classes = model.classes_.tolist()
        self.rule = model.unknown
        self.answer: Any = model.answer
        self.top = top

    @property
    def header(self) -> str:
        """The first line of a CSV file."""
        more = (f",class_{i},probability_{i}" for i in range(2, self.top + 1))
        return _CSV_HEADER + "".join(more) + "\n"

    def rows(self, part: Classified) -> Iterator[_Row]:
        """Yield the row of each readable picture."""
        for i, (path, problem) in enumerate(zip(part.paths, part.problems, strict=True)):
            if problem is not None:
                continue
            probabilities = part.probabilities[i]
            # The first of equal ones.
            order = (-probabilities).argsort(kind="stable")[: self.top].tolist()
            likeliest = [(self.classes[k], float(probabilities[k])) for k in order]
            known = None if part.known is None else float(part.known[i])
            if known is not None and self.rule is not None and known < self.rule.reject:
                likeliest = [(self.rule.label, known), *likeliest][: self.top]
            yield _Row(path, likeliest, probabilities, known)

    def text(self, rows: Iterable[_Row]) -> str:
        """Return lines for people and simple tools."""
        lines = []
        for row in rows:
            parts = [f"{portable(str(label))}\t{p:.4f}" for label, p in row.likeliest]
            lines.append("\t".join([portable(row.path), *parts]) + "\n")
        return "".join(lines)

    def csv(self, rows: Iterable[_Row]) -> str:
        """Return lines of a table."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for row in rows:
            pairs = [(cell(label), f"{p:.6f}") for label, p in row.likeliest]
            writer.writerow([cell(row.path), *chain.from_iterable(pairs)])
        return text.getvalue()

    def json(self, rows: Iterable[_Row]) -> str:
        """Return a JSON object on each line."""
        names = list(map(str, self.classes))
        lines = []
        for row in rows:
            by_class = dict(zip(names, row.probabilities.round(6).tolist(), strict=True))
            record = {"image": row.path, "class": row.likeliest[0][0], "probabilities": by_class}
            if row.known is not None:
                record["known"] = float(f"{row.known:.3g}")
            if self.top > 1:
                record["top"] = [[label, round(p, 6)] for label, p in row.likeliest]
            lines.append(json.dumps(record) + "\n")
        return "".join(lines)


class _LabelTable(_ResultTable):
    """Rows of several labels, each with its probability."""

    @property
    def header(self) -> str:
        return _LABELS_HEADER + "\n"

    def rows(self, part: Classified) -> Iterator[_Row]:
        for row in super().rows(part):
            has = self.answer.has(row.probabilities).nonzero()[0].tolist()
            labels = [(self.classes[i], float(row.probabilities[i])) for i in has]
            yield row._replace(likeliest=labels)

    def csv(self, rows: Iterable[_Row]) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for row in rows:
            writer.writerow([cell(row.path), cell(";".join(label for label, _ in row.likeliest))])
        return text.getvalue()

    def json(self, rows: Iterable[_Row]) -> str:
        lines = []
        for row in rows:
            by_label = dict(zip(self.classes, row.probabilities.round(6).tolist(), strict=True))
            labels = [label for label, _ in row.likeliest]
            record = {"image": row.path, "labels": labels, "probabilities": by_label}
            lines.append(json.dumps(record) + "\n")
        return "".join(lines)


class _ValueTable(_ResultTable):
    """Rows of values."""

    @property
    def header(self) -> str:
        return _VALUE_HEADER + "\n"

    def _values(self, rows: Iterable[_Row]) -> Iterator[tuple[str, float]]:
        for row in rows:
            yield row.path, float(f"{self.answer.said(row.probabilities[None])[0]:.6g}")

    def text(self, rows: Iterable[_Row]) -> str:
        return "".join(f"{portable(path)}\t{value:g}\n" for path, value in self._values(rows))

    def csv(self, rows: Iterable[_Row]) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([cell(path), value] for path, value in self._values(rows))
        return text.getvalue()

    def json(self, rows: Iterable[_Row]) -> str:
        records = ({"image": path, "value": value} for path, value in self._values(rows))
        return "".join(json.dumps(record) + "\n" for record in records)


def prepare(
    classifier: Classifier,
    images: Images,
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Output folder for the preprocessed images (.png)."),
    ],
    raw: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Output file for their bytes, one image after the other: input of the exported C.",
        ),
    ] = None,
) -> None:
    """Write images as the classifier sees them, preprocessed.

    Example: visionshare prepare CLASSIFIER photo.jpg --out prepared --raw images.raw

    Only files of an earlier run are overwritten.
    """
    from PIL import Image

    from visionshare.batch.pictures import read_picture
    from visionshare.files.durable import make_folder, replace_file

    model = _of_pictures(classifier)
    paths = list(image_paths(images))
    made = [out / f"{name}.png" for name in _distinct([Path(path).stem for path in paths])]
    check_not_inputs("--out", made, [classifier, *paths])
    for target in made:
        check_free("--out", target, is_our_png(target))
    if raw is not None:
        check_file("--raw", raw, inputs=[classifier, *paths])
    try:
        make_folder(out)
        with ExitStack() as files:
            bytes_of_all = None
            if raw is not None:
                partial = files.enter_context(replace_file(raw))
                bytes_of_all = files.enter_context(open(partial, "wb"))
            for path, target in zip(paths, made, strict=True):
                image = read_picture(model, path)
                shape = image.shape[:2] if image.shape[2:] == (1,) else image.shape
                write_png(target, Image.fromarray(image.reshape(shape)))
                if bytes_of_all is not None:
                    bytes_of_all.write(image.tobytes())
                say(f"{portable(path)}\t{portable(str(target))}")
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        accepted = f"a folder to write to ({error.strerror})"
        raise InputError("--out", str(error.filename), accepted) from None


def _distinct(names: list[str]) -> list[str]:
    """Return names, those that were there before with numbers: "a", "a-2"."""
    taken: dict[str, None] = {}
    for name in names:
        free = name
        n = 1
        while free in taken:
            n += 1
            free = f"{name}-{n}"
        taken[free] = None
    return list(taken)
