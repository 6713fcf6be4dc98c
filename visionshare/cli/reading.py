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

if TYPE_CHECKING:
    import numpy as np

    from visionshare.reading import Page

__all__ = ["read"]

# A text is known for a page's by its JSON, which comes first.
_ENDINGS = (".json", ".txt", ".hocr", ".png")


def read(
    classifier: Annotated[
        Path, typer.Argument(help="A classifier of characters.", callback=classifier_file)
    ],
    pages: Images,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for .txt, .json, .hocr and .png of each page."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write JSON: boxes, confidences.")
    ] = False,
    deskew: Annotated[bool, typer.Option(help="Rotate skewed pages upright.")] = True,
    context: Annotated[
        bool, typer.Option(help="Tell 0 from O and 1 from I by their line and word.")
    ] = True,
    jobs: Jobs = -1,
) -> None:
    """Read pages of print, as text or into files.

    Of files with several pages (TIFF) or frames all are read.

    Example: visionshare read out/ocr/classifier.safetensors page.png

    Example: visionshare read out/ocr/classifier.safetensors scans/ --out read/

    The classifier comes from `visionshare train ocr`: digits and capitals. Punctuation is ignored.
    In the folder, files that an earlier run wrote are replaced, and no others.
    """
    from visionshare import load
    from visionshare.datasets.decoding import decode_pages
    from visionshare.datasets.opening import open_picture
    from visionshare.machine.resources import resolve_jobs
    from visionshare.reading.page_reader import check_reader, read_page
    from visionshare.reading.writers import as_json as to_json

    threads = resolve_jobs(jobs, "--jobs")
    paths = list(image_paths(pages))
    # Names of the pages of each file; with numbers where a file has several.
    names: list[list[str]] = []
    for path in paths:
        stem = Path(path).stem
        n = open_picture(path).n_pages
        names.append([stem] if n == 1 else [f"{stem}-{i}" for i in range(1, n + 1)])
    if out is not None:
        _check_files(out, list(chain(*names)), [classifier, *paths])
    model = load(classifier)
    check_reader(model)
    n_pages = sum(map(len, names))
    for path, names_of_file in zip(paths, names, strict=True):
        decoded = decode_pages(path, background=255)
        for number, (name, gray) in enumerate(zip(names_of_file, decoded, strict=True), 1):
            page = read_page(model, gray, deskew, context, threads)
            shown = path if len(names_of_file) == 1 else f"{path} page {number}"
            if out is not None:
                _write_page(out / name, shown, gray, page)
            if as_json:
                say(to_json(page, shown), nl=False)
            elif out is not None:
                say(f"{out / name}.txt  {len(page.characters)} characters")
            else:
                if n_pages > 1:
                    say(f"# {shown}")
                say(page.text)


def _files(page: Path) -> list[Path]:
    """Return the files of a page: JSON, text, hOCR and picture."""
    return [page.with_name(page.name + ending) for ending in _ENDINGS]


def _check_files(out: Path, names: list[str], inputs: list[str | Path]) -> None:
    """Check that pages differ in their names, and replace no files but those of an earlier run."""
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
