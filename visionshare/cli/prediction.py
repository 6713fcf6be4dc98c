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
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.images import Images, PicturesAndTars, image_paths
from visionshare.cli.options import (
    Classifier,
    Jobs,
    Json,
    Scheduler,
    SkipPreprocessing,
    Workers,
)  # fmt: skip
from visionshare.cli.outputs import (
    check_file,
    check_free,
    check_not_inputs,
    is_our_png,
    write_png,
)  # fmt: skip
from visionshare.cli.text import cell, one_line, portable, say
from visionshare.errors import DataError, InputError
from visionshare.machine.progress import stage

if TYPE_CHECKING:
    import numpy as np

    from visionshare.batch import Classified
    from visionshare.batch.resumed_file import ResumedFile
    from visionshare.classifier import CompactClassifier
    from visionshare.cli.commands import Commands

__all__ = ["register"]

_FORMS = (".csv", ".jsonl")
_HEADERS = {".csv": "image,class,probability\n"}
_BEGINS = {**_HEADERS, ".jsonl": '{"image": '}
_SKIPPED = 1


def register(app: Commands) -> None:
    """Add the commands to the application."""
    app.command()(predict)
    app.command()(prepare)


def predict(
    classifier: Classifier,
    images: PicturesAndTars,
    jobs: Jobs = -1,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE|URL",
            help="A .csv or .jsonl file, or s3://bucket/NAME.csv; the same command completes a "
            "stopped run. A file of another kind is not replaced.",
        ),
    ] = None,
    skip_preprocessing: SkipPreprocessing = False,
    as_json: Json = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
) -> None:
    """Classify images; one line per image: file, class, probability."""
    from visionshare import load
    from visionshare.batch import classify_files
    from visionshare.datasets import Preprocessing
    from visionshare.distributed import cluster_client
    from visionshare.distributed.mapping import ClusterMap
    from visionshare.files.fingerprints import file_digest
    from visionshare.files.storage import check_takes_results, is_url
    from visionshare.machine.resources import resolve_jobs

    form = "json" if as_json else "text"
    if out is not None:
        suffix = os.path.splitext(out)[1]
        if suffix not in _FORMS:
            raise InputError("--out", out, "a file .csv or .jsonl")
        if is_url(out):
            check_takes_results(out, "--out")
        else:
            check_file("--out", Path(out), _BEGINS[suffix])
        form = suffix[1:]
    threads, paths = resolve_jobs(jobs, "--jobs"), image_paths(images, tars=True)
    model = load(classifier)
    _check(model, classifier)
    if skip_preprocessing:
        model = replace(model, preprocessing=Preprocessing())
    identity = f"{file_digest(classifier)} {form} {skip_preprocessing}"
    with _output(out, identity) as file, cluster_client(workers, scheduler, threads) as client:
        mapper = None if client is None else ClusterMap(client)
        parts = classify_files(model, file.remaining(paths), threads, mapper=mapper)
        _write_classes(file, parts, form, model.classes_.tolist(), out is not None)
    read, broken = file.counts.get("read", 0), file.counts.get("broken", 0)
    if broken:
        if read:
            say(f"error: {broken} of {read + broken} images skipped", err=True)
        raise typer.Exit(_SKIPPED if read else 2)


def _write_classes(
    file: ResumedFile | _Lines,
    parts: Iterable[Classified],
    form: str,
    classes: list[Any],
    show_progress: bool,
) -> None:
    """Write the results, and name on standard error what could not be read."""
    from visionshare.datasets.notices import note_pages

    # Where results are lines on the terminal, they say themselves how far it is.
    progress = stage("classifying pictures") if show_progress else nullcontext(_nothing)
    with progress as advance:
        for part in parts:
            for name, n_pages in part.left_out.items():
                # Another process may have read the picture.
                note_pages(name, n_pages)
            problems = [problem for problem in part.problems if problem is not None]
            read = len(part.paths) - len(problems)
            file.add(_LINES[form](part, classes), part.files, read=read, broken=len(problems))
            for problem in problems:
                say(f"error: {one_line(problem)}", err=True)
            advance(len(part.paths))


