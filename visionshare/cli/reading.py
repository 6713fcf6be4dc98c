"""The command that reads pages of print."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from visionshare.cli.images import Images, image_paths
from visionshare.cli.options import Jobs, classifier_file
from visionshare.cli.outputs import (
    check_file,
    check_free,
    check_not_inputs,
    is_our_hocr,
    is_our_json,
    is_our_png,
    is_our_text,
    write_png,
)
from visionshare.cli.text import say
from visionshare.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from visionshare.cli.commands import Commands
    from visionshare.reading import Page

__all__ = ["register"]


def register(app: Commands) -> None:
    """Add the command to the application."""
    app.command()(read)


def read(
    classifier: Annotated[
        Path, typer.Argument(help="A classifier of characters.", callback=classifier_file)
    ],
    pages: Images,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for .txt, .json, .hocr and .png of each.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write JSON: boxes, confidences.")
    ] = False,
    hocr: Annotated[Path | None, typer.Option("--hocr", help="Write hOCR, of one page.")] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Write the boxes, a .png, of one page.")
    ] = None,
    deskew: Annotated[bool, typer.Option(help="Rotate skewed pages upright.")] = True,
    context: Annotated[
        bool, typer.Option(help="Tell 0 from O and 1 from I by their line and word.")
    ] = True,
    jobs: Jobs = -1,
) -> None:
    """Read pages of print: text on standard output, or files in a folder."""
    # Of files with several pages (TIFF) or frames all are read. Example: visionshare read
    # out/ocr/classifier.safetensors page.png --picture boxes.png Example: visionshare read
    # out/ocr/classifier.safetensors scans/ --out read/ The classifier comes from `visionshare
    # train ocr`: digits and capitals. Punctuation is ignored. In the folder, files that an
    # earlier run wrote are replaced, and no others.
    from visionshare import load
    from visionshare.datasets.decoding import decode_pages
    from visionshare.datasets.opening import open_picture
    from visionshare.machine.resources import resolve_jobs
    from visionshare.reading.page_reader import check_reader, read_page
    from visionshare.reading.writers import as_hocr
    from visionshare.reading.writers import as_json as to_json

    threads = resolve_jobs(jobs, "--jobs")
    if picture is not None and picture.suffix.lower() != ".png":
        raise InputError("--picture", str(picture), "a .png file")
    paths = list(image_paths(pages))
    numbers = [open_picture(path).n_pages for path in paths]
    for option, value in (("--hocr", hocr), ("--picture", picture)):
        if value is not None and sum(numbers) != 1:
            raise InputError(option, f"{sum(numbers)} pages", "one page; --out takes any number")
    names = [Path(path).stem for path in paths]
    inputs: list[str | Path] = [classifier, *paths]
    if out is not None:
        names_of_pages = [
            _name_of_page(name, number, n)
            for name, n in zip(names, numbers, strict=True)
            for number in range(1, n + 1)
        ]
        _check_names(names_of_pages)
        _check_files(out, names_of_pages, inputs)
    for option, file in (("--hocr", hocr), ("--picture", picture)):
        if file is not None:
            check_file(option, file)
            check_not_inputs(option, [file], inputs)
    model = load(classifier)
    check_reader(model)
    for path, n_pages, name in zip(paths, numbers, names, strict=True):
        pages_of_file = decode_pages(path, background=255)
        for number, gray in enumerate(pages_of_file, 1):
            page = read_page(model, gray, deskew, context, threads)
            several = n_pages > 1
            shown = f"{path} page {number}" if several else path
            if out is not None:
                _write_all(out, _name_of_page(name, number, n_pages), shown, gray, page)
            if hocr is not None:
                _write(hocr, as_hocr(page, Path(path).name))
            if picture is not None:
                _write_picture(picture, gray, page)
            if as_json:
                say(to_json(page, shown), nl=False)
            elif out is None:
                if several or len(paths) > 1:
                    say(f"# {shown}")
                say(page.text)
            else:
                text = out / _name_of_page(name, number, n_pages)
                say(f"{text}.txt  {len(page.characters)} characters")


def _name_of_page(name: str, number: int, n_pages: int) -> str:
    """Return the name of a page's files: the picture's, with a number where it has several."""
    return f"{name}-{number}" if n_pages > 1 else name


def _check_names(names: list[str]) -> None:
    """Check that pages differ in their names; otherwise one would overwrite another's files."""
    for name, n in Counter(names).items():
        if n > 1:
            raise InputError("--out", f"several pages named {name!r}", "pages of different names")


def _files(out: Path, name: str) -> list[Path]:
    """Return the files of a page: text, JSON, hOCR and picture."""
    return [out / f"{name}{end}" for end in (".txt", ".json", ".hocr", ".png")]


def _check_files(out: Path, names: list[str], inputs: list[str | Path]) -> None:
    """Check that the files of pages replace nothing but those of an earlier run."""
    check_not_inputs("--out", [path for name in names for path in _files(out, name)], inputs)
    for name in names:
        text, page, hocr, picture = _files(out, name)
        check_free("--out", page, is_our_json(page))
        check_free("--out", text, is_our_text(text, page))
        check_free("--out", hocr, is_our_hocr(hocr))
        check_free("--out", picture, is_our_png(picture))


def _write_all(out: Path, name: str, path: str, gray: np.ndarray, page: Page) -> None:
    from visionshare.reading.writers import as_hocr, as_json

    in_text, in_json, in_hocr, in_picture = _files(out, name)
    # The text is known for a page's by its JSON, which is there first.
    _write(in_json, as_json(page, path))
    _write(in_text, page.text + "\n" if page.text else "")
    _write(in_hocr, as_hocr(page, Path(path).name))
    _write_picture(in_picture, gray, page)


def _write(path: Path, text: str) -> None:
    from visionshare.files.durable import write_text

    write_text(path, text)


def _write_picture(path: Path, gray: np.ndarray, page: Page) -> None:
    from PIL import Image

    from visionshare.reading.writers import as_picture

    write_png(path, Image.fromarray(as_picture(gray, page)))
