"""Typed errors: each says what was wrong, what was given and what is accepted."""

from __future__ import annotations

__all__ = [
    "BudgetError",
    "ClassifierFileError",
    "ClusterError",
    "DataError",
    "ExportError",
    "InputError",
    "InputTypeError",
    "MemoryLimitError",
    "RecipeError",
    "ServiceError",
    "StorageError",
    "StoreError",
    "VisionshareError",
]


class VisionshareError(Exception):
    """Base of every error that this library raises on purpose.

    Examples
    --------
    >>> issubclass(InputError, VisionshareError)
    True
    """


class InputError(VisionshareError, ValueError):
    """An argument is not acceptable.

    Parameters
    ----------
    argument : str
        Name of the argument.
    given : object
        What was given; shown in the message.
    accepted : str
        What is accepted.

    Examples
    --------
    >>> raise InputError("rounds", -1, "an integer of at least 1")
    Traceback (most recent call last):
        ...
    visionshare.errors.InputError: rounds: got -1; accepted: an integer of at least 1
    """

    def __init__(self, argument: str, given: object, accepted: str) -> None:
        # A number of NumPy is shown as the plain number.
        is_scalar = getattr(given, "shape", None) == () and hasattr(given, "item")
        shown = given.item() if is_scalar else given  # type: ignore[attr-defined]
        super().__init__(f"{argument}: got {shown!r}; accepted: {accepted}")
        self.argument = argument
        self.given = given
        self.accepted = accepted

    def __reduce__(self) -> tuple[type, tuple[str, object, str]]:
        return type(self), (self.argument, self.given, self.accepted)


class InputTypeError(InputError, TypeError):
    """An argument is of a type that cannot be used.

    Examples
    --------
    >>> issubclass(InputTypeError, TypeError)
    True
    """


class ClusterError(VisionshareError, RuntimeError):
    """A cluster has lost its workers or its scheduler, or does not answer in time.

    Examples
    --------
    >>> issubclass(ClusterError, RuntimeError)
    True
    """


class DataError(VisionshareError, ValueError):
    """A data file is missing, broken, too large, or of another format.

    Examples
    --------
    >>> from visionshare.datasets import load_dataset
    >>> load_dataset("mnits", "test")
    Traceback (most recent call last):
        ...
    visionshare.errors.DataError: no data set named 'mnits'. Did you mean 'mnist'?
    """


class MemoryLimitError(VisionshareError, MemoryError):
    """A stage needs more memory than it may use; the message names what would help.

    Examples
    --------
    >>> from visionshare.machine.memory import check_fits, memory_limit
    >>> with memory_limit("1GiB", "--memory"):
    ...     check_fits("images", 3 << 30, "a smaller size")
    Traceback (most recent call last):
        ...
    visionshare.errors.MemoryLimitError: images: about 3.0 GiB; --memory allows 1.0 GiB: ...
    """


class StoreError(VisionshareError, RuntimeError):
    """A column store is broken, locked, or belongs to other images or another pool.

    Examples
    --------
    >>> from visionshare.store import open_store
    >>> open_store("nowhere")
    Traceback (most recent call last):
        ...
    visionshare.errors.StoreError: no folder of a store named 'nowhere'.
    """


class StorageError(VisionshareError, OSError):
    """A file cannot be written: the disk is full or fails, or the place is read-only.

    Examples
    --------
    >>> raise StorageError("out/a.csv: no space left on the disk")
    Traceback (most recent call last):
        ...
    visionshare.errors.StorageError: out/a.csv: no space left on the disk
    """


class ClassifierFileError(VisionshareError, ValueError):
    """A classifier file is broken, of another format, or of an unknown version.

    Examples
    --------
    >>> from visionshare import load
    >>> load("nothing")
    Traceback (most recent call last):
        ...
    visionshare.errors.ClassifierFileError: no file named 'nothing'.
    """


class ExportError(VisionshareError, RuntimeError):
    """A classifier, or its export, cannot be compiled or run here: something is not installed.

    Examples
    --------
    >>> issubclass(ExportError, RuntimeError)
    True
    """


class BudgetError(VisionshareError, ValueError):
    """A classifier takes more than it may: flash, memory or instructions of a core.

    Examples
    --------
    >>> issubclass(BudgetError, ValueError)
    True
    """


class ServiceError(VisionshareError, RuntimeError):
    """The service cannot run here: a package is missing, or its address cannot be used.

    Examples
    --------
    >>> issubclass(ServiceError, RuntimeError)
    True
    """


class RecipeError(VisionshareError, ValueError):
    """A recipe (TOML) has an unknown key, a wrong type or an impossible value.

    Examples
    --------
    >>> from visionshare.recipes import load_recipe
    >>> load_recipe("digits", ["learner.rouds=3"])
    Traceback (most recent call last):
        ...
    visionshare.errors.RecipeError: ...digits.toml: ...
    """
