"""Parameters of families, as scikit-learn knows them, without importing scikit-learn.

Whoever classifies a picture needs families but nothing of scikit-learn, whose import takes longer
than all the rest together.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any, TypeVar

Some = TypeVar("Some", bound="Parameters")


class Parameters:
    """An object whose constructor sets its parameters and does nothing else."""

    @property
    def is_fitted(self) -> bool:
        """Whether the family has been fitted, or made from a fitted one."""
        return "n_features_" in vars(self)

    def __getattr__(self, name: str) -> Any:
        """Raise NotFittedError where a method needs what only ``fit`` learns."""
        # A property that fails ends here too: it has failed because of what it needed.
        learned = hasattr(type(self), name) or name.endswith("_") or name.startswith("_")
        if learned and not name.startswith("__") and not self.is_fitted:
            from sklearn.exceptions import NotFittedError

            own = type(self).__name__
            raise NotFittedError(f"this {own} is not fitted; call fit with images first")
        return object.__getattribute__(self, name)

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Return the parameters of the constructor with their defaults, sorted by name."""
        parameters = inspect.signature(cls).parameters.values()
        named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        return {p.name: p.default for p in sorted(named, key=lambda p: p.name)}

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Return the names of the parameters, as parts of scikit-learn ask for them."""
        return list(cls._defaults())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        found: dict[str, Any] = {}
        for name in self._defaults():
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not inspect.isclass(value):
                found.update({f"{name}__{key}": v for key, v in value.get_params().items()})
            found[name] = value
        return found

    def set_params(self: Some, **parameters: Any) -> Some:
        """Set parameters by name; ``outer__inner`` sets a parameter of a parameter."""
        # Return this object.
        from sklearn.base import BaseEstimator

        BaseEstimator.set_params(self, **parameters)
        return self

    def __repr__(self) -> str:
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name, default in self._defaults().items()
            if repr(getattr(self, name, default)) != repr(default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    def _repr_html_(self) -> str:
        from sklearn.utils import estimator_html_repr

        return estimator_html_repr(self)

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)


def unfitted_copy(part: Any) -> Any:
    """Return what ``sklearn.base.clone`` does, of families, tuples of them and plain values."""
    if isinstance(part, (list, tuple)):
        return type(part)(unfitted_copy(one) for one in part)
    if hasattr(part, "__sklearn_clone__"):
        return part.__sklearn_clone__()
    if isinstance(part, Parameters):
        values = part.get_params(deep=False)
        return type(part)(**{name: unfitted_copy(value) for name, value in values.items()})
    if hasattr(part, "get_params"):
        from sklearn.base import clone

        return clone(part)
    return copy.deepcopy(part)
