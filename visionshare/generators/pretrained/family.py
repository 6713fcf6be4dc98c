"""Pooled activations of a pretrained network, as features."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import (
    FeatureFamily,
    Ids,
    check_feature,
    check_features,
    check_images,
)
from visionshare.generators.checks import check_whole
from visionshare.generators.contributions import whole_boxes
from visionshare.generators.layer_summary import LayerSummary
from visionshare.generators.pretrained import efficientnet
from visionshare.generators.pretrained.network import NetworkPart, activation_maps, cut, pooled
from visionshare.generators.states import Arrays, State, StateAndArrays, family_state, unfitted
from visionshare.machine.resources import run_blocks

_LARGEST_SIDE = 1024
# Dimensions of maps (n, C, H, W).
_PLANE = 4


@dataclass(eq=False, repr=False)
class PretrainedNetwork(FeatureFamily):
    """Mean activations of the channels of a pretrained network.

    The network was learned by others, from other pictures; here nothing is learned. Without
    pictures by the thousand, its features tell photographs apart far better than those learned
    from the pictures at hand.

    Parameters
    ----------
    network : str or path-like, default "efficientnet-lite0"
        EfficientNet-Lite0 of the extra ``visionshare[pretrained]``, or an ONNX file of one input
        (n, 3, H, W), or (n, 1, H, W), of standard operators, that holds its own numbers.
    places : sequence of str, optional
        Names of tensors of the network, (n, C, H, W) or (n, C). Of EfficientNet-Lite0 the outputs
        of its seven stages and of its head when omitted; of a file they must be given.
    size : int, default 224
        Side that pictures are resized to.
    mean, std : sequence of float, optional
        Of each channel of bytes: the network sees (value − mean) / std. Those of
        EfficientNet-Lite0, (127, 127, 127) and (128, 128, 128), when omitted; their number is
        that of the network's channels.
    power : float, default 1.0
        Of the size of an activation, whose sign is kept. With 0.5 the few large ones say less:
        better for linear classifiers, above all of few pictures.

    Attributes
    ----------
    ids_ : ndarray of shape (n_features_,), int64
        Number of each feature among all of the places.
    n_features_ : int
    image_shape_ : tuple of int

    Notes
    -----
    Pictures run one by one, so that columns have the same bits in batches of any size and for any
    number of threads; processors of another kind round differently. The network is cut at the
    deepest place that a chosen feature needs, and only this part counts in the costs. A
    classifier's file holds that part of an ONNX file; EfficientNet-Lite0 is named by its digest,
    and the extra has to be installed where the classifier is used.

    References
    ----------
    M. Tan, Q. Le, "EfficientNet: rethinking model scaling for convolutional neural networks",
    ICML 2019.

    Examples
    --------
    >>> PretrainedNetwork(size=112)
    PretrainedNetwork(size=112)
    """

    name = "pretrained"
    network: str | os.PathLike[str] = efficientnet.NAME
    places: Sequence[str] | None = None
    size: int = 224
    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None
    power: float = 1.0

    def check_parameters(self) -> None:
        if not isinstance(self.network, (str, os.PathLike)):
            accepted = f"{efficientnet.NAME!r}, or the path of an ONNX file"
            raise InputError("network", self.network, accepted)
        check_whole("size", self.size, most=_LARGEST_SIDE)
        listed = isinstance(self.places, (list, tuple)) and len(self.places) > 0
        named = listed and all(isinstance(place, str) for place in self.places or ())
        if not named and not (self.places is None and self._is_named):
            raise InputError("places", self.places, "a list of names of tensors of the network")
        if len(set(self._places)) < len(self._places):
            raise InputError("places", self.places, "each place once")
        for name in ("mean", "std"):
            self._check_channels(name, getattr(self, name))
        is_number = isinstance(self.power, Real) and not isinstance(self.power, bool)
        if not is_number or not 0.1 <= float(self.power) <= 1:
            raise InputError("power", self.power, "a number from 0.1 to 1")
        if len(self._mean) != len(self._std):
            raise InputError("std", self.std, f"{len(self._mean)} numbers, as mean has")

    def _check_channels(self, name: str, values: Any) -> None:
        """Raise an InputError unless there is a number for each of 1 or 3 channels."""
        if values is None:
            return
        listed = isinstance(values, (list, tuple)) and len(values) in (1, 3)
        if not listed or not all(isinstance(v, Real) and np.isfinite(float(v)) for v in values):
            raise InputError(name, values, "1 or 3 numbers, in the unit of bytes")
        if name == "std" and min(values) <= 0:
            raise InputError(name, values, "numbers above 0")

    @property
    def _is_named(self) -> bool:
        """Whether the network is the extra's."""
        return str(self.network) == efficientnet.NAME

    @property
    def _places(self) -> tuple[str, ...]:
        return efficientnet.PLACES if self.places is None else tuple(self.places)

    @property
    def _mean(self) -> tuple[float, ...]:
        return tuple(float(v) for v in (efficientnet.MEAN if self.mean is None else self.mean))

    @property
    def _std(self) -> tuple[float, ...]:
        return tuple(float(v) for v in (efficientnet.STD if self.std is None else self.std))

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> PretrainedNetwork:
        """Take the shape of the images, and read the network.

        Raises
        ------
        InputError
            If a parameter is out of range, or the file is no network.
        ExportError
            If the extra is not installed.
        """
        self.check_parameters()
        self._see(images)
        self._check_shape()
        if self._is_named:
            self._content = efficientnet.efficientnet_lite0()
            self._source = ""
        else:
            try:
                self._content = Path(self.network).read_bytes()
            except OSError as error:
                accepted = f"{efficientnet.NAME!r}, or an ONNX file that can be read"
                raise InputError("network", str(self.network), accepted) from error
            self._source = hashlib.sha256(self._content).hexdigest()
            self._content = self.part(self._places).content
        return self._with(None)

    def _check_shape(self) -> None:
        if len(self.image_shape_) == 3 and self.image_shape_[2] not in (1, 3):
            raise InputError("images", self.image_shape_, "gray or color images")

    def _with(self, ids: np.ndarray | None) -> PretrainedNetwork:
        """Set the features, all where there are no ids."""
        self._widths = self.part(self._places).widths
        self.ids_ = np.arange(sum(self._widths)) if ids is None else ids
        self.n_features_ = len(self.ids_)
        return self

    def part(self, places: tuple[str, ...]) -> NetworkPart:
        """Return the part of the network that some places need."""
        shape = (len(self._mean), int(self.size), int(self.size))
        return cut(self._content, places, shape)

    def used_places(self, ids: Ids = None) -> tuple[tuple[str, ...], np.ndarray]:
        """Return the places of features, and each feature's number within its places."""
        numbers = self.ids_[check_features(ids, self.n_features_)]
        starts = np.concatenate([[0], np.cumsum(self._widths)])
        place = np.searchsorted(starts, numbers, side="right") - 1
        used = np.unique(place)
        widths = np.array(self._widths)[used]
        before = np.concatenate([[0], np.cumsum(widths)])
        new = before[np.searchsorted(used, place)] + numbers - starts[place]
        return tuple(self._places[p] for p in used), new

    def transform(self, images: np.ndarray, features: Ids = None, n_jobs: int = 1) -> np.ndarray:
        """Return features (n_images, n), float32; the network runs up to the deepest place."""
        ids = check_features(features, self.n_features_)
        images = check_images(images, self.image_shape_)
        out = np.empty((len(images), len(ids)), np.float32)
        if len(ids) == 0 or len(images) == 0:
            return out
        places, numbers = self.used_places(ids)
        part = self.part(places)

        def block(start: int, stop: int) -> None:
            for i in range(start, stop):
                values = pooled(part.content, self._prepared(images[i]), places)
                out[i] = values[numbers]

        run_blocks(block, len(images), 1, n_jobs)
        if not np.isfinite(out).all():
            raise InputError("network", "NaN or infinity", "a network of finite activations")
        if self.power != 1:
            out = np.copysign(np.abs(out) ** np.float32(self.power), out)
        return out

    def _prepared(self, image: np.ndarray) -> np.ndarray:
        """Return an image (H, W, C) as the network sees it, (1, C, size, size)."""
        pixels = image.astype(np.float32)
        if image.dtype != np.uint8:
            pixels *= np.float32(255)
        side = int(self.size)
        if pixels.shape[:2] != (side, side):
            pixels = self._resized(pixels, (side, side)).reshape(side, side, -1)
        mean, std = self.normalization()
        if pixels.shape[2] != len(mean):
            color = len(mean) == 3
            pixels = np.repeat(pixels, 3, axis=2) if color else pixels.mean(axis=2, keepdims=True)
        seen: np.ndarray = (pixels - mean) / std
        return np.ascontiguousarray(seen.transpose(2, 0, 1)[None])

    def _resized(self, pixels: np.ndarray, sides: tuple[int, int]) -> np.ndarray:
        """Return pixels of these sides; means of areas where images are larger than the network."""
        import cv2

        shrinks = min(self.image_shape_[:2]) > self.size
        way = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
        return cv2.resize(pixels, sides[::-1], interpolation=way)

    def resizing(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrices (size, H) and (size, W) that resize columns and rows of an image."""
        height, width = (
            self._resized(np.eye(side, dtype=np.float32), (int(self.size), side))
            for side in self.image_shape_[:2]
        )
        return height, width

    def normalization(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the deviation of each of the network's channels, float32."""
        return np.asarray(self._mean, np.float32), np.asarray(self._std, np.float32)

    def boxes(self, image: np.ndarray) -> np.ndarray:
        """Return where each activation is at least half of its strongest, around that place.

        The map of a channel before pooling is brought to the size of the image. Where the mean is
        negative, the strongest activation is the lowest. Outputs without a plane saw everything.
        """
        boxes = whole_boxes(self.n_features_, self.image_shape_)
        image = check_images(np.asarray(image)[None], self.image_shape_)[0]
        places, numbers = self.used_places()
        content = self.part(places).content
        planes = [
            plane if maps.ndim == _PLANE else None
            for maps in activation_maps(content, self._prepared(image), places)
            for plane in maps[0]
        ]
        for j, number in enumerate(numbers):
            plane = planes[number]
            if plane is not None:
                boxes[j] = _strongest_region(plane, self.image_shape_[:2])
        return boxes

    @property
    def blocks(self) -> tuple[int, ...]:
        """Number of features of each place."""
        ends = np.cumsum(self._widths)
        place = np.searchsorted(ends, self.ids_, side="right")
        return tuple(int(n) for n in np.bincount(place) if n)

    def block_ids(self, features: np.ndarray) -> list[np.ndarray]:
        """Return these ids together: the deepest costs as much as all."""
        return [check_features(features, self.n_features_)]

    def macs(self, features: Ids = None) -> int:
        """Return the multiply-accumulates per image of the network up to the deepest place."""
        ids = check_features(features, self.n_features_)
        return self.part(self.used_places(ids)[0]).macs if len(ids) else 0

    def nbytes(self, features: Ids = None) -> int:
        """Return the bytes of the part of the network, and of the ids."""
        ids = check_features(features, self.n_features_)
        if len(ids) == 0:
            return 0
        return _whole(len(self.part(self.used_places(ids)[0]).content)) + 8 * len(ids)

    @property
    def bytes_elsewhere(self) -> int:
        """Bytes of the part of EfficientNet-Lite0, which the extra holds."""
        if not self._is_named or self.n_features_ == 0:
            return 0
        return self.nbytes() - self.ids_.nbytes

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        return self._by_place(self.macs, chosen, features)

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        # An id each; the first pays for the part of the network.
        return self._by_place(self.nbytes, chosen, features)

    def _by_place(self, cost: Any, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Return what each feature adds: features of one place add the same."""
        ends = np.cumsum(self._widths)
        place = np.searchsorted(ends, self.ids_[features], side="right")
        before = cost(chosen)
        added = np.zeros(len(features), np.int64)
        for p in np.unique(place):
            first = features[place == p][0]
            added[place == p] = cost(np.append(chosen, first)) - before
        return added

    @property
    def origins(self) -> tuple[str, ...]:
        """Whose the network is, under which license, and its size."""
        if self.n_features_ == 0:
            return ()
        part = self.part(self.used_places()[0])
        if self._is_named:
            origin = efficientnet.ORIGIN
        else:
            name = Path(self.network).name
            origin = f"{name} (SHA-256 {self._source}), whose license is not known here"
        size = f"{part.parameters:,} learned numbers, {len(part.content):,} bytes"
        return (f"{origin}; in use: {size}.",)

    def layer_summaries(self) -> list[LayerSummary]:
        """Return one layer: the part of the network."""
        part = self.part(self.used_places()[0])
        return [LayerSummary(self.name, (self.n_features_,), None, part.parameters, part.macs)]

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the network's name, the place and the channel."""
        number = int(self.ids_[check_feature(feature, self.n_features_)])
        starts = np.concatenate([[0], np.cumsum(self._widths)])
        place = int(np.searchsorted(starts, number, side="right")) - 1
        return {
            "kind": "activation",
            "network": Path(self.network).name,
            "place": self._places[place],
            "channel": number - int(starts[place]),
        }

    def take(self, features: np.ndarray) -> PretrainedNetwork:
        ids = check_features(features, self.n_features_)
        places, numbers = self.used_places(ids)
        chosen = self._like("_content", "_source")
        if len(ids):
            chosen.places = list(places)
            if not self._is_named:
                # What a file holds: no more than is needed.
                chosen._content = self.part(places).content
        return chosen._with(numbers)

    def to_state(self) -> StateAndArrays:
        """Return the parameters, and the network: its digest, or what there is of its file."""
        parameters = {
            "network": efficientnet.NAME if self._is_named else Path(self.network).name,
            "places": list(self._places),
            "size": int(self.size),
            "mean": list(self._mean),
            "std": list(self._std),
            "power": float(self.power),
        }
        arrays = {"ids": self.ids_}
        digest = hashlib.sha256(self._content).hexdigest()
        if not self._is_named:
            padding = bytes(-len(self._content) % 8)
            arrays["network"] = np.frombuffer(self._content + padding, "<i8").astype(np.int64)
        length = len(self._content)
        return family_state(
            self, parameters=parameters, digest=digest, length=length, source=self._source
        ), arrays

    @classmethod
    def from_state(cls, state: State, arrays: Arrays) -> PretrainedNetwork:
        family = unfitted(cls, state, arrays, {"ids": 1})
        family._check_shape()
        if family._is_named:
            content = efficientnet.efficientnet_lite0()
        else:
            held = arrays.get("network")
            length = state.get("length")
            if held is None or held.dtype != np.int64 or not isinstance(length, int):
                raise InputError("network", None, "the part of the network that the file names")
            content = held.astype("<i8").tobytes()[: max(0, length)]
        if hashlib.sha256(content).hexdigest() != state.get("digest"):
            accepted = f"the network of digest {state.get('digest')!r}"
            raise InputError("network", str(family.network), accepted)
        family._content = content
        family._source = str(state.get("source", state.get("digest")))
        n_columns = sum(family.part(family._places).widths)
        return family._with(check_features(arrays["ids"], n_columns))


def _strongest_region(plane: np.ndarray, sides: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Return the box of the activations around the strongest that are at least half of it."""
    import cv2

    sign = -1 if plane.mean() < 0 else 1
    map_of_image = cv2.resize(sign * plane, sides[::-1], interpolation=cv2.INTER_LINEAR)
    strongest = map_of_image.max()
    if strongest <= 0:
        return 0, sides[0], 0, sides[1]
    _, regions, figures, _ = cv2.connectedComponentsWithStats(
        (map_of_image >= strongest / 2).astype(np.uint8)
    )
    row, col = np.unravel_index(map_of_image.argmax(), map_of_image.shape)
    left, top, width, height, _ = figures[regions[row, col]]
    return top, top + height, left, left + width


def _whole(length: int) -> int:
    """Return bytes as whole numbers of 64 bits hold them."""
    return -(-length // 8) * 8
