"""The TOML files that come with the library: data catalogue, feature pools, pipelines."""

from __future__ import annotations

from pathlib import Path

__all__ = ["bundled"]

_PACKAGE = Path(__file__).resolve().parent


def bundled(kind: str) -> dict[str, Path]:
    """Return the bundled TOML files of one kind, by name.

    Parameters
    ----------
    kind : {"data", "features", "pipelines"}
        Which folder. An installed package carries it inside; a checkout has it at its root.

    Examples
    --------
    >>> all(path.suffix == ".toml" for path in bundled("pipelines").values())
    True
    """
    for folder in (_PACKAGE / "_bundled" / kind, _PACKAGE.parent / kind):
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob("*.toml"))}
    return {}
