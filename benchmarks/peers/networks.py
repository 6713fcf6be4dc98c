"""Small networks, trained by PyTorch for given seconds and timed in onnxruntime."""

from __future__ import annotations

import itertools
import math
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.architectures import KINDS, Layers, Width, width_within
from benchmarks.layers import (
    Normalization,
    Shape,
    branches,
    fold,
    macs,
    n_weights,
    shapes,
    weight_shape,
)
from benchmarks.onnx_networks import BRANCHES, network_session, onnx_network, random_weights
from benchmarks.peers.peer import Choice, Effort, Trained, two_parts
from scripts.reproduce.results import listed, render
from visionshare.datasets import ImageSet
from visionshare.errors import InputError
from visionshare.recipes import load_recipe
from visionshare.recipes.stages.images import copies_of

__all__ = [
    "Inputs",
    "Network",
    "NetworkPredictor",
    "Plan",
    "batches",
    "folded_weights",
    "learn",
    "one_cycle",
    "torch_network",
    "tune",
    "untrained",
]

RATES, QUICK_RATES, SMOOTHINGS = (2e-3, 5e-3, 1.25e-2), (5e-3,), (0.0, 0.1)
# Settings are chosen once for each kind, at a budget between the least and the most.
TUNED_AT, FINALISTS = 4e5, 2
BATCH, CHUNK, WARMING, DECAY, LEAST_SIDE = 128, 4096, 0.2, 0.01, 28


class Network(NamedTuple):
    """A network to train: a name of KINDS, what it may cost, and whether images are deformed.

    Without a budget it has the width that was published.
    """

    kind: str
    budget: float | None
    deformed: bool

    def layers(self, shape: Shape, classes: int) -> Layers:
        """Return its layers for images of a shape."""
        kind = KINDS[self.kind]
        width = Width(kind.first, 1.0)
        if self.budget is not None:
            width = width_within(kind, self.budget, shape, classes)
        return kind.make(width, shape, classes)


class Plan(NamedTuple):
    """How a network is trained: its highest rate, its label smoothing, for how long."""

    rate: float
    smoothing: float
    seconds: float


class Inputs(NamedTuple):
    """How images become a network's inputs: pixels less their mean, over their deviation."""

    mean: float
    deviation: float

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Return (n, C, H, W), float32, of images of bytes; small ones are enlarged."""
        if min(images.shape[1:3]) < LEAST_SIDE:
            import cv2

            images = np.stack([cv2.resize(image, (LEAST_SIDE, LEAST_SIDE)) for image in images])
        values = images.astype(np.float32)
        values -= np.float32(self.mean)
        values *= np.float32(1 / self.deviation)
        if values.ndim == 3:
            return values[:, None]
        return np.ascontiguousarray(values.transpose(0, 3, 1, 2))


def inputs_of(train: ImageSet) -> Inputs:
    """Return the inputs whose pixels have mean 0 and variance 1 on the training images."""
    return Inputs(float(train.images.mean()), max(1.0, float(train.images.std())))


class NetworkPredictor:
    """The labels that a network of ONNX gives to images."""

    def __init__(self, network: bytes, inputs: Inputs) -> None:
        self.parts, self._inputs = (network, inputs), inputs
        self._session = network_session(network)

    def __reduce__(self) -> Any:
        return type(self), self.parts

    def __call__(self, images: np.ndarray) -> np.ndarray:
        (scores,) = self._session.run(None, {"image": self._inputs(images)})
        return np.argmax(scores, axis=1)


def one_cycle(part: float) -> float:
    """Return the fraction of the highest rate after a part of the training, in [0, 1].

    It rises evenly for the first fifth, and then falls to 0 along half a cosine.
    """
    if part < WARMING:
        return max(part / WARMING, 0.04)
    return 0.5 + 0.5 * math.cos(math.pi * min(1.0, (part - WARMING) / (1 - WARMING)))


def batches(
    train: ImageSet, recipe: str | None, seed: int, jobs: int = 1
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield images and labels without end, each epoch in an order of its own.

    With a recipe they are deformed as it says, anew in each epoch.
    """
    deforming = None if recipe is None else load_recipe(recipe, [f"seed={seed}"])
    if deforming is not None and deforming.deformations is None:
        raise InputError("recipe", recipe, "a recipe with [deformations]")
    rng, n, number = np.random.default_rng(seed), len(train), itertools.count()
    while True:
        order = rng.permutation(n)
        for rows in (order[first : first + CHUNK] for first in range(0, n, CHUNK)):
            images = train.images[rows]
            if deforming is not None:
                # The number of the copy makes the deformations of each chunk new.
                augmentation = deforming.deformations.build()
                images = copies_of(images, augmentation, seed, next(number), 1, jobs)
            for first in range(0, len(rows), BATCH):
                part = slice(first, first + BATCH)
                yield images[part], train.labels[rows[part]]


