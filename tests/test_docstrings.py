"""Public names have examples in their docstrings."""

import importlib
import inspect
import pkgutil

import pytest

import visionshare

PACKAGES = sorted(module.name for module in pkgutil.iter_modules(visionshare.__path__))


def without_example(module):
    """Return the public classes and functions of a module that have no example."""
    public = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    return sorted(
        name
        for name, value in public.items()
        if (inspect.isclass(value) or inspect.isroutine(value))
        and ">>>" not in (inspect.getdoc(value) or "")
    )


# Packages for users; the others are for those who extend the library.
PROMISED = (
    "batch", "classifier", "columns", "datasets", "distributed", "errors", "export", "generators",
    "image_classifier", "learners", "reading", "recipes", "reports", "service", "store",
)  # fmt: skip


def test_top_level_names_have_examples():
    assert not without_example(visionshare)


@pytest.mark.parametrize("package", PROMISED)
def test_names_for_users_have_examples(package):
    assert not without_example(importlib.import_module(f"visionshare.{package}"))


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_documented(package):
    module = importlib.import_module(f"visionshare.{package}")
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isroutine(value):
            # A dataclass without a docstring gets its signature for one.
            assert value.__doc__, name
            assert not value.__doc__.startswith(f"{name}("), name