def _nothing(steps: int) -> None:
    """Count nothing."""


def _check(model: CompactClassifier, path: Path) -> None:
    if model.picture_size is None:
        raise DataError(f"{path}: classifies vectors, not images")


class _Lines:
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
def _output(out: str | None, identity: str) -> Iterator[ResumedFile | _Lines]:
    """Yield standard output, or a file that appears when it is complete."""
    from visionshare.batch.resumed_file import resumed_file

    if out is None:
        yield _Lines()
        return
    header = _HEADERS.get(os.path.splitext(out)[1], "")
    try:
        with resumed_file(out, identity, header) as file:
            if file.inputs:
                say(f"going on after {file.inputs} inputs", err=True)
            yield file
    except (FileNotFoundError, FileExistsError, NotADirectoryError, PermissionError) as error:
        raise InputError("--out", out, f"a file to write to ({error.strerror})") from None


def _rows(part: Classified, classes: list[Any]) -> Iterator[tuple[str, Any, np.ndarray, int]]:
    """Yield path, class, probabilities and index of the class for each readable picture."""
    best = part.probabilities.argmax(axis=1)
    for path, probabilities, k, problem in zip(
        part.paths, part.probabilities, best, part.problems, strict=True
    ):
        if problem is None:
            yield path, classes[k], probabilities, int(k)


def _text_lines(part: Classified, classes: list[Any]) -> str:
    rows = _rows(part, classes)
    return "".join(
        f"{portable(path)}\t{portable(str(name))}\t{probabilities[k]:.4f}\n"
        for path, name, probabilities, k in rows
    )


def _csv_lines(part: Classified, classes: list[Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for path, name, probabilities, k in _rows(part, classes):
        writer.writerow([cell(path), cell(name), f"{probabilities[k]:.6f}"])
    return text.getvalue()


def _json_lines(part: Classified, classes: list[Any]) -> str:
    names = list(map(str, classes))
    records = (
        {
            "image": path,
            "class": name,
            "probabilities": dict(zip(names, probabilities.round(6).tolist(), strict=True)),
        }
        for path, name, probabilities, _ in _rows(part, classes)
    )
    return "".join(json.dumps(record) + "\n" for record in records)


_LINES = {"text": _text_lines, "csv": _csv_lines, "json": _json_lines, "jsonl": _json_lines}


def prepare(
    classifier: Classifier,
    images: Images,
    out: Annotated[Path, typer.Option("--out", help="Folder of the preprocessed images (.png).")],
    raw: Annotated[
        Path | None,
        typer.Option("--raw", help="File of their bytes, concatenated: input of the exported C."),
    ] = None,
) -> None:
    """Write images as the classifier takes them, after its preprocessing."""
    # Example: visionshare prepare CLASSIFIER photo.jpg --out prepared --raw images.raw Files that
    # an earlier run wrote are replaced, and no others.
    from PIL import Image

    from visionshare import load
    from visionshare.batch.pictures import read_picture
    from visionshare.files.durable import make_folder, replace_file

    model = load(classifier)
    _check(model, classifier)
    paths, taken = list(image_paths(images)), set[str]()
    made = [out / f"{_free_name(Path(path).stem, taken)}.png" for path in paths]
    check_not_inputs("--out", made, [classifier, *paths])
    for target in made:
        check_free("--out", target, is_our_png(target))
    if raw is not None:
        check_file("--raw", raw)
        check_not_inputs("--raw", [raw], [classifier, *paths])
    try:
        make_folder(out)
        with ExitStack() as files:
            bytes_of_all = None
            if raw is not None:
                bytes_of_all = files.enter_context(
                    open(files.enter_context(replace_file(raw)), "wb")
                )
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


def _free_name(stem: str, taken: set[str]) -> str:
    """Return a name that no other picture has got, and take it."""
    name, n = stem, 1
    while name in taken:
        n += 1
        name = f"{stem}-{n}"
    taken.add(name)
    return name
