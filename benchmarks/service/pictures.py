"""What clients send: a digit, and pictures of many kinds and sizes."""

from __future__ import annotations

import io
import json

import numpy as np
from PIL import Image

__all__ = ["digit_json", "digit_png", "mixed_requests"]

_SIDES = (8, 2000)
# Most requests are small, so that the long run ends; a tenth are of any size.
_SMALL_SIDE, _LARGE_PART = 100, 0.1
_BROKEN_PART, _JSON_PART, _FORM_PART = 0.15, 0.1, 0.1


def digit_png() -> bytes:
    """Return a digit of the bundled test images as a PNG file."""
    return _file(_digit(), "png")


def digit_json() -> bytes:
    """Return the same digit as the pixels that the service takes."""
    return json.dumps({"pixels": _digit().tolist()}).encode()


def mixed_requests(n: int, seed: int = 0) -> list[tuple[str, bytes]]:
    """Return content types and bodies of n requests: PNG and JPEG, gray and RGB, some broken.

    Sides are drawn log-uniformly, of a tenth from 8 to 2000 and of the others from 8 to 100. A
    tenth are JSON, a tenth forms. Of the pictures 15 % are broken: cut, with other bytes, or noise.
    """
    rng = np.random.default_rng(seed)
    return [_mixed(rng, index) for index in range(n)]


def _mixed(rng: np.random.Generator, index: int) -> tuple[str, bytes]:
    if index == 0:
        # One of the largest is always there.
        return "image/png", _file(_picture(rng, _SIDES[1], _SIDES[1], 3), "png")
    if rng.random() < _JSON_PART:
        return "application/json", digit_json() if rng.random() < 0.8 else b'{"pixels": [[1], 2'
    highest = _SIDES[1] if rng.random() < _LARGE_PART else _SMALL_SIDE
    width, height = np.exp(rng.uniform(np.log(_SIDES[0]), np.log(highest), 2)).astype(int)
    kind = ("png", "jpeg")[int(rng.integers(2))]
    body = _file(_picture(rng, width, height, (1, 3)[int(rng.integers(2))]), kind)
    if rng.random() < _BROKEN_PART:
        body = _broken(rng, body)
    if rng.random() < _FORM_PART:
        head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        return "multipart/form-data; boundary=x", head + body + b"\r\n--x--\r\n"
    return f"image/{kind}", body


def _picture(rng: np.random.Generator, width: int, height: int, n_channels: int) -> np.ndarray:
    """Return coarse blotches with a little noise, which compress as photographs do."""
    coarse = rng.integers(0, 256, (8, 8, n_channels), np.uint8)
    large = np.array(
        Image.fromarray(coarse.squeeze()).resize((width, height), Image.Resampling.BICUBIC)
    )
    return np.clip(large + rng.integers(-4, 5, large.shape), 0, 255).astype(np.uint8)


def _broken(rng: np.random.Generator, body: bytes) -> bytes:
    way = int(rng.integers(3))
    if way == 0:
        return body[: int(rng.integers(1, len(body)))]
    if way == 1:
        damaged = bytearray(body)
        for position in rng.integers(0, len(body), 20):
            damaged[position] = int(rng.integers(256))
        return bytes(damaged)
    return rng.bytes(len(body) // 4 + 1)


def _digit() -> np.ndarray:
    from visionshare.datasets import load_dataset

    return load_dataset("digits", "test").images[0]


def _file(pixels: np.ndarray, kind: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()
