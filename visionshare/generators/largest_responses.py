"""Where templates of maps respond most: what a template that is no picture is drawn by."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from visionshare.generators.pictures import Panel, Row, Sample, Tile

# Parts of images in a mean, and those that are shown alone.
_IN_MEAN = 25
_ALONE = 2


class LargestResponses(NamedTuple):
    """The largest response to each image, and where it is: (n, m) of n images and m templates."""

    values: np.ndarray
    rows: np.ndarray
    cols: np.ndarray

    @classmethod
    def of(cls, responses: np.ndarray) -> LargestResponses:
        """Return it of all responses (n, rows, cols, m); the first one of equals."""
        flat = responses.reshape(len(responses), -1, responses.shape[3])
        at = flat.argmax(axis=1)
        rows, cols = np.divmod(at, responses.shape[2])
        return cls(np.take_along_axis(flat, at[:, None], axis=1)[:, 0], rows, cols)


def response_rows(sample: Sample, found: LargestResponses, template: int) -> tuple[Row, ...]:
    """Return pictures of what a template responds to."""
    values = found.values[:, template]
    best = np.argsort(-values, kind="stable")[:_IN_MEAN]
    best = best[values[best] > 0]
    if len(best) == 0:
        return (Row(()),)
    patches = sample.patches(best, found.rows[best, template], found.cols[best, template])
    return tuple(Row((Tile(p),)) for p in (patches.mean(axis=0), *patches[:_ALONE]))


def response_caption(sample: Sample) -> str:
    """Return what the rows of :func:`response_rows` are."""
    n = len(sample.images)
    sees = f"{sample.rows.side}×{sample.cols.side}"
    return (
        "Templates of maps are no pictures; shown is what each responds to: above, the mean of "
        f"the {min(_IN_MEAN, n)} parts of {n} {sample.called} with the strongest responses, at "
        f"most one of each image; below, the {_ALONE} strongest. A template sees {sees} pixels; "
        "what is outside of an image is black."
    )


def without_silent(panel: Panel) -> Panel:
    """Return a panel without the templates that respond to none of the images."""
    # And a note on them.
    heard = tuple(stack for stack in panel.stacks if any(row.tiles for row in stack.rows))
    n = len(panel.stacks) - len(heard)
    if n == 0:
        return panel
    note = f"{n} more {'responds' if n == 1 else 'respond'} to no image."
    return replace(panel, stacks=heard).with_note(note)
