"""What patch features need and no more, for one image or many; all but the image, made once."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.patches.masks import mask_spans
from visionshare.machine.resources import run_blocks

if TYPE_CHECKING:
    from visionshare.generators.patches.family import PatchTemplates

# Fewer images than these are computed one by one, others sixteen side by side.
_FEW = 6
_WIDE = 16
# Images of one call of the kernel of many: sixteen of them, several times.
_AT_ONCE = 64
# Images whose features are turned into columns together: 32 float16 fill a cache line.
_TILE = 32


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


def _of_one_type(array: np.ndarray) -> np.ndarray:
    """Return the array, or a copy where kernels would be compiled again for it."""
    # Arrays that are read-only, or not contiguous, are of other types to numba.
    return array if array.flags.carray else array.copy()


def _feature_table(layout: np.ndarray, rectangles: np.ndarray, window_of: np.ndarray) -> np.ndarray:
    """Return what is computed of each feature, in the order of windows and row masks."""
    order = np.lexsort((layout[:, 1], window_of))
    top, end, left, right = rectangles[order].T
    # Features of one window and one row mask share the maximum over rows.
    pairs = np.stack([window_of[order], layout[order, 1]], axis=1)
    new = np.ones(len(order), bool)
    new[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    firsts = np.flatnonzero(new)
    shared = np.cumsum(new) - 1
    low = np.minimum.reduceat(left, firsts)[shared] if len(order) else left
    high = np.maximum.reduceat(right, firsts)[shared] if len(order) else right
    fields = (layout[order, 1], top, end, layout[order, 2], left, right, order, low, high)
    return np.stack(fields, axis=1)


class Plan:
    """Everything about patch features that does not depend on the image."""

    def __init__(
        self,
        templates: np.ndarray,
        row_masks: np.ndarray,
        col_masks: np.ndarray,
        layout: np.ndarray,
    ) -> None:
        from visionshare.generators.patches.kernels import Tables

        used, windows, window_of, rectangles = template_windows(layout, row_masks, col_masks)
        _, q, _, channels = templates.shape
        # Windows of one rectangle stand one after the other.
        order = np.lexsort(windows.T)
        windows = windows[order]
        window_of = np.argsort(order)[window_of]
        self._used = used[order]
        self.n_features = len(layout)
        self.taps = np.empty((len(used), channels, q, q), np.float32)
        self.set_parameters(templates, row_masks, col_masks)
        features = _feature_table(layout, rectangles, window_of)
        members = np.searchsorted(np.sort(window_of), np.arange(len(used) + 1))
        y0, y1, x0, x1 = windows.T
        # A strip of the padded image is as wide as the windows that read it.
        widths = x1 - x0 + q - 1
        strips, strip = np.unique(np.stack([x0, widths], axis=1), axis=0, return_inverse=True)
        sizes = strips[:, 1] * (row_masks.shape[1] + q - 1) * channels
        strips = np.column_stack([strips, np.cumsum(sizes) - sizes])
        groups, first = np.unique(
            np.stack([strip.reshape(-1), y0, y1 - y0, x0, x1 - x0], axis=1),
            axis=0,
            return_index=True,
        )
        by_window = np.argsort(first)
        first = first[by_window]
        end = np.append(first, len(used))[1:]
        groups = np.column_stack([groups[by_window], first, end])
        tables = Tables(strips, groups, members, features)
        self.tables = tables.packed()
        # Images side by side are one strip.
        groups[:, 0] = 0
        whole = np.array([[0, col_masks.shape[1] + q - 1, 0]])
        self.tables_of_many = tables._replace(strips=whole).packed()

    def set_parameters(
        self, templates: np.ndarray, row_masks: np.ndarray, col_masks: np.ndarray
    ) -> None:
        """Take on other templates, and masks that reach as far."""
        self.taps[...] = templates[self._used].transpose(0, 3, 1, 2)
        self.row_masks = _of_one_type(row_masks)
        self.col_masks = _of_one_type(col_masks)

    def columns(self, images: np.ndarray, n_jobs: int = 1, dtype: str = "float32") -> np.ndarray:
        """Return features transposed, (n_features, n), of images (n, H, W, C)."""
        kind = np.uint16 if dtype == "float16" else np.float32
        out = np.empty((self.n_features, len(images)), kind)
        self._apply(images, n_jobs, out, np.empty((0, 0), np.int32))
        return out.view(np.float16) if dtype == "float16" else out

    def with_positions(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return features (n, n_features), and where each maximum is, int32."""
        # A position is row · columns + column of the template's response; −1 where the feature is
        # 0.
        out = np.empty((self.n_features, len(images)), np.float32)
        positions = np.empty((len(images), self.n_features), np.int32)
        self._apply(images, n_jobs, out, positions)
        return np.ascontiguousarray(out.T), positions

    def _apply(
        self, images: np.ndarray, n_jobs: int, out: np.ndarray, positions: np.ndarray
    ) -> None:
        from visionshare.generators.patches.kernels import patch_features

        parameters = self.taps, self.row_masks, self.col_masks
        if len(images) < _FEW:
            few = _of_one_type(images)
            patch_features(few, self.tables, *parameters, 1, out, 0, positions)
            return

        def block(start: int, stop: int) -> None:
            part = _of_one_type(images[start:stop])
            tables = self.tables_of_many
            where = positions[start:stop]
            patch_features(part, tables, *parameters, _WIDE, out, start, where)

        run_blocks(block, len(images), _AT_ONCE, n_jobs)


def pool_columns(
    family: PatchTemplates, images: np.ndarray, ids: np.ndarray, n_jobs: int, dtype: str
) -> np.ndarray:
    """Return columns (n, n_images) of a family whose templates all have the same masks."""
    from visionshare.generators.layers.templates.intrinsics import LANES, WIDEST
    from visionshare.generators.patches import pool_kernels

    each = family.n_features_ // len(family.templates_)
    masks = _of_one_type(family.row_masks_), _of_one_type(family.col_masks_)
    tables = Plan(family.templates_[:1], *masks, family.layout_[:each]).tables_of_many
    # 1) templates in use, side by side in blocks
    used = np.unique(ids // each)
    lanes = LANES if len(used) <= LANES else WIDEST
    n_blocks = -(-len(used) // lanes)
    q = family.patch_size
    taps = np.zeros((n_blocks * lanes, family.templates_.shape[3], q, q), np.float32)
    taps[: len(used)] = family.templates_[used].transpose(0, 3, 1, 2)
    blocks = np.ascontiguousarray(np.moveaxis(taps.reshape(n_blocks, lanes, -1, q, q), 1, -1))
    # 2) where each feature goes
    row_of = np.full((n_blocks * lanes, each), -1, np.int64)
    row_of[np.searchsorted(used, ids // each), ids % each] = np.arange(len(ids))
    rows = row_of.reshape(n_blocks, lanes, each)
    out = np.empty((len(ids), len(images)), np.uint16 if dtype == "float16" else np.float32)
    # 3) as many blocks at once as let a tile of features stay within a few megabytes
    together = max(1, 2**20 // (_TILE * lanes * each))
    parts = [slice(start, start + together) for start in range(0, n_blocks, together)]

    def tile(start: int, stop: int) -> None:
        few = _of_one_type(images[start:stop])
        for part in parts:
            kernel = pool_kernels.pool_columns
            kernel(few, tables, blocks[part], *masks, rows[part], out, start)

    run_blocks(tile, len(images), _TILE, n_jobs)
    return out.view(np.float16) if dtype == "float16" else out
