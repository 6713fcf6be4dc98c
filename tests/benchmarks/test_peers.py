"""The harness of benchmarks/peers on digits, and each peer's arithmetic against a plain form."""

import itertools
import json
import re

import numpy as np
import pytest
from scipy.ndimage import correlate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from benchmarks.peers import random_convolutions, running
from benchmarks.peers.neighbors import NearestNeighbors
from benchmarks.peers.oriented_gradients import Histograms
from benchmarks.peers.ours import name_of, seed_of
from benchmarks.peers.peer import pixel_rows, two_parts
from benchmarks.peers.random_convolutions import draw
from benchmarks.peers.ridge import Ridge, sums, validation_errors
from benchmarks.peers.running import PEERS, Peer, missing
from benchmarks.peers.svm import PairwiseVotes
from benchmarks.peers.timing import microseconds
from scripts.reproduce.layers import HELD_OUT as TRIED_ON
from visionshare import CompactClassifier, Pixels
from visionshare.datasets import load_images
from visionshare.datasets.sampling import stratified_mask


@pytest.fixture(scope="module")
def digits():
    return load_images("digits", "train"), load_images("digits", "test")


@pytest.fixture
def file(digits, tmp_path):
    """A linear classifier of all pixels, as a run leaves it."""
    train, _ = digits
    X = pixel_rows(train.images)
    ridge = Ridge(X.shape[1], 10)
    ridge.add(X, train.labels)
    weights, intercept = ridge.solve(1e-2)
    family = Pixels().fit(train.images)
    (tmp_path / "linear").mkdir()
    path = tmp_path / "linear" / "classifier.safetensors"
    CompactClassifier(family, weights.T, intercept, np.array(train.classes)).save(path)
    (path.parent / "metrics.json").write_text(
        '{"seconds": {"data": 9.0, "columns": 0.5, "learning": 2.0}, "train_images": 1198}'
    )
    return path


def _rows(page):
    """Return the cells of the page's table by the name of the classifier."""
    lines = re.findall(r"^\| (.+) \|$", page, flags=re.MULTILINE)
    return {cells[0]: cells[1:] for cells in (line.split(" | ") for line in lines[1:])}


def _command(tmp_path, *options):
    command = ["--set", "digits", "--quick", "--jobs", "1", "--seconds", "0.3"]
    files = ["--out", str(tmp_path), "--json", str(tmp_path / "digits.json")]
    return [*command, *files, "--seeds", "2", *options]


@pytest.mark.exhaustive
def test_the_page(file, tmp_path):
    """Every peer whose packages are there has a row; of the others the page says so."""
    peers = PEERS | {"lacking": Peer("a peer of the future", "never", ("no_such_package",))}
    unasked = {key for key in PEERS if key.endswith(("-0.2", "-0.4", "-1"))} | {"neighbors"}
    asked = [key for key in peers if key not in unasked]
    running.main(_command(tmp_path, "--ours", str(file), "--peers", *asked), peers)
    page = (tmp_path / "peers-digits.md").read_text(encoding="utf-8")
    rows = _rows(page)
    assert (tmp_path / "peers-digits.svg").is_file()
    assert "](peers-digits.svg)" in page
    assert "](peers-digits.json)" in page
    results = json.loads((tmp_path / "peers-digits.json").read_text())["results"]
    assert set(rows) <= set(results)
    assert "a peer of the future is left out: no no_such_package here." in page
    for peer in (peers[key] for key in asked):
        assert (peer.name in rows) != bool(missing(peer))
        assert (f"{peer.name} is left out" in page) == bool(missing(peer))
    assert rows["visionshare, linear, Python"][-1] == "2.5"
    # What networks learn in so little time depends on what else the machine does.
    bounds = {peer.name: 101 for peer in PEERS.values() if peer.module == "networks"}
    for name, (error, cost, n_bytes, times, _) in rows.items():
        single, batch = times.split(" / ")
        assert 0 <= float(error.split()[0]) < bounds.get(name, 40), name
        assert int(cost.split()[0].replace(",", "")) > 0 < int(n_bytes.replace(",", ""))
        assert float(single) > 0 < float(batch)


