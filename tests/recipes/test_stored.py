import json

import h5py
import numpy as np
import pytest
from sklearn.datasets import load_digits

from visionshare.cli.main import main
from visionshare.datasets import survey_shards
from visionshare.errors import DataError, InputError, RecipeError
from visionshare.recipes import load_recipe, train
from visionshare.recipes.own_pictures import PictureOptions, recipe_for_pictures
from visionshare.recipes.stages.stored import StoredImages, split_files

TUNED = [
    "features.parameters.n_templates=30", "learner.rounds=4", "data.height=8", "data.width=8",
    "fine_tuning={epochs=2, batch=96, search_images=200, deformed=true, head='linear'}",
    "deformations={copies=0, shift=1}",
]  # fmt: skip

# Dask leaves some of its own sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    return (data.images[:480] * 15).astype(np.uint8), data.target[:480]


@pytest.fixture(scope="module")
def pattern(digits, tmp_path_factory):
    """Four files that train and one that tests, as a pattern."""
    folder = tmp_path_factory.mktemp("shards")
    for i in range(5):
        rows, part = slice(96 * i, 96 * i + 96), "test" if i == 4 else "train"
        np.savez(folder / f"{part}-{i}.npz", x=digits[0][rows], y=digits[1][rows])
    return str(folder / "*.npz")


def recipe_of(pattern, *settings):
    return load_recipe("digits", [f"data.source={pattern}", *TUNED, *settings])


def test_a_recipe_trains_from_files_of_storage(pattern, tmp_path):
    result = train(recipe_of(pattern, "learner.rounds=12"), tmp_path / "run")
    assert (result.metrics["train_images"], result.metrics["test_images"]) == (384, 96)
    assert result.metrics["test_error_rate"] < 0.6
    manifest = json.loads((tmp_path / "run" / "pictures.json").read_text())
    assert [len(shard["labels"]) for shard in manifest["shards"]] == [96] * 4
    assert len(result.classifier.metadata["training_data"]) == 64


def trained_both_ways(recipe, tmp_path):
    """Return the classifiers of one process and of two workers."""
    distributed = pytest.importorskip("distributed", reason="needs the extra [dask]")
    here = train(recipe, tmp_path / "here").classifier
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = train(recipe, tmp_path / "there", client=client).classifier
    return here, there


def test_workers_learn_the_same_bits_from_storage(pattern, tmp_path):
    here, there = trained_both_ways(recipe_of(pattern), tmp_path)
    assert np.array_equal(here.weights, there.weights)
    assert here.temperature == there.temperature


