"""Training runs: what they write, and that a stopped run resumes to the same bits."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest

import visionshare
from visionshare.datasets import ImageSet, load_images
from visionshare.errors import InputError, MemoryLimitError, RecipeError
from visionshare.recipes import load_recipe, train
from visionshare.recipes.pools import read_pool
from visionshare.recipes.run import TrainingRun
from visionshare.recipes.stages.columns import make_columns
from visionshare.recipes.stages.images import prepare_images, validation_mask

FEW_TEMPLATES = ["features.parameters.n_templates=20", "features.parameters.n_patches=1000"]
UNLIMITED = ["learner.rounds=6", *FEW_TEMPLATES]
SMALL = [*UNLIMITED, "data.limit=400"]


UNION = """
family = "union"

[[parts]]
pool = "small-patches"

[[parts]]
pool = "waves.toml"
"""


@pytest.mark.whole_report
def test_a_union_trains_from_end_to_end(tmp_path):
    (tmp_path / "both.toml").write_text(UNION)
    (tmp_path / "waves.toml").write_text('family = "gabor"\n[parameters]\nn_filters = 9\n')
    settings = ["learner.rounds=6", "data.limit=400", f"features.pool={tmp_path / 'both.toml'}"]
    settings += ["features.parameters.small-patches.n_templates=8", "store.where=disk"]
    result = train(load_recipe("digits", settings), tmp_path / "out")
    model = visionshare.load(tmp_path / "out" / "classifier.safetensors")
    assert model.summary()["family"] == "union"
    assert model.n_features == 6
    assert model.macs == result.metrics["macs"]
    assert result.metrics["test_error_rate"] < 0.5
    kinds = {described["kind"] for described in model.features}
    assert kinds <= {"patch", "gabor"}
    assert model.metadata["recipe"]["features"]["parameters"] == {
        "small-patches": {"n_templates": 8}
    }


@pytest.mark.whole_report
def test_train_writes_everything(tmp_path):
    result = train(load_recipe("digits", SMALL), tmp_path / "out")
    names = {p.name for p in (tmp_path / "out").iterdir()}
    card = "classifier.md"
    results = {card, "classifier.safetensors", "metrics.json", "path.csv", "report.html"}
    assert names == results | {"run.json", "run.lock"}
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["rounds"] == metrics["features"] == 6
    assert metrics["test_error_rate"] == metrics["test_errors"] / metrics["test_images"]
    assert metrics["macs"] == result.classifier.macs
    assert set(metrics["seconds"]) >= {"data", "features", "columns", "learning", "evaluation"}
    assert set(metrics["processor_seconds"]) == set(metrics["seconds"])
    assert metrics["processor_seconds"]["learning"] > 0
    with open(tmp_path / "out" / "path.csv", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert float(rows[-1]["test_error"]) == pytest.approx(metrics["test_error_rate"])
    model = visionshare.load(tmp_path / "out" / "classifier.safetensors")
    assert model.metadata["pipeline"] == "digits"
    assert len(model.metadata["training_data"]) == 64


def test_memory_disk_and_threads_give_the_same_bits(tmp_path):
    models = []
    for number, (changes, jobs) in enumerate((
        (["store.where=memory"], 1), (["store.where=memory"], 2),
        (["store.where=disk", "store.memory=300kB"], 2), (["store.memory=300kB"], 1),
    )):  # fmt: skip
        recipe = load_recipe("digits", [*SMALL, *changes])
        model = train(recipe, tmp_path / str(number), jobs=jobs).classifier
        models.append((model.weights.tobytes(), model.intercept.tobytes(), model.temperature))
    assert len(set(models)) == 1
    # With the same settings the file is the same to the byte.
    files = [(tmp_path / str(n) / "classifier.safetensors").read_bytes() for n in range(2)]
    assert files[0] == files[1]


def test_a_stopped_run_resumes_to_the_same_bits(tmp_path, monkeypatch):
    from visionshare.learners.checkpoint import History

    recipe = load_recipe("digits", [*SMALL, "store.where=disk"])
    whole = train(recipe, tmp_path / "whole").classifier
    save = History.save

    def stops(self, step):
        save(self, step)
        if step.number == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(History, "save", stops)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "out")
    monkeypatch.setattr(History, "save", save)
    other = load_recipe("digits", [*SMALL, "store.where=disk", "learner.alpha=0.01"])
    with pytest.raises(RecipeError, match="holds another run"):
        train(other, tmp_path / "out", resume=True)
    resumed = train(recipe, tmp_path / "out", resume=True).classifier
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    assert resumed.temperature == whole.temperature


def test_deformed_copies_train(tmp_path):
    recipe = load_recipe("digits", [*SMALL, "deformations.copies=2"])
    assert train(recipe, tmp_path).metrics["train_images"] == 1200


def test_held_out_images_do_not_train(tmp_path):
    digits = load_images("digits", "train")
    recipe = load_recipe("digits", [*UNLIMITED, "data.held_out=0.25", "deformations.copies=1"])
    metrics = train(recipe, tmp_path / "one").metrics
    counts = np.bincount(digits.labels)
    n_test = int(sum(round(0.25 * n) for n in counts))
    assert metrics["test_images"] == n_test
    assert metrics["train_images"] == 2 * (len(digits) - n_test)
    # Another seed has the same test images.
    parts = [
        prepare_images(
            TrainingRun(load_recipe("digits", ["data.held_out=0.25", f"seed={seed}"]), tmp_path)
        )
        for seed in (0, 5)
    ]
    assert np.array_equal(parts[0].test.images, parts[1].test.images)
    whole = np.concatenate([parts[0].training.images, parts[0].test.images])
    assert sorted(map(bytes, whole)) == sorted(map(bytes, digits.images))
    with pytest.raises(RecipeError, match="held_out"):
        load_recipe("digits", ["data.held_out=1.0"])


def test_held_out_images_have_no_copy_among_those_that_train(tmp_path):
    rng = np.random.default_rng(0)
    images, order = rng.integers(0, 256, (40, 8, 8), np.uint8), rng.permutation(200)
    labels = np.repeat(np.arange(40) % 2, 5)[order]
    np.savez(tmp_path / "images.npz", images=np.repeat(images, 5, axis=0)[order], labels=labels)
    settings = [f"data={{source='{tmp_path}/images.npz', held_out=0.25}}"]
    run = TrainingRun(
        load_recipe("digits-early", [*settings, "early_exit.fraction=0.2"]), tmp_path / "out"
    )
    parts = prepare_images(run)
    exits = validation_mask(run.recipe, parts)
    kinds = parts.test.images, parts.training.images[exits], parts.training.images[~exits]
    held_out, stopping, learning = (set(map(bytes, kind)) for kind in kinds)
    assert all([held_out, stopping, learning])
    assert len(held_out | stopping | learning) == len(held_out) + len(stopping) + len(learning)


def test_bad_values_stop_before_work(tmp_path):
    for setting in (
        "learner.penalty=none_at_all", "learner.criterion=best", "store.memory=much",
        'features.parameters.widths="wide"', "features.parameters.grid=1.5", "learner.search=luck",
    ):  # fmt: skip
        key = setting.partition("=")[0].rpartition(".")[2]
        with pytest.raises((InputError, RecipeError), match=key):
            train(load_recipe("digits", [*SMALL, setting]), tmp_path / "out")
    assert not (tmp_path / "out").exists()


GRFL = ["learner={kind='grfl', rounds=6, alpha=2.0}", "data.limit=250"]
DRAWN = ["learner.search=sampled", "draws.n=6", "store.dtype=float32"]
WAVES_OF_DIGITS = ["features={pool='gabor', parameters={sigmas=[0.7, 2.0]}}", *DRAWN]
RUNS = {
    "shareboost, sampled gabor": [
        "learner={rounds=5, n_backward=3}", "data.limit=300", *WAVES_OF_DIGITS,
    ],
    "shareboost, sampled fourier": [
        "learner={rounds=5}", "data.limit=300", "features.pool=fourier", "features.parameters={}",
        *DRAWN,
    ],
    "grfl": [*GRFL, *FEW_TEMPLATES],
    "grfl, sampled gabor": [*GRFL, *WAVES_OF_DIGITS, "learner.patience=2"],
    "grfl, largest weights and shared ones": [
        *GRFL, *FEW_TEMPLATES, "learner.q=inf", "learner.shared_alpha=2.0",
    ],
    "stumps": [
        "learner={rounds=6, search='stumps'}", "data.limit=300",
        "features={pool='stumps', parameters={}}",
    ],
    "anchors too many to keep": [
        "learner={rounds=2}", "data.limit=300", "store={where='auto', memory='400kB'}",
        "features={pool='anchors', parameters={n_components=5, n_anchors=20}}",
    ],
}  # fmt: skip


@pytest.mark.whole_report
@pytest.mark.parametrize("run", RUNS)
def test_every_kind_of_columns_trains_and_resumes(run, tmp_path, monkeypatch):
    from visionshare.learners.checkpoint import History

    recipe = load_recipe("digits", RUNS[run])
    whole = train(recipe, tmp_path / "whole")
    model = visionshare.load(tmp_path / "whole" / "classifier.safetensors")
    assert model.metadata["recipe"]["learner"]["kind"] == recipe.learner.kind
    assert whole.metrics["test_error_rate"] < 0.8
    assert whole.metrics["features"] == model.n_features > 0
    save = History.save

    def stops(self, step):
        save(self, step)
        if len(self.records) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(History, "save", stops)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "out")
    monkeypatch.setattr(History, "save", save)
    resumed = train(recipe, tmp_path / "out", jobs=2, resume=True).classifier
    if recipe.learner.kind == "shareboost":
        np.testing.assert_array_equal(resumed.weights, model.weights)
        np.testing.assert_array_equal(resumed.intercept, model.intercept)
        assert resumed.temperature == model.temperature
    else:
        # Its solvers remember steps, so that the same features get weights to a tolerance.
        np.testing.assert_allclose(resumed.weights, model.weights, rtol=1e-2, atol=1e-3)
    for name, array in model.family.to_state()[1].items():
        np.testing.assert_array_equal(resumed.family.to_state()[1][name], array)


def test_columns_are_those_that_fit(tmp_path):
    from visionshare.columns import ArrayColumns
    from visionshare.generators.anchors import AnchorColumns
    from visionshare.generators.stumps import StumpColumns
    from visionshare.recipes.stages.columns import make_columns, searches_at_most
    from visionshare.store import DrawnColumns

    some = visionshare.datasets.load_dataset("digits").subset(slice(100))
    small = RUNS["anchors too many to keep"][-1]
    for settings, kind in (
        (RUNS["stumps"], StumpColumns), (RUNS["grfl, sampled gabor"], DrawnColumns),
        ([small, "store={where='auto', memory='10kB'}"], AnchorColumns),
        ([small, "store={where='auto'}"], ArrayColumns),
        ([small, "store={where='memory', memory='10kB'}"], ArrayColumns),
    ):  # fmt: skip
        recipe = load_recipe("digits", settings)
        family = read_pool(recipe.features, 0).fit(some.images)
        columns, features = make_columns(TrainingRun(recipe, tmp_path), family, some)
        assert isinstance(columns, kind)
        assert features is (columns.draws if kind is DrawnColumns else family)
    patient = load_recipe("digits", ["learner={kind='grfl', rounds=8, patience=3}"])
    assert searches_at_most(patient) == 27


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["learner.search=sampled"], "continuous family, such as .* of the family 'patches'"),
        (["learner.search=stumps"], "a pool of the family 'stumps'"),
        (["learner.search=products"], "not for recipes"),
        ([*RUNS["stumps"], "store.where=disk"], "store.where: "),
    ],
)
def test_searches_that_do_not_fit_stop_before_work(settings, message, tmp_path):
    with pytest.raises(RecipeError, match=message):
        train(load_recipe("digits", settings), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_textures_train_and_map(tmp_path):
    from visionshare.reading import label_map

    settings = ["data.cut.per_class=60", "data.cut.size=12", "learner.rounds=5", "draws.n=10"]
    result = train(load_recipe("textures-gabor", settings), tmp_path / "out")
    assert result.metrics["test_images"] == 180
    assert result.classifier.image_shape == (12, 12)
    assert result.metrics["test_error_rate"] < 0.5
    assert result.classifier.family.shares_windows
    assert label_map(result.classifier, np.zeros((20, 30), np.uint8)).shape == (20, 30)
    with pytest.raises(visionshare.errors.DataError, match="textures only"):
        train(load_recipe("textures", ["data.source=digits"]), tmp_path / "out")


@pytest.mark.whole_report
def test_preparation_is_learned_with_and_kept(tmp_path):
    from PIL import Image

    from visionshare.datasets import Preprocessing, load_dataset

    digits = load_dataset("digits", "train").subset(slice(0, 300))
    for split, part in (
        ("train", digits.subset(slice(0, 240))),
        ("test", digits.subset(slice(240, 300))),
    ):
        for i, (image, label) in enumerate(zip(part.images, part.labels, strict=True)):
            canvas = np.full((60, 50), 230, np.uint8)
            canvas[20:44, 10:34] -= np.kron(image, np.ones((3, 3), np.uint8)) // 2
            folder = tmp_path / "data" / split / str(label)
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(canvas).save(folder / f"{i:03d}.png")
    settings = [f"data.source={tmp_path / 'data'}", "data.height=8", "data.width=8"]
    settings += ["learner.rounds=15", *FEW_TEMPLATES]
    made = train(load_recipe("digits", settings), tmp_path / "out")
    steps = Preprocessing("automatic", contrast=True, crop=True, fit="box")
    assert visionshare.load(tmp_path / "out" / "classifier.safetensors").preprocessing == steps
    # Small dark digits on light ground would be beyond 15 features.
    assert made.metrics["test_error_rate"] < 0.3
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert steps.describe()[-1].split(",")[0] in page


def test_the_fit_of_the_data_is_kept_too(tmp_path):
    from visionshare.datasets import Preprocessing

    (tmp_path / "a.toml").write_text(
        'name = "a"\n[data]\nsource = "digits"\nfit = "center"\n'
        '[features]\npool = "pixels"\n[learner]\nrounds = 2\n'
    )
    made = train(load_recipe(tmp_path / "a.toml"), tmp_path / "out")
    assert made.classifier.preprocessing == Preprocessing(fit="center")


def test_a_margin_without_room_stops_before_work(tmp_path):
    with pytest.raises(InputError, match=r"^margin: got 4"):
        train(load_recipe("digits", ["preprocessing.margin=4"]), tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["features.parameters.patch_size=99"], "patch_size: got 99"),
        (["features.parameters.grid=100000"], "grid: got 100000; accepted: less: it takes about"),
        (
            ["features.parameters.n_templates=100000000000"],
            "patch_size: got .* less: it takes about",
        ),
    ],
)
def test_parameters_that_take_too_much_stop_before_work(settings, message, tmp_path):
    with pytest.raises(InputError, match=message):
        train(load_recipe("digits", settings), tmp_path / "out")
    assert not list((tmp_path / "out").glob("work/rounds*"))


def test_columns_that_no_disk_holds_stop_before_they_are_computed(tmp_path):
    run = TrainingRun(load_recipe("digits", ["store.where=disk"]), tmp_path / "work")
    family = SimpleNamespace(n_features_=10**15)
    blank = ImageSet(
        np.zeros((1000, 8, 8), np.uint8), np.zeros(1000, np.int64), ("a", "b"), "blank"
    )
    with pytest.raises(RecipeError, match=r"their columns take about .* PiB of disk; there are"):
        make_columns(run, family, blank)
    run = TrainingRun(load_recipe("digits", ["store.where=memory"]), tmp_path / "work")
    with pytest.raises(MemoryLimitError, match=r"PiB; this machine allows .* store.where="):
        make_columns(run, family, blank)
