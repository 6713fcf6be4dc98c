"""The command that reads pages of print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from visionshare.cli.images import Images, image_paths
from visionshare.cli.options import Jobs
from visionshare.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from visionshare.apps.ocr import Page

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(read)


def read(
    classifier: Annotated[Path, typer.Argument(help="A classifier of characters.")],
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
    """Read pages of print: text on standard output, or files in a folder.

    Example: visionshare read out/ocr/classifier.safetensors page.png --picture boxes.png

    Example: visionshare read out/ocr/classifier.safetensors scans/ --out read/

    The classifier comes from `visionshare train ocr`: digits and capitals. Punctuation is ignored.
    """
    from visionshare import load
    from visionshare.apps.ocr.reading import check_reader, read_page
    from visionshare.apps.ocr.writers import as_hocr
    from visionshare.apps.ocr.writers import as_json as to_json
    from visionshare.datasets.folders import read_image
    from visionshare.resources import resolve_jobs

    threads = resolve_jobs(jobs, "--jobs")
    if picture is not None and picture.suffix.lower() != ".png":
        raise InputError("--picture", str(picture), "a .png file")
    paths = list(image_paths(pages))
    for name, value in (("--hocr", hocr), ("--picture", picture)):
        if value is not None and len(paths) != 1:
            raise InputError(name, f"{len(paths)} pages", "one page; --out takes any number")
    names = _names(paths) if out is not None else []
    model = load(classifier)
    check_reader(model)
    for i, path in enumerate(paths):
        gray = read_image(path, background=255)
        page = read_page(model, gray, deskew, context, threads)
        if out is not None:
            _write_all(out, names[i], path, gray, page)
        if hocr is not None:
            _write(hocr, as_hocr(page, Path(path).name))
        if picture is not None:
            _write_picture(picture, gray, page)
        if as_json:
            typer.echo(to_json(page, path), nl=False)
        elif out is None:
            if len(paths) > 1:
                typer.echo(f"# {path}")
            typer.echo(page.text)
        else:
            typer.echo(f"{out / names[i]}.txt  {len(page.characters)} characters")


def _names(paths: list[str]) -> list[str]:
    """Return the names of the pages' files; images of one name would overwrite each other's."""
    names = [Path(path).stem for path in paths]
    for name in names:
        if names.count(name) > 1:
            raise InputError("--out", f"several pages named {name!r}", "pages of different names")
    return names


def _write_all(out: Path, name: str, path: str, gray: np.ndarray, page: Page) -> None:
    from visionshare.apps.ocr.writers import as_hocr, as_json

    _write(out / f"{name}.txt", page.text + "\n" if page.text else "")
    _write(out / f"{name}.json", as_json(page, path))
    _write(out / f"{name}.hocr", as_hocr(page, Path(path).name))
    _write_picture(out / f"{name}.png", gray, page)


def _write(path: Path, text: str) -> None:
    from visionshare.durable import write_text

    write_text(path, text)


def _write_picture(path: Path, gray: np.ndarray, page: Page) -> None:
    from PIL import Image

    from visionshare.apps.ocr.writers import as_picture
    from visionshare.durable import replace_file

    with replace_file(path) as partial:
        Image.fromarray(as_picture(gray, page)).save(partial, format="png")
