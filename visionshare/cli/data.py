"""Commands of the data catalog."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.commands import Commands
from visionshare.cli.images import files_of
from visionshare.cli.listing import completes
from visionshare.cli.options import Color, DataFolder, ImageSize, Jobs, Json, image_size
from visionshare.cli.outputs import check_file, is_our_png, write_png
from visionshare.cli.text import say

if TYPE_CHECKING:
    from visionshare.datasets.pictures.checking import PictureCheck

app = Commands("data", "Check pictures; list, verify and fetch data sets.")

Name = Annotated[
    str,
    typer.Argument(
        help="Name of a data set, see `visionshare data list`.",
        autocompletion=completes("datasets", paths=False),
    ),
]


@app.command("list")
def list_all() -> None:
    """List the data sets of the catalog.

    Example: visionshare data list
    """
    from visionshare.datasets import dataset_info, list_datasets

    for name in list_datasets():
        say(f"{name:16} {dataset_info(name).title}")


@app.command()
def info(name: Name) -> None:
    """Show a data set's origin, license and files.

    Example: visionshare data info mnist
    """
    from visionshare.datasets import dataset_info

    say(json.dumps(dataset_info(name).model_dump(), indent=2, ensure_ascii=False))


@app.command()
def verify(name: Name, data: DataFolder = None) -> None:
    """Check the sha256 of a data set's files.

    Example: visionshare data verify mnist --data ~/data
    """
    from visionshare.datasets import verify_dataset

    states = verify_dataset(name, data)
    for path, state in states.items():
        say(f"{state:8} {path}")
    if not states:
        say(f"{name} has no files that the catalog lists: there is nothing to verify")
    if any(state != "ok" for state in states.values()):
        raise typer.Exit(1)


@app.command()
def fetch(
    name: Name,
    data: DataFolder = None,
) -> None:
    """Download missing files of a data set and check their sha256.

    Example: visionshare data fetch mnist
    """
    from visionshare.datasets import fetch_dataset

    for path in fetch_dataset(name, data, progress=sys.stderr.isatty()):
        say(path)


def samples(
    folder: Annotated[Path, typer.Argument(help="Folder to create. It must not exist yet.")] = Path(
        "samples"
    ),
) -> None:
    """Write sample pictures to try the other commands on.

    Example: visionshare samples

    Example: visionshare samples pictures && visionshare train pictures/signs
    """
    from visionshare.datasets.samples import write_samples

    for name, text in write_samples(folder).items():
        say(f"{folder / name!s:24} {text}")
    say(f"next: visionshare train {folder / 'signs'}")


# Files, and classes, that are shown of each kind of problem.
_SHOWN = 5
_CLASSES = 60
_MANY_TIMES = 5


@app.command()
def check(
    pictures: Annotated[
        str,
        typer.Argument(
            help="A folder with one folder per class, or a .csv, .jsonl, .npz, .parquet or .tar "
            "file."
        ),
    ],
    sheet: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Contact sheet to write (PNG). Default: NAME-check.png."),
    ] = None,
    size: ImageSize = None,
    color: Color = None,
    labels: Annotated[
        bool,
        typer.Option("--labels", help="Also list labels that are probably wrong. Takes longer."),
    ] = False,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|PATTERN",
            help="With --labels: pictures that belong together, as in `train --groups`.",
        ),
    ] = None,
    jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Find errors in your pictures and show how a classifier sees them.

    Reads every picture. The exit code is 1 if some are broken, belong to several splits (train,
    test, validation) or have several classes.

    Example: visionshare data check photos/

    Example: visionshare data check photos/ --labels
    """
    from PIL import Image

    from visionshare.datasets.notices import collect_notices
    from visionshare.datasets.pictures.checking import check_pictures, contact_sheet
    from visionshare.datasets.readers.groups import picture_groups
    from visionshare.datasets.readers.registry import find_pictures

    path = sheet if sheet is not None else Path(f"{Path(pictures).resolve().name}-check.png")
    # The notes say what is left out.
    with collect_notices(pass_on=False):
        check_file("--sheet", path, inputs=[] if is_our_png(path) else files_of(pictures))
        found = find_pictures(pictures)
        together = None
        if groups is not None:
            together = picture_groups(pictures, found, groups, "--groups")
        made = check_pictures(found, image_size(size), color, jobs)
    write_png(path, Image.fromarray(contact_sheet(made.images, made.labels, found.classes)))
    if as_json:
        say(json.dumps(_values(made, path), indent=2))
    else:
        say("\n".join(_lines(made, path)))
    if labels:
        from visionshare.cli.labeling import check_labels

        name = Path(pictures).resolve().stem
        told = check_labels(found, made.preparation, name, jobs, together)
        # Standard output is JSON alone where it is asked for.
        say("\n".join(told), err=as_json)
    if made.broken or made.leaked or made.ambiguous:
        raise typer.Exit(1)


