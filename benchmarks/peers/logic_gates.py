"""Networks of logic gates on binary pixels: learned by difflogic, computed here.

difflogic 0.1 compiles a CUDA extension when it is installed, and learns on a CUDA GPU; what it
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

__all__ = ["GateNetwork", "LogicGates", "learn", "n_used", "operation_masks", "pixel_words"]

# A pixel is ink from this byte on: difflogic rounds values of 0 to 1.
INK = 128
# Images in a word, and the most words that are computed at once.
BITS, WORDS = 64, 4
# As difflogic's authors train on MNIST.
RATE, QUICK_WIDTH = 0.01, 400


class GateNetwork(NamedTuple):
    """A network to learn: gates of a layer, layers, the temperature of its sums.

    ``deformed`` says whether it sees deformed images, anew in each epoch.
    """

    width: int
    n_layers: int
    temperature: float
    deformed: bool


class _Layer(NamedTuple):
    """Inputs of a layer's gates, where runs of one operation start, the masks of each run."""

    a: np.ndarray
    b: np.ndarray
    starts: np.ndarray
    masks: np.ndarray


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
        if len(images) == 1:
            ink = np.where(images.reshape(-1, 1) >= INK, np.uint8(255), np.uint8(0))
            last = self._last_layer(ink)[:, 0] & 1
            return np.argmax(last.reshape(self.n_classes, -1).sum(axis=1), keepdims=True)
        words = pixel_words(images)
        words = np.pad(words, ((0, 0), (0, -words.shape[1] % WORDS)))
        counts = np.empty((words.shape[1] * BITS, self.n_classes), np.int64)
        for first in range(0, words.shape[1], WORDS):
            last = self._last_layer(np.ascontiguousarray(words[:, first : first + WORDS]))
            _count(last, counts[first * BITS : (first + WORDS) * BITS])
        return np.argmax(counts[: len(images)], axis=1)

    def _last_layer(self, values: np.ndarray) -> np.ndarray:
        """Return the outputs of the last layer, of each class's gates in some order."""
        compute = _layer_loop(values.shape[1])
        for layer in self.layers:
            before = values
            values = np.empty((len(layer.a), before.shape[1]), before.dtype)
            compute(before, *layer, values)
        return values

    @cached_property
    def layers(self) -> tuple[_Layer, ...]:
        """The layers, their gates sorted by operation: a loop then has one operation."""
        found: list[_Layer] = []
        place = np.arange(1 + int(self.inputs[0].max()))
        for (a, b), operations in zip(self.inputs, self.operations, strict=True):
            part = np.zeros(len(a), np.int64)
            if len(found) + 1 == len(self.inputs):
                # Gates of a class stay beside each other.
                part = np.arange(len(a)) // (len(a) // self.n_classes)
            order = np.lexsort((operations, part))
            begins = np.flatnonzero(np.diff(16 * part[order] + operations[order])) + 1
            starts = np.concatenate([[0], begins, [len(a)]])
            inputs = (place[a[order]].astype(np.uint32), place[b[order]].astype(np.uint32))
            masks = operation_masks(operations[order][starts[:-1]])
            found.append(_Layer(*inputs, starts, masks))
            place = np.argsort(order)
        return tuple(found)


def pixel_words(images: np.ndarray) -> np.ndarray:
    """Return which pixels are ink, 64 images in a word: uint64 (pixels, words).

    Image i is bit i % 64 of word i // 64.
    """
    ink = (images.reshape(len(images), -1) >= INK).view(np.uint8)
    ink = np.pad(ink, ((0, -len(ink) % BITS), (0, 0)))
    of_eight = ink[::8].copy()
    for bit in range(1, 8):
        of_eight |= ink[bit::8] << bit
    return np.ascontiguousarray(of_eight.T).view("<u8")


def operation_masks(operations: np.ndarray) -> np.ndarray:
    """Return c of each operation's value c0 ^ c1 a ^ c2 b ^ c3 a b: uint64 (m, 4), all bits alike.

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
    def compute(
        before: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        starts: np.ndarray,
        masks: np.ndarray,
        out: np.ndarray,
    ) -> None:
        for run in range(len(masks)):
            c0, c1, c2, c3 = masks[run]
            for gate in range(starts[run], starts[run + 1]):
                for w in range(words):
                    x, y = before[a[gate], w], before[b[gate], w]
                    out[gate, w] = c0 ^ (c1 & x) ^ (c2 & y) ^ (c3 & x & y)

    return compute


@numba.njit
def _count(values: np.ndarray, counts: np.ndarray) -> None:
    """Count the true gates of each class: words have binary digits of the counts of 64 images."""
    each = len(values) // counts.shape[1]
    digits = np.empty(32, np.uint64)
    for k in range(counts.shape[1]):
        for w in range(values.shape[1]):
            digits[:] = 0
            gate, stop = k * each, (k + 1) * each
            while gate < stop:
                # Adders of three words leave half of them to those of the next digit.
                last = np.uint64(0) if gate + 1 == stop else values[gate + 1, w]
                odd = digits[0] ^ values[gate, w]
                carry = (digits[0] & values[gate, w]) | (odd & last)
                digits[0] = odd ^ last
                d = 1
                while carry != 0:
                    digits[d], carry = digits[d] ^ carry, digits[d] & carry
                    d += 1
                gate += 2
            for i in range(64):
                total = np.int64(0)
                for d in range(32):
                    total |= np.int64((digits[d] >> np.uint64(i)) & np.uint64(1)) << d
                counts[64 * w + i, k] = total


def n_used(gates: LogicGates) -> int:
    """Return how many gates the sums depend on."""
    wanted, found = np.ones(len(gates.operations[-1]), bool), 0
    for i in reversed(range(len(gates.inputs))):
        found += int(wanted.sum())
        if i > 0:
            (a, b), masks = gates.inputs[i], operation_masks(gates.operations[i]) != 0
            before = np.zeros(len(gates.operations[i - 1]), bool)
            before[a[wanted & masks[:, [1, 3]].any(axis=1)]] = True
            before[b[wanted & masks[:, [2, 3]].any(axis=1)]] = True
            wanted = before
    return found


def _fitted(
    train: ImageSet, effort: Effort, network: GateNetwork
) -> tuple[LogicGates, float, float]:
    """Return what difflogic learns in wall-clock seconds, its epochs and its seconds."""
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


def learn(train: ImageSet, effort: Effort, choice: Choice, network: GateNetwork) -> Trained:
    """Train on all images, for the seconds of a network, with the authors' settings."""
    import torch

    found, epochs, seconds = _fitted(train, effort, network)
    n_gates = sum(len(each) for each in found.operations)
    used = n_used(found)
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "the processor"
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
        gpu=gpu,
        bits=BITS,
        ink=INK,
    )
    # Two numbers of 16 bits and an operation of four.
    n_bytes = used * 9 // 2
    # Its seconds are those of a GPU, not of the processor.
    return Trained(found, None, f"{used:,} gates", n_bytes, settings, None)