def test_what_is_done_is_not_done_again(file, tmp_path, monkeypatch):
    """A second run trains the seeds that are new, with the settings that were chosen before."""
    learned = []
    # What is counted is what is trained: few features of few images are enough.
    monkeypatch.setattr(random_convolutions, "QUICK_FEATURES", 200)
    monkeypatch.setattr(running, "QUICK", 300)

    class Noting(Peer):
        def tune(self, train, effort):
            learned.append("tuned")
            return super().tune(train, effort)

        def learn(self, train, effort, choice):
            learned.append(effort.seed)
            return super().learn(train, effort, choice)

    peers = {"convolutions": Noting(*PEERS["convolutions"]), "svm": Noting(*PEERS["svm"])}
    running.main(_command(tmp_path, "--seeds", "1", "--peers", "convolutions"), peers)
    assert learned == ["tuned", 0]
    running.main(_command(tmp_path, "--seeds", "3", "--ours", str(file)), peers)
    assert learned == ["tuned", 0, "tuned", 0, 1, 2]
    before = json.loads((tmp_path / "digits.json").read_text())["results"]
    running.main(_command(tmp_path, "--seeds", "3"), peers)
    assert learned == ["tuned", 0, "tuned", 0, 1, 2]
    after = json.loads((tmp_path / "digits.json").read_text())["results"]
    assert {k: v["runs"] for k, v in before.items()} == {k: v["runs"] for k, v in after.items()}
    with pytest.raises(SystemExit, match="json: got"):
        running.main(_command(tmp_path, "--tuning", "7"), peers)
    # Another file of the same name is evaluated, but where times alone are wanted.
    other = CompactClassifier.load(file)
    CompactClassifier(other.family, -other.weights, other.intercept, other.classes_).save(file)
    for options in (["--times-only"], []):
        running.main(_command(tmp_path, "--peers", "svm", "--ours", str(file), *options), peers)
        last = json.loads((tmp_path / "digits.json").read_text())["results"]
        name = "visionshare, linear, Python"
        assert (last[name]["runs"] == before[name]["runs"]) == bool(options)
        assert "times" in last[name]


@pytest.mark.parametrize("alone", [True, False])
def test_what_predicts_without_its_packages_is_timed_where_they_are_missing(tmp_path, alone):
    peer = PEERS["neighbors"]
    options = _command(tmp_path, "--peers", "neighbors")
    running.main(options, {"neighbors": peer})
    file = tmp_path / "digits.json"
    content = json.loads(file.read_text())
    del content["results"][peer.name]["times"]
    file.write_text(json.dumps(content))
    lacking = peer._replace(packages=("no_such_package",), predicts_alone=alone)
    running.main(options, {"neighbors": lacking})
    assert ("times" in json.loads(file.read_text())["results"][peer.name]) == alone
    assert "is left out" not in (tmp_path / "peers-digits.md").read_text(encoding="utf-8")


def test_bad_files_are_refused_before_training(file, tmp_path):
    def refused(*files):
        with pytest.raises(SystemExit, match="ours: got"):
            running.main(_command(tmp_path, "--ours", *files))

    refused(str(file), str(file))
    family = Pixels().fit(np.zeros((1, 3, 3)))
    parts = np.zeros((10, 9)), np.zeros(10)
    CompactClassifier(family, *parts, np.array(list("0123456789"))).save(tmp_path / "small")
    refused(str(tmp_path / "small"))
    family = Pixels().fit(np.zeros((1, 8, 8)))
    parts = np.zeros((10, 64)), np.zeros(10)
    CompactClassifier(family, *parts, np.array(list("abcdefghij"))).save(tmp_path / "letters")
    refused(str(tmp_path / "letters"))
    assert not (tmp_path / "peers-digits.md").exists()
    assert name_of(file) == "linear"
    assert name_of(tmp_path / "small") == "small"
    assert name_of(tmp_path / "mnist-quick-2" / "classifier.safetensors") == "mnist-quick"
    assert seed_of(tmp_path / "mnist-quick-2" / "classifier.safetensors") == 2
    assert seed_of(file) == 0


def test_parts_are_disjoint(digits):
    part, validation = two_parts(digits[0])
    assert len(part) + len(validation) == len(digits[0])
    assert not {image.tobytes() for image in part.images} & {
        image.tobytes() for image in validation.images
    }
    assert [len(half) for half in two_parts(digits[0], 30, 20)] == [30, 20]


