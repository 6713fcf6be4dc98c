"""The command that explains what a classifier says of one picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.class_labels import class_names
from visionshare.cli.options import Classifier, Json, Picture
from visionshare.cli.outputs import check_file, check_not_inputs
from visionshare.cli.text import say
from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.classifier import Explanation
    from visionshare.cli.commands import Commands

__all__ = ["register"]


def register(app: Commands) -> None:
    """Add the command to the application."""
    app.command()(explain)


def explain(
    classifier: Classifier,
    picture: Picture,
    out: Annotated[
        Path | None, typer.Option("--out", help="Picture to write (.png): where features counted.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--class", help="The class to explain; default: the predicted.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Features that are shown.")] = 10,
    as_json: Json = False,
) -> None:
    """Explain a picture: which features spoke for and against a class, and where they responded.

    Example: visionshare explain out/digits/classifier.safetensors seven.png --out why.png

    In the picture red speaks for the class and blue against it.
    """
    from visionshare import load
    from visionshare.batch import explain_picture
    from visionshare.files.durable import replace_file
    from visionshare.reports.overlays import overlay_picture

    if out is not None:
        if out.suffix.lower() != ".png":
            raise InputError("--out", str(out), "a file .png")
        check_file("--out", out)
        check_not_inputs("--out", [out], [classifier, picture])
    explained = explain_picture(load(classifier), picture)
    said = explained.explanation
    _check_class(said, name)
    if out is not None:
        from PIL import Image

        drawn = Image.fromarray(overlay_picture(explained.picture, said, name, top))
        try:
            with replace_file(out) as partial:
                drawn.save(partial, "PNG")
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            raise InputError("--out", str(out), f"a file to write ({error.strerror})") from None
    if as_json:
        say(json.dumps(_record(said, name, top)))
    else:
        say("\n".join(_table(said, name, top)))


def _check_class(said: Explanation, name: str | None) -> None:
    try:
        said.class_index(name)
    except InputError as error:
        raise InputError("--class", name, error.accepted) from None


def _rival(said: Explanation, k: int) -> int:
    """Return the most probable of the other classes."""
    order = said.scores.argsort()[::-1].tolist()
    return int(next(c for c in order if c != k))


def _table(said: Explanation, name: str | None, top: int) -> list[str]:
    from visionshare.cli.text import portable

    k = said.class_index(name)
    rival = _rival(said, k)
    names = list(map(portable, class_names(said.classes)))
    label = said.class_index()
    evidence, chosen = said.evidence[[k, rival]], said.strongest(name, top)
    rows = []
    for rank, j in enumerate(chosen, 1):
        a, b, c, d = (round(float(edge)) for edge in said.boxes[j])
        where = "everywhere" if said.everywhere[j] else f"rows {a}–{b - 1}, columns {c}–{d - 1}"
        feature = f"{said.families[j]} {said.numbers[j]}"
        amounts = [f"{v:+.3f}" for v in evidence[:, j]]
        rows.append([str(rank), feature, f"{said.values[j]:.3f}", *amounts, where])
    rest = evidence.sum(axis=1) - evidence[:, chosen].sum(axis=1)
    others = len(said.values) - len(chosen)
    base = said.base_evidence[[k, rival]]
    for text, sums in (
        (f"{others} other features", rest),
        ("without any feature", base),
        ("score", evidence.sum(axis=1) + base),
    ):
        rows.append(["", text, "", *(f"{v:+.3f}" for v in sums), ""])
    head = ["", "feature", "value", f"for {names[k]}", f"for {names[rival]}", "where"]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(6)]
    probability = f"{said.probabilities[label]:.4f}"
    lines = [
        f"{names[label]}, probability {probability}",
        "value × weight of each feature, relative to the mean of the classes",
        "",
    ]
    for row in [head, *rows]:
        right = [0, 2, 3, 4]
        cells = [
            row[i].rjust(widths[i]) if i in right else row[i].ljust(widths[i]) for i in range(6)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _record(said: Explanation, name: str | None, top: int) -> dict[str, Any]:
    names = list(class_names(said.classes))

    def by_class(values: Any) -> dict[str, float]:
        return dict(zip(names, values.round(6).tolist(), strict=True))

    return {
        "label": str(said.label),
        "explained": names[said.class_index(name)],
        "probabilities": by_class(said.probabilities),
        "scores": by_class(said.scores),
        "base": by_class(said.base),
        "size": list(said.size),
        "features": [
            {
                "family": said.families[j],
                "number": int(said.numbers[j]),
                "value": round(float(said.values[j]), 6),
                "contributions": by_class(said.contributions[:, j]),
                "box": said.boxes[j].round(3).tolist(),
                "everywhere": bool(said.everywhere[j]),
            }
            for j in said.strongest(name, top)
        ],
    }
