"""LeNet-5, trained by PyTorch and timed in onnxruntime."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.lenet import LAYERS, MACS, SIDE, lenet_session
from benchmarks.peers.peer import Effort, Trained, two_parts
from scripts.reproduce.results import listed, render, stopwatch
from visionshare.datasets import ImageSet

__all__ = ["inputs_of", "learn", "torch_lenet", "weights_of"]

EPOCHS, QUICK_EPOCHS, BATCH = 10, 6, 128
RATES, TRIED_EPOCHS = (1e-3, 2e-3, 4e-3, 8e-3, 16e-3), 4


def torch_lenet() -> Any:
    """Return the network of :mod:`benchmarks.lenet`, weights as PyTorch draws them."""
    from torch import nn

    parts: dict[str, Any] = {}
    for layer in LAYERS:
        out, into = layer.shape[:2]
        if layer.convolves:
            parts[layer.name] = nn.Conv2d(into, out, layer.shape[-1], padding=layer.padding)
        else:
            parts.setdefault("flat", nn.Flatten())
            parts[layer.name] = nn.Linear(into, out)
        if layer is not LAYERS[-1]:
            parts[f"{layer.name}_relu"] = nn.ReLU()
        if layer.convolves:
            parts[f"{layer.name}_pool"] = nn.MaxPool2d(2)
    return nn.Sequential(OrderedDict(parts))


def weights_of(network: Any) -> dict[str, np.ndarray]:
    """Return the weights as :func:`benchmarks.lenet.lenet_session` wants them."""
    return {name: values.detach().numpy() for name, values in network.state_dict().items()}


def inputs_of(images: np.ndarray) -> np.ndarray:
    """Return images of bytes as (n, 1, 28, 28) in [0, 1]; those of other sizes are resized."""
    if images.shape[1:] != (SIDE, SIDE):
        import cv2

        images = np.stack([cv2.resize(image, (SIDE, SIDE)) for image in images])
    return (images.astype(np.float32) * np.float32(1 / 255))[:, None]


@contextmanager
def _torch(threads: int) -> Iterator[Any]:
    """Yield torch with a seed and a number of threads of its own; both are restored."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            yield torch
    finally:
        torch.set_num_threads(before)


def trained_weights(
    train: ImageSet, rate: float, epochs: int, threads: int
) -> dict[str, np.ndarray]:
    """Return the weights after Adam with a one-cycle rate."""
    with _torch(threads) as torch:
        X, y = torch.from_numpy(inputs_of(train.images)), torch.from_numpy(train.labels)
        network = torch_lenet()
        optimizer = torch.optim.Adam(network.parameters(), lr=rate)
        steps = epochs * -(-len(X) // BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
        for _ in range(epochs):
            for rows in torch.randperm(len(X)).split(BATCH):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(network(X[rows]), y[rows]).backward()
                optimizer.step()
                schedule.step()
        return weights_of(network)


def _predictor(weights: dict[str, np.ndarray]) -> Any:
    session = lenet_session(weights)
    return lambda images: np.argmax(session.run(None, {"image": inputs_of(images)})[0], axis=1)


def learn(train: ImageSet, effort: Effort) -> Trained:
    """Choose the highest rate on a part of the training images and train on all."""
    from importlib.metadata import version

    epochs = QUICK_EPOCHS if effort.quick else EPOCHS
    rates, tried = RATES[1::2] if effort.quick else RATES, min(epochs, TRIED_EPOCHS)
    with stopwatch() as tuning:
        part, validation = two_parts(train)
        errors = []
        for rate in rates:
            predict = _predictor(trained_weights(part, rate, tried, effort.jobs))
            errors.append(float(np.mean(predict(validation.images) != validation.labels)))
    rate = rates[int(np.argmin(errors))]
    with stopwatch() as seconds:
        weights = trained_weights(train, rate, epochs, effort.jobs)
    resized = "" if train.images.shape[1:] == (SIDE, SIDE) else f", resized to {SIDE}×{SIDE}"
    settings = render(
        "peers/lenet",
        version=version("torch"),
        jobs=effort.jobs,
        batch=BATCH,
        epochs=epochs,
        resized=resized,
        rates=listed(rates),
        n_validation=len(validation),
        tried_epochs=tried,
        n_train=len(part),
        rate=f"{rate:g}",
        error=f"{100 * min(errors):.2f}",
    )
    return Trained(_predictor(weights), f"{MACS:,}", settings, seconds[0], tuning[0])