def test_held_out_are_the_images_that_recipes_hold_out(digits):
    train = digits[0]
    held_out = stratified_mask(train.labels, float(TRIED_ON[0].partition("=")[2]), 0)
    _, validation = two_parts(train)
    assert sorted(image.tobytes() for image in validation.images) == sorted(
        image.tobytes() for image in train.images[held_out]
    )


def test_every_predictor_is_timed():
    asked = []
    times = microseconds(
        {"a": lambda images: asked.append(len(images))}, np.zeros((50, 2, 2)), 3, singles=4
    )
    assert asked.count(50) == 3
    assert asked.count(1) == 1 + 3 * 4
    assert times["a"].single > 0 < times["a"].batch


def test_support_vectors_vote_as_libsvm(digits):
    (train, test), gamma = digits, 0.1
    model = SVC(C=3.0, gamma=gamma, decision_function_shape="ovo")
    Q = pixel_rows(test.images)
    model.fit(pixel_rows(train.images), train.labels)
    votes = PairwiseVotes(model, gamma)
    np.testing.assert_allclose(votes.decision_function(Q), model.decision_function(Q), atol=2e-4)
    np.testing.assert_array_equal(votes.predict(Q), model.predict(Q))
    assert votes.macs == len(model.support_vectors_) * (64 + 9)


def test_votes_of_two_classes_are_those_of_scikit_learn(digits):
    train, test = digits
    learned, asked = train.labels < 2, test.labels < 2
    X, Q = pixel_rows(train.images[learned]), pixel_rows(test.images[asked])
    model = SVC(C=3.0, gamma=0.05).fit(X, train.labels[learned])
    votes = PairwiseVotes(model, 0.05)
    # Positive for the first class, as of each pair where there are more.
    scores = -model.decision_function(Q)
    np.testing.assert_allclose(votes.decision_function(Q)[:, 0], scores, atol=2e-4)
    np.testing.assert_array_equal(votes.predict(Q), model.predict(Q))


@pytest.mark.parametrize("shape", [(28, 28), (32, 32), (32, 32, 3), (8, 8)])
@pytest.mark.parametrize("grid", [4, 7])
def test_histograms_are_of_about_as_many_cells(shape, grid):
    images = np.random.default_rng(0).integers(0, 256, (2, *shape), np.uint8)
    rows = Histograms(grid)(images)
    cells = shape[0] // max(1, shape[0] // grid)
    assert rows.shape == (2, (cells - 1) ** 2 * 4 * 9)
    assert rows.dtype == np.float32
    assert abs(cells - grid) <= 1


def test_neighbors_are_those_of_scikit_learn(digits):
    train, test = digits
    X, Q = pixel_rows(train.images), pixel_rows(test.images)
    plain = KNeighborsClassifier(3, algorithm="brute").fit(X, train.labels)
    ours = NearestNeighbors(X, train.labels, 3)
    np.testing.assert_array_equal(ours.predict(Q), plain.predict(Q))


@pytest.mark.parametrize("side", [3, 5])
def test_fractions_against_plain_correlation(side):
    images = np.random.default_rng(0).integers(0, 256, (6, 11, 14), np.uint8)
    lift = draw(images, 120, side, 2, 3)
    expected = np.empty((6, len(lift.kernels), 2, 3, 3))
    margins = []
    for k, (kernel, dilation) in enumerate(zip(lift.kernels, lift.dilations, strict=True)):
        wide = np.zeros((dilation * (side - 1) + 1,) * 2, np.float32)
        wide[::dilation, ::dilation] = kernel
        for n, image in enumerate(images / np.float32(255)):
            response = correlate(image, wide, mode="constant")
            margins.append(np.abs(response[..., None] - lift.thresholds[k]).min())
            above = response > lift.thresholds[k][:, None, None]
            for i, rows in enumerate(np.split(np.arange(11), [4, 7])):
                for j, columns in enumerate(np.split(np.arange(14), [5, 9])):
                    expected[n, k, :, i, j] = above[:, rows][:, :, columns].mean(axis=(1, 2))
    fractions = lift.transform(images)
    assert lift.dilations.max() > 1
    # A response as large as its threshold may be on either side of it: one pixel of the least cell.
    np.testing.assert_allclose(fractions, expected.reshape(6, -1), atol=1 / 12 + 1e-6)
    assert np.mean(np.abs(fractions - expected.reshape(6, -1)) > 1e-6) < 0.01
    np.testing.assert_array_equal(lift.transform(images[3:4])[0], fractions[3])


