"""A picture is the same array from a path, a file, bytes, a tar, Parquet, and as a request."""

import asyncio
import io
import itertools
import tarfile
from functools import cache, partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image, ImageOps

from visionshare import Pixels
from visionshare.classifier import CompactClassifier
from visionshare.datasets import decode_image, picture_header
from visionshare.datasets.containers.formats import readable_formats
from visionshare.datasets.pictures.reading import read_pictures
from visionshare.datasets.readers.tars import tar_pictures
from visionshare.service import Limits
from visionshare.service.answers import predicted
from visionshare.service.worker import Worker

HEIGHT, WIDTH = 6, 10
FORMATS = (
    "PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM", "AVIF", "JPEG2000", "HEIF",
)  # fmt: skip
MODES = ("1", "L", "I;16", "F", "P", "RGB", "RGBA", "CMYK")
# Formats that have no such tag, and HEIC, whose own properties turn it: EXIF's are ignored.
NEVER_TURNED = ("BMP", "GIF", "PPM", "JPEG2000", "HEIF")
EXTRA = {"AVIF": "AVIF", "JPEG2000": "JPEG 2000", "HEIF": "HEIC"}


def picture_of(mode):
    """Return a picture that is another one however it is turned."""
    values = np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH)
    gray = (values * 4).astype(np.uint8)
    if mode == "I;16":
        return Image.fromarray((values * 1000).astype(np.uint16))
    if mode == "F":
        return Image.fromarray((values / values.max()).astype(np.float32))
    alpha = np.where(values % 7 == 0, 0, 255).astype(np.uint8)
    rgba = Image.fromarray(np.dstack([gray, gray[::-1], 255 - gray, alpha]))
    if mode == "P":
        palette = rgba.convert("RGB").quantize(16)
        palette.info["transparency"] = 3
        return palette
    return rgba if mode == "RGBA" else rgba.convert("L" if mode == "1" else "RGB").convert(mode)


def encoded(picture, format_, orientation):
    """Return a file, or None where the format has no such mode or no orientation."""
    if orientation > 1 and format_ in NEVER_TURNED[:-1]:
        return None
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"tiffinfo": {274: orientation}} if format_ == "TIFF" else {}
    if format_ in ("PNG", "JPEG", "WEBP", "AVIF", "HEIF"):
        options["exif"] = exif
    file = io.BytesIO()
    try:
        picture.save(file, format_, **options)
    except (OSError, ValueError, KeyError):
        return None
    return file.getvalue()


def combinations():
    """Yield what a file is called, its bytes, and its height and width upright."""
    names = {format_.name for format_ in readable_formats()}
    for format_, mode, orientation in itertools.product(FORMATS, MODES, range(1, 9)):
        if EXTRA.get(format_, "PNG") not in names:
            continue
        data = encoded(picture_of(mode), format_, orientation)
        if data is not None:
            turned = orientation > 4 and format_ not in NEVER_TURNED
            shape = (WIDTH, HEIGHT) if turned else (HEIGHT, WIDTH)
            yield f"{format_}-{mode.replace(';', '')}-{orientation}", data, shape


@cache
def files():
    """Return all combinations: encoded once, by the process that runs these tests."""
    return list(combinations())


@pytest.fixture(scope="module")
def from_tar(tmp_path_factory):
    """Return all pictures of a tar that holds the files."""
    path = tmp_path_factory.mktemp("tar") / "all.tar"
    with tarfile.open(path, "w") as tar:
        for name, data, _ in files():
            member = tarfile.TarInfo(f"all/{name}.png")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    contents = tar_pictures(path).contents()
    return [content.data for content in contents]


