"""Labels of pictures: which are probably wrong, and which pictures to label next."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from visionshare.cli.images import Images, image_paths
from visionshare.cli.options import Classifier
from visionshare.cli.outputs import check_file
from visionshare.cli.text import cell, say
from visionshare.errors import DataError, InputError

if TYPE_CHECKING:
    import numpy as np

    from visionshare.datasets.pictures.preparation import Preparation
    from visionshare.datasets.readers.picture_set import PictureSet

_HEADER = "path,label,suggested,probability"
_SHOWN = 200
Row = tuple[str, str, str, float]


def check_labels(
    pictures: PictureSet, made: Preparation, name: str, jobs: int, groups: np.ndarray | None
) -> list[str]:
    """Write a table and a gallery of doubtful labels; return lines that say what is in them."""
    from visionshare.datasets.copies import groups_of_copies, joined_groups
    from visionshare.datasets.pictures.reading import read_pictures
    from visionshare.recipes.wrong_labels import doubtful_labels
    from visionshare.reports.gallery import GALLERY_BEGINS, GalleryTile, write_gallery

    table = Path(f"{name}-labels.csv")
    page = Path(f"{name}-labels.html")
    check_file("--labels", table, _HEADER)
    check_file("--labels", page, GALLERY_BEGINS)
    read = read_pictures(
        pictures, made.size, made.mode, made.preprocessing, skip_broken=True, n_jobs=jobs
    )
    labels = pictures.labels[read.numbers]
    kept = None
    if groups is not None:
        kept = joined_groups(groups_of_copies(read.images), groups[read.numbers])
    found = doubtful_labels(read.images, labels, kept, n_jobs=jobs)
    best = found.probabilities.argmax(axis=1)
    present = sorted(set(labels.tolist()))
    rows: list[Row] = []
    for i in found.order.tolist():
        suggested = pictures.classes[present[best[i]]]
        probability = float(found.probabilities[i, best[i]])
        rows.append((read.names[i], pictures.classes[labels[i]], suggested, probability))
    doubted = found.order[: found.n_doubted].tolist()
    tiles = [
        GalleryTile(read.images[i], f"{row[1]}? {row[2]} {100 * row[3]:.0f} %", Path(row[0]).name)
        for i, row in zip(doubted[:_SHOWN], rows, strict=False)
    ]
    about = (
        f"{found.n_doubted} of {len(rows)} labels are doubtful: classifiers that were not trained "
        "on these pictures predict the second class."
    )
    write_gallery(page, f"Labels of {name}", about, tiles)
    _write_table(table, rows)
    next_step = "its pictures are in no files of their own"
    if pictures.kind == "files":
        next_step = f"correct the column label, then: {_next_step(table, read.names)}"
    return [
        f"labels       {found.n_doubted} of {len(rows)} are doubtful",
        f"             {page} shows them; {table} lists all, the most doubtful first",
        f"             {next_step}",
    ]


def _root(table: Path) -> Path:
    return table.resolve().parent


def _next_step(table: Path, names: Iterable[str]) -> str:
    """Return the command that trains from a table, which has to lie above its pictures."""
    root = _root(table)
    if all(Path(os.path.abspath(name)).is_relative_to(root) for name in names):
        return f"visionshare train {table}"
    return "write it again in a folder above the pictures, which train asks for"


def _write_table(path: Path, rows: Iterable[Row]) -> None:
    """Write paths relative to the table where they lie below it: so it can be trained from."""
    from visionshare.files.durable import write_text

    root = _root(path)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADER.split(","))
    for name, label, suggested, probability in rows:
        place = Path(os.path.abspath(name))
        shown = place.relative_to(root).as_posix() if place.is_relative_to(root) else str(place)
        writer.writerow([cell(shown), cell(label), cell(suggested), f"{probability:.4f}"])
    write_text(path, text.getvalue())


def suggest(
    classifier: Classifier,
    images: Images,
    count: Annotated[int, typer.Option(min=1, help="Number of pictures.")] = 50,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="Table to write (.csv). A gallery (.html) is written beside it."
        ),
    ] = Path("suggested.csv"),
) -> None:
    """Suggest pictures to label next: uncertain ones that differ from each other.

    Example: visionshare suggest CLASSIFIER new/ --count 50

    The table contains the predicted labels. Correct them, then train from the table.
    """
    import numpy as np

    from visionshare import load
    from visionshare.batch.pictures import read_picture
    from visionshare.batch.suggestions import suggested
    from visionshare.class_labels import class_names
    from visionshare.datasets.intake import as_rasters
    from visionshare.reports.gallery import GALLERY_BEGINS, GalleryTile, write_gallery

    page = out.with_suffix(".html")
    check_file("--out", out, _HEADER, suffix=".csv")
    check_file("--out", page, GALLERY_BEGINS)
    model = load(classifier)
    if model.answer is not None:
        raise InputError("CLASSIFIER", str(classifier), "a classifier of classes")
    paths = []
    rasters = []
    for path in image_paths(images):
        try:
            rasters.append(read_picture(model, path))
        except DataError as error:
            say(f"error: {error}", err=True)
            continue
        paths.append(str(path))
    if not paths:
        raise InputError("IMAGES", "none that can be read", "pictures")
    seen = as_rasters(np.stack(rasters))
    probabilities = model.predict_proba(seen)
    chosen = suggested(probabilities, model.family.transform(seen), count).tolist()
    names = class_names(model.classes)
    rows: list[Row] = []
    for i in chosen:
        best = int(probabilities[i].argmax())
        rows.append((paths[i], names[best], names[best], float(probabilities[i, best])))
    _write_table(out, rows)
    tiles = [
        GalleryTile(seen[i], f"{row[1]} {100 * row[3]:.0f} %", Path(row[0]).name)
        for i, row in zip(chosen, rows, strict=True)
    ]
    about = f"{len(chosen)} of {len(paths)} pictures that the classifier would learn most from."
    write_gallery(page, "Label these next", about, tiles)
    for row in rows:
        say("\t".join([row[0], row[1], f"{row[3]:.4f}"]))
    chosen_paths = [row[0] for row in rows]
    next_step = _next_step(out, chosen_paths)
    say(f"{out} and {page} are written; correct the labels, then: {next_step}", err=True)
