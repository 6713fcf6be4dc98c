"""Chosen patch features: what they need and no more, for one image or many."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from visionshare.generators.patches.masks import mask_spans
from visionshare.generators.patches.tables import Tables
from visionshare.machine.resources import run_blocks

# Fewer images than these are computed one by one, others sixteen side by side.
_FEW = 6
_WIDE = 16
# Images of one call of the kernel of many: sixteen of them, several times.
_AT_ONCE = 64


def _merged(rectangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return windows that hold all rectangles (y0, y1, x0, x1), and the window of each."""
    # Two windows become one where that costs no more than both: what they share is computed once.
    windows = [r.copy() for r in rectangles]
    members = [[i] for i in range(len(rectangles))]

    def area(r: np.ndarray) -> int:
        return int((r[1] - r[0]) * (r[3] - r[2]))

    def hull(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        low = np.minimum(a, b)
        high = np.maximum(a, b)
        return np.array([low[0], high[1], low[2], high[3]])

    while True:
        gains = [
            (area(windows[i]) + area(windows[j]) - area(hull(windows[i], windows[j])), -i, -j)
            for i in range(len(windows))
            for j in range(i + 1, len(windows))
        ]
        gain, i, j = max(gains, default=(-1, 0, 0))
        if gain < 0:
            break
        windows[-i] = hull(windows[-i], windows[-j])
        members[-i] += members[-j]
        del windows[-j], members[-j]
    window_of = np.empty(len(rectangles), np.int64)
    for w, rectangles_of in enumerate(members):
        window_of[rectangles_of] = w
    return np.array(windows), window_of


def template_windows(
    layout: np.ndarray, row_masks: np.ndarray, col_masks: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the windows of positions that chosen features need their templates at."""
    rows = mask_spans(row_masks)[layout[:, 1]]
    cols = mask_spans(col_masks)[layout[:, 2]]
    rectangles = np.concatenate([rows, cols], axis=1)
    templates: list[int] = []
    windows = [np.empty((0, 4), np.int64)]
    window_of = np.empty(len(layout), np.int64)
    # In a whole pool all templates have the same rectangles: they are merged once.
    seen: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}
    order = np.argsort(layout[:, 0], kind="stable")
    used, starts = np.unique(layout[order, 0], return_index=True)
    for t, features in zip(used, np.split(order, starts)[1:], strict=True):
        key = rectangles[features].tobytes()
        if key not in seen:
            seen[key] = _merged(rectangles[features])
        merged, number = seen[key]
        window_of[features] = len(templates) + number
        templates += [int(t)] * len(merged)
        windows.append(merged)
    return np.array(templates, np.int64), np.concatenate(windows), window_of, rectangles


def templates_macs(
    layout: np.ndarray,
    row_masks: np.ndarray,
    col_masks: np.ndarray,
    taps: int,
) -> int:
    """Return the multiply-accumulates of chosen features."""
    # A template's responses are computed once for all its masks, on rectangles that hold their
    # supports; a mask costs its support once (rows) and its width once (columns).
    _, windows, _, rectangles = template_windows(layout, row_masks, col_masks)
    positions = (windows[:, 1] - windows[:, 0]) * (windows[:, 3] - windows[:, 2])
    heights = rectangles[:, 1] - rectangles[:, 0]
    widths = rectangles[:, 3] - rectangles[:, 2]
    of_masks = ((heights + 1) * widths).sum()
    return int(taps * positions.sum() + of_masks)


@lru_cache(maxsize=1 << 16)
def _reached(rectangles: bytes) -> int:
    """Return how many positions the windows of rectangles hold; (n, 4) int64 as bytes."""
    # A search asks for the same rectangles round after round.
    windows, _ = _merged(np.frombuffer(rectangles, np.int64).reshape(-1, 4))
    return int(((windows[:, 1] - windows[:, 0]) * (windows[:, 3] - windows[:, 2])).sum())


def added_templates_macs(
    chosen: np.ndarray,
    layout: np.ndarray,
    row_masks: np.ndarray,
    col_masks: np.ndarray,
    taps: int,
) -> np.ndarray:
    """Return what each feature of a layout alone adds to :func:`templates_macs` of chosen ones."""
    spans = mask_spans(row_masks), mask_spans(col_masks)
    before, added = (
        np.concatenate([spans[0][features[:, 1]], spans[1][features[:, 2]]], axis=1)
        for features in (chosen, layout)
    )
    heights = added[:, 1] - added[:, 0]
    widths = added[:, 3] - added[:, 2]
    positions: np.ndarray = heights * widths
    # Only the windows of templates that are there already may merge with a candidate's.
    of_template: dict[int, bytes] = {}
    for t, rectangle in zip(chosen[:, 0].tolist(), before, strict=True):
        of_template[t] = of_template.get(t, b"") + rectangle.tobytes()
    for c in np.flatnonzero(np.isin(layout[:, 0], chosen[:, 0])):
        there = of_template[int(layout[c, 0])]
        positions[c] = _reached(there + added[c].tobytes()) - _reached(there)
    of_masks = (heights + 1) * widths
    return taps * positions + of_masks


def _strips(windows: np.ndarray, q: int, column: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the strips of the padded image that windows (y0, y1, x0, x1) read."""
    # And each rectangle. Both as in :class:`Tables`; a column of the padded image has ``column``
    # values.
    widths = windows[:, 3] - windows[:, 2] + q - 1
    strips, strip = np.unique(
        np.stack([windows[:, 2], widths], axis=1), axis=0, return_inverse=True
    )
    sizes = strips[:, 1] * column
    heights = windows[:, 1] - windows[:, 0]
    rectangle = (strip.reshape(-1), windows[:, 0], heights, windows[:, 2], widths - q + 1)
    return np.column_stack([strips, np.cumsum(sizes) - sizes]), np.stack(rectangle, axis=1)


class RestrictedPlan:
    """Everything about chosen features that does not depend on the image, made once."""

    def __init__(
        self,
        templates: np.ndarray,
        row_masks: np.ndarray,
        col_masks: np.ndarray,
        layout: np.ndarray,
    ) -> None:
        used, windows, window_of, rectangles = template_windows(layout, row_masks, col_masks)
        _, q, _, channels = templates.shape
        self._used = used
        self.n_features = len(layout)
        # Kernels take four taps at a time.
        self.taps = np.zeros((len(used), channels, q, -(-q // 4) * 4), np.float32)
        self.set_parameters(templates, row_masks, col_masks)
        order = np.argsort(window_of, kind="stable")
        members = np.searchsorted(window_of[order], np.arange(len(used) + 1))
        height = row_masks.shape[1] + q - 1
        strips, rectangle = _strips(windows, q, height * channels)
        y0, y1, x0, x1 = rectangles.T
        fields = (layout[:, 1], y0, y1, layout[:, 2], x0, x1, np.arange(len(layout)))
        tables = Tables(
            strips,
            np.column_stack([rectangle, members[:-1], members[1:]]),
            np.stack(fields, axis=1)[order],
        )
        self.tables = tables.packed()
        # Images side by side are one strip.
        tables.windows[:, 0] = 0
        whole = np.array([[0, col_masks.shape[1] + q - 1, 0]])
        self.tables_of_many = tables._replace(strips=whole).packed()

    def set_parameters(
        self, templates: np.ndarray, row_masks: np.ndarray, col_masks: np.ndarray
    ) -> None:
        """Take on other templates, and masks that reach as far."""
        self.taps[..., : templates.shape[1]] = templates[self._used].transpose(0, 3, 1, 2)
        self.row_masks = row_masks
        self.col_masks = col_masks

    def transform(self, images: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return features (n, n_features), float32, of images (n, H, W, C)."""
        return self._transform(images, n_jobs, np.empty((0, 0), np.int32))

    def transform_with_positions(
        self, images: np.ndarray, n_jobs: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return features, and where each maximum is: (n, n_features), int32."""
        # A position is row · columns + column of the template's response; −1 where the feature is
        # 0.
        positions = np.empty((len(images), self.n_features), np.int32)
        return self._transform(images, n_jobs, positions), positions

    def _transform(self, images: np.ndarray, n_jobs: int, positions: np.ndarray) -> np.ndarray:
        from visionshare.generators.patches.restricted_kernels import chosen_features

        out = np.empty((len(images), self.n_features), np.float32)
        parameters = self.taps, self.row_masks, self.col_masks
        if len(images) < _FEW:
            chosen_features(images, self.tables, *parameters, 1, out, positions)
            return out

        def block(start: int, stop: int) -> None:
            part = slice(start, stop)
            tables = self.tables_of_many
            chosen_features(images[part], tables, *parameters, _WIDE, out[part], positions[part])

        run_blocks(block, len(images), _AT_ONCE, n_jobs)
        return out
