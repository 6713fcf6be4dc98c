"""Responses of filters at evenly spaced positions, by way of the frequency domain.

Correlating an image with a filter multiplies their spectra. Of the product only every step-th
position is wanted: folding the spectrum first makes the inverse transform that much smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from scipy.fft import fft, irfft2, next_fast_len, rfft, rfft2

from visionshare.generators.gabor.values import gabor_values
from visionshare.machine.resources import run_blocks

# Multiply-accumulates of a filter and an image by products of matrices from which on the
# frequency domain is faster; measured at sides of 16 to 112.
_WORTH_IT = 1 << 18
# Of the spectra of filters that are held at a time.
_SPECTRA_BYTES = 64 << 20
# Filters that are transformed back in one call, without the interpreter in between, where their
# planes together fit into a core's cache.
_TOGETHER = 16
_TOGETHER_BYTES = 1 << 19


@dataclass(frozen=True, eq=False)
class Filters:
    """Some filters of a bank: parameters (k, 5), how far each reaches, the step of positions."""

    parameters: np.ndarray
    reach: np.ndarray
    step: int
    zero_mean: bool

    def taps(self, number: int, size: tuple[int, int]) -> np.ndarray:
        """Return the values of one filter at the offsets that it reaches in an image of a size."""
        one = slice(number, number + 1)
        reach = self.reach[one]
        rows, columns = (min(int(reach[0]), side - 1) + 1 for side in size)
        return gabor_values(self.parameters[one], rows, columns, reach, self.zero_mean)[0]


@dataclass(frozen=True)
class Plane:
    """Where images and filters lie before their transform, and which positions come out of it.

    Each pair is of rows and columns: ``count`` positions from ``first`` on, every ``step``-th;
    ``small`` is the size of the inverse transform, ``step`` times that the size of the others.
    """

    first: tuple[int, int]
    count: tuple[int, int]
    step: int
    small: tuple[int, int]

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the transform of images and filters."""
        return (self.small[0] * self.step, self.small[1] * self.step)

    @property
    def spectrum_shape(self) -> tuple[int, int]:
        """Rows and columns of the spectrum of one image or filter: a half of it."""
        rows, columns = self.size
        return (rows, columns // 2 + 1)

    @property
    def spectrum_bytes(self) -> int:
        """Bytes of one spectrum."""
        rows, columns = self.spectrum_shape
        return 8 * rows * columns


def plane_of(
    size: tuple[int, int], axes: tuple[np.ndarray, np.ndarray], step: int, reach: int
) -> Plane:
    """Return the plane for images of a size, evenly spaced positions and a filter's reach."""
    small = []
    for side in size:
        # What a filter reaches beyond one end must not meet the image at the other end.
        needed = side + min(reach, side - 1)
        small.append(next_fast_len(-(-needed // step), real=True))
    rows, columns = axes
    return Plane(
        first=(int(rows[0]), int(columns[0])),
        count=(len(rows), len(columns)),
        step=step,
        small=(small[0], small[1]),
    )


def image_spectrum(plane: Plane, image: np.ndarray) -> np.ndarray:
    """Return the spectrum of an image (H, W), complex64; the first position becomes 0."""
    return _spectrum(plane, image, plane.first)


def filter_spectrum(plane: Plane, taps: np.ndarray) -> np.ndarray:
    """Return the conjugate spectrum of a filter (rows, columns), whose center is the middle."""
    # Folding adds the responses of all positions that are left out.
    scaled = taps * np.float32(1 / plane.step**2)
    spectrum = _spectrum(plane, scaled, (taps.shape[0] // 2, taps.shape[1] // 2))
    return np.conj(spectrum, out=spectrum)


def _spectrum(plane: Plane, values: np.ndarray, origin: tuple[int, int]) -> np.ndarray:
    """Return the spectrum of values (rows, columns) on a plane of zeros, with an origin."""
    # Rows of zeros have spectra of zeros: only the others are transformed.
    rows, columns = plane.size
    lines = np.zeros((len(values), columns), np.float32)
    lines[:, : values.shape[1]] = values
    spectrum = np.zeros(plane.spectrum_shape, np.complex64)
    spectrum[(np.arange(len(values)) - origin[0]) % rows] = rfft(np.roll(lines, -origin[1], 1))
    return fft(spectrum, axis=0, overwrite_x=True)


@njit(cache=True, nogil=True)
def fold(image: np.ndarray, spectrum: np.ndarray, step: int, width: int, out: np.ndarray) -> None:
    """Write the spectrum of every step-th response from the spectra of image and filter."""
    # image, spectrum: (rows, width // 2 + 1), complex64: one half, the other is its conjugate
    # out: (rows // step, width // step // 2 + 1), complex64
    rows = image.shape[0]
    small_width = width // step
    half = width // 2
    out[:] = 0
    for y in range(out.shape[0]):
        line = out[y]
        for row in range(y, rows, out.shape[0]):
            mirrored = (rows - row) % rows
            for first in range(0, width, small_width):
                # Columns up to the half are there; each of the others is a conjugate.
                direct = min(max(half + 1 - first, 0), len(line))
                for x in range(direct):
                    line[x] += image[row, first + x] * spectrum[row, first + x]
                for x in range(direct, len(line)):
                    column = width - first - x
                    product = image[mirrored, column] * spectrum[mirrored, column]
                    line[x] += product.conjugate()


@njit(cache=True, nogil=True)
def pool_positions(responses: np.ndarray, rows: int, columns: int, largest: bool) -> float:
    """Return the sum or the maximum of the absolute responses at the first rows and columns."""
    pooled = 0.0
    for y in range(rows):
        for x in range(columns):
            value = abs(responses[y, x])
            if not largest:
                pooled += value
            elif value > pooled:
                pooled = value
    return pooled


@njit(cache=True, nogil=True)
def _fold_all(
    image: np.ndarray, spectra: np.ndarray, step: int, width: int, out: np.ndarray
) -> None:
    """Fold the spectra of some filters (k, rows, width // 2 + 1) into the first k of ``out``."""
    for number in range(len(spectra)):
        fold(image, spectra[number], step, width, out[number])


@njit(cache=True, nogil=True)
def _pool_all(
    responses: np.ndarray, rows: int, columns: int, largest: bool, out: np.ndarray
) -> None:
    """Write the pooled responses (k,) of the first k filters."""
    for number in range(len(out)):
        out[number] = pool_positions(responses[number], rows, columns, largest)


@njit(cache=True, nogil=True)
def _signs(responses: np.ndarray, g: float, largest: bool, out: np.ndarray) -> None:
    """Write the derivative of g · pooled absolute responses in each response."""
    # out: (rows, columns of positions), the first ones of a plane of zeros
    best = 0.0
    best_y = -1
    best_x = -1
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            value = responses[y, x]
            out[y, x] = 0.0 if largest else g * np.sign(value)
            if abs(value) > best:
                best = abs(value)
                best_y = y
                best_x = x
    if largest and best_y >= 0:
        out[best_y, best_x] = g * np.sign(responses[best_y, best_x])


@njit(cache=True, nogil=True)
def _add_correlation(
    image: np.ndarray, positions: np.ndarray, step: int, width: int, out: np.ndarray
) -> None:
    """Add the spectrum of Σ_p s_p x(p + u) over positions p, which lie ``step`` apart."""
    # image, out: (rows, width // 2 + 1); positions: (rows // step, width // step // 2 + 1)
    small_rows = positions.shape[0]
    small_width = width // step
    for y in range(out.shape[0]):
        row = y % small_rows
        mirrored = (small_rows - row) % small_rows
        for x in range(out.shape[1]):
            # The spectrum of values step pixels apart repeats itself.
            column = x % small_width
            if column < positions.shape[1]:
                out[y, x] += image[y, x] * positions[row, column].conjugate()
            else:
                out[y, x] += image[y, x] * positions[mirrored, small_width - column]


def prefers_spectra(axes: tuple[np.ndarray, np.ndarray], width: int, reach: np.ndarray) -> Any:
    """Return for each reach whether the frequency domain is cheaper than products of matrices."""
    # It depends on nothing else: a column has the same bits in every batch.
    n_positions = len(axes[0]) * len(axes[1])
    return n_positions * (2 * reach + 1) * width >= _WORTH_IT


def spectral_responses(
    images: np.ndarray,
    bank: Filters,
    axes: tuple[np.ndarray, np.ndarray],
    largest: bool,
    out: np.ndarray,
    n_jobs: int,
) -> None:
    """Write the pooled absolute responses (k, n) of k filters to n images (n, H, W)."""
    size = (images.shape[1], images.shape[2])
    planes = [plane_of(size, axes, bank.step, int(reach)) for reach in bank.reach]
    for plane in sorted(set(planes), key=lambda plane: plane.small):
        own = np.flatnonzero([other == plane for other in planes])
        together = max(1, _SPECTRA_BYTES // plane.spectrum_bytes)
        for start in range(0, len(own), together):
            part = own[start : start + together]
            out[part] = _responses_in_plane(plane, images, bank, part, largest, n_jobs)


def _responses_in_plane(
    plane: Plane, images: np.ndarray, bank: Filters, part: np.ndarray, largest: bool, n_jobs: int
) -> np.ndarray:
    """Return the pooled absolute responses (k, n) of filters whose spectra fit into memory."""
    size = (images.shape[1], images.shape[2])
    spectra = np.empty((len(part), *plane.spectrum_shape), np.complex64)
    pooled = np.empty((len(part), len(images)), np.float32)

    def transform_filters(first: int, last: int) -> None:
        for i in range(first, last):
            spectra[i] = filter_spectrum(plane, bank.taps(part[i], size))

    def pool_images(first: int, last: int) -> None:
        for i in range(first, last):
            pooled[:, i] = _pooled(plane, images[i], spectra, largest)

    run_blocks(transform_filters, len(part), 1, n_jobs)
    run_blocks(pool_images, len(images), 1, n_jobs)
    return pooled


def _filters_together(plane: Plane) -> int:
    """Return how many filters are transformed back in one call."""
    small_bytes = 4 * plane.small[0] * plane.small[1]
    return _TOGETHER if _TOGETHER * small_bytes <= _TOGETHER_BYTES else 1


def _pooled(plane: Plane, image: np.ndarray, spectra: np.ndarray, largest: bool) -> np.ndarray:
    """Return the pooled absolute responses of filters to one image (H, W)."""
    pooled = np.empty(len(spectra), np.float32)
    rows, columns = plane.count
    together = _filters_together(plane)
    # 1) transform the image once for all filters
    seen = image_spectrum(plane, image)
    folded = np.zeros((together, plane.small[0], plane.small[1] // 2 + 1), np.complex64)
    for start in range(0, len(spectra), together):
        some = spectra[start : start + together]
        # 2) multiply and fold, so that only the wanted positions are transformed back
        _fold_all(seen, some, plane.step, plane.size[1], folded)
        # The bits of a transform do not depend on how many are made together.
        responses = irfft2(folded[: len(some)], plane.small)
        # 3) pool
        _pool_all(responses, rows, columns, largest, pooled[start : start + together])
    return pooled


def spectral_gradients(
    images: np.ndarray,
    bank: Filters,
    axes: tuple[np.ndarray, np.ndarray],
    largest: bool,
    weights: np.ndarray,
) -> list[np.ndarray]:
    """Return the gradients of Σ_ki weights_ki · feature_ki in the values of each filter."""
    # images: (n, H, W), float32; weights: (k, n); an array of the size of its taps per filter
    size = (images.shape[1], images.shape[2])
    planes = [plane_of(size, axes, bank.step, int(reach)) for reach in bank.reach]
    gradients: list[np.ndarray] = [np.empty(0)] * len(planes)
    for plane in sorted(set(planes), key=lambda plane: plane.small):
        own = [number for number, other in enumerate(planes) if other == plane]
        taps = [bank.taps(number, size) for number in own]
        spectra = [filter_spectrum(plane, values) for values in taps]
        sums = _correlations(plane, images, spectra, largest, weights[own])
        for number, values, total in zip(own, taps, sums, strict=True):
            gradients[number] = _around_origin(plane, total, values.shape)
    return gradients


def _correlations(
    plane: Plane, images: np.ndarray, spectra: list[np.ndarray], largest: bool, weights: np.ndarray
) -> np.ndarray:
    """Return the spectra of the gradients in filters' values, summed over images, complex128."""
    sums = np.zeros((len(spectra), *plane.spectrum_shape), np.complex128)
    folded = np.empty((plane.small[0], plane.small[1] // 2 + 1), np.complex64)
    derivatives = np.zeros(plane.small, np.float32)
    rows, columns = plane.count
    for i, image in enumerate(images):
        seen = image_spectrum(plane, image)
        for k, spectrum in enumerate(spectra):
            # 1) the responses at all positions, and the derivatives in them
            fold(seen, spectrum, plane.step, plane.size[1], folded)
            responses = irfft2(folded, plane.small)
            _signs(responses, weights[k, i], largest, derivatives[:rows, :columns])
            # 2) the pixels that each value of the filter met, weighted with these
            _add_correlation(seen, rfft2(derivatives), plane.step, plane.size[1], sums[k])
    return sums


def _around_origin(plane: Plane, spectrum: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the values around the origin of what a spectrum is of, (rows, columns)."""
    whole = irfft2(spectrum, plane.size)
    rows = np.arange(shape[0]) - shape[0] // 2
    columns = np.arange(shape[1]) - shape[1] // 2
    return whole[np.ix_(rows % plane.size[0], columns % plane.size[1])]