def torch_network(layers: Layers, shape: Shape) -> Any:
    """Return PyTorch's network, its weights as PyTorch draws them."""
    from torch import channels_last, nn

    parts: dict[str, Any] = {}
    for i, (layer, before) in enumerate(zip(layers, shapes(layers, shape), strict=False)):
        weights = weight_shape(layer, before)
        if layer.kind == "dense":
            parts[f"{i}_flat"] = nn.Flatten()
            parts[f"{i}"] = nn.Linear(weights[1], weights[0])
        elif layer.kind == "maximum":
            parts[f"{i}"] = nn.MaxPool2d(layer.side, layer.stride)
        elif layer.kind == "mean":
            parts[f"{i}"] = nn.AdaptiveAvgPool2d(1)
        elif layer.kind == "residual":
            parts[f"{i}"] = _sum([torch_network(part, before) for part in branches(layer, before)])
        else:
            groups = before[0] if layer.kind == "depthwise" else 1
            parts[f"{i}"] = nn.Conv2d(
                before[0], weights[0], layer.side, layer.stride, layer.padding,
                groups=groups, bias=not layer.normalized,
            )  # fmt: skip
        if layer.normalized:
            parts[f"{i}_normalization"] = nn.BatchNorm2d(weights[0])
        if layer.rectified:
            parts[f"{i}_relu"] = nn.ReLU()
    # Depthwise convolutions then train in half of the time.
    return nn.Sequential(OrderedDict(parts)).to(memory_format=channels_last)


def _sum(parts: list[Any]) -> Any:
    """Return the sum of networks that see the same input."""
    from torch import nn

    class Sum(nn.ModuleDict):
        def forward(self, values: Any) -> Any:
            return sum(part(values) for part in self.values())

    return Sum(zip(BRANCHES, parts, strict=True))


def folded_weights(network: Any) -> dict[str, np.ndarray]:
    """Return the weights as :func:`benchmarks.onnx_networks.onnx_network` wants them."""
    modules: dict[str, Any] = dict(network.named_children())
    weights: dict[str, np.ndarray] = {}
    for name, module in modules.items():
        if not name.isdigit():
            continue
        for branch, part in module.named_children():
            inside = folded_weights(part)
            weights |= {f"{name}.{branch}.{key}": values for key, values in inside.items()}
        if not hasattr(module, "weight"):
            continue
        values = {key: value.detach().numpy() for key, value in module.named_parameters()}
        if f"{name}_normalization" in modules:
            norm = modules[f"{name}_normalization"]
            parts = (norm.weight, norm.bias, norm.running_mean, norm.running_var)
            gamma, beta, mean, variance = (part.detach().numpy() for part in parts)
            normalization = Normalization(gamma, beta, mean, variance, norm.eps)
            folded = fold(values["weight"], normalization)
            values = dict(zip(("weight", "bias"), folded, strict=True))
        weights |= {f"{name}.{key}": value for key, value in values.items()}
    return weights


