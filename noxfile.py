"""Sessions of nox: `nox -l` lists them, `nox -s lint` runs one. Each has its own environment."""

import re
from pathlib import Path

import nox
import tomllib

nox.needs_version = ">=2024.3"
nox.options.sessions = ["lint", "tests", "docs"]
nox.options.default_venv_backend = "venv"

OLDEST, NEWEST = "3.10", "3.14"


def oldest_versions() -> list[str]:
    """Return the least accepted version of each dependency, as constraints for pip."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [
        *project["dependencies"],
        *(line for name in ("onnx", "serve", "parquet") for line in extras[name]),
    ]
    found = (re.match(r"([\w-]+)>=([\w.]+)", line) for line in lines)
    return [f"{match[1]}=={match[2]}" for match in found if match]


@nox.session(python=[OLDEST, "3.11", "3.12", "3.13", NEWEST])
def tests(session: nox.Session) -> None:
    """Run the tests with the newest versions of all dependencies."""
    session.install("-e", ".[test,parquet]")
    session.run("pytest", "-q", *session.posargs)


@nox.session(python=OLDEST)
def oldest(session: nox.Session) -> None:
    """Run the tests with the oldest versions that pyproject.toml accepts."""
    constraints = Path(session.create_tmp()) / "oldest.txt"
    constraints.write_text("\n".join(oldest_versions()) + "\n", encoding="utf-8")
    session.install("-e", ".[test,parquet]", "-c", str(constraints))
    # Old versions warn of what newer ones changed.
    session.run("pytest", "-q", "-W", "default", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and types."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site, warnings as errors, and check its links."""
    session.install("-e", ".[docs]")
    out = "build/docs/html"
    session.run("python", "-m", "sphinx", "-W", "--keep-going", "-b", "html", "docs", out)
    session.run("python", "-m", "scripts.links", out)
