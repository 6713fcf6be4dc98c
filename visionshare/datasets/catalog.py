"""The data catalog: one TOML per data set, looked up, verified and fetched by name."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import TypeAlias

from pydantic import ValidationError

from visionshare.datasets.catalog_entry import CatalogFile, DataSetInfo
from visionshare.datasets.readers.parquet import has_parquet
from visionshare.errors import DataError
from visionshare.errors.names import did_you_mean
from visionshare.files.bundled import bundled
from visionshare.files.fingerprints import stream_sha256
from visionshare.files.toml import read_toml_file
from visionshare.machine.resources import cache_folder

#: Where an error without a nearer hint sends its reader.
LISTED_DATASETS = "`visionshare data list` lists the data sets"
# A folder with a TOML file for each data set; the bundled ones when it is None.
Catalog: TypeAlias = "str | os.PathLike[str] | None"
Folder: TypeAlias = "str | os.PathLike[str] | None"


def list_datasets(catalog: Catalog = None) -> list[str]:
    """Return the names in the catalog.

    Parameters
    ----------
    catalog : path-like, optional
        A folder with a TOML file for each data set; the bundled catalog when omitted.

    Examples
    --------
    >>> "mnist" in list_datasets()
    True
    """
    return sorted(_entries(catalog))


def _entries(catalog: Catalog) -> dict[str, Path]:
    """Return the files of a catalog by the names of their data sets."""
    if catalog is None:
        return bundled("data")
    if not Path(catalog).is_dir():
        raise DataError(f"{catalog}: no such folder; a catalog is a folder of TOML files")
    return {path.stem: path for path in Path(catalog).glob("*.toml")}


def dataset_info(name: str, catalog: Catalog = None) -> DataSetInfo:
    """Return a catalog entry.

    Parameters
    ----------
    name : str
        See :func:`list_datasets`.
    catalog : path-like, optional
        As in :func:`list_datasets`.

    Examples
    --------
    >>> dataset_info("mnist").splits["test"].shape
    (10000, 28, 28)
    """
    path = _entries(catalog).get(name)
    if path is None:
        near = did_you_mean(name, list_datasets(catalog), LISTED_DATASETS)
        raise DataError(f"no data set named {name!r}{near}")
    try:
        return DataSetInfo(**read_toml_file(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DataError(f"{path}: invalid catalog entry ({where}: {first['msg']})") from None
    except (ValueError, RecursionError, OSError, TypeError) as error:
        raise DataError(f"{path}: invalid catalog entry ({error})") from None


def data_roots(data_dir: Folder = None) -> list[Path]:
    """Return the folders that are searched, in order: given, ``VISIONSHARE_DATA``, the cache."""
    given = [data_dir, os.environ.get("VISIONSHARE_DATA")]
    return [*(Path(folder) for folder in given if folder), cache_folder()]


def uses_folder(name: str, data_dir: str | os.PathLike[str]) -> bool:
    """Return whether a data set would be read from a folder of data sets."""
    # It is not where it comes inside a package, or where the folder does not have it.
    info = dataset_info(name)
    root = Path(data_dir)
    if info.kind == "bundled":
        # Of fonts the folder has more.
        return info.name == "fonts"
    if info.kind == "parquet":
        return bool(info.folder) and has_parquet(root / info.folder)
    files = [file.path for file in info.files] + [plate.image for plate in info.plates]
    for part in info.splits.values():
        files += [part.images, part.labels]
    return any(os.path.isfile(root / path) for path in files)


def _find(info: DataSetInfo, path: str, data_dir: Folder) -> Path:
    roots = data_roots(data_dir)
    for root in roots:
        if os.path.isfile(root / path):
            return root / path
    searched = ", ".join(map(str, roots))
    raise DataError(
        f"{info.name}: {path} is not in {searched}; run `visionshare data fetch {info.name}` "
        "or give --data DIR"
    )


def checked_file(info: DataSetInfo, path: str, data_dir: Folder) -> Path:
    """Return where a file of a data set lies, once its content is that of the catalog."""
    # It is hashed at each reading: a size and a time do not tell whether a file is intact.
    found = _find(info, path, data_dir)
    listed = next((file for file in info.files if file.path == path), None)
    if listed is not None and not _is_the_file(found, listed):
        raise DataError(
            f"{info.name}: {found} is not the file of the catalog (another sha256); "
            f"remove it and run `visionshare data fetch {info.name}`"
        )
    return found


def _is_the_file(path: Path, listed: CatalogFile) -> bool:
    """Return whether a file has the digest of the catalog, as it is or unpacked."""
    try:
        with open(path, "rb") as file:
            if stream_sha256(file) == listed.sha256:
                return True
        if listed.content_sha256 is None:
            return False
        with gzip.open(path, "rb") as content:
            return stream_sha256(content) == listed.content_sha256  # type: ignore[arg-type]
    except (OSError, EOFError, zlib.error):
        return False


def verify_dataset(name: str, data_dir: Folder = None, catalog: Catalog = None) -> dict[str, str]:
    """Return, for each file of a data set, "ok", "missing" or "broken" (another sha256).

    Parameters
    ----------
    name : str
    data_dir : path-like, optional
        Searched before ``VISIONSHARE_DATA`` and the user's cache.
    catalog : path-like, optional
        As in :func:`list_datasets`.

    Examples
    --------
    >>> verify_dataset("digits")
    {}
    """
    info = dataset_info(name, catalog)
    states = {}
    for file in info.files:
        try:
            path = _find(info, file.path, data_dir)
        except DataError:
            states[file.path] = "missing"
            continue
        states[file.path] = "ok" if _is_the_file(path, file) else "broken"
    return states


def fetch_dataset(
    name: str,
    data_dir: Folder = None,
    base_url: str | None = None,
    progress: bool = False,
    catalog: Catalog = None,
) -> list[Path]:
    """Download the files of a data set that are not there yet, and check their sha256.

    Parameters
    ----------
    name : str
    data_dir : path-like, optional
        Where to put them; the first of :func:`data_roots` when omitted.
    base_url : str, optional
        A mirror: files are then ``base_url/path``.
    progress : bool, default False
        Show a progress bar.
    catalog : path-like, optional
        As in :func:`list_datasets`.

    Examples
    --------
    >>> fetch_dataset("digits")
    []
    """
    import pooch

    info = dataset_info(name, catalog)
    if info.kind == "parquet" and not info.files:
        raise DataError(f"{name}: its files have no download addresses; {by_hand(info)}")
    root = data_roots(data_dir)[0]
    paths = []
    for file in info.files:
        url = f"{base_url.rstrip('/')}/{file.path}" if base_url else file.url
        target = root / file.path
        if url is None:
            raise DataError(f"{name}: {file.path} has no download address; see {info.homepage}")
        try:
            path = pooch.retrieve(
                url,
                known_hash=f"sha256:{file.sha256}",
                fname=target.name,
                path=target.parent,
                progressbar=progress,
            )
        except (OSError, ValueError) as error:
            raise DataError(f"{name}: {url}: {error}") from None
        paths.append(Path(path))
    return paths


def by_hand(info: DataSetInfo) -> str:
    """Return what to do for files that have no download addresses."""
    where = f"DIR/{info.folder} and give --data DIR"
    return f"put its files, such as train-00000-of-00001.parquet, into {where}; see {info.homepage}"
