"""C that the user brings: a folder with sources and a file peer.toml.

``peer.toml`` has::

    name = "BitNetMCU, 64 wide"      # in the table
    prefix = "peer"                  # peer.h has struct peer_work and peer_classify
    score = "int32"                  # or float32
    macs = 236000                    # may be left out
    height = 16                      # the images that it takes: resized by areas
    width = 16
    invert = false                   # whether ink is dark

and the folder ``int peer_classify(const uint8_t *image, struct peer_work *work, int32_t *scores)``,
which returns the index of the largest score: a few lines around what the peer has. Its C stays
where it is; nothing of it is copied into the results.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.edge.contender import Contender
from visionshare.datasets import load_images
from visionshare.errors import InputError
from visionshare.export.targets import DeviceSources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["brought"]


def brought(folder: Path, set_name: str, data: Path) -> Contender:
    """Return the classifier of a folder.

    Raises
    ------
    InputError
        If the folder has no ``peer.toml``, or a value in it is missing.
    """
    file = folder / "peer.toml"
    if not file.is_file():
        raise InputError("--peer-c", str(folder), "a folder with peer.toml, see brought.py")
    described: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    missing = {"name", "prefix", "score", "height", "width"} - set(described)
    if missing:
        raise InputError(str(file), f"no {', '.join(sorted(missing))}", "all of them")
    test = load_images(set_name, "test", data)
    size = (int(described["width"]), int(described["height"]))
    images = np.stack([cv2.resize(i, size, interpolation=cv2.INTER_AREA) for i in test.images])
    if described.get("invert", False):
        images = 255 - images
    files = {
        path.name: path.read_text(encoding="utf-8")
        for pattern in ("*.c", "*.h")
        for path in sorted(folder.glob(pattern))
    }
    sources = DeviceSources(
        described["prefix"], files, "uint8", size[0] * size[1], len(test.classes),
        described["score"],
    )  # fmt: skip
    return Contender(described["name"], sources, described.get("macs"), images, test.labels)
