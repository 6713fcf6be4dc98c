"""Networks of logic gates on binary pixels: learned by difflogic, computed here.

difflogic 0.1 compiles a CUDA extension when it is installed, and learns on a card of CUDA; what it
learned is kept and computed without it.

References
----------
F. Petersen, C. Borgelt, H. Kuehne, O. Deussen, "Deep differentiable logic gate networks", NeurIPS
2022.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from typing import Any, NamedTuple

import numba
import numpy as np

from benchmarks.peers.networks import BATCH, batches
from benchmarks.peers.peer import Choice, Effort, Trained
from scripts.reproduce.results import render
from visionshare.datasets import ImageSet

__all__ = ["Gates", "LogicGates", "learn", "n_used", "operation_masks", "pixel_words"]

# A pixel is ink from this byte on: difflogic rounds values of 0 to 1.
INK = 128
# Images in a word, and the most words that are computed at once.
BITS, WORDS = 64, 4
# As difflogic's authors train on MNIST.
RATE, QUICK_WIDTH = 0.01, 400


class Gates(NamedTuple):
    """A network to learn: gates of a layer, layers, the temperature of its sums.

    ``deformed`` says whether it sees deformed images, anew in each epoch.
    """

    width: int
    n_layers: int
    temperature: float
    deformed: bool


@dataclass(frozen=True, eq=False)
class LogicGates:
    """Layers of gates of two inputs; the most true gates of a last layer's parts give the class.

    Attributes
    ----------
    inputs : tuple of ndarray of int32, shape (2, gates)
        Which outputs of the layer before each gate of a layer takes; the first takes pixels.
    operations : tuple of ndarray of uint8, shape (gates,)
        Four bits of each gate: its values for inputs 11, 10, 01, 00, the lowest first.
    n_classes : int
        Parts of the last layer, of equal size.
    """

    inputs: tuple[np.ndarray, ...]
    operations: tuple[np.ndarray, ...]
    n_classes: int

    def __reduce__(self) -> Any:
        return type(self), (self.inputs, self.operations, self.n_classes)

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Return the labels of images (n, H, W) of bytes."""
        words = pixel_words(images)
        per_call = 1 if words.shape[1] == 1 else WORDS
        missing = -words.shape[1] % per_call
        words = np.pad(words, ((0, 0), (0, missing)))
        layer = _layer_loop(per_call)
        labels = np.empty(words.shape[1] * BITS, np.int64)
        for first in range(0, words.shape[1], per_call):
            values = np.ascontiguousarray(words[:, first : first + per_call])
            for (a, b), masks in zip(self.inputs, self.masks, strict=True):
                before, values = values, np.empty((len(a), per_call), np.uint64)
                layer(before, a, b, masks, values)
            counts = np.zeros((per_call * BITS, self.n_classes), np.int64)
            _counts(values, counts)
            labels[first * BITS : (first + per_call) * BITS] = np.argmax(counts, axis=1)
        return labels[: len(images)]

    @cached_property
    def masks(self) -> tuple[np.ndarray, ...]:
        """The operations of each layer as :func:`operation_masks` has them."""
        return tuple(operation_masks(each) for each in self.operations)


