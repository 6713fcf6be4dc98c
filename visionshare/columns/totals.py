"""Functions of the examples of columns, and their sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class Totals:
    """What columns whose examples are in one place do with a function of these.

    Examples
    --------
    >>> y = Totals().of_examples(np.array([1.0, 2.0]))
    >>> float(Totals().total(np.sum, y))
    3.0
    """

    def total(self, function: Callable[..., T], *args: Any, how: str = "sum") -> T:
        """Return the sum of what a function gives for all examples.

        Columns whose examples lie in several places call it in each of them, with what stands there
        for these arguments. Whatever needs the examples themselves is written so: they need not
        come together.

        Parameters
        ----------
        function : callable
            Of the arguments; returns numbers, an array, or a tuple of such.
        *args
            Arrays with a row for each example as :meth:`of_examples` returns them, chosen columns,
            what :meth:`each` returned, and anything else, which is equal everywhere.
        how : {"sum", "max"}, default "sum"
        """
        return function(*args)

    def each(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return what a function gives for each example; it stays where the examples are."""
        return function(*args)

    def of_examples(self, values: np.ndarray) -> Any:
        """Return an array with a row for each example as :meth:`total` and :meth:`each` take it."""
        return values

    def task_problem(
        self, make: Callable[..., T], examples: Sequence[np.ndarray], executor: Any = None
    ) -> T:
        """Return the problem of tasks that is made of what is known of the examples."""
        return make(executor, *examples)
