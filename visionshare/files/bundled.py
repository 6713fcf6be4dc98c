"""The TOML files that come with the library: data catalog, feature pools, pipelines."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

__all__ = ["LISTED_PIPELINES", "bundled"]

#: Where an error without a nearer hint sends its reader.
LISTED_PIPELINES = "`visionshare list` lists the pipelines"


def bundled(kind: str) -> dict[str, Path]:
    """Return the bundled TOML files of one kind, by name."""
    package = Path(str(files("visionshare")))
    for folder in (package / "_bundled" / kind, package.parent / kind):
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob("*.toml"))}
    return {}
