"""The command that reads pages of print."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from visionshare.cli.images import Images, image_paths
from visionshare.cli.options import Jobs, classifier_file
from visionshare.cli.outputs import check_free, check_not_inputs, is_our_page, write_png
from visionshare.cli.text import say
from visionshare.errors import InputError
from visionshare.errors.names import choices

if TYPE_CHECKING:
    import numpy as np

    from visionshare.reading import Page

# A text is known for a page's by its JSON, which comes first.
_ENDINGS = (".json", ".txt", ".hocr", ".png")


def read(
    pages: Images,
    classifier: Annotated[
        Path,
        typer.Option(
            metavar="NAME|FILE",
            help="Character classifier: a file, or a name of `visionshare models`.",
            callback=classifier_file,
        ),
    ] = Path("reader"),
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Output folder for the .txt, .json, .hocr and .png files of each page.",
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format", metavar="FORMAT", help="Output format: text, json, hocr, alto or tsv."
        ),
    ] = "text",
    characters: Annotated[
        str | None,
        typer.Option(
            metavar="SET",
            help="Allowed characters, such as 0123456789., or a set: digits, capitals, letters, "
            "serial, date, amount, hex.",
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="Accept only text that fits a mask (AA-9999) or a regular expression.",
        ),
    ] = None,
    deskew: Annotated[bool, typer.Option(help="Straighten tilted pages.")] = True,
    context: Annotated[
        bool, typer.Option(help="Use the line and word to tell 0 from O and 1 from I.")
    ] = True,
    threads: Jobs = -1,
) -> None:
    """Read fields and pages of print, as text or into files.

    All pages or frames of a file (TIFF, PDF) are read.

    Example: visionshare read page.png

    Example: visionshare read meter.jpg --characters digits --format json

    Example: visionshare read labels/ --pattern AA-9999

    Meant for fields, with their punctuation; for prose use Tesseract. JSON output has one object
    per line of text. In the output folder, only files of an earlier run are overwritten.
    """
    from visionshare import load
    from visionshare.reading.page_reader import PageReader
    from visionshare.reading.pages import gray_pages, n_pages_of
    from visionshare.reading.writers import FORMATS

    if form not in FORMATS:
        raise InputError("--format", form, choices(form, FORMATS))
    reader = PageReader(load(classifier), characters, pattern, deskew, context, threads)
    paths = list(image_paths(pages))
    # Names of the pages of each file; with numbers where a file has several.
    names: list[list[str]] = []
    for path in paths:
        stem = Path(path).stem
        n = n_pages_of(path)
        names.append([stem] if n == 1 else [f"{stem}-{i}" for i in range(1, n + 1)])
    if out is not None:
        _check_files(out, list(chain(*names)), [classifier, *paths])
    n_pages = sum(map(len, names))
    n_read = 0
    for path, names_of_file in zip(paths, names, strict=True):
        for number, (name, gray) in enumerate(zip(names_of_file, gray_pages(path), strict=True), 1):
            page = reader.read(gray)
            n_read += 1
            shown = path if len(names_of_file) == 1 else f"{path} page {number}"
            if page.note:
                say(f"note: {shown}: {page.note}", err=True)
            if out is not None:
                _write_page(out / name, shown, gray, page)
            if out is not None and form == "text":
                say(f"{out / name}.txt  {len(page.characters)} characters")
                continue
            if n_pages > 1 and form == "text":
                say(f"# {shown}")
            say(_formatted(page, form, path, number, n_read == 1), nl=form == "text")


def _formatted(page: Page, form: str, path: str, number: int, is_first: bool) -> str:
    from visionshare.reading import writers

    if form == "json":
        return writers.as_lines(page, path, number)
    if form == "tsv":
        return writers.as_tsv(page, number, header=is_first)
    if form == "hocr":
        return writers.as_hocr(page, Path(path).name)
    return writers.as_alto(page, Path(path).name) if form == "alto" else page.text


def _files(page: Path) -> list[Path]:
    """Return the files of a page: JSON, text, hOCR and picture."""
    return [page.with_name(page.name + ending) for ending in _ENDINGS]


def _check_files(out: Path, names: list[str], inputs: list[str | Path]) -> None:
    """Check that pages differ in their names, and replace only files of an earlier run."""
    for name, n in Counter(names).items():
        if n > 1:
            raise InputError("--out", f"several pages named {name!r}", "pages of different names")
    files = [file for name in names for file in _files(out / name)]
    check_not_inputs("--out", files, inputs)
    for file in files:
        check_free("--out", file, is_our_page(file))


def _write_page(place: Path, shown: str, gray: np.ndarray, page: Page) -> None:
    from PIL import Image

    from visionshare.files.durable import write_text
    from visionshare.reading.writers import as_hocr, as_json, as_picture

    in_json, in_text, in_hocr, in_picture = _files(place)
    write_text(in_json, as_json(page, shown))
    write_text(in_text, page.text + "\n" if page.text else "")
    write_text(in_hocr, as_hocr(page, Path(shown).name))
    write_png(in_picture, Image.fromarray(as_picture(gray, page)))
