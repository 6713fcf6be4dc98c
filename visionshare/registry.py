"""Registries: names of classes, for parameters that take a name or an object."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from visionshare.errors import InputError, VisionshareError
from visionshare.errors.names import choices
from visionshare.files.fingerprints import array_fingerprint

T = TypeVar("T")


class Registry(Mapping[str, Callable[..., T]]):
    """What makes the objects that a parameter accepts, by name."""

    def __init__(
        self, parameter: str, makers: Mapping[str, Callable[..., T]], methods: tuple[str, ...]
    ) -> None:
        self.parameter = parameter
        self._makers = dict(makers)
        self._methods = methods

    def __getitem__(self, name: str) -> Callable[..., T]:
        return self._makers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def make(self, given: str | T, **options: Any) -> T:
        """Return the object of a name and its options, or a fresh copy of an object."""
        names = " or ".join(map(repr, self))
        if not isinstance(given, str):
            self._check(given, options, names)
            return fresh(given)
        if given not in self._makers:
            raise InputError(self.parameter, given, choices(given, self))
        maker = self._makers[given]
        try:
            inspect.signature(maker).bind(**options)
        except TypeError as error:
            accepted = f"arguments of the {self.parameter} ({error})"
            raise InputError(f"{self.parameter}_options", options, accepted) from None
        try:
            return maker(**options)
        except VisionshareError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            # A text where a number is expected, or a number that is none.
            accepted = f"values of the right type ({error})"
            raise InputError(f"{self.parameter}_options", options, accepted) from None

    def _check(self, given: object, options: Mapping[str, Any], names: str) -> None:
        lacking = [name for name in self._methods if not callable(getattr(given, name, None))]
        if lacking or isinstance(given, type):
            methods = ", ".join(self._methods)
            raise InputError(self.parameter, given, f"{names}, or an object with {methods}")
        if options:
            accepted = f"none, where the {self.parameter} is an object"
            raise InputError(f"{self.parameter}_options", options, accepted)


def fresh(value: T) -> T:
    """Return a dataclass object with the same arguments and nothing that it has learned since."""
    # Other objects are returned themselves.
    if isinstance(value, type) or not is_dataclass(value):
        return value
    given: Any = value
    arguments = {f.name: fresh(getattr(given, f.name)) for f in fields(given) if f.init}
    return replace(given, **arguments)


def description(value: object) -> str:
    """Return what says in every process that two settings are the same."""
    if isinstance(value, np.ndarray):
        return array_fingerprint(value)
    if isinstance(value, np.generic):
        return description(value.item())
    if isinstance(value, float) and value.is_integer():
        # 2.0 and 2 are the same setting.
        return repr(int(value))
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(description, value))})"
    if isinstance(value, type) or inspect.isroutine(value):
        return f"{value.__module__}.{value.__qualname__}"
    if is_dataclass(value):
        named = {f.name: getattr(value, f.name) for f in fields(value) if f.repr}
    elif type(value).__repr__ is object.__repr__:
        named = dict(sorted(vars(value).items()))
    else:
        return repr(value)
    arguments = ", ".join(f"{name}={description(v)}" for name, v in named.items())
    return f"{type(value).__qualname__}({arguments})"
