"""The command that explains what a classifier says of one picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.options import Classifier, Json, Picture
from visionshare.cli.outputs import check_file, write_png
from visionshare.cli.text import portable, say
from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.classifier import Explanation


def explain(
    classifier: Classifier,
    picture: Picture,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Picture to write (.png) that shows where each feature responded.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--class", metavar="NAME", help="Class to explain. Default: the predicted class."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of features to show.")] = 10,
    as_json: Json = False,
) -> None:
    """Show which features support a class and where they responded.

    Example: visionshare explain out/digits/classifier.safetensors seven.png --out why.png

    In the picture, red supports the class and blue opposes it.
    """
    from PIL import Image

    from visionshare import load
    from visionshare.batch import explain_picture
    from visionshare.batch.pictures import read_picture
    from visionshare.reports.overlays import overlay_picture

    if out is not None:
        check_file("--out", out, suffix=".png", inputs=[classifier, picture])
    model = load(classifier)
    explained = explain_picture(model, picture)
    explanation = explained.explanation
    try:
        k = explanation.class_index(name)
    except InputError as error:
        raise InputError("--class", name, error.accepted) from None
    if out is not None:
        drawn = overlay_picture(explained.picture, explanation, name, top)
        write_png(out, Image.fromarray(drawn))
    known = None
    if model.unknown is not None:
        known = float(model.known(read_picture(model, picture)[None])[0])
    if as_json:
        record = _record(explanation, k, top)
        say(json.dumps(record if known is None else {**record, "known": known}))
        return
    say("\n".join(_lines(explanation, k, top)))
    if model.unknown is not None and known is not None:
        refused = f": refused as {model.unknown.label}" if known < model.unknown.reject else ""
        say(f"known {known:.2g}, the share of known pictures that look as strange{refused}")


def _lines(explanation: Explanation, k: int, top: int) -> list[str]:
    """Return a table: what features add to a class, and to the most probable other one."""
    from visionshare.class_labels import class_names

    names = [portable(name) for name in class_names(explanation.classes)]
    rival = explanation.rival(k)
    evidence = explanation.evidence[[k, rival]]
    base = explanation.base_evidence[[k, rival]]
    shown = explanation.top_features(k, top)
    # 1) One row for each feature.
    rows = [["", "feature", "value", f"for {names[k]}", f"for {names[rival]}", "where"]]
    for rank, j in enumerate(shown, 1):
        first_row, end_row, first_col, end_col = (round(edge) for edge in explanation.boxes[j])
        where = f"rows {first_row}–{end_row - 1}, columns {first_col}–{end_col - 1}"
        rows.append(
            [
                str(rank),
                f"{explanation.families[j]} {explanation.numbers[j]}",
                f"{explanation.values[j]:.3f}",
                *(f"{amount:+.3f}" for amount in evidence[:, j]),
                "everywhere" if explanation.everywhere[j] else where,
            ]
        )
    # 2) What the others add, and the sum of all.
    total = evidence.sum(axis=1)
    others = f"{evidence.shape[1] - len(shown)} other features"
    sums = {
        others: total - evidence[:, shown].sum(axis=1),
        "without any feature": base,
        "score": total + base,
    }
    for text, amounts in sums.items():
        rows.append(["", text, "", *(f"{amount:+.3f}" for amount in amounts), ""])
    label = explanation.class_index()
    return [
        f"{names[label]}, probability {explanation.probabilities[label]:.4f}",
        "value × weight of each feature, relative to the mean of the classes",
        "",
        *_aligned(rows, left=(1, 5)),
    ]


def _aligned(rows: list[list[str]], left: tuple[int, ...]) -> list[str]:
    """Return rows as lines with columns; all but some are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            text.ljust(width) if i in left else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _record(explanation: Explanation, k: int, top: int) -> dict[str, Any]:
    from visionshare.class_labels import class_names

    names = list(class_names(explanation.classes))

    def by_class(values: Any) -> dict[str, float]:
        return dict(zip(names, values.round(6).tolist(), strict=True))

    features = [
        {
            "family": explanation.families[j],
            "number": int(explanation.numbers[j]),
            "value": round(float(explanation.values[j]), 6),
            "contributions": by_class(explanation.contributions[:, j]),
            "box": explanation.boxes[j].round(3).tolist(),
            "everywhere": bool(explanation.everywhere[j]),
        }
        for j in explanation.top_features(k, top)
    ]
    return {
        "label": str(explanation.label),
        "explained": names[k],
        "probabilities": by_class(explanation.probabilities),
        "scores": by_class(explanation.scores),
        "base": by_class(explanation.base),
        "size": list(explanation.size),
        "features": features,
    }