@pytest.mark.parametrize(
    "setting",
    ["data.limit=10", "data.held_out=0.1", "data.test_fraction=0.2", "deformations.copies=1",
     "store.partitions=3"],
)  # fmt: skip
def test_what_needs_all_pictures_in_one_place_is_refused(pattern, tmp_path, setting):
    with pytest.raises(RecipeError, match=setting.split("=")[0]):
        train(recipe_of(pattern, setting), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_files_that_test_are_told_by_their_names(pattern, tmp_path):
    train_files, test_files = split_files(pattern)
    assert len(train_files) == 4
    assert test_files[0].endswith("test-4.npz")
    with pytest.raises(DataError, match="no files match"):
        split_files(str(tmp_path / "*.tar"))


def test_the_first_file_says_how_pictures_are_prepared(pattern):
    own = recipe_for_pictures(pattern, PictureOptions(recipe="glyphs", size=(8, 8)))
    assert own.recipe.data.source == pattern
    assert (own.recipe.data.height, own.recipe.data.mode) == (8, "gray")
    with pytest.raises(InputError, match="--test-fraction"):
        recipe_for_pictures(pattern, PictureOptions(test_fraction=0.2))


@pytest.mark.parametrize("kind", ["h5", "zarr"])
def test_the_first_rows_say_how_pictures_are_prepared(kind, digits, tmp_path):
    source = tmp_path / f"a.{kind}"
    if kind == "zarr":
        zarr = pytest.importorskip("zarr", reason="needs the extra [zarr]")
        group = zarr.open_group(str(source), mode="w")
        group.create_array("images", data=digits[0])
        group.create_array("labels", data=digits[1])
    else:
        with h5py.File(source, "w") as file:
            file["images"], file["labels"] = digits
    pattern = str(source) if kind == "zarr" else str(tmp_path / "*.h5")
    own = recipe_for_pictures(pattern, PictureOptions(recipe="glyphs", size=(8, 8)))
    assert (own.recipe.data.source, own.recipe.data.height) == (pattern, 8)


def test_images_are_read_once_and_do_not_travel(pattern, digits):
    import pickle

    stored = survey_shards(split_files(pattern)[0], (8, 8))
    images = StoredImages(stored.grouped(2)[1], 1)
    assert images(0) is images(3)
    assert np.array_equal(images(0), digits[0][192:384])
    assert len(pickle.dumps(images)) < 10_000


def test_subsets_of_stored_pictures(pattern, digits):
    stored = survey_shards(split_files(pattern)[0], (8, 8))
    mask = np.zeros(384, bool)
    mask[[3, 5, 300]] = True
    some = stored.subset(mask)
    assert len(some.shards) == 2
    assert np.array_equal(some.images(), digits[0][[3, 5, 300]])
    assert some.labels.tolist() == digits[1][[3, 5, 300]].tolist()
    assert some.subset(np.array([False, True, True])).images().shape == (2, 8, 8)
    assert some.fingerprint() != stored.fingerprint()


def test_zarr_groups_are_read_by_blocks(digits, tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr", reason="needs the extra [zarr]")
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    group.create_array("images", data=digits[0], chunks=(100, 8, 8))
    group.create_array("labels", data=digits[1])
    monkeypatch.setattr("visionshare.datasets.readers.stored_arrays._BLOCK", 200 * 64)
    stored = survey_shards(str(tmp_path / "a.zarr"), (8, 8))
    assert [len(shard.labels) for shard in stored.shards] == [200, 200, 80]
    assert np.array_equal(stored.images(), digits[0])
    assert stored.labels.tolist() == digits[1].tolist()
    group["images"][250] = 0
    with pytest.raises(DataError, match="changed since"):
        stored.images()
    with pytest.raises(DataError, match=r"b\.zarr"):
        survey_shards(str(tmp_path / "b.zarr"), (8, 8))


def test_a_search_for_a_recipe_is_refused(pattern, capsys):
    assert main(["train", pattern, "--time", "5s"]) == 2
    assert "--time" in capsys.readouterr().err


def test_the_command_trains_from_a_pattern(pattern, tmp_path, capsys):
    out = tmp_path / "run"
    changes = ["learner.rounds=3", "fine_tuning.epochs=1", "fine_tuning.search_images=100"]
    settings = [word for change in changes for word in ("--set", change)]
    assert main(["train", pattern, "--recipe", "glyphs", "--out", str(out), *settings]) == 0
    assert "384" not in capsys.readouterr().err
    assert json.loads((out / "metrics.json").read_text())["train_images"] == 384


def test_object_storage_gives_the_bits_of_files(pattern, object_storage, tmp_path):
    zarr = pytest.importorskip("zarr", reason="needs the extra [zarr]")
    object_storage.mkdir("digits")
    for name in [name for names in split_files(pattern) for name in names]:
        object_storage.put_file(name, f"digits/{name.rsplit('/', 1)[-1]}")
    there = train(recipe_of("s3://digits/*.npz"), tmp_path / "there").classifier
    images = survey_shards("s3://digits/train-*.npz", (8, 8)).images()
    group = zarr.open_group("s3://digits/a.zarr", mode="w")
    group.create_array("images", data=images)
    group.create_array("labels", data=np.arange(len(images)) % 3)
    stored = survey_shards("s3://digits/a.zarr", (8, 8))
    assert np.array_equal(stored.images(), images)
    here = train(recipe_of(pattern), tmp_path / "here").classifier
    assert np.array_equal(here.weights, there.weights)
