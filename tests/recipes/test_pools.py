"""Pools of features as files: families, and pools of several parts."""

import pytest

from visionshare.errors import RecipeError
from visionshare.files.bundled import bundled
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


def test_a_pool_of_layers_takes_changes_by_their_names():
    part = FeaturePart(pool="deslanted-patches", parameters={"patches": {"grid": 3}})
    pool = read_pool(part, 7)
    assert (pool.name, pool.random_state) == ("network", 7)
    deslant, features = pool.layers
    assert (deslant.kind, features.kind) == ("deslant", "family")
    assert (features.family.name, features.family.grid) == ("patches", 3)
    assert features.family.random_state == 7
    changes = {"channels-1": {"channels": ["gray"]}, "patches": {"grid": 2}}
    channels, features = read_pool(FeaturePart(pool="channels", parameters=changes), 7).layers
    assert (channels.channels, channels.pool, features.family.patch_size) == (["gray"], 2, 4)
    maps, last = read_pool(
        FeaturePart(pool="layered", parameters={"templates-1": {"n_templates": 6}}), 7
    ).layers
    assert (maps.n_templates, maps.size, maps.pool, last.grid) == (6, 5, 2, 2)
    for changes in ({"templates-9": {}}, {"template-1": {}}):
        with pytest.raises(RecipeError, match=r"layered\.toml: unknown layer '[\w-]+'"):
            read_pool(FeaturePart(pool="layered", parameters=changes), 0)


def test_a_recipe_may_list_the_layers():
    layers = [{"kind": "deslant"}, {"kind": "templates", "n_templates": 9, "grid": 2}]
    part = FeaturePart(pool="network", parameters={"layers": layers, "random_state": 3})
    pool = read_pool(part, 7)
    assert [layer.kind for layer in pool.layers] == ["deslant", "templates"]
    assert (pool.layers[1].n_templates, pool.layers[1].grid, pool.random_state) == (9, 2, 3)
    for wrong, said in (
        ("templates", "a list of tables"), ([3], "a list of tables"), ([{"kind": "conv"}], "kind"),
        ([{"kind": "templates", "n_template": 3}], "Did you mean 'n_templates'"),
        ([{"kind": "family", "pool": "nowhere"}], "no pool of features named 'nowhere'"),
    ):  # fmt: skip
        with pytest.raises(RecipeError, match=said):
            read_pool(FeaturePart(pool="network", parameters={"layers": wrong}), 0)


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
        ("family = 'gabr'", {}, r"both\.toml: unknown family 'gabr'. Did you mean 'gabor'\?"),
        ("family = 'union'", {}, r"both\.toml: parts: "),
        ("family = 'network'\nlayers = 3", {}, r"both\.toml: layers: .*\(got 3\)"),
        ("family = 'network'\n[[layers]]\nkind = 'conv'", {}, r"layer 'conv-1': kind: got 'conv'"),
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