def test_macs_of_convolutions_are_taps_inside():
    lift = draw(np.full((2, 6, 7), 100, np.uint8), 12, 3, 1, 1)
    inside = 0
    for dilation in lift.dilations.tolist():
        shifts = (-dilation, 0, dilation)
        for y, x, dy, dx in np.ndindex(6, 7, 3, 3):
            inside += 0 <= y + shifts[dy] < 6 and 0 <= x + shifts[dx] < 7
    assert lift.macs((6, 7)) == inside


def test_ridge_is_the_minimum():
    rng = np.random.default_rng(0)
    Z, y = 5 + rng.normal(size=(60, 7)).astype(np.float32), rng.integers(0, 3, 60)
    ridge = Ridge(7, 3)
    ridge.add(Z[:25], y[:25])
    ridge.add(Z[25:], y[25:])
    weights, intercept = ridge.solve(0.1)
    T = np.where(np.arange(3) == y[:, None], 1.0, -1.0)
    errors = Z @ weights + intercept - T
    penalty = 0.1 * Z.var(axis=0).mean()
    np.testing.assert_allclose(Z.T @ errors / 60 + penalty * weights, 0, atol=2e-5)
    np.testing.assert_allclose(errors.mean(axis=0), 0, atol=1e-5)


def test_penalties_without_a_solution_are_not_chosen(digits):
    part, validation = two_parts(digits[0], 40, 40)
    lift = draw(part.images, 100, 3, 1, 2)
    ridge = sums(lift, part)
    with pytest.raises(np.linalg.LinAlgError):
        ridge.solve(-1.0)
    impossible, possible = validation_errors(lift, ridge, validation, (-1.0, 0.1))
    assert impossible == 1 > possible


