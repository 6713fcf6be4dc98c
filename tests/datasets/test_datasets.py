"""Readers, the catalog, deformations: right on good files, one line on bad ones."""

import functools
import gzip
import hashlib
import http.server
import threading
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from scipy import ndimage

from scripts.attack.arrays import write_idx
from visionshare.datasets import (
    Augmentation,
    augmented_copies,
    dataset_info,
    fetch_dataset,
    list_datasets,
    load_dataset,
    load_images,
    verify_dataset,
)
from visionshare.datasets.folders import read_image, read_images
from visionshare.datasets.readers.idx import read_idx
from visionshare.datasets.readers.npz import read_npz
from visionshare.errors import DataError, InputError
from visionshare.machine.memory import hold, memory_limit

SHARED = Path(__file__).parents[3] / "shared" / "data"
QUIET = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@QUIET
@given(
    values=arrays.arrays(
        st.sampled_from([np.uint8, np.int8, np.int16, np.int32, np.float32, np.float64]),
        arrays.array_shapes(max_dims=4, max_side=6),
        elements={"allow_nan": False},
    ),
    packed=st.booleans(),
)
def test_idx_round_trip(tmp_path, values, packed):
    path = tmp_path / ("a-idx3-ubyte.gz" if packed else "a-idx3-ubyte")
    write_idx(path, values)
    assert_array_equal(read_idx(path), values)
    assert read_idx(path).dtype == values.dtype


@QUIET
@given(data=st.data(), packed=st.booleans())
def test_damaged_idx_is_a_typed_error_or_read(tmp_path, data, packed):
    path = tmp_path / ("a-idx3-ubyte.gz" if packed else "a-idx3-ubyte")
    write_idx(path, np.arange(60, dtype=np.uint8).reshape(3, 4, 5))
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    problem = ""
    try:
        assert read_idx(path).size <= 60
    except DataError as error:
        problem = str(error)
    assert "\n" not in problem


def test_idx_that_announces_too_much_is_refused(tmp_path):
    path = tmp_path / "a-idx3-ubyte"
    path.write_bytes(b"\0\0\x08\x03" + b"\x7f\xff\xff\xff" * 3)
    with pytest.raises(DataError, match="too many"):
        read_idx(path)
    path.write_bytes(b"\0\0\x08\x01" + b"\x00\x00\x00\x02" + b"abc")
    with pytest.raises(DataError, match="past its end"):
        read_idx(path)
    bomb = tmp_path / "b-idx1-ubyte.gz"
    head = b"\0\0\x08\x01" + (10).to_bytes(4, "big")
    bomb.write_bytes(gzip.compress(head + bytes(50_000_000)))
    with pytest.raises(DataError, match="past its end"):
        read_idx(bomb)


