"""Sets of pictures: parts that share no image, and sizes that peers can take."""

import numpy as np
import pytest
from scipy.io import savemat

from benchmarks.picture_sets import KNOWN, SETS, UNSEEN, for_peers, load
from visionshare.datasets import ImageSet


def test_a_set_is_known_or_unseen():
    assert not set(KNOWN) & set(UNSEEN)
    assert set(KNOWN) | set(UNSEEN) < set(SETS)


@pytest.mark.parametrize("side", [32, 64, 65, 130])
def test_peers_get_what_is_at_most_64_pixels_large(side):
    images = np.full((2, side, side // 2), 7, np.uint8)
    found = for_peers(ImageSet(images, np.array([0, 1]), ("a", "b"), "some"))
    assert max(found.images.shape[1:]) == min(side, 64)
    assert found.images.shape[1] == 2 * found.images.shape[2] or side == 65
    assert (found.images == 7).all()


def _folder_of_scans(folder):
    """Write 220 digits of two classes as the six views of the file of UCI."""
    values = np.random.default_rng(0).integers(0, 7, (220, 240))
    views = np.empty((6, 1), object)
    views[:, 0] = [np.zeros((220, 76)), np.zeros((220, 64)), values.astype(float)] + [
        np.zeros((220, n)) for n in (6, 47, 216)
    ]
    (folder / "uci" / "mfeat").mkdir(parents=True)
    savemat(folder / "uci" / "mfeat" / "Mfeat.mat", {"X": views, "y": np.repeat([1, 2], 110)})
    return values


def test_scans_are_split_by_class_and_share_no_image(tmp_path):
    values = _folder_of_scans(tmp_path)
    train, test = load("mfeat", tmp_path)
    assert train.classes == test.classes == ("1", "2")
    assert np.bincount(train.labels).tolist() == [100, 100]
    assert np.bincount(test.labels).tolist() == [10, 10]
    rows = {(row * 255 // 6).astype(np.uint8).tobytes(): k for k, row in enumerate(values)}
    numbers = [[rows[image.tobytes()] for image in part.images] for part in (train, test)]
    assert sorted(numbers[0] + numbers[1]) == list(range(220))


def test_characters_of_fonts_are_few_of_each(tmp_path):
    labels = np.repeat([11, 12, 14], 50)
    images = np.random.default_rng(0).integers(0, 256, (150, 28, 28)).astype(np.uint8)
    (tmp_path / "chars74k").mkdir()
    file = tmp_path / "chars74k" / "englishfnt_34_gray28.npz"
    np.savez(file, images=images, sample=labels)
    train, test = load("few-of-fonts", tmp_path)
    assert train.classes == ("11", "12", "14")
    assert np.bincount(train.labels).tolist() == [16] * 3
    assert np.bincount(test.labels).tolist() == [24] * 3
    assert not {i.tobytes() for i in train.images} & {i.tobytes() for i in test.images}
