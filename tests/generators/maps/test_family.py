"""Maps of images against loops over pixels, and the family around the features on them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import Deslanted, LearnedMaps, PatchTemplates, Pixels
from visionshare.errors import InputError
from visionshare.generators import family_from_state

rng = np.random.default_rng(0)
BYTES = rng.integers(0, 256, (40, 13, 11, 2), np.uint8)
GRAY = BYTES[..., 0]


def maps_by_loops(family, images):
    """Return maps and places of maxima, response by response in float64; −1 where a map is 0."""
    x = images.reshape(len(images), *family.raster_shape)
    x = x.astype(np.float64) / (255 if x.dtype == np.uint8 else 1)
    margins = (family.padding, family.padding)
    x = np.pad(x, ((0, 0), margins, margins, (0, 0)))
    q, pool = family.size, family.pool
    out = np.zeros((len(x), *family.map_shape_))
    places = np.full(out.shape, -1)
    for i, row, col, m in np.ndindex(out.shape):
        for place, (dy, dx) in enumerate(np.ndindex(pool, pool)):
            top, left = row * pool + dy, col * pool + dx
            patch = x[i, top : top + q, left : left + q]
            response = np.sum(patch * family.templates_[m]) + family.biases_[m]
            if response > out[i, row, col, m]:
                out[i, row, col, m], places[i, row, col, m] = response, place
    return out, places


def random_maps(images, **parameters):
    """Return fitted maps whose templates and biases are random numbers."""
    family = LearnedMaps(Pixels(), n_patches=300, **parameters).fit(images)
    draw = np.random.default_rng(1)
    templates = draw.normal(size=family.templates_.shape)
    return family.of(family.part_, templates, draw.normal(size=family.n_maps) / 2)


@pytest.mark.parametrize("n_maps", [1, 4, 6])
@pytest.mark.parametrize("pool", [1, 2, 3])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_maps_are_the_largest_responses_of_cells(size, pool, n_maps):
    images = [BYTES, GRAY, (BYTES / 255).astype(np.float32)][(size + pool) % 3]
    padding = (size + n_maps) % 3
    family = random_maps(images, n_maps=n_maps, size=size, pool=pool, padding=padding)
    maps, places = family.maps_and_places(images)
    # The last images are fewer than lie side by side.
    for part in (slice(3), slice(37, 40)):
        expected, first = maps_by_loops(family, images[part])
        assert_allclose(maps[part], expected, rtol=1e-5, atol=1e-5)
        assert_array_equal(places[part], first)
    assert_array_equal(family.maps(images), maps)
    alone = np.concatenate([family.maps(image[None]) for image in images])
    assert_array_equal(alone, maps)
    one = family.maps_and_places(images[5:6])
    assert_array_equal(one[1], places[5:6])


@pytest.mark.parametrize("n_maps", [1, 3, 4, 8, 9, 27, 45])
@pytest.mark.parametrize("pool", [1, 2, 3, 4])
def test_many_maps_and_wide_images(pool, n_maps):
    """Templates side by side, and cells of a row where templates are few."""
    channels, padding = 1 + n_maps % 3, pool % 3
    images = rng.random((9, 10, 41 + n_maps, channels), np.float32)
    family = random_maps(images, n_maps=n_maps, size=3, pool=pool, padding=padding)
    maps, places = family.maps_and_places(images)
    expected, first = maps_by_loops(family, images[:2])
    assert_allclose(maps[:2], expected, rtol=1e-4, atol=1e-5)
    assert_array_equal(places[:2], first)
    assert_array_equal(family.maps(images[7:]), maps[7:])


def test_maps_of_large_images_are_made_in_parts():
    """Rows of responses that are longer than what is computed at once."""
    images = rng.random((18, 9, 600), np.float32)
    family = random_maps(images, n_maps=5, size=3, pool=2, padding=1)
    maps = family.maps(images)
    expected, _ = maps_by_loops(family, images[:1])
    assert_allclose(maps[:1], expected, rtol=1e-5, atol=1e-5)
    assert_array_equal(family.maps(images[:1]), maps[:1])
    high = images.transpose(0, 2, 1)
    turned = family.of(family.part_, family.templates_.transpose(0, 2, 1, 3), family.biases_)
    turned.image_shape_, turned.map_shape_ = (600, 9), (300, 4, 5)
    assert_allclose(turned.maps(high), maps.transpose(0, 2, 1, 3), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("pool", [1, 3])
def test_bits_depend_neither_on_threads_nor_on_batches(pool):
    images = np.concatenate([GRAY] * 4)
    family = random_maps(images, n_maps=5, size=3, pool=pool, padding=1)
    maps, places = family.maps_and_places(images)
    for n_jobs in (2, 3):
        again = family.maps_and_places(images, n_jobs)
        assert_array_equal(again[0], maps)
        assert_array_equal(again[1], places)
    for step in (1, 5, 6, 17, 64):
        parts = [family.maps(images[i : i + step]) for i in range(0, len(images), step)]
        assert_array_equal(np.concatenate(parts), maps)


def test_of_equal_maxima_the_first_is_the_place():
    images = np.full((20, 6, 6), 200, np.uint8)
    family = random_maps(BYTES[:, :6, :6, 0], n_maps=2, size=2, pool=2)
    ones = np.ones((2, 2, 1))
    family = family.of(family.part_, np.array([ones, -ones]), np.zeros(2))
    maps, places = family.maps_and_places(images)
    assert_allclose(maps[..., 0], 800 / 255, rtol=1e-6)
    assert_array_equal(places[..., 0], 0)
    assert not maps[..., 1].any()
    assert_array_equal(places[..., 1], -1)


def test_a_vector_is_one_row():
    vectors = rng.random((30, 20), np.float32)
    family = random_maps(vectors, n_maps=2, size=3, pool=1, padding=1)
    assert family.map_shape_ == (1, 20, 2)
    assert_allclose(family.maps(vectors), maps_by_loops(family, vectors)[0], rtol=1e-5, atol=1e-5)


def test_templates_are_centers_of_patches():
    family = LearnedMaps(Pixels(), n_maps=3, size=4, padding=2, n_patches=500).fit(BYTES)
    assert family.templates_.shape == (3, 4, 4, 2)
    assert_allclose(family.templates_.sum(axis=(1, 2, 3)), 0, atol=1e-5)
    assert_allclose(np.square(family.templates_).sum(axis=(1, 2, 3)), 1, rtol=1e-5)
    assert not family.biases_.any()
    again = LearnedMaps(Pixels(), n_maps=3, size=4, padding=2, n_patches=500).fit(BYTES)
    assert_array_equal(again.templates_, family.templates_)
    other = LearnedMaps(Pixels(), 3, 4, padding=2, n_patches=500, random_state=1).fit(BYTES)
    assert not np.array_equal(other.templates_, family.templates_)


def test_features_are_those_of_maps():
    inside = PatchTemplates(2, 6, 2, masks="cells", padding=0, n_patches=500)
    family = LearnedMaps(inside, 3, 3, n_patches=300).fit(GRAY)
    maps = family.maps(GRAY)
    assert_array_equal(family.transform(GRAY), family.part_.transform(maps))
    assert_array_equal(family.transform_columns(GRAY, n_jobs=2), family.part_.transform(maps).T)
    ids = np.array([5, 0, 11])
    taken = family.take(ids)
    assert_array_equal(taken.transform(GRAY), family.part_.take(ids).transform(maps))
    of_maps = 5 * 4 * 4 * 9 * 3
    assert family.shared_macs == of_maps
    assert family.macs(ids) == taken.macs() == of_maps + family.part_.macs(ids)
    assert family.macs(np.empty(0, int)) == 0
    for chosen in (np.empty(0, int), ids):
        added = [family.macs(np.append(chosen, f)) - family.macs(chosen) for f in (1, 2)]
        assert_array_equal(family.added_macs(chosen, np.array([1, 2])), added)
    said = family.describe(7)
    assert (said["kind"], said["feature"]["kind"]) == ("maps", "patch")
    assert_array_equal(said["templates"], family.templates_)
    weights = rng.normal(size=(2, 3)).astype(np.float32)
    sums = taken.transform(GRAY) @ weights.T
    assert_allclose(taken.weighted_sums(GRAY, weights), sums, rtol=1e-4, atol=1e-5)


def layered():
    inside = LearnedMaps(PatchTemplates(2, 4, 1, n_patches=300), 3, 2, 1, n_patches=300)
    return LearnedMaps(inside, 2, 3, 2, 1, n_patches=300).fit(GRAY)


def test_a_description_makes_maps_of_maps_again():
    family = layered().take(np.array([2, 0]))
    again = family_from_state(*family.to_state())
    assert_array_equal(again.transform(GRAY), family.transform(GRAY))
    assert again.get_params()["family__size"] == 2
    assert (again.macs(), again.map_shape_) == (family.macs(), family.map_shape_)


NAN = np.full((2, 3, 3, 1), np.nan, np.float32)
BROKEN_ARRAYS = [
    ("templates", lambda a: a[:1]), ("templates", lambda a: a[:, :2]),
    ("templates", lambda a: a[0]), ("templates", lambda a: a.astype(np.float64)),
    ("templates", lambda a: NAN), ("templates", lambda a: np.concatenate([a, a], axis=3)),
    ("biases", lambda a: a[:1]), ("biases", lambda a: a[None]),
    ("biases", lambda a: a.astype(np.int64)), ("biases", lambda a: a + np.float32(np.inf)),
    ("0.templates", lambda a: a[:, :1]), ("0.biases", lambda a: a[:2]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change"), BROKEN_ARRAYS)
def test_broken_arrays_are_refused(name, change):
    state, arrays = layered().to_state()
    with pytest.raises(InputError, match=rf"^{name.removeprefix('0.')}: got"):
        family_from_state(state, {**arrays, name: change(arrays[name])})
    del arrays[name]
    with pytest.raises(InputError, match=rf"^{name.removeprefix('0.')}: got None"):
        family_from_state(state, arrays)


def test_broken_descriptions_are_refused():
    state, arrays = layered().to_state()
    parts = state["parts"]
    for part in ([], parts * 2, None, [3], [{**parts[0], "image_shape": [6, 5, 3]}]):
        with pytest.raises(InputError):
            family_from_state({**state, "parts": part}, arrays)
    for key, value in (("pool", 3), ("size", 2), ("n_maps", 3), ("padding", 5), ("pool", 0),
                       ("size", "3"), ("padding", -1), ("n_maps", 2.0)):  # fmt: skip
        changed = {**state, "parameters": {**state["parameters"], key: value}}
        with pytest.raises(InputError):
            family_from_state(changed, arrays)
    for shape in ([3, 2], [13, 11, 2], [13, 11, 1, 1], [0, 11]):
        with pytest.raises(InputError):
            family_from_state({**state, "image_shape": shape}, arrays)
    for missing in ("parts", "parameters"):
        with pytest.raises(InputError):
            family_from_state({k: v for k, v in state.items() if k != missing}, arrays)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_maps": 0}, {"n_maps": 1025}, {"n_maps": 2.0}, {"size": 0}, {"size": 65}, {"pool": 0},
        {"pool": 12}, {"pool": True}, {"padding": -1}, {"padding": 65}, {"n_patches": 0},
        {"n_patches": 10**12}, {"family": None}, {"family": Pixels}, {"family": "pixels"},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_named(parameters):
    with pytest.raises(InputError, match=rf"^{next(iter(parameters))}: got"):
        LearnedMaps(**{"family": Pixels(), **parameters}).fit(GRAY)


def test_parameters_of_the_family_inside_are_checked_first():
    with pytest.raises(InputError, match=r"^patch_size: got 0"):
        LearnedMaps(PatchTemplates(patch_size=0)).fit(GRAY)


def test_what_takes_more_memory_than_there_is_is_refused_before_work():
    # Views of one byte: the images themselves take no memory.
    many = np.broadcast_to(np.uint8(3), (16, 2**12, 2**12))
    with pytest.raises(InputError, match=r"^n_maps: got 900.*memory"):
        LearnedMaps(Pixels(), n_maps=900).fit(many)
    large = np.broadcast_to(np.uint8(3), (9000, 2**20, 2**20))
    with pytest.raises(InputError, match=r"^padding: got 0.*memory"):
        LearnedMaps(Pixels(), n_maps=1).fit(large)


def test_images_that_are_too_small_or_too_alike_are_refused():
    for images in (GRAY[:, :5], GRAY[:, :, :5], GRAY.reshape(40, -1)):
        with pytest.raises(InputError, match=r"^images: got.*at least 6×6"):
            LearnedMaps(Pixels(), size=5, pool=2).fit(images)
    with pytest.raises(InputError, match=r"^images: got.*one color.*pictures with edges"):
        LearnedMaps(Pixels()).fit(np.zeros((5, 9, 9)))
    family = LearnedMaps(Pixels(), n_patches=300).fit(GRAY)
    with pytest.raises(InputError, match=r"^images: got"):
        family.transform(GRAY[:, 1:])
    with pytest.raises(InputError, match=r"^parts: got 2"):
        LearnedMaps.from_families([Pixels(), Pixels()])


def test_any_family_may_lie_on_maps():
    family = LearnedMaps(Deslanted(Pixels()), 2, 3, n_patches=300).fit(GRAY)
    assert family.n_features_ == 5 * 4 * 2
    assert family.groups is None
    assert len(family.sample(7, np.random.default_rng(0))) == 7
    assert_array_equal(np.concatenate(family.block_ids(np.arange(6))), np.arange(6))