def test_npz_and_hdf5(tmp_path):
    images = np.arange(48, dtype=np.uint8).reshape(3, 4, 4)
    np.savez_compressed(tmp_path / "a.npz", images=images, labels=np.array(["x", "y", "x"]))
    loaded = load_images(tmp_path / "a.npz")
    assert_array_equal(loaded.images, images)
    assert (loaded.labels.tolist(), loaded.classes) == ([0, 1, 0], ("x", "y"))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["images"], file["labels"] = images, [5, 7, 5]
    loaded = load_images(tmp_path / "a.h5")
    assert (loaded.labels.tolist(), loaded.classes) == ([0, 1, 0], ("5", "7"))
    np.savez(tmp_path / "b.npz", images=images)
    with pytest.raises(DataError, match="no array 'labels'"):
        load_images(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", images=images, labels=np.array([1, 2]))
    with pytest.raises(DataError, match="2 labels for 3 images"):
        load_images(tmp_path / "c.npz")


def test_npz_with_objects_or_a_bomb_is_refused(tmp_path):
    np.savez(tmp_path / "o.npz", images=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="cannot be read as"):
        read_npz(tmp_path / "o.npz")
    with zipfile.ZipFile(tmp_path / "b.npz", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("images.npy", bytes(10_000_000))
    with pytest.raises(DataError, match="at most"):
        read_npz(tmp_path / "b.npz", max_bytes=1_000_000)


@pytest.mark.parametrize("suffix", [".npz", ".h5", "-idx3-ubyte", ".zip"])
def test_files_of_another_kind_are_typed_errors(tmp_path, suffix):
    path = tmp_path / f"images{suffix}"
    path.write_bytes(b"not what the name says" * 20)
    with pytest.raises(DataError) as caught:
        load_images(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="no folder, file or data set named"):
        load_images(tmp_path / "nothing.npz")


def test_a_folder_of_images_of_any_size_and_mode(tmp_path):
    for name, mode, size in (("a", "L", (9, 6)), ("a", "RGBA", (4, 4)), ("b", "P", (12, 12)),
                             ("b", "1", (5, 8)), ("b", "I;16", (6, 6))):  # fmt: skip
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        Image.new(mode, size, 1).save(folder / f"{mode.replace(';', '')}.png")
    loaded = load_images(tmp_path, size=(8, 8))
    assert loaded.images.shape == (5, 8, 8)
    assert loaded.classes == ("a", "b")
    assert load_images(tmp_path, size=(8, 8), mode="color").images.shape == (5, 8, 8, 3)
    with pytest.raises(DataError, match="give a size"):
        load_images(tmp_path)
    paths = sorted(tmp_path.rglob("*.png"))
    for n_jobs in (3, -1):
        assert_array_equal(read_images(paths, (8, 8), n_jobs=n_jobs), loaded.images)
    broken = tmp_path / "a" / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n broken")
    noted = []
    assert_array_equal(read_images([broken, *paths], (8, 8), broken=noted), loaded.images)
    assert noted == [str(broken)]
    assert read_images([broken], (8, 8), "color", broken=noted).shape == (0, 8, 8, 3)
    with pytest.raises(DataError, match=r"broken\.png"):
        load_images(tmp_path, size=(8, 8))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no folders with images"):
        load_images(tmp_path / "empty")


def test_orientation_centering_and_limits(tmp_path):
    image = Image.fromarray(np.arange(6, dtype=np.uint8).reshape(2, 3) * 40)
    exif = Image.Exif()
    exif[0x0112] = 6
    image.save(tmp_path / "turned.png", exif=exif)
    assert read_image(tmp_path / "turned.png").shape == (3, 2)
    centered = read_image(tmp_path / "turned.png", (7, 6), fit="center")
    assert_array_equal(centered[2:5, 2:4], read_image(tmp_path / "turned.png"))
    assert centered.sum() == centered[2:5, 2:4].sum()
    with pytest.raises(DataError, match="too many"):
        read_image(tmp_path / "turned.png", max_pixels=5)
    for options in ({"mode": "sepia"}, {"fit": "crop"}):
        with pytest.raises(InputError):
            read_image(tmp_path / "turned.png", **options)


def test_the_catalog_is_valid():
    for name in list_datasets():
        info = dataset_info(name)
        assert info.name == name
        assert info.license
        assert info.citation
        assert all(len(file.sha256) == 64 for file in info.files)
    with pytest.raises(DataError, match="no data set named 'nothing'"):
        dataset_info("nothing")


def test_a_catalog_of_ones_own(tmp_path):
    required = 'name = "mine"\ntitle = "t"\nkind = "npz"\ncitation = "c"\n'
    (tmp_path / "mine.toml").write_text(f'{required}license = "free"\n')
    assert dataset_info("mine", tmp_path).license == "free"
    assert list_datasets(tmp_path) == ["mine"]
    (tmp_path / "mine.toml").write_text(required)
    with pytest.raises(DataError, match="invalid catalog entry"):
        dataset_info("mine", tmp_path)
    with pytest.raises(DataError, match="Known: mine"):
        dataset_info("mnist", tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        list_datasets(tmp_path / "none")


def _entry(folder, name, text):
    head = f'name = "{name}"\ntitle = "t"\nlicense = "l"\ncitation = "c"\n'
    (folder / f"{name}.toml").write_text(head + text)


def test_an_entry_may_have_the_name_of_a_bundled_set(tmp_path):
    np.savez(tmp_path / "a.npz", images=np.eye(4).reshape(4, 2, 2), y=np.array([7, 8, 7, 8]))
    split = '[splits.all]\nimages = "a.npz"\nlabels = "y"\nshape = [4, 2, 2]\n'
    for name in ("textures", "fonts", "digits"):
        _entry(tmp_path, name, f'kind = "npz"\nclasses = ["7", "8"]\ntest_fraction = 0.5\n{split}')
        loaded = load_dataset(name, "test", tmp_path, catalog=tmp_path)
        assert (loaded.images.shape, loaded.labels.tolist()) == ((2, 2, 2), [0, 1])


def test_entries_that_do_not_fit_their_files_are_named(tmp_path):
    np.savez(tmp_path / "a.npz", images=np.zeros((4, 2, 2)), y=np.arange(3))
    split = '[splits.all]\nimages = "a.npz"\nlabels = "{}"\nshape = {}\n'
    for kind, text, message in (
        ("bundled", "", "'mine' is not bundled"),
        ("idx", "", r"no \[splits.train\]"), ("npz", "", r"no \[splits.all\]"),
        ("npz", split.format("z", "[4, 2, 2]"), "no array 'z'"),
        ("npz", split.format("y", "[5, 2, 2]"), r"shape \(4, 2, 2\), not \(5, 2, 2\)"),
        ("npz", split.format("y", "[4, 2, 2]"), r"labels \(3,\): one label per image"),
    ):  # fmt: skip
        _entry(tmp_path, "mine", f'kind = "{kind}"\n{text}')
        with pytest.raises(DataError, match=message):
            load_dataset("mine", "train", tmp_path, catalog=tmp_path)


@pytest.mark.parametrize("name", ["digits", "textures"])
def test_bundled_sets_are_the_same_each_time_and_split_apart(name):
    train, test = load_dataset(name, "train"), load_dataset(name, "test")
    assert train.classes == test.classes
    assert set(train.labels.tolist()) == set(range(len(train.classes)))
    assert_array_equal(train.images, load_dataset(name, "train").images)
    seen = {image.tobytes() for image in train.images}
    assert np.mean([image.tobytes() in seen for image in test.images]) < 0.02


def test_fetch_verify_and_load_from_a_server(tmp_path, monkeypatch):
    served, root = tmp_path / "served", tmp_path / "data"
    images = np.random.default_rng(0).integers(0, 256, (6, 4, 4), np.uint8)
    write_idx(served / "tiny" / "images-idx3-ubyte.gz", images)
    write_idx(served / "tiny" / "labels-idx1-ubyte.gz", np.arange(6, dtype=np.uint8) % 2)
    files = "".join(
        f'[[files]]\npath = "tiny/{p.name}"\nbytes = {p.stat().st_size}\n'
        f'sha256 = "{hashlib.sha256(p.read_bytes()).hexdigest()}"\n'
        for p in sorted((served / "tiny").iterdir())
    )
    split = (
        'images = "tiny/images-idx3-ubyte.gz"\nlabels = "tiny/labels-idx1-ubyte.gz"\n'
        "shape = [6, 4, 4]\n"
    )
    catalog = tmp_path / "catalog"
    catalog.mkdir()
    (catalog / "tiny.toml").write_text(
        'name = "tiny"\ntitle = "t"\nkind = "idx"\nlicense = "l"\ncitation = "c"\n'
        f'classes = ["a", "b"]\n{files}[splits.train]\n{split}[splits.test]\n{split}'
    )
    assert list_datasets(catalog) == ["tiny"]
    verify = functools.partial(verify_dataset, "tiny", root, catalog=catalog)
    fetch = functools.partial(fetch_dataset, "tiny", root, catalog=catalog)
    handler = functools.partial(QuietHandler, directory=str(served))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert set(verify().values()) == {"missing"}
            with pytest.raises(DataError, match="visionshare data fetch tiny"):
                load_dataset("tiny", "train", root, catalog=catalog)
            with pytest.raises(DataError, match="no download address"):
                fetch()
            address = f"http://127.0.0.1:{server.server_port}"
            assert len(fetch(address)) == 2
            assert set(verify().values()) == {"ok"}
            (served / "tiny" / "labels-idx1-ubyte.gz").write_bytes(b"other")
            (root / "tiny" / "labels-idx1-ubyte.gz").unlink()
            with pytest.raises(DataError):
                fetch(address)
            assert not (root / "tiny" / "labels-idx1-ubyte.gz").exists()
        finally:
            server.shutdown()
            thread.join()
    write_idx(root / "tiny" / "labels-idx1-ubyte.gz", np.arange(6, dtype=np.uint8) % 2)
    assert_array_equal(load_dataset("tiny", "test", root, catalog=catalog).images, images)
    monkeypatch.setenv("VISIONSHARE_DATA", str(root))
    assert len(load_images("tiny", catalog=catalog)) == 6
    # One pixel is another: an IDX file has no checksum, the catalog has.
    images[0, 0, 0] ^= 1
    path = root / "tiny" / "images-idx3-ubyte.gz"
    write_idx(path, images)
    with pytest.raises(DataError, match="is not the file of the catalog"):
        load_images("tiny", catalog=catalog)
    assert "broken" in verify().values()
    # As a file of one's own it is read as it is.
    assert_array_equal(load_images(path).images, images)


def test_a_file_that_was_packed_again_is_the_file_of_the_catalog(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (6, 4, 4), np.uint8)
    names, files = ("images.idx.gz", "labels.idx.gz"), ""
    for name, array in zip(names, (images, np.arange(6, dtype=np.uint8) % 2), strict=True):
        write_idx(tmp_path / name, array)
        packed = (tmp_path / name).read_bytes()
        digests = [hashlib.sha256(part).hexdigest() for part in (packed, gzip.decompress(packed))]
        files += f'[[files]]\npath = "{name}"\nsha256 = "{digests[0]}"\n'
        files += f'content_sha256 = "{digests[1]}"\n'
    (tmp_path / "tiny.toml").write_text(
        'name = "tiny"\ntitle = "t"\nkind = "idx"\nlicense = "l"\ncitation = "c"\n'
        f'classes = ["a", "b"]\n{files}[splits.train]\nimages = "{names[0]}"\n'
        f'labels = "{names[1]}"\nshape = [6, 4, 4]\n'
    )
    load = functools.partial(load_dataset, "tiny", "train", tmp_path, catalog=tmp_path)
    path = tmp_path / names[0]
    content = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(content, 1, mtime=7))
    assert_array_equal(load().images, images)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="is not the file of the catalog"):
        load()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and logs nothing."""

    def log_message(self, *arguments):
        """Say nothing."""


def deformed(images, n_copies=1, **options):
    return augmented_copies(images, Augmentation(), n_copies, **options)


def test_deformations_depend_on_seed_image_and_copy_alone():
    images = np.random.default_rng(1).integers(0, 256, (150, 12, 10), np.uint8)

    def collected(batch, seed=0):
        copies = np.zeros((2, *images.shape), np.uint8)
        for copy, indices, part in deformed(images, 2, random_state=seed, batch=batch):
            copies[copy, indices] = part
        return copies

    assert_array_equal(collected(150), collected(40))
    _, _, few = next(deformed(images[:70], 1))
    assert_array_equal(few, collected(150)[0, :70])
    _, _, threaded = next(deformed(images, 1, n_jobs=2))
    assert_array_equal(threaded, collected(150)[0])
    _, _, second = next(deformed(images, 1, first_copy=1))
    assert_array_equal(second, collected(150)[1])
    assert not np.array_equal(collected(150), collected(150, seed=1))
    assert not np.array_equal(collected(150)[0], collected(150)[1])
    still = {"alpha": 0.0, "rotation": 0.0, "scale": 0.0, "shear": 0.0}
    _, _, same = next(augmented_copies(images, Augmentation(**still)))
    assert_array_equal(same, images)
    color = np.repeat(images[..., None], 3, axis=3)
    _, _, three = next(deformed(color, 1))
    assert_array_equal(three[..., 0], collected(150)[0])


def test_elastic_displacements_are_scattered_as_blurred_noise_is():
    n, side, inner = 300, 40, np.s_[..., 8:-8, 8:-8]
    noise = np.random.default_rng(0).standard_normal((n, side, side))
    blurred = ndimage.gaussian_filter(noise, (0, 4, 4), mode="reflect", truncate=4)
    blurred *= 1.5 / np.sqrt(np.mean(blurred**2, axis=(1, 2), keepdims=True))
    only = {"alpha": 1.5, "sigma": 4, "rotation": 0, "scale": 0, "shear": 0}
    y, x = np.mgrid[:side, :side].astype(np.float32)
    for image in (x, y):
        images = np.repeat(image[None], n, axis=0)
        _, _, copies = next(augmented_copies(images, Augmentation(**only)))
        moved, expected = (copies - images)[inner], blurred[inner]
        assert_allclose(np.sqrt(np.mean(moved**2)), np.sqrt(np.mean(expected**2)), rtol=0.07)
        for shift in (2, 5):
            products = [np.mean(d[..., shift:] * d[..., :-shift]) for d in (moved, expected)]
            assert_allclose(*products, rtol=0.15)


@pytest.mark.parametrize(("name", "value"), [("sigma", 0), ("alpha", -1), ("shear", np.nan)])
def test_deformations_out_of_range_are_refused(name, value):
    with pytest.raises(InputError, match=rf"^{name}: got {value}"):
        Augmentation(**{name: value})


@pytest.mark.parametrize(("name", "value"), [("n_copies", 1.5), ("batch", 0)])
def test_numbers_of_copies_out_of_range_are_refused(name, value):
    with pytest.raises(InputError, match=rf"^{name}: got {value}"):
        next(deformed(np.zeros((1, 40, 40), np.float32), **{name: value}))


@pytest.mark.skipif(not (SHARED / "mnist").is_dir(), reason="MNIST is not at hand")
def test_mnist_is_read():
    assert set(verify_dataset("mnist", SHARED).values()) == {"ok"}
    test = load_dataset("mnist", "test", SHARED)
    assert (test.images.shape, np.bincount(test.labels)[0]) == ((10_000, 28, 28), 980)


def test_pictures_take_turns_where_memory_is_short(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(12):
        Image.fromarray(rng.integers(0, 256, (9, 10), np.uint8)).save(tmp_path / f"{number}.png")
    paths = sorted(map(str, tmp_path.iterdir()))
    expected = read_images(paths, (4, 5))
    with memory_limit("256MiB") as bound:
        # Room for a picture of 62 pixels: less than one of them.
        hold("something", bound.room - 1000)
        assert_array_equal(read_images(paths, (4, 5), n_jobs=3), expected)
