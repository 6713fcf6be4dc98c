"""Integer arithmetic on values of an ONNX graph, written with operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.codegen.onnx_graph import Graph

__all__ = ["Integers"]


@dataclass(frozen=True)
class Integers:
    """A value of a graph: a tensor of int64, or of truth values where two are compared."""

    graph: Graph
    name: str

    @classmethod
    def constant(cls, graph: Graph, values: int | np.ndarray) -> Integers:
        """Return a constant."""
        return cls(graph, graph.constant(np.asarray(values, np.int64)))

    def of(self, operator: str, *others: Integers | int | str, **attributes: Any) -> Integers:
        """Return what an operator makes of this and of others, or of inputs by their names."""
        names = [other if isinstance(other, str) else self._like(other).name for other in others]
        return Integers(self.graph, self.graph.node(operator, self.name, *names, **attributes))

    def _like(self, other: Integers | int) -> Integers:
        return other if isinstance(other, Integers) else self.constant(self.graph, other)

    def __add__(self, other: Integers | int) -> Integers:
        return self.of("Add", other)

    def __sub__(self, other: Integers | int) -> Integers:
        return self.of("Sub", other)

    def __rsub__(self, other: int) -> Integers:
        return self._like(other) - self

    def __mul__(self, other: Integers | int) -> Integers:
        return self.of("Mul", other)

    def __floordiv__(self, other: Integers | int) -> Integers:
        """Return quotients; those below 0 are cut toward 0, not down."""
        return self.of("Div", other)

    def __mod__(self, other: Integers | int) -> Integers:
        return self.of("Mod", other)

    def __lt__(self, other: Integers | int) -> Integers:
        return self.of("Less", other)

    def __le__(self, other: Integers | int) -> Integers:
        return self.of("LessOrEqual", other)

    def __gt__(self, other: Integers | int) -> Integers:
        return self.of("Greater", other)

    def same_as(self, other: Integers | int) -> Integers:
        """Return where both are equal."""
        return self.of("Equal", other)

    def choose(self, yes: Integers | int, no: Integers | int) -> Integers:
        """Return one value where this is true, and another elsewhere."""
        return self.of("Where", yes, no)

    def within(self, low: Integers | int, high: Integers | int) -> Integers:
        """Return values cut off at both ends."""
        return self.of("Max", low).of("Min", high)

    def at(self, places: Integers | int, axis: int = 0) -> Integers:
        """Return the values at some places of an axis."""
        return self.of("Gather", places, axis=axis)

    def total(self, *axes: int) -> Integers:
        """Return sums over axes, all when omitted."""
        if not axes:
            return self.of("ReduceSum", keepdims=0)
        return self.of("ReduceSum", self.constant(self.graph, np.array(axes)), keepdims=0)

    def side(self, axis: int) -> Integers:
        """Return how long an axis is."""
        return self.of("Shape").at(axis)

    def shaped(self, *shape: int) -> Integers:
        """Return the values in another shape."""
        return self.of("Reshape", self.constant(self.graph, np.array(shape)))

    def as_type(self, kind: str) -> Integers:
        """Return the values as another type, by ONNX's name of it."""
        return Integers(self.graph, self.graph.cast(self.name, kind))

    def up_to(self) -> Integers:
        """Return 0, 1, 2, … below this number."""
        return self._like(0).of("Range", self, 1)
