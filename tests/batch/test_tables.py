"""Tables of features: every kind of file holds the same names, paths, labels and values."""

import csv
import re

import h5py
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from visionshare import LocalBinaryPatterns, Pixels, UnionOfFamilies
from visionshare.batch import extract_features, write_table
from visionshare.batch.extraction_parts import write_part
from visionshare.batch.tables import TABLES, feature_descriptions
from visionshare.cli.main import main
from visionshare.errors import InputError, StorageError
from visionshare.files.fingerprints import IMAGE_BLOCK
from visionshare.generators.family_file import read_family
from visionshare.generators.pretrained.efficientnet import is_installed
from visionshare.store import open_store


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    """Return a folder of two folders of pictures."""
    folder = tmp_path_factory.mktemp("scans")
    rng = np.random.default_rng(0)
    for number in range(7):
        label = folder / ("cats", "dogs")[number % 2]
        label.mkdir(exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 9), np.uint8)).save(label / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def store(scans, tmp_path_factory):
    """Return a store of the pictures' features, and the features themselves."""
    paths = sorted(map(str, scans.rglob("*.png")))
    images = np.stack([np.asarray(Image.open(path)) for path in paths])
    family = UnionOfFamilies([Pixels(), LocalBinaryPatterns()]).fit(images)
    folder = tmp_path_factory.mktemp("store") / "s"
    labels = [path.split("/")[-2] for path in paths]
    extract_features(family, paths, folder, labels=labels)
    return open_store(folder), family.transform(images), paths, labels


def _of_csv(path):
    header, *rows = csv.reader(path.read_text().splitlines())
    assert header[:2] == ["path", "label"]
    values = np.array([row[2:] for row in rows], np.float32)
    return [row[0] for row in rows], [row[1] for row in rows], header[2:], values


def _of_parquet(path):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(path)
    paths, labels, *columns = (column.to_pylist() for column in table.columns)
    field = table.schema.field("pixels3")
    assert field.metadata[b"description"] == b"pixel position=(0, 3)"
    return paths, labels, table.column_names[2:], np.array(columns, np.float32).T


def _of_npz(path):
    with np.load(path) as file:
        assert file["descriptions"][3] == "pixel position=(0, 3)"
        return [file[name].tolist() for name in ("path", "label", "names")] + [file["features"]]


def _of_h5(path):
    with h5py.File(path) as file:
        texts = [file[name].asstr()[()].tolist() for name in ("path", "label", "names")]
        return [*texts, file["features"][()]]


def _of_h5ad(path):
    anndata = pytest.importorskip("anndata")
    table = anndata.read_h5ad(path)
    assert table.var["description"].iloc[3] == "pixel position=(0, 3)"
    return (
        table.obs["path"].tolist(),
        table.obs["label"].tolist(),
        table.var_names.tolist(),
        table.X,
    )


READERS = {
    ".csv": _of_csv, ".parquet": _of_parquet, ".npz": _of_npz, ".h5": _of_h5, ".h5ad": _of_h5ad,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ending", sorted(TABLES))
def test_a_table_holds_what_the_store_holds(ending, store, tmp_path, monkeypatch):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    columns, expected, paths, labels = store
    # Several blocks of rows.
    monkeypatch.setattr("visionshare.batch.tables._BLOCK_BYTES", 3 * 4 * expected.shape[1])
    found = READERS[ending](write_table(columns, tmp_path / f"table{ending}"))
    assert found[0] == paths
    assert found[1] == labels
    assert found[2] == columns.feature_names
    assert len(set(columns.feature_names)) == expected.shape[1]
    assert_array_equal(found[3], expected)


def test_a_frame_and_rows_hold_the_same(store):
    columns, expected, paths, labels = store
    assert_array_equal(columns.rows(2, 5, np.array([9, 1])), expected[2:5, [9, 1]])
    frame = columns.to_frame(np.array([3, 80]))
    assert frame.columns.tolist() == ["path", "label", "pixels3", "lbp8"]
    assert frame["path"].tolist() == paths
    assert frame["label"].tolist() == labels
    assert_array_equal(frame["lbp8"], expected[:, 80])


def test_features_are_described(store):
    columns = store[0]
    assert columns.feature_descriptions[:2] == ["pixel position=(0, 0)", "pixel position=(0, 1)"]
    assert columns.feature_descriptions[72].startswith("lbp cell=")
    family = Pixels().fit(np.zeros((1, 2, 2)))
    assert feature_descriptions(family)[2] == "pixel position=(1, 0)"


def test_chosen_columns_and_their_descriptions(store, tmp_path):
    columns, expected, *_ = store
    write_table(columns, tmp_path / "a.csv", ["lbp1", "pixels0"])
    *_, names, values = _of_csv(tmp_path / "a.csv")
    assert names == ["lbp1", "pixels0"]
    assert_array_equal(values, expected[:, [73, 0]])
    lines = (tmp_path / "a.csv.features.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["name", "lbp1", "pixels0"]
    with pytest.raises(InputError, match=r"'pixels99'.*pixels9"):
        write_table(columns, tmp_path / "b.csv", ["pixels99"])
    with pytest.raises(InputError, match=r"'\.xlsx'"):
        write_table(columns, tmp_path / "b.xlsx")


def test_a_full_disk_leaves_no_half_of_a_table(store, tmp_path, monkeypatch):
    def full(table, partial):
        partial.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(TABLES, ".csv", full)
    with pytest.raises(StorageError, match="No space left"):
        write_table(store[0], tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_a_table_and_takes_several_pools(scans, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pools = tmp_path / "pixels.toml"
    pools.write_text('family = "pixels"\n')
    command = ["extract", "pixels.toml,lbp", str(scans), "--out"]
    assert main([*command, "f.csv", "--jobs", "1"]) == 0
    assert "f.csv.store" in capsys.readouterr().out
    _, labels, names, values = _of_csv(tmp_path / "f.csv")
    assert labels == ["cats"] * 4 + ["dogs"] * 3
    assert names[0] == "pixels0"
    assert any(name.startswith("lbp") for name in names)
    assert main(["store", "export", "f.csv.store", "--out", "g.npz", "--columns", "pixels5"]) == 0
    with np.load(tmp_path / "g.npz") as file:
        assert_array_equal(file["features"][:, 0], values[:, 5])
    capsys.readouterr()
    assert main([*command, "f.xlsx", "--jobs", "1"]) == 2
    assert "a table (.csv" in capsys.readouterr().err
    assert main(["extract", "pixels.toml,lbq", str(scans), "--out", "h.csv"]) == 2
    assert "lbp" in capsys.readouterr().err


def test_the_plan_says_how_much_there_is_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "many").mkdir()
    for number in range(100):
        Image.new("L", (4, 4), number).save(tmp_path / "many" / f"{number}.png")
    (tmp_path / "many" / "0.png").write_bytes(b"broken")
    command = ["extract", "pixels", "many", "--size", "4", "--skip-broken", "--out", "m.csv"]
    assert main([*command, "--jobs", "1"]) in (0, 1)
    said = capsys.readouterr()
    assert "plan         100 images, 16 features, about " in said.err
    assert "images       99" in said.out


def test_polars_and_arrow_open_a_parquet_file(store, tmp_path):
    """Names are plain words, as data frames of R take them as columns without quoting."""
    parquet = pytest.importorskip("pyarrow.parquet")
    polars = pytest.importorskip("polars")
    columns, expected, paths, labels = store
    path = write_table(columns, tmp_path / "a.parquet")
    names = parquet.read_schema(path).names
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9._]*", name) for name in names)
    frame = polars.read_parquet(path)
    assert frame["path"].to_list() == paths
    assert frame["label"].to_list() == labels
    assert_array_equal(frame.drop("path", "label").to_numpy(), expected)


def test_a_pipeline_of_scikit_learn_takes_the_parquet_file(store, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.read_parquet(write_table(store[0], tmp_path / "a.parquet"))
    features = frame.drop(columns=["path", "label"])
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(features, frame["label"])
    assert model.score(features, frame["label"]) == 1
    assert model[0].feature_names_in_.tolist() == store[0].feature_names


def test_a_fitted_pool_gives_other_pictures_the_same_columns(scans, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text('family = "gabor"\n[parameters]\nn_filters = 5\n')
    command = ["--jobs", "1", "--out"]
    assert main(["extract", "p.toml,lbp", str(scans), *command, "all.csv"]) == 0
    fitted = "all.csv.store/features.safetensors"
    assert main(["extract", fitted, str(scans / "dogs"), *command, "dogs.csv"]) == 0
    header, *rows = csv.reader((tmp_path / "all.csv").read_text().splitlines())
    other, *dogs = csv.reader((tmp_path / "dogs.csv").read_text().splitlines())
    # Pictures of one folder have no label.
    assert other == ["path", *header[2:]]
    assert dogs == [[row[0], *row[2:]] for row in rows if row[1] == "dogs"]


@pytest.mark.skipif(not is_installed(), reason="the extra is not installed")
def test_columns_of_a_pretrained_network_resume_beside_others(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scans").mkdir()
    rng = np.random.default_rng(0)
    for number in range(IMAGE_BLOCK + 3):
        pixels = rng.integers(0, 256, (12, 12, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "scans" / f"{number:03d}.png")
    pool = 'family = "pretrained"\n[parameters]\nsize = 32\nplaces = ["stage1"]\n'
    (tmp_path / "net.toml").write_text(pool)
    command = ["extract", "net.toml,lbp", "scans", "--jobs", "1", "--out"]
    assert main([*command, "whole.csv"]) == 0

    def stopped(folder, number, *rest):
        if number == 1:
            raise KeyboardInterrupt
        return write_part(folder, number, *rest)

    with monkeypatch.context() as patched:
        patched.setattr("visionshare.batch.extraction.write_part", stopped)
        assert main([*command, "stopped.csv"]) != 0
    assert not (tmp_path / "stopped.csv").exists()
    assert main([*command, "stopped.csv"]) == 0
    assert (tmp_path / "stopped.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()

    fitted = "whole.csv.store/features.safetensors"
    assert main(["extract", fitted, "scans/007.png", "--jobs", "1", "--out", "one.csv"]) == 0
    lines = (tmp_path / "whole.csv").read_text().splitlines()
    assert (tmp_path / "one.csv").read_text().splitlines() == [lines[0], lines[8]]
    assert {"pretrained0", "lbp0"} < set(lines[0].split(","))

    # Alone it learns nothing, and takes pictures at its own size.
    assert main(["extract", "net.toml", "scans/007.png", "--jobs", "1", "--out", "net.csv"]) == 0
    assert read_family("net.csv.store/features.safetensors").image_shape_ == (32, 32, 3)
