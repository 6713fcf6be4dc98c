"""Names at the points of a picture, where they cover neither each other nor points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Name", "place_names"]

# Where a name may be, in points from its point; with its alignment.
_PLACES = (
    (7, 0, "left", "center"), (-7, 0, "right", "center"), (0, 7, "center", "bottom"),
    (0, -7, "center", "top"), (5, 6, "left", "bottom"), (5, -6, "left", "top"),
    (-5, 6, "right", "bottom"), (-5, -6, "right", "top"), (0, 17, "center", "bottom"),
    (0, -17, "center", "top"),
)  # fmt: skip
# Half of a marker's side; points that are closer than this are one, in pixels.
_MARKER, _SAME = 4.0, 6.0
# Boxes along a line between two points.
_STEPS = 50


class Name(NamedTuple):
    """A name at a point; one that is not ``always`` there is left out where there is no room."""

    text: str
    x: float
    y: float
    color: tuple[float, ...]
    always: bool


def place_names(figure: Any, names: Mapping[Any, Sequence[Name]]) -> None:
    """Write names into the axes of a figure, one after the other.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Complete but for the names; its layout stays as it is from here.
    names : mapping of axes to sequences of Name
        The first have the best places. Of equal names at one point, the first is written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    figure.set_layout_engine("none")
    for axis, of_axis in names.items():
        _place(axis, of_axis, canvas.get_renderer())


def _place(axis: Any, names: Sequence[Name], renderer: Any) -> None:
    inside, taken = axis.get_window_extent(renderer), _markers(axis)
    written: list[tuple[str, np.ndarray]] = []
    for name in names:
        at = axis.transData.transform((name.x, name.y))
        if any(name.text == t and np.abs(at - a).max() < _SAME for t, a in written):
            continue
        options = [_written(axis, name, place) for place in _PLACES]
        boxes = [_corners(text.get_window_extent(renderer)) for text in options]
        costs = [_covered(box, taken) + 1e6 * (not _within(box, inside)) for box in boxes]
        best = int(np.argmin(costs))
        for number, text in enumerate(options):
            if number != best or (costs[best] > 0 and not name.always):
                text.remove()
        if costs[best] == 0 or name.always:
            taken = np.concatenate([taken, boxes[best][None]])
            written.append((name.text, at))


def _written(axis: Any, name: Name, place: tuple[float, float, str, str]) -> Any:
    x, y, horizontal, vertical = place
    return axis.annotate(
        name.text,
        (name.x, name.y),
        (x, y),
        textcoords="offset points",
        color=name.color,
        fontsize=8,
        ha=horizontal,
        va=vertical,
    )


def _markers(axis: Any) -> np.ndarray:
    """Return boxes (n, 4) of all points, and along lines: left, low, right, high."""
    boxes = [np.empty((0, 4))]
    for line in axis.get_lines():
        at = axis.transData.transform(line.get_xydata())
        boxes.append(np.concatenate([at - _MARKER, at + _MARKER], axis=1))
        if line.get_linestyle() == "-":
            steps = np.linspace(0, 1, _STEPS)[:, None, None]
            along = (at[:-1] + steps * (at[1:] - at[:-1])).reshape(-1, 2)
            boxes.append(np.concatenate([along - 1, along + 1], axis=1))
    return np.concatenate(boxes)


def _corners(box: Any) -> np.ndarray:
    return np.array([box.x0, box.y0, box.x1, box.y1])


def _covered(box: np.ndarray, others: np.ndarray) -> float:
    """Return the area of a box that others cover."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    return float(np.maximum(sides, 0).prod(axis=1).sum())


def _within(box: np.ndarray, outer: Any) -> bool:
    low, high = (outer.x0, outer.y0), (outer.x1, outer.y1)
    return bool((box[:2] >= low).all() and (box[2:] <= high).all())
