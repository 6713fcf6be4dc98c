"""What budgets buy: held-out error against cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.image_classifier.copies import held_out_mask
from visionshare.image_classifier.estimator import ImageClassifier

_BUDGETS = (20_000, 100_000, 500_000)


@dataclass(frozen=True)
class Comparison:
    """Held-out errors of classifiers within several budgets.

    Attributes
    ----------
    budgets : tuple
        As they were given.
    errors : tuple of float
        Fractions of the held-out images that got a wrong class.
    standard_errors : tuple of float
        Of the errors, as fractions of so many images.
    classifiers : tuple of ImageClassifier
        Fitted to the other images.
    n_held_out : int

    Examples
    --------
    >>> found = Comparison((5000, 20_000), (0.1, 0.05), (0.01, 0.01), (), n_held_out=900)
    >>> found.budgets[found.errors.index(min(found.errors))]
    20000
    """

    budgets: tuple[Any, ...]
    errors: tuple[float, ...]
    standard_errors: tuple[float, ...]
    classifiers: tuple[ImageClassifier, ...]
    n_held_out: int

    @property
    def table(self) -> dict[str, list[Any]]:
        """A list for each column, as ``pandas.DataFrame`` takes it."""
        costs = [model.cost_ for model in self.classifiers]
        return {
            "budget": list(self.budgets),
            "error": list(self.errors),
            "standard_error": list(self.standard_errors),
            **{name: [cost[name] for cost in costs] for name in ("macs", "parameters", "bytes")},
            "proposal": [model.search_results_["proposal"][0] for model in self.classifiers],
        }

    def __str__(self) -> str:
        lines = ["    budget   error, %  ±          macs      bytes"]
        for i, budget in enumerate(self.budgets):
            cost = self.classifiers[i].cost_
            error = 100 * self.errors[i]
            deviation = 100 * self.standard_errors[i]
            lines.append(
                f"{_text(budget):>10}  {error:9.2f}  {deviation:<5.2f} {cost['macs']:9,}  "
                f"{cost['bytes']:9,}"
            )
        return "\n".join(lines)


def _text(budget: Any) -> str:
    return f"{budget:,}" if isinstance(budget, (int, float)) else str(budget)


def compare(
    images: Any,
    y: Any,
    budgets: Sequence[Any] = _BUDGETS,
    *,
    held_out: float = 0.25,
    random_state: int = 0,
    **options: Any,
) -> Comparison:
    """Compare classifiers within several budgets on the same held-out images.

    Parameters
    ----------
    images, y
        As for :meth:`ImageClassifier.fit`.
    budgets : sequence, default (20_000, 100_000, 500_000)
        Each as ``budget`` of :class:`ImageClassifier`.
    held_out : float, default 0.25
        Fraction of the images of each class that are classified; the others train, and choose.
        Copies of one image are on the same side.
    random_state : int, default 0
    **options
        Other parameters of :class:`ImageClassifier`.

    Raises
    ------
    InputError
        If an argument is not accepted.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import compare
    >>> images, y = load_digits(n_class=3).images[:200], load_digits(n_class=3).target[:200]
    >>> found = compare(images, y, (5000, 20_000), features="small-patches", n_jobs=1)
    >>> [macs <= budget for macs, budget in zip(found.table["macs"], found.budgets)]
    [True, True]
    """
    if isinstance(budgets, (str, bytes)) or not isinstance(budgets, Sequence) or not len(budgets):
        raise InputError("budgets", budgets, "one or more budgets")
    if not isinstance(held_out, (int, float)) or not 0 < held_out < 1:
        raise InputError("held_out", held_out, "a fraction between 0 and 1")
    y = np.asarray(y)
    mask = held_out_mask(images, y, held_out, random_state)
    if not mask.any() or mask.all():
        raise InputError("held_out", held_out, f"a fraction that leaves some of {len(y)} images")
    errors = []
    models = []
    learning = _rows(images, ~mask)
    testing = _rows(images, mask)
    for budget in budgets:
        model = ImageClassifier(budget=budget, random_state=random_state, **options)
        models.append(model.fit(learning, y[~mask]))
        errors.append(float(np.mean(model.predict(testing) != y[mask])))
    n = int(mask.sum())
    deviations = tuple(float(np.sqrt(e * (1 - e) / n)) for e in errors)
    return Comparison(tuple(budgets), tuple(errors), deviations, tuple(models), n)


def _rows(images: Any, mask: np.ndarray) -> Any:
    if hasattr(images, "iloc"):
        # Rows of tables have names of their own.
        return images.iloc[np.flatnonzero(mask)]
    if isinstance(images, np.ndarray):
        return images[mask]
    return [images[i] for i in np.flatnonzero(mask)]
