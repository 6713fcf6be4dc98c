"""Columns of a table that say something else than one class: values, or several labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from visionshare.answers import Answers, LabelRule, Rule, ValueRule, checked_values
from visionshare.class_labels import in_order, quoted
from visionshare.errors import DataError

# Cells of a label's own column.
_YES, _NO = ("1", "1.0", "yes", "true", "x"), ("", "0", "0.0", "no", "false")


class Values(NamedTuple):
    """The column of values, their period, if they have one, and the rule, where it is learned."""

    column: str
    period: float | None = None
    rule: ValueRule | None = None

    def cell(self, where: str, row: Mapping[str, Any]) -> str:
        """Return the text of a value, which is there."""
        text = _text(where, row, self.column)
        if not text:
            raise DataError(f"{where}: no {self.column}; it has {', '.join(list(row)[:10])}")
        return text

    def answers(self, cells: Sequence[str], trains: np.ndarray, table: Path) -> Answers:
        """Return the values of the cells; the training pictures' values are the levels."""
        values = np.empty(len(cells))
        for i, cell in enumerate(cells):
            try:
                values[i] = float(cell)
            except ValueError:
                values[i] = np.nan
            if not np.isfinite(values[i]):
                given = f"{table}: {self.column} {cell[:40]!r}"
                raise DataError(f"{given}; accepted: finite numbers, 1.5 for example")
        values = checked_values(values, self.period)
        rule = self.rule
        rule = rule or ValueRule.of(values[trains], self.period, f"column {self.column}")
        return Answers(values, rule)


class Tags(NamedTuple):
    """The column of labels "cat;dog", or a column of yes and no for each label; a learned rule."""

    columns: tuple[str, ...]
    rule: LabelRule | None = None

    def cell(self, where: str, row: Mapping[str, Any]) -> str:
        """Return the labels of a row, with ";" between them."""
        if len(self.columns) == 1:
            return _text(where, row, self.columns[0])
        found = []
        for column in self.columns:
            text = _text(where, row, column).lower()
            if text not in (*_YES, *_NO):
                accepted = f"{', '.join(_YES)}; {', '.join(_NO[1:])} or nothing"
                raise DataError(f"{where}: {column} {text[:40]!r}; accepted: {accepted}")
            found += [column] if text in _YES else []
        return ";".join(found)

    def answers(self, cells: Sequence[str], trains: np.ndarray, table: Path) -> Answers:
        """Return which labels each picture has."""
        tags = [{tag.strip() for tag in cell.split(";")} - {""} for cell in cells]
        found = set().union(*tags)
        labels = self.columns if len(self.columns) > 1 else in_order(found)
        if self.rule is not None:
            labels = self.rule.labels
            if found - set(labels):
                accepted = f"labels of the classifier, {quoted(labels)}"
                raise DataError(f"{table}: labels {quoted(found - set(labels))}; {accepted}")
        truth = np.array([[label in of_picture for label in labels] for of_picture in tags], bool)
        rule = self.rule
        rule = rule or LabelRule.of(labels, truth[trains], f"column {', '.join(self.columns)}")
        return Answers(truth, rule)


#: What a table says of its pictures.
Target: TypeAlias = Values | Tags


def target_of_rule(rule: Rule, columns: Sequence[str]) -> Target:
    """Return the columns of a table that hold what a classifier's rule says."""
    if isinstance(rule, ValueRule):
        return Values(columns[0], rule.period, rule)
    return Tags(tuple(columns), rule)


def target_of(
    column: str | None, period: float | None, labels: Sequence[str] | None
) -> Target | None:
    """Return what a table is asked for; None for its classes."""
    if labels is not None:
        return Tags(tuple(labels))
    return None if column is None else Values(column, period)


def _text(where: str, row: Mapping[str, Any], column: str) -> str:
    """Return the text of a cell; names of columns are in lower case."""
    if column.lower() not in row:
        raise DataError(f"{where}: no {column}; it has {', '.join(list(row)[:10])}")
    value = row[column.lower()]
    if value is None or not isinstance(value, (str, int, float)):
        value = "" if value is None else ";".join(map(str, value))
    return str(int(value) if isinstance(value, bool) else value).strip()
