"""Pools of features as files: families, and pools of several parts."""

import pytest

from visionshare.bundled import bundled
from visionshare.errors import RecipeError
from visionshare.recipes.pools import read_pool
from visionshare.recipes.schema import FeaturePart

UNION = """
family = "union"
description = "two small parts"

[[parts]]
pool = "small-patches"

[parts.parameters]
n_templates = 12

[[parts]]
pool = "waves.toml"
name = "waves"
"""
WAVES = """
family = "gabor"

[parameters]
n_filters = 9
"""


def _pool(folder, text=UNION, **parameters):
    (folder / "both.toml").write_text(text)
    (folder / "waves.toml").write_text(WAVES)
    return FeaturePart(pool=str(folder / "both.toml"), parameters=parameters)


def test_a_pool_of_parts(tmp_path):
    patches, waves = read_pool(_pool(tmp_path), 7).families
    assert (patches.n_templates, patches.grid, patches.random_state) == (12, 3, 7)
    assert (waves.n_filters, waves.random_state) == (9, 7)
    changed = read_pool(_pool(tmp_path, waves={"n_filters": 4}), 0).families
    assert (changed[0].n_templates, changed[1].n_filters) == (12, 4)
    inside = read_pool(_pool(tmp_path, UNION.replace("small-patches", "patches-gabor").replace(
        "n_templates = 12", "gabor.n_filters = 3"
    )), 0)  # fmt: skip
    assert inside.families[0].families[1].n_filters == 3
    inside.check_parameters()


def test_a_pool_of_deslanted_images():
    part = FeaturePart(pool="deslanted-patches", parameters={"patches": {"grid": 3}})
    pool = read_pool(part, 7)
    assert pool.name == "deslanted"
    assert (pool.family.name, pool.family.grid, pool.family.random_state) == ("patches", 3, 7)


def test_a_pool_of_channels():
    changes = {"channels": ["gray"], "patches": {"grid": 2}}
    pool = read_pool(FeaturePart(pool="channels", parameters=changes), 7)
    assert (pool.name, pool.channels, pool.pool) == ("channels", ["gray"], 2)
    assert (pool.family.patch_size, pool.family.grid, pool.family.random_state) == (4, 2, 7)


def test_a_family_around_a_part_has_parameters_too():
    changes = {"n_maps": 6, "patches": {"grid": 3}}
    maps = read_pool(FeaturePart(pool="layered", parameters=changes), 7)
    assert (maps.name, maps.n_maps, maps.size, maps.pool, maps.random_state) == ("maps", 6, 5, 2, 7)
    patches = maps.family
    assert (patches.masks, patches.grid, patches.random_state) == ("cells", 3, 7)
    fixed = read_pool(FeaturePart(pool="layered", parameters={"random_state": 3}), 7)
    assert (fixed.random_state, fixed.family.random_state) == (3, 7)
    for changes in ({"n_map": 6}, {"family": {}}, {"n_patchs": 3}):
        with pytest.raises(RecipeError, match=r"layered\.toml: unknown part '\w+'"):
            read_pool(FeaturePart(pool="layered", parameters=changes), 0)


@pytest.mark.parametrize("name", bundled("features"))
def test_bundled_pools_are_valid(name):
    assert bundled("features")[name].read_text().count("description = ") == 1
    read_pool(FeaturePart(pool=name), 0).check_parameters()


@pytest.mark.parametrize(
    ("text", "parameters", "message"),
    [
        ('pool = "x"', {}, r"both\.toml: unknown key 'pool'.* Known: family"),
        ("famly = 'gabor'", {}, r"both\.toml: unknown key 'famly'. Did you mean 'family'\?"),
        ("description = ''", {}, r"both\.toml: family: Field required"),
        ("family = 3", {}, r"both\.toml: family: .*\(got 3\)"),
        ("family = 'gabr'", {}, r"both\.toml: no family 'gabr'. Did you mean 'gabor'\?"),
        ("family = 'union'", {}, r"both\.toml: parts: "),
        ("family = 'deslanted'", {}, r"both\.toml: parts: "),
        (UNION.replace("union", "deslanted"), {}, r"both\.toml: parts: .* one \(got 2\)"),
        ("family = 'union'\nparts = []", {}, r"both\.toml: parts: "),
        ("family = 'union'\nparts = 3", {}, r"both\.toml: parts: .*\(got 3\)"),
        (UNION.replace("union", "gabor"), {}, r"both\.toml: parts: "),
        (UNION.replace("name =", "nam ="), {}, r"unknown key 'parts.1.nam'. Did you mean 'name'"),
        (UNION.replace('pool = "s', 'pol = "s'), {}, r"'parts.0.pol'. Did you mean 'pool'\?"),
        (
            UNION.replace("n_temp", "n_tmp"),
            {},
            r"small-patches\.toml: .*Did you mean 'n_templates'",
        ),
        (UNION.replace("small-", "smal-"), {}, r"'smal-patches'. Did you mean 'small-patches'"),
        (UNION.replace('"waves"', '"small-patches"'), {"small-patches": {}}, r"give each its own"),
        (UNION.replace("waves.toml", "both.toml"), {}, r"at most 8 pools inside each other"),
        (UNION, {"wave": {}}, r"both\.toml: unknown part 'wave'. Did you mean 'waves'\?"),
        (UNION, {"waves": 3}, r"both\.toml: waves: a table of parameters is wanted \(got 3\)"),
        (UNION, {"waves": {"n": 3}}, r"part 'waves': .*waves\.toml: unknown parameter 'n'"),
    ],
)
def test_wrong_pools_name_file_and_key(text, parameters, message, tmp_path):
    with pytest.raises(RecipeError, match=message):
        read_pool(_pool(tmp_path, text, **parameters), 0)