def test_comparisons_are_counted_along_the_path():
    lightgbm = pytest.importorskip("lightgbm")
    from benchmarks.peers.boosted_trees import comparisons

    images = np.repeat(np.arange(0, 256, 4, dtype=np.uint8), 2).reshape(-1, 1, 2)
    y = (np.arange(64) // 16 == 3) + 2.0 * (np.arange(64) // 16 == 0)
    settings = {"num_leaves": 3, "min_data_in_leaf": 1, "verbosity": -1, "num_threads": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(pixel_rows(images), y), 1)
    # Three leaves: one at depth 1, two at depth 2.
    tree = booster.dump_model()["tree_info"][0]["tree_structure"]
    alone = "left_child" if "leaf_index" in tree["left_child"] else "right_child"
    shallow = tree[alone]["leaf_count"]
    assert comparisons(booster, images) == pytest.approx((shallow + 2 * (64 - shallow)) / 64)


@pytest.mark.parametrize(("scales", "angles", "shape"), [(1, 4, (8, 8)), (3, 3, (16, 20))])
def test_operations_of_scattering_are_those_that_kymatio_makes(scales, angles, shape, monkeypatch):
    """Each Fourier transform and each filter is counted where it is called."""
    pytest.importorskip("kymatio")
    from kymatio.scattering2d.backend.numpy_backend import NumpyBackend2D

    from benchmarks.peers.scattering import Scattering

    images = np.random.default_rng(0).integers(0, 256, (1, *shape), np.uint8)
    lift, count = Scattering(scales, angles, shape), [0.0]
    expected = lift.transform(images)

    def counted(name, cost):
        plain = getattr(NumpyBackend2D, name)

        def call(x, *others):
            count[0] += cost(x.size)
            return plain(x, *others)

        monkeypatch.setattr(NumpyBackend2D, name, staticmethod(call))

    for name in ("rfft", "irfft", "ifft"):
        counted(name, lambda n: 2 * n * np.log2(n))
    counted("cdgmm", lambda n: 2 * n)
    np.testing.assert_array_equal(lift.transform(images), expected)
    assert expected.shape == (1, lift.n_features)
    assert lift.macs == round(count[0])


def test_a_coefficient_of_scattering_is_a_smoothed_modulus():
    """Of the finest wavelets by circular convolutions in space, at every fourth pixel."""
    pytest.importorskip("kymatio")
    from benchmarks.peers.scattering import Scattering, _transform

    image = np.random.default_rng(0).integers(0, 256, (1, 12, 12), np.uint8)
    lift, scattering = Scattering(2, 4, (12, 12)), _transform(2, 4, (12, 12))
    padded, low = scattering.pad(image / 255)[0], scattering.phi["levels"][0]

    def convolved(x, frequencies):
        kernel = np.fft.ifft2(frequencies)
        return sum(kernel[at] * np.roll(x, at, (0, 1)) for at in np.ndindex(x.shape))

    fine = [convolved(padded, wavelet["levels"][0]) for wavelet in scattering.psi[:4]]
    smooth = [convolved(x, low).real for x in (padded, *map(np.abs, fine))]
    plain = np.array([x[::4, ::4][1:-1, 1:-1] for x in smooth])
    np.testing.assert_allclose(lift.transform(image).reshape(-1, 3, 3)[:5], plain, atol=1e-5)


def test_a_clause_is_true_where_all_its_literals_are_true_of_a_patch():
    from benchmarks.peers import tsetlin

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (6, 12, 13), np.uint8)
    rows, cols, side = 3, 4, tsetlin.SIDE
    n_features = rows - 1 + cols - 1 + side * side
    chosen = [rng.choice(2 * n_features, n, replace=False) for n in (0, 1, 2, 4, 7)]
    bits = np.zeros((1, len(chosen), 32 * -(-2 * n_features // 32)), bool)
    for clause, numbers in enumerate(chosen):
        bits[0, clause, numbers] = True
    included = np.packbits(bits, axis=2, bitorder="little").view("<u4")

    def holds(image, number):
        """Return in which patches a literal is true."""
        feature = number % n_features
        found = np.empty((rows, cols), bool)
        for y in range(rows):
            for x in range(cols):
                if feature < rows - 1:
                    found[y, x] = y > feature
                elif feature < rows + cols - 2:
                    found[y, x] = x > feature - (rows - 1)
                else:
                    dy, dx = divmod(feature - (rows + cols - 2), side)
                    found[y, x] = image[y + dy, x + dx] > tsetlin.INK
        return found if number < n_features else ~found

    for clause, numbers in enumerate(chosen):
        weights = np.zeros((1, len(chosen)), np.int32)
        weights[0, clause] = 3
        scores = np.empty((len(images), 1), np.int64)
        tsetlin._scores(tsetlin.literals(images), included, weights, scores)
        for image, (score,) in zip(images, scores, strict=True):
            true = np.ones((rows, cols), bool)
            for number in numbers:
                true &= holds(image, number)
            assert score == (3 if len(numbers) and true.any() else 0)


@pytest.mark.parametrize("n_images", [1, 63, 64, 65, 300])
def test_logic_gates_are_their_tables_of_truth(n_images):
    from benchmarks.peers.logic_gates import INK, LogicGates

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n_images, 5, 6), np.uint8)
    sizes, n_classes = (30, 80, 64, 90), 3
    inputs = [
        rng.integers(0, before, (2, after), np.int32) for before, after in itertools.pairwise(sizes)
    ]
    operations = [rng.integers(0, 16, after, np.uint8) for after in sizes[1:]]
    operations[0][:16] = np.arange(16)
    values = images.reshape(n_images, -1) >= INK
    for (a, b), of_layer in zip(inputs, operations, strict=True):
        # difflogic numbers gates by their values for 00, 01, 10, 11, the last one lowest.
        tables = (of_layer[:, None] >> np.array([3, 2, 1, 0])) & 1
        case = 2 * values[:, a].astype(int) + values[:, b]
        values = tables[np.arange(len(of_layer)), case].astype(bool)
    scores = values.reshape(n_images, n_classes, -1).sum(axis=2)
    found = LogicGates(tuple(inputs), tuple(operations), n_classes)(images)
    np.testing.assert_array_equal(found, np.argmax(scores, axis=1))


def test_gates_that_no_sum_depends_on_are_not_counted():
    from benchmarks.peers.logic_gates import LogicGates, n_used

    # The last layer: a (3), not b (10), a and b (1); the gates before: 0 to 3.
    before = np.array([[0, 1, 2, 3], [1, 2, 3, 0]], np.int32)
    last = np.array([[0, 1, 2], [1, 2, 2]], np.int32)
    operations = (np.array([1, 6, 7, 1], np.uint8), np.array([3, 10, 1], np.uint8))
    # Gates 0 by the first, 2 by the others; not 1 and 3.
    assert n_used(LogicGates((before, last), operations, 3)) == 3 + 2
