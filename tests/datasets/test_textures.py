"""Patches of textures: where they come from, and that training never meets test."""

from hashlib import sha256

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from visionshare.datasets import Cut, dataset_info, load_dataset, load_images, load_plates
from visionshare.datasets.textures import cut_patches, read_plates, texture_patches
from visionshare.errors import DataError, InputError
from visionshare.files.bundled import bundled


def _numbered(height=40, width=50):
    """A plate whose pixels say where they are."""
    return np.arange(height * width, dtype=np.float32).reshape(height, width)


def test_left_trains_right_tests_and_no_patch_crosses():
    plates = {"a": _numbered(), "b": _numbered(31, 33)}
    seen = {}
    for split in ("train", "test"):
        loaded = texture_patches(plates, split, Cut(size=9, per_class=300))
        assert loaded.images.shape == (600, 9, 9)
        assert np.bincount(loaded.labels).tolist() == [300, 300]
        for label, plate in enumerate(plates.values()):
            patches, width = loaded.images[loaded.labels == label], plate.shape[1]
            columns = patches % width
            assert_array_equal(columns[:, :, -1] - columns[:, :, 0], 8)
            left = columns < width // 2
            assert left.all() if split == "train" else not left.any()
        seen[split] = set(loaded.images.ravel())
    again = texture_patches(plates, "train", Cut(size=9, per_class=300))
    assert set(again.images.ravel()) == seen["train"]
    other = texture_patches(plates, "train", Cut(size=9, per_class=300, seed=1))
    assert not np.array_equal(other.images, again.images)


def test_pixels_that_are_taken_are_in_no_patch():
    rng, plate = np.random.default_rng(0), _numbered()
    taken = np.zeros(plate.shape, bool)
    taken[10:25, 12:30] = True
    patches = cut_patches(plate, 3000, 8, rng, taken)
    assert not np.isin(patches, plate[taken]).any()
    free = {
        plate[y, x] for y in range(33) for x in range(43) if not taken[y : y + 8, x : x + 8].any()
    }
    drawn = set(patches[:, 0, 0])
    assert drawn <= free
    assert len(drawn) > 0.9 * len(free)
    with pytest.raises(DataError, match="free of the pixels taken"):
        cut_patches(plate, 1, 8, rng, np.ones(plate.shape, bool))


def test_bundled_textures_need_no_network(monkeypatch):
    import socket

    def refused(*arguments, **options):
        raise AssertionError("a connection")

    monkeypatch.setattr(socket.socket, "connect", refused)
    patches = load_dataset("textures", "train", cut=Cut(size=24, per_class=7))
    assert patches.images.shape == (21, 24, 24)
    assert patches.classes == ("brick", "grass", "gravel")
    assert_array_equal(
        load_images("textures").images[:5], load_dataset("textures", cut=Cut()).images[:5]
    )


@pytest.fixture
def plates(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("wool.png", "sand.png"):
        Image.fromarray(rng.integers(0, 256, (30, 44), np.uint8)).save(tmp_path / name)
    return tmp_path


def test_a_folder_of_textures(plates):
    patches = load_images(plates, "test", cut=Cut(size=10, per_class=4))
    assert (patches.images.shape, patches.classes) == ((8, 10, 10), ("sand", "wool"))
    assert load_images(plates, mode="color", cut=Cut(8, 2)).images.shape == (4, 8, 8, 3)
    with pytest.raises(DataError, match="has no patch of 25×25"):
        load_images(plates, cut=Cut(size=25))
    (plates / "more").mkdir()
    Image.new("L", (30, 30)).save(plates / "more" / "wool.bmp")
    with pytest.raises(DataError, match="several textures have the name 'wool'"):
        read_plates(plates)
    with pytest.raises(DataError, match="two textures or more"):
        read_plates(plates / "more")


def test_a_catalog_entry_of_plates(tmp_path):
    info = dataset_info("brodatz")
    assert tuple(plate.name for plate in info.plates) == info.classes
    assert {plate.image for plate in info.plates} <= {file.path for file in info.files}
    rng = np.random.default_rng(0)
    for i, plate in enumerate(info.plates):
        path = tmp_path / plate.image
        path.parent.mkdir(parents=True, exist_ok=True)
        image = rng.integers(1, 200, (512, 64), np.uint8)
        image[plate.rows :] = 255
        image[:, 0] = i
        Image.fromarray(image).save(path)
    # The same entry, with the digests of these pictures.
    text = bundled("data")["brodatz"].read_text("utf-8")
    for file in info.files:
        if (tmp_path / file.path).exists():
            text = text.replace(
                file.sha256, sha256((tmp_path / file.path).read_bytes()).hexdigest()
            )
    (tmp_path / "brodatz.toml").write_text(text, "utf-8")
    options = {"data_dir": tmp_path, "catalog": tmp_path}
    patches = load_dataset("brodatz", "train", cut=Cut(size=20, per_class=200), **options)
    assert patches.images.shape == (2600, 20, 20)
    assert patches.images.max() < 200
    whole = load_plates("brodatz", **options)
    with pytest.raises(DataError, match="is not the file of the catalog"):
        load_plates("brodatz", tmp_path)
    assert [image[0, 0] for image in whole.values()] == list(range(13))
    assert whole["pigskin"].shape == (486, 64)


def test_what_is_no_texture_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"digits: .*textures only"):
        load_dataset("digits", cut=Cut())
    with pytest.raises(DataError, match="no set of textures"):
        load_plates("digits")
    with pytest.raises(DataError, match="is not in"):
        load_dataset("brodatz", data_dir=tmp_path)
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 3, 3)), labels=np.arange(2))
    with pytest.raises(DataError, match="folder of textures"):
        load_images(tmp_path / "a.npz", cut=Cut())


@pytest.mark.parametrize("wrong", [{"size": 0}, {"per_class": 1.5}, {"seed": -1}, {"size": True}])
def test_bad_cuts_are_named(wrong):
    (name,) = wrong
    with pytest.raises(InputError, match=f"^{name}: got"):
        Cut(**wrong)
