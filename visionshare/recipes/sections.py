"""Sections of a recipe, made from the signatures of what they configure.

A parameter of a learner, a dataclass or a function is said once, where it is defined: its name,
its type, its default and its bounds. A section takes the first three from the signature and has
the object itself check the last.
"""

from __future__ import annotations

import ast
import inspect
import math
import sys
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator
from pydantic_core import PydanticCustomError

from visionshare.errors import InputError

INVALID = "invalid_setting"
# What a run decides, not its recipe.
RUNTIME = frozenset({"checkpoint", "n_jobs", "progress", "random_state", "warm_start"})
_SCALARS = (bool, int, float, str)
_NONE = type(None)

Made = TypeVar("Made", bound="Section")


class Section(BaseModel):
    """A table of a recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    section_target: ClassVar[Callable[..., Any] | None] = None
    section_keys: ClassVar[tuple[str, ...]] = ()

    def as_arguments(self) -> dict[str, Any]:
        """Return the arguments that the section holds for what it configures."""
        return {name: getattr(self, name) for name in self.section_keys}

    def build(self, **runtime: Any) -> Any:
        """Return what the section configures, made with its settings."""
        assert self.section_target is not None
        accepted = inspect.signature(self.section_target).parameters
        arguments = {name: value for name, value in runtime.items() if name in accepted}
        # A template is learned several times: one checkpoint cannot keep them apart.
        inner = {name: value for name, value in runtime.items() if name != "checkpoint"}
        for name, value in self.as_arguments().items():
            arguments[name] = value.build(**inner) if isinstance(value, Section) else value
        return self.section_target(**arguments)

    def check(self) -> None:
        """Have the configured object check the settings."""
        if inspect.isclass(self.section_target):
            built = self.build()
            if hasattr(built, "check_parameters"):
                built.check_parameters()

    @model_validator(mode="after")
    def _check(self: Made) -> Made:
        try:
            self.check()
        except InputError as error:
            # A name that is no key of this section says nothing of where in it.
            key = error.argument if error.argument in type(self).model_fields else ""
            message = f"got {error.given!r}; accepted: {error.accepted}"
            message = message if key else f"{error.argument}: {message}"
            context = {"key": key, "message": message}
            raise PydanticCustomError(INVALID, "{message}", context) from None
        return self


def section_of(
    target: Callable[..., Any],
    *,
    only: Collection[str] | None = None,
    leave_out: Collection[str] = (),
    nested: Mapping[type, type[Section]] | None = None,
    base: type[Section] = Section,
    name: str | None = None,
    **others: Any,
) -> Any:
    """Return the section whose keys are the parameters of a class or a function."""
    # Parameters of :data:`RUNTIME` and those whose type has no form in TOML are omitted. Of a
    # union such as ``str | Criterion`` the parts remain that TOML can say. TOML has no None:
    # where a parameter is a number or None, ``inf`` means None.
    namespace = _namespace(target)
    fields: dict[str, Any] = {}
    for key, parameter in inspect.signature(target).parameters.items():
        if key in RUNTIME or key in leave_out or (only is not None and key not in only):
            continue
        parts = _toml_types(parameter.annotation, namespace, nested or {})
        if all(part is _NONE for part in parts):
            continue
        fields[key] = (_annotation(parts), _default(parameter.default, parts))
    made = create_model(name or target.__name__, __base__=base, **fields, **others)
    made.section_target = staticmethod(target)
    made.section_keys = tuple(fields)
    return made


def _namespace(target: Any) -> dict[str, Any]:
    """Return the names in whose sight the parameters were annotated."""
    homes = reversed(target.__mro__) if inspect.isclass(target) else (target,)
    names: dict[str, Any] = {}
    for home in homes:
        # A dataclass has parameters of its bases, whose modules may be others.
        names.update(vars(sys.modules[home.__module__]))
    return names


def _default(default: Any, parts: Sequence[Any]) -> Any:
    if default is inspect.Parameter.empty:
        return ...
    # To Python 3.10 list[int] is a type too, and no class.
    classes = (part for part in parts if isinstance(part, type) and get_origin(part) is None)
    inner = next((part for part in classes if issubclass(part, Section)), None)
    # An optional object's settings default to its class's.
    return Field(default_factory=inner) if default is None and inner is not None else default


def _annotation(parts: Sequence[Any]) -> Any:
    union: Any = Union[tuple(dict.fromkeys(parts))]  # noqa: UP007
    if float in parts and _NONE in parts:
        return Annotated[union, BeforeValidator(_none_of_infinity)]
    return union


def _none_of_infinity(value: Any) -> Any:
    return None if isinstance(value, float) and value == math.inf else value


def _tuple_of_list(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _toml_types(
    annotation: Any, namespace: Mapping[str, Any], nested: Mapping[type, type[Section]]
) -> list[Any]:
    """Return the parts of an annotation that TOML can say, and None."""
    if isinstance(annotation, str):
        try:
            value = eval(annotation, {**namespace})
        except NameError:
            # A name that only type checkers import is no name of TOML's: the others count.
            node = ast.parse(annotation, mode="eval").body
            if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)):
                return []
            sides = (ast.unparse(node.left), ast.unparse(node.right))
            return [t for side in sides for t in _toml_types(side, namespace, nested)]
        return _toml_types(_NONE if value is None else value, namespace, nested)
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if origin in (Union, types.UnionType):
        return [t for part in arguments for t in _toml_types(part, namespace, nested)]
    if annotation in _SCALARS or annotation is _NONE or origin is Literal:
        return [annotation]
    if inspect.isclass(annotation) and annotation in nested:
        return [nested[annotation]]
    if origin in (dict, Mapping) or (inspect.isclass(origin) and issubclass(origin, Mapping)):
        # Keys of TOML are text: names of classes, where an estimator takes any kind.
        return [dict[str, Any]] if arguments[0] in (str, Any) else []
    if inspect.isclass(origin) and issubclass(origin, (tuple, Sequence)):
        entries = [_toml_types(t, namespace, nested) for t in arguments if t is not Ellipsis]
        if not entries or not all(entries):
            return []
        unions: Any = tuple(Union[tuple(parts)] for parts in entries)  # noqa: UP007
        fixed = origin is tuple and Ellipsis not in arguments
        entries_of: Any = types.GenericAlias(tuple, unions if fixed else (unions[0], ...))
        return [Annotated[entries_of, BeforeValidator(_tuple_of_list)]]
    return []