@pytest.fixture(scope="module")
def from_parquet(tmp_path_factory):
    """Return all pictures of a Parquet file of the files."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from visionshare.datasets.readers.parquet import parquet_pictures

    path = tmp_path_factory.mktemp("parquet") / "all.parquet"
    images = [{"bytes": data} for _, data, _ in files()]
    parquet.write_table(pyarrow.table({"image": images, "label": ["a"] * len(images)}), path)
    return [content.data for content in parquet_pictures(path).contents()]


def test_there_are_many_combinations():
    # Formats × modes × orientations that exist, each from six sources.
    assert len(files()) > 200


@pytest.mark.parametrize("mode", ["gray", "color"])
def test_every_source_gives_the_array_that_the_header_tells(tmp_path, from_tar, mode):
    path = tmp_path / "picture"
    for number, (name, data, shape) in enumerate(files()):
        path.write_bytes(data)
        with path.open("rb") as file:
            arrays = [
                decode_image(source, mode)
                for source in (path, data, io.BytesIO(data), file, from_tar[number])
            ]
            headers = [picture_header(source) for source in (path, data, file)]
        for array in arrays:
            assert_array_equal(array, arrays[0], err_msg=name)
        assert arrays[0].shape[:2] == shape, name
        assert {header[:2] for header in headers} == {shape}, name
        assert len(set(headers)) == 1, name


@pytest.mark.parametrize("mode", ["gray", "color"])
def test_rows_of_parquet_are_the_same_pictures(from_parquet, mode):
    for (name, data, _), row in zip(files(), from_parquet, strict=True):
        assert_array_equal(decode_image(row, mode), decode_image(data, mode), err_msg=name)


@pytest.mark.parametrize("mode", ["gray", "color"])
@pytest.mark.parametrize("kind", ["picture", "form"])
def test_bodies_of_requests_are_the_same_pictures(mode, kind):
    channels = () if mode == "gray" else (3,)
    shapes = {shape: Pixels().fit(np.zeros((1, *shape, *channels))) for _, _, shape in files()}
    workers = {
        shape: Worker(
            CompactClassifier(family.take([0]), np.ones((2, 1)), np.zeros(2), np.array(["a", "b"])),
            Limits(),
        )
        for shape, family in shapes.items()
    }
    head = b'--x\r\nContent-Disposition: form-data; name="a"; filename="b"\r\n\r\n'
    headers = {"content-type": "multipart/form-data; boundary=x"}
    question = partial(predicted, with_raster=True)
    try:
        for name, data, shape in files():
            body = data if kind == "picture" else head + data + b"\r\n--x--\r\n"
            answer = asyncio.run(workers[shape].answer(kind, body, headers, question))
            assert_array_equal(answer.raster, decode_image(data, mode), err_msg=name)
    finally:
        for worker in workers.values():
            worker.close()


def test_pictures_stand_upright_as_pillow_turns_them():
    for name, data, _ in files():
        if name.split("-")[1] in ("1", "L", "RGB", "CMYK"):
            with Image.open(io.BytesIO(data)) as opened:
                opened.load()
                expected = ImageOps.exif_transpose(opened).convert("L")
            assert_array_equal(decode_image(data), np.asarray(expected), err_msg=name)


def test_a_tiff_that_lies_is_read_from_its_path(tmp_path):
    # Uncompressed: Pillow maps such a file, and scrambles the rows of a lying one.
    shape = np.zeros((40, 24), np.uint8)
    shape[5:30, 4:8] = 255
    shape[26:30, 4:18] = 255
    lying = Image.fromarray(shape).transpose(Image.Transpose.ROTATE_90)
    lying.save(tmp_path / "a.tif", tiffinfo={274: 6})
    assert_array_equal(decode_image(tmp_path / "a.tif"), shape)
    assert picture_header(tmp_path / "a.tif")[:2] == (40, 24)


def test_orientation_in_every_place_that_png_has(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    picture_of("L").save(file, "png", exif=exif)
    data = file.getvalue()
    start = data.index(b"eXIf") - 4
    length = int.from_bytes(data[start : start + 4], "big") + 12
    chunk = data[start : start + length]
    without = data.replace(chunk, b"")
    # Behind the pixels, where it may stand as well.
    behind = without[:-12] + chunk + without[-12:]
    for file in (data, behind):
        assert picture_header(file)[:2] == decode_image(file).shape == (WIDTH, HEIGHT)
    assert decode_image(without).shape == (HEIGHT, WIDTH)


def test_a_set_is_read_as_its_pictures(from_tar, tmp_path):
    names = [name for name, _, _ in files() if name.endswith("-1")]
    for name, data, _ in files():
        if name in names:
            (tmp_path / "all").mkdir(exist_ok=True)
            (tmp_path / "all" / f"{name}.png").write_bytes(data)
    from visionshare.datasets.readers.class_folders import folder_pictures

    read = read_pictures(folder_pictures(tmp_path), n_jobs=2)
    alone = [decode_image(data) for name, data, _ in sorted(files()) if name in names]
    assert len(read.images) == len(alone)
    assert_array_equal(read.images, np.stack(alone))
