"""Features as a table: Parquet, CSV, npz, HDF5 or AnnData, one row per image.

Each writer takes some rows at a time from the store, so that a table may be larger than memory.
"""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.batch.regions import region_of
from visionshare.errors import InputError
from visionshare.errors.names import choices
from visionshare.files.durable import replace_file
from visionshare.generators import FeatureFamily
from visionshare.machine.progress import track
from visionshare.store import StoreColumns

# Values of some rows that are in memory at a time.
_BLOCK_BYTES = 32 << 20
# Numbers that are text at a time: each takes some fifty times the memory of its float32.
_TEXTS = 1 << 16


@dataclass(frozen=True, eq=False)
class _Table:
    """Chosen columns of a store, with their names, and the texts of each row."""

    columns: StoreColumns
    ids: np.ndarray
    names: list[str]
    descriptions: list[str]
    texts: dict[str, list[Any]]

    @property
    def n_rows(self) -> int:
        return self.columns.shape[0]

    def blocks(self) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield first row, last row (exclusive) and features (n, n_features), float32."""
        step = max(1, _BLOCK_BYTES // (4 * max(1, len(self.ids))))
        for start in track(range(0, self.n_rows, step), "writing the table"):
            stop = min(start + step, self.n_rows)
            rows = self.columns.rows(start, stop, self.ids)
            yield start, stop, rows.astype(np.float32, copy=False)


def check_table(out: str | os.PathLike[str], argument: str = "out") -> None:
    """Check that the ending of a file says a known kind of table, and that it can be written.

    Examples
    --------
    >>> check_table("features.csv")
    """
    ending = Path(out).suffix
    if ending not in TABLES:
        raise InputError(argument, ending, choices(ending, TABLES))
    if ending == ".parquet":
        _parquet()


def write_table(
    columns: StoreColumns, out: str | os.PathLike[str], names: Sequence[str] | None = None
) -> Path:
    """Write columns of a store as a table, by the ending of the file's name.

    The first columns are ``path`` and, where there are labels, ``label``; then the features under
    their short names. What each is, is part of the file; beside .csv and .parquet files it is
    written as ``NAME.features.csv``.

    Parameters
    ----------
    columns : StoreColumns
        Complete, see :func:`visionshare.store.open_store`.
    out : path-like
        A file that ends in .parquet, .csv, .npz, .h5 or .h5ad; it is replaced in one step.
    names : sequence of str, optional
        Features to write, in this order; all when omitted.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    InputError
        If the ending or a name is unknown.
    StoreError
        If columns are missing.
    StorageError
        If the disk refuses; there is no half of a file then.

    Examples
    --------
    >>> import tempfile
    >>> from visionshare import Pixels
    >>> from visionshare.store import create_store
    >>> images = np.arange(8.0).reshape(2, 2, 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     columns = create_store(f"{folder}/store", Pixels().fit(images), images)
    ...     print(write_table(columns, f"{folder}/a.csv", ["pixels3"]).read_text())
    pixels3
    3.0
    7.0
    <BLANKLINE>
    """
    check_table(out)
    path = Path(out)
    all_names = columns.feature_names
    number_of = {name: number for number, name in enumerate(all_names)}
    for name in names or ():
        if name not in number_of:
            raise InputError("columns", name, choices(name, all_names))
    chosen = list(all_names if names is None else names)
    ids = np.array([number_of[name] for name in chosen], np.int64)
    columns.fill(ids)
    descriptions = columns.feature_descriptions
    texts = _row_columns(columns)
    table = _Table(columns, ids, chosen, [descriptions[j] for j in ids], texts)
    with replace_file(path) as partial:
        TABLES[path.suffix](table, partial)
    if path.suffix in (".csv", ".parquet") and any(table.descriptions):
        with replace_file(path.with_suffix(f"{path.suffix}.features.csv")) as partial:
            _write_descriptions(table, partial)
    return path


def _row_columns(columns: StoreColumns) -> dict[str, list[Any]]:
    """Return the columns that say what each row is: path, place of a region, label."""
    found: dict[str, list[Any]] = {}
    paths = columns.paths
    regions = [region_of(path) for path in paths or ()]
    if paths is not None and all(regions):
        known = [region for region in regions if region is not None]
        found["path"] = [region.path for region in known]
        for number, name in enumerate(("y0", "x0", "y1", "x1")):
            found[name] = [region.box[number] for region in known]
        if any(region.level for region in known):
            found["level"] = [region.level for region in known]
        if any(region.mask for region in known):
            found["object"] = [region.number for region in known]
    elif paths is not None:
        found["path"] = paths
    labels = columns.labels
    return found if labels is None else {**found, "label": labels}


def feature_descriptions(family: FeatureFamily) -> list[str]:
    """Return a line for each feature of a fitted family: its kind and its plain parameters.

    Examples
    --------
    >>> from visionshare import Pixels
    >>> feature_descriptions(Pixels().fit(np.zeros((1, 2, 2))))[3]
    'pixel position=(1, 1)'
    """
    return [_described(family.describe(j)) for j in range(family.n_features_)]


def _described(values: dict[str, Any]) -> str:
    words = [str(values["kind"])]
    for name, value in values.items():
        if name != "kind" and not isinstance(value, (np.ndarray, list, dict)):
            words.append(f"{name}={f'{value:.4g}' if isinstance(value, float) else value}")
    return " ".join(words)


def _write_descriptions(table: _Table, partial: Path) -> None:
    with open(partial, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "description"])
        writer.writerows(zip(table.names, table.descriptions, strict=True))


def _write_csv(table: _Table, partial: Path) -> None:
    with open(partial, "w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*table.texts, *table.names])
        step = max(1, _TEXTS // max(1, len(table.names)))
        for start, stop, rows in table.blocks():
            for first in range(start, stop, step):
                last = min(first + step, stop)
                texts = [values[first:last] for values in table.texts.values()]
                # The shortest digits that give the same float32 again.
                numbers = rows[first - start : last - start].astype(str).tolist()
                for row, *labels in zip(numbers, *texts, strict=True):
                    writer.writerow([*labels, *row])


def _parquet() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        accepted = "another ending, or first: pip install 'visionshare[parquet]'"
        raise InputError("out", ".parquet", accepted) from None
    return pyarrow


def _write_parquet(table: _Table, partial: Path) -> None:
    pyarrow = _parquet()
    fields = [pyarrow.field(n, pyarrow.array(v[:1]).type) for n, v in table.texts.items()]
    for name, description in zip(table.names, table.descriptions, strict=True):
        fields.append(pyarrow.field(name, pyarrow.float32(), metadata={"description": description}))
    schema = pyarrow.schema(fields)
    with pyarrow.parquet.ParquetWriter(partial, schema) as writer:
        for start, stop, rows in table.blocks():
            arrays: list[Any] = [values[start:stop] for values in table.texts.values()]
            arrays += list(np.ascontiguousarray(rows.T))
            writer.write_table(pyarrow.table(arrays, schema=schema))


def _write_npz(table: _Table, partial: Path) -> None:
    texts = {**table.texts, "names": table.names, "descriptions": table.descriptions}
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, values in texts.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.array(values), allow_pickle=False)
        with archive.open("features.npy", "w", force_zip64=True) as member:
            shape = (table.n_rows, len(table.names))
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_2_0(member, header)
            for _, _, rows in table.blocks():
                member.write(rows.astype("<f4", copy=False).tobytes())


def _write_h5(table: _Table, partial: Path) -> None:
    import h5py

    with h5py.File(partial, "w") as file:
        texts = {**table.texts, "names": table.names, "descriptions": table.descriptions}
        for name, values in texts.items():
            file.create_dataset(name, data=values, dtype=_h5_type(values))
        _write_features(file, "features", table)


def _write_h5ad(table: _Table, partial: Path) -> None:
    """Write the layout of AnnData: images are observations, features are variables."""
    import h5py

    with h5py.File(partial, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        values = _write_features(file, "X", table)
        values.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
        numbers = [str(number) for number in range(table.n_rows)]
        _write_frame(file, "obs", numbers, table.texts)
        _write_frame(file, "var", table.names, {"description": table.descriptions})
        for name in ("layers", "obsm", "obsp", "uns", "varm", "varp"):
            group = file.create_group(name)
            group.attrs.update({"encoding-type": "dict", "encoding-version": "0.1.0"})


def _write_frame(file: Any, name: str, index: list[str], texts: dict[str, list[Any]]) -> None:
    import h5py

    group = file.create_group(name)
    group.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0"})
    group.attrs["_index"] = "_index"
    group.attrs.create("column-order", list(texts), dtype=h5py.string_dtype())
    for column, values in {"_index": index, **texts}.items():
        dataset = group.create_dataset(column, data=values, dtype=_h5_type(values))
        kind = "array" if dataset.dtype.kind == "i" else "string-array"
        dataset.attrs.update({"encoding-type": kind, "encoding-version": "0.2.0"})


def _h5_type(values: list[Any]) -> Any:
    import h5py

    return np.int64 if values and isinstance(values[0], int) else h5py.string_dtype()


def _write_features(file: Any, name: str, table: _Table) -> Any:
    dataset = file.create_dataset(name, (table.n_rows, len(table.names)), np.float32)
    for start, stop, rows in table.blocks():
        dataset[start:stop] = rows
    return dataset


#: Writers of tables by the ending of the file.
TABLES: dict[str, Callable[[_Table, Path], None]] = {
    ".csv": _write_csv,
    ".h5": _write_h5,
    ".h5ad": _write_h5ad,
    ".npz": _write_npz,
    ".parquet": _write_parquet,
}
