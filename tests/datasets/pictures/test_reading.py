"""Pictures are read at a cost that hardly depends on the library."""

import io
import tarfile

import numpy as np
from PIL import Image

from visionshare.datasets import Preprocessing, load_images


def _tar(path, n):
    picture = io.BytesIO()
    Image.fromarray(np.arange(35, dtype=np.uint8).reshape(5, 7)).save(picture, "png")
    with tarfile.open(path, "w") as tar:
        for number in range(n):
            member = tarfile.TarInfo(f"{number % 2}/{number}.png")
            member.size = len(picture.getvalue())
            picture.seek(0)
            tar.addfile(member, picture)
    return path


def test_steps_are_checked_once_for_a_set(tmp_path, monkeypatch):
    made = []
    check = Preprocessing.__post_init__
    monkeypatch.setattr(
        Preprocessing, "__post_init__", lambda self: (made.append(self), check(self))[1]
    )
    counts = []
    for n in (4, 40):
        made.clear()
        images = load_images(_tar(tmp_path / f"{n}.tar", n), size=(3, 3))
        assert len(images) == n
        counts.append(len(made))
    assert counts[0] == counts[1] < 4
