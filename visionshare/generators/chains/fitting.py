"""Templates of chains: patches of images, then of each map of the layer before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.chains.layers import Layer, layer, maps_of
from visionshare.generators.maps.fitting import sampled_templates

__all__ = ["MEASURED", "learned_layers"]

# Images whose maps give the templates of later layers.
MEASURED = 2000


def learned_layers(
    images: Any, sizes: Sequence[int], pools: Sequence[int], counts: dict[str, int],
    n_patches: int, random_state: int,
) -> list[Layer]:  # fmt: skip
    """Return the layers of chains: each map is followed by as many templates as any, or one more.

    Parameters
    ----------
    images : ndarray of shape (n, H, W, C), uint8 or float32
    sizes, pools : sequence of int
        Side of a template and side of a cell, layer by layer.
    counts : dict of str to int
        Templates of each layer, under the name of the parameter that says how many.
    n_patches : int
        Patches drawn in each layer.
    random_state : int
        Seed.

    Raises
    ------
    InputError
        If the images, or a map of them, have too few patches with contrast.
    """
    rng = np.random.default_rng(random_state)
    few = images[np.sort(rng.choice(len(images), min(len(images), MEASURED), replace=False))]
    layers: list[Layer] = []
    for (name, n), size, pool in zip(counts.items(), sizes, pools, strict=True):
        n_before = len(layers[-1].templates) if layers else 1
        parents = np.arange(n) * n_before // n
        # All images give the first templates.
        below = maps_of(layers, few)[0][-1] if layers else images
        drawn = []
        for p in np.unique(parents):
            alone = np.ascontiguousarray(below[..., p : p + 1]) if layers else below
            seed, patches = int(rng.integers(2**31)), -(-n_patches // n_before)
            try:
                wanted = int((parents == p).sum())
                drawn.append(sampled_templates(alone, size, 0, wanted, patches, seed))
            except InputError as error:
                accepted = f"less: here it takes {wanted} patches of a map; {error.accepted}"
                raise InputError(name, n, accepted) from None
        biases = np.zeros(n, np.float32)
        layers.append(layer(np.concatenate(drawn), biases, parents, n_before, pool))
    return layers