def pixel_words(images: np.ndarray) -> np.ndarray:
    """Return which pixels are ink, 64 images in a word: uint64 (pixels, words).

    Image i is bit i % 64 of word i // 64.
    """
    ink = images.reshape(len(images), -1) >= INK
    ink = np.pad(ink, ((0, -len(ink) % BITS), (0, 0)))
    packed = np.packbits(ink, axis=0, bitorder="little")
    parts = packed.reshape(-1, BITS // 8, packed.shape[1]).transpose(2, 0, 1)
    return np.ascontiguousarray(parts).view("<u8")[:, :, 0]


def operation_masks(operations: np.ndarray) -> np.ndarray:
    """Return c of each gate's value c0 ^ c1 a ^ c2 b ^ c3 a b: uint64 (gates, 4), all bits alike.

    It is the algebraic normal form of the four values.
    """
    of_11, of_10, of_01, of_00 = ((operations >> bit) & 1 for bit in range(4))
    coefficients = [of_00, of_00 ^ of_10, of_00 ^ of_01, of_00 ^ of_10 ^ of_01 ^ of_11]
    bits = np.stack(coefficients, axis=1).astype(bool)
    return np.where(bits, ~np.uint64(0), np.uint64(0))


@cache
def _layer_loop(words: int) -> Any:
    """Return a compiled layer for a number of words that the compiler knows."""

    @numba.njit
    def layer(
        before: np.ndarray, a: np.ndarray, b: np.ndarray, masks: np.ndarray, out: np.ndarray
    ) -> None:
        for gate in range(len(a)):
            for w in range(words):
                x, y = before[a[gate], w], before[b[gate], w]
                out[gate, w] = (
                    masks[gate, 0]
                    ^ (masks[gate, 1] & x)
                    ^ (masks[gate, 2] & y)
                    ^ (masks[gate, 3] & x & y)
                )

    return layer


@numba.njit
def _counts(values: np.ndarray, counts: np.ndarray) -> None:
    """Count the true gates of each class for each image, by counters of one bit of all images."""
    n_words, n_classes = values.shape[1], counts.shape[1]
    each = len(values) // n_classes
    digits = np.zeros(32, np.uint64)
    for w in range(n_words):
        for k in range(n_classes):
            digits[:] = 0
            n_digits = 0
            for gate in range(k * each, (k + 1) * each):
                carry, d = values[gate, w], 0
                while carry != 0:
                    digits[d], carry = digits[d] ^ carry, digits[d] & carry
                    d += 1
                n_digits = max(n_digits, d)
            for i in range(64):
                for d in range(n_digits):
                    bit = (digits[d] >> np.uint64(i)) & np.uint64(1)
                    counts[64 * w + i, k] += np.int64(bit) << d


def n_used(gates: LogicGates) -> int:
    """Return how many gates the sums depend on."""
    wanted, found = np.ones(len(gates.operations[-1]), bool), 0
    for i in reversed(range(len(gates.inputs))):
        found += int(wanted.sum())
        if i > 0:
            (a, b), masks = gates.inputs[i], gates.masks[i] != 0
            before = np.zeros(len(gates.operations[i - 1]), bool)
            before[a[wanted & masks[:, [1, 3]].any(axis=1)]] = True
            before[b[wanted & masks[:, [2, 3]].any(axis=1)]] = True
            wanted = before
    return found


def _fitted(train: ImageSet, effort: Effort, network: Gates) -> tuple[LogicGates, float, float]:
    """Return what difflogic learns in the seconds of the clock, its epochs and its seconds."""
    import torch
    from difflogic import GroupSum, LogicLayer

    device = "cuda" if torch.cuda.is_available() else "cpu"
    width = QUICK_WIDTH if effort.quick else network.width
    n_pixels, n_classes = train.images[0].size, len(train.classes)
    torch.manual_seed(effort.seed)
    sizes = [n_pixels] + [width] * network.n_layers
    layers = [
        LogicLayer(before, after, device=device, connections="unique")
        for before, after in itertools.pairwise(sizes)
    ]
    model = torch.nn.Sequential(*layers, GroupSum(n_classes, network.temperature, device))
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    recipe = effort.recipe if network.deformed else None
    begun, seen = time.perf_counter(), 0
    for images, labels in batches(train, recipe, effort.seed, effort.jobs):
        rows = torch.from_numpy(np.ascontiguousarray(images)).to(device).flatten(1)
        optimizer.zero_grad()
        scores = model(rows.float() / 255)
        torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels).to(device)).backward()
        optimizer.step()
        seen += len(images)
        if time.perf_counter() - begun > effort.seconds:
            break
    inputs = tuple(
        np.stack([part.cpu().numpy() for part in layer.indices]).astype(np.int32)
        for layer in layers
    )
    operations = tuple(layer.weights.argmax(-1).cpu().numpy().astype(np.uint8) for layer in layers)
    found = LogicGates(inputs, operations, n_classes)
    return found, seen / len(train), time.perf_counter() - begun


def learn(train: ImageSet, effort: Effort, choice: Choice, network: Gates) -> Trained:
    """Train on all images, for the seconds of a network, with the authors' settings."""
    import torch

    found, epochs, seconds = _fitted(train, effort, network)
    n_gates = sum(len(each) for each in found.operations)
    used = n_used(found)
    card = torch.cuda.get_device_name() if torch.cuda.is_available() else "the processor"
    settings = render(
        "peers/logic_gates",
        version=version("difflogic"),
        layers=network.n_layers,
        gates=f"{n_gates:,}",
        used=f"{used:,}",
        rate=f"{RATE:g}",
        temperature=f"{network.temperature:g}",
        batch=BATCH,
        seen="deformed anew in each epoch" if network.deformed else "not deformed",
        epochs=f"{epochs:.0f}",
        seconds=f"{seconds:.0f}",
        card=card,
        bits=BITS,
        ink=INK,
    )
    # Two numbers of 16 bits and an operation of four.
    n_bytes = used * 9 // 2
    return Trained(found, None, f"{used:,} gates", n_bytes, settings, seconds)