def _values(made: PictureCheck, sheet: Path) -> dict[str, Any]:
    sizes = made.survey.sizes
    classes = {}
    for entry in made.classes:
        counts = {"train": entry.train, "test": entry.test, "validation": entry.validation}
        classes[entry.name] = counts
    return {
        "pictures": made.n,
        "classes": classes,
        "has_test": made.has_test,
        "has_validation": made.has_validation,
        "imbalance": round(made.imbalance, 2),
        "smallest": sizes.min(axis=0).tolist(),
        "largest": sizes.max(axis=0).tolist(),
        "modes": dict(made.survey.modes),
        "formats": dict(made.survey.formats),
        "broken": list(made.broken),
        "copies": list(map(list, made.copies)),
        "train_and_test": list(map(list, made.leaked)),
        "several_classes": list(map(list, made.ambiguous)),
        "size": list(made.preparation.size),
        "mode": made.preparation.mode,
        "preprocessing": made.preparation.preprocessing.to_values(),
        "reasons": list(made.preparation.reasons),
        "notes": list(made.notes),
        "sheet": str(sheet),
    }


def _lines(made: PictureCheck, sheet: Path) -> list[str]:
    from visionshare.datasets.pictures.checking import describe_sizes

    # 1) Classes, and what is kept to test on.
    where = "with test pictures"
    if not made.has_test:
        where = "no test pictures: a part will be held out"
    if made.has_validation:
        where += "; with validation pictures, which choose among trials"
    if not made.has_test and max(entry.train for entry in made.classes) < 2:
        where = "no test pictures, and none can be held out: no class has two"
    n = len(made.classes)
    lines = [f"pictures     {made.n} of {n} {'class' if n == 1 else 'classes'}, {where}"]
    for entry in made.classes[:_CLASSES]:
        counts = f"{entry.train} train, {entry.test} test" if made.has_test else f"{entry.train}"
        counts += f", {entry.validation} validation" if made.has_validation else ""
        lines.append(f"             {entry.name}: {counts}")
    if n > _CLASSES:
        lines.append(f"             and {n - _CLASSES} more")
    if made.imbalance > 1:
        many = made.imbalance >= _MANY_TIMES
        hint = "; --balanced gives them the same weight" if many else ""
        times = f"{made.imbalance:.1f} times as many in the largest class"
        lines.append(f"imbalance    {times}{hint}")
    # 2) Their sizes and formats.
    lines.append(f"sizes        {describe_sizes(made.survey.sizes)} (height × width)")
    for name, counter in (("modes", made.survey.modes), ("formats", made.survey.formats)):
        kinds = ", ".join(f"{kind} {n}" for kind, n in counter.most_common(10))
        lines.append(f"{name:12} {kinds}")
    # 3) Problems.
    lines += _problem("broken", "", [(text,) for text in made.broken])
    lines += _problem("copies", "of equal pictures", made.copies)
    lines += _problem("leaks", "of equal pictures in several parts", made.leaked)
    lines += _problem("ambiguous", "of equal pictures in several classes", made.ambiguous)
    lines += [f"note         {note}" for note in made.notes]
    lines += [f"prepared     {reason}" for reason in made.preparation.reasons]
    return [*lines, f"sheet        {sheet}"]


def _problem(name: str, what: str, groups: Sequence[Sequence[str]]) -> list[str]:
    n = len(groups)
    kind = f" {'group' if n == 1 else 'groups'} {what}" if what else ""
    lines = [f"{name:12} {n}{kind}"]
    for group in groups[:_SHOWN]:
        lines.append(f"             {' = '.join(group[:_SHOWN])}")
    if n > _SHOWN:
        lines.append(f"             and {n - _SHOWN} more (--json lists all)")
    return lines