@contextmanager
def _torch(threads: int, seed: int) -> Iterator[Any]:
    """Yield torch with a seed and a number of threads of its own; both are restored."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield torch
    finally:
        torch.set_num_threads(before)


class Fitted(NamedTuple):
    """A trained network, its layers and shape, and what the training took."""

    predict: NetworkPredictor
    layers: Layers
    shape: Shape
    epochs: float
    seconds: float


def fit(network: Network, train: ImageSet, plan: Plan, effort: Effort) -> Fitted:
    """Train by AdamW; the rate follows the clock, so that training ends when its seconds do.

    Seconds are processor time over threads: those of a machine without other jobs. Making of the
    network, preparation and deformation of images count; imports do not.
    """
    _warm_up()
    return _fit(network, train, plan, effort)


@cache
def _warm_up() -> None:
    """Train a network for a step, so that what is imported at first use is."""
    images = np.zeros((4, LEAST_SIDE, LEAST_SIDE), np.uint8)
    blank = ImageSet(images, np.zeros(4, np.int64), ("one", "other"), "blank")
    _fit(Network("normalized", 1e5, True), blank, Plan(1e-3, 0.0, 1e-9), Effort(1, True))


def _fit(network: Network, train: ImageSet, plan: Plan, effort: Effort) -> Fitted:
    recipe, seen = effort.recipe if network.deformed else None, 0
    with _torch(effort.jobs, effort.seed) as torch:
        begun = time.process_time()
        inputs, layers, shape = _made_for(train, network)
        model = torch_network(layers, shape)
        loss = torch.nn.CrossEntropyLoss(label_smoothing=plan.smoothing)
        optimizer = torch.optim.AdamW(model.parameters(), lr=plan.rate, weight_decay=DECAY)
        for images, labels in batches(train, recipe, effort.seed, effort.jobs):
            part = (time.process_time() - begun) / effort.jobs / plan.seconds
            # One step at least.
            if part >= 1 and seen:
                break
            for group in optimizer.param_groups:
                group["lr"] = plan.rate * one_cycle(part)
            optimizer.zero_grad()
            values = torch.from_numpy(inputs(images)).to(memory_format=torch.channels_last)
            loss(model(values), torch.from_numpy(labels)).backward()
            optimizer.step()
            seen += len(images)
        weights = folded_weights(model)
    predict = NetworkPredictor(onnx_network(layers, shape, weights), inputs)
    seconds = (time.process_time() - begun) / effort.jobs
    return Fitted(predict, layers, shape, seen / len(train), seconds)


def _made_for(train: ImageSet, network: Network) -> tuple[Inputs, Layers, Shape]:
    inputs = inputs_of(train)
    _, *sides = inputs(train.images[:1]).shape
    shape = (sides[0], sides[1], sides[2])
    return inputs, network.layers(shape, len(train.classes)), shape


def untrained(train: ImageSet, network: Network) -> NetworkPredictor:
    """Return a network to be timed, of random weights: its cost does not depend on them."""
    inputs, layers, shape = _made_for(train, network)
    return NetworkPredictor(onnx_network(layers, shape, random_weights(layers, shape)), inputs)


def _error(fitted: Fitted, images: ImageSet) -> float:
    return float(np.mean(fitted.predict(images.images) != images.labels))


def tune(train: ImageSet, effort: Effort, network: Network) -> Choice:
    """Choose rate and smoothing for networks of a kind, of whatever budget.

    All pairs share half of the seconds; the two best of them share the other half.
    """
    part, validation = two_parts(train)
    effort = effort._replace(seed=0)
    if network.budget is not None:
        network = network._replace(budget=TUNED_AT)
    rates = QUICK_RATES if effort.quick else RATES
    pairs = list(itertools.product(rates, SMOOTHINGS))
    each, longer = effort.tuning / 2 / len(pairs), effort.tuning / 2 / FINALISTS

    def tried(pair: tuple[float, float], seconds: float) -> float:
        return _error(fit(network, part, Plan(*pair, seconds), effort), validation)

    errors = [tried(pair, each) for pair in pairs]
    finalists = [pairs[i] for i in np.argsort(errors, kind="stable")[:FINALISTS]]
    final = [tried(pair, longer) for pair in finalists]
    rate, smoothing = finalists[int(np.argmin(final))]
    return {
        "rate": rate,
        "smoothing": smoothing,
        "error": min(final),
        "rates": list(rates),
        "errors": errors,
        "finalists": [list(pair) for pair in finalists],
        "errors of finalists": final,
        "seconds of each": each,
        "seconds of finalists": longer,
        "n_train": len(part),
        "n_validation": len(validation),
    }


def learn(train: ImageSet, effort: Effort, choice: Choice, network: Network) -> Trained:
    """Train on all images with the rate and the smoothing that were chosen."""
    from importlib.metadata import version

    plan = Plan(choice["rate"], choice["smoothing"], effort.seconds)
    fitted = fit(network, train, plan, effort)
    count = macs(fitted.layers, fitted.shape)
    deformed = f"deformed as {Path(effort.recipe).stem} says"
    tuned_at = f"At {TUNED_AT / 1e6:g} million multiply-accumulates, for all budgets"
    settings = render(
        "peers/network",
        version=version("torch"),
        jobs=effort.jobs,
        maps=listed(layer.out for layer in fitted.layers if layer.out),
        kind=KINDS[network.kind].name,
        deformed=deformed if network.deformed else "not deformed",
        batch=BATCH,
        epochs=f"{fitted.epochs:.1f}",
        seconds=f"{plan.seconds:g}",
        rates=listed(choice["rates"]),
        smoothings=listed(SMOOTHINGS),
        each=f"{choice['seconds of each']:.0f}",
        n_validation=choice["n_validation"],
        n_train=choice["n_train"],
        rate=f"{plan.rate:g}",
        smoothing=f"{plan.smoothing:g}",
        tuned_at="" if network.budget is None else tuned_at,
        longer=f"{choice['seconds of finalists']:.0f}",
        error=f"{100 * choice['error']:.2f}",
    )
    n_bytes = 4 * n_weights(fitted.layers, fitted.shape)
    return Trained(fitted.predict, count, f"{count:,}", n_bytes, settings, fitted.seconds)
