"""Files that come with the library: data catalog, feature pools, pipelines, classifiers."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

#: Where an error without a nearer hint sends its reader.
LISTED_PIPELINES = "`visionshare list` lists the pipelines"


def bundled(kind: str, ending: str = ".toml") -> dict[str, Path]:
    """Return the bundled files of one kind, by name."""
    package = Path(str(files("visionshare")))
    for folder in (package / "_bundled" / kind, package.parent / kind):
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob(f"*{ending}"))}
    return {}


def bundled_classifiers() -> dict[str, Path]:
    """Return the files of the classifiers that come with the library, by name."""
    return bundled("models", ".safetensors")
