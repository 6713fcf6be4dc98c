"""Which characters a reader may choose, and the reading that fits a pattern best."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from visionshare.datasets.fonts import check_characters
from visionshare.datasets.glyphs import OTHER
from visionshare.errors import InputError

#: Punctuation that is told apart by its size and position, no class of a classifier.
MARKS = (".", ",", "-", ":", "'")
#: What stands in a text for a character that is none of the classes.
UNKNOWN = "\ufffd"
_LEAST = 1e-6
_TINY = 1e-30
# An allowed character needs this probability for a confidence of a half.
_DOUBT = 0.01
_MASK = {"A": "[A-Z]", "a": "[a-z]", "9": "[0-9]", "X": "[A-Z0-9]"}
_TOKEN = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|\(\?:|\{\d*,?\d*\}|.", re.DOTALL)
_MAX_STATES = 2000


class Alphabet:
    """The classes of a classifier and the marks: which of them may be read."""

    # The columns of its tables are the classes, the marks, and "no character": a speck.
    def __init__(self, classes: Sequence[str], characters: str | None = None) -> None:
        texts = [UNKNOWN if text == OTHER else text for text in classes] + list(MARKS)
        if characters is not None:
            allowed = check_characters("characters", characters)
            missing = "".join(c for c in allowed if c not in texts)
            if missing == allowed:
                accepted = f"some of the reader's characters: {''.join(sorted(set(texts)))}"
                raise InputError("characters", characters, accepted)
            texts = [text if text in allowed else "" for text in texts]
        #: The text of each column; empty where it may not be read.
        self.texts = [*texts, ""]
        self._is_allowed = np.array([bool(text) for text in texts[: len(classes)]])
        self._is_other = np.array([text == OTHER for text in classes])

    def restricted(self, probabilities: np.ndarray) -> np.ndarray:
        """Return classes' probabilities (n, k), renormalized over those that may be read."""
        n_classes = probabilities.shape[1]
        rows = np.zeros((len(probabilities), len(self.texts)))
        rows[:, :n_classes] = probabilities
        if self._is_allowed.all():
            return rows
        # Where nothing that is allowed has any probability, none is preferred. What is none of the
        # characters stays as improbable as any of them.
        kept = np.where(self._is_allowed, rows[:, :n_classes] + _TINY, 0.0)
        other = probabilities @ self._is_other
        rows[:, :n_classes] = kept / (kept.sum(axis=1) + other)[:, None]
        return rows

    def mark(self, probabilities: dict[str, float]) -> np.ndarray:
        """Return the row of a piece that is one of these marks, or no character."""
        row = np.zeros(len(self.texts))
        first = len(self.texts) - len(MARKS) - 1
        for i, text in enumerate(MARKS, first):
            if self.texts[i]:
                row[i] = probabilities.get(text, 0.0)
        row[-1] = max(0.0, 1.0 - row.sum())
        return row


@dataclass
class _Machine:
    """A finite automaton: edges between states that take a token, or nothing."""

    edges: list[tuple[int, str, int]] = field(default_factory=list)
    free: list[tuple[int, int]] = field(default_factory=list)
    n_states: int = 0

    def state(self) -> int:
        self.n_states += 1
        if self.n_states > _MAX_STATES:
            raise ValueError(f"more than {_MAX_STATES} characters")
        return self.n_states - 1


class Pattern:
    """A mask such as ``AA-9999``, or a regular expression, that a whole reading must fit.

    Examples
    --------
    >>> probabilities = np.array([[0.6, 0.4], [0.6, 0.4]])
    >>> Pattern("A9").best(probabilities, ["O", "0"]).tolist()
    [0, 1]
    """

    # In a mask ``A`` is a capital, ``a`` a small letter, ``9`` a digit, ``X`` a capital or digit,
    # and ``-/.,:`` are themselves.

    def __init__(self, text: str) -> None:
        if text and all(c in "Aa9X-/.,: " for c in text):
            text = "".join(_MASK.get(c, re.escape(c)) for c in text)
        try:
            re.compile(text)
            self._tokens = _TOKEN.findall(text.removeprefix("^").removesuffix("$"))
            if not self._tokens:
                raise ValueError("empty")
            self._machine = _Machine()
            start = self._machine.state()
            self._end = self._alternatives(start)
            if self._tokens:
                raise ValueError(f"{self._tokens[0]!r} is not supported")
        except (re.error, ValueError) as error:
            accepted = f"a mask such as 'AA-9999', or a simple regular expression ({error})"
            raise InputError("pattern", text, accepted) from None

    def _alternatives(self, start: int) -> int:
        """Build ``a|b|c`` from a state on; return the state behind it."""
        machine = self._machine
        end = machine.state()
        while True:
            machine.free.append((self._sequence(start), end))
            if not self._tokens or self._tokens[0] != "|":
                return end
            self._tokens.pop(0)

    def _sequence(self, state: int) -> int:
        while self._tokens and self._tokens[0] not in ("|", ")"):
            atom = self._atom()
            state = self._repeated(atom, state)
        return state

    def _atom(self) -> list[str]:
        """Take the tokens of a character, a set or a group."""
        token = self._tokens.pop(0)
        if token not in ("(", "(?:"):
            if token in ("^", "$", "?", "*", "+") or re.fullmatch(r"\\[bBAZ1-9]", token):
                raise ValueError(f"{token!r} is not supported here")
            return [token]
        depth = 1
        group = [token]
        while depth:
            token = self._tokens.pop(0)
            depth += (token in ("(", "(?:")) - (token == ")")
            group.append(token)
        return group

    def _repeated(self, atom: list[str], state: int) -> int:
        low, high = 1, 1
        if self._tokens and self._tokens[0][0] in "?*+{":
            token = self._tokens.pop(0)
            least, _, most = token.strip("{}").partition(",")
            low = {"?": 0, "*": 0, "+": 1}.get(token, int(least) if least.isdigit() else 0)
            high = {"?": 1, "*": -1, "+": -1}.get(token, int(most) if most.isdigit() else -1)
            if token[0] == "{" and "," not in token:
                high = low
        for _ in range(low):
            state = self._once(atom, state)
        if high < 0:
            again = self._once(atom, state)
            self._machine.free.append((again, state))
            return state
        end = self._machine.state()
        for _ in range(high - low):
            self._machine.free.append((state, end))
            state = self._once(atom, state)
        self._machine.free.append((state, end))
        return end

    def _once(self, atom: list[str], state: int) -> int:
        machine = self._machine
        if len(atom) == 1:
            end = machine.state()
            if atom[0] in (" ", "\\ "):
                # Readings hold no blanks.
                machine.free.append((state, end))
            else:
                machine.edges.append((state, atom[0], end))
            return end
        rest = self._tokens
        self._tokens = atom[1:-1]
        end = self._alternatives(state)
        self._tokens = rest
        return end

    def best(self, probabilities: np.ndarray, texts: Sequence[str]) -> np.ndarray | None:
        """Return the most probable labels (n,) whose texts fit; None if no reading is as long."""
        # Viterbi: the best score of each state after each character. A last column with an empty
        # text is a speck, which takes no token.
        machine = self._machine
        tokens = sorted({token for _, token, _ in machine.edges})
        fits = {t: np.array([bool(c) and bool(re.fullmatch(t, c)) for c in texts]) for t in tokens}
        scores = np.full(machine.n_states, -np.inf)
        scores[0] = 0.0
        steps: list[dict[int, tuple[int, int]]] = []
        origin = self._freely(scores)
        for row in np.log(np.maximum(probabilities, _LEAST)):
            best = {t: int(np.argmax(np.where(fit, row, -np.inf))) for t, fit in fits.items()}
            after = np.full(machine.n_states, -np.inf)
            back: dict[int, tuple[int, int]] = {}
            for start, token, end in machine.edges:
                label = best[token]
                if fits[token][label] and scores[start] + row[label] > after[end]:
                    after[end] = scores[start] + row[label]
                    back[end] = origin[start], label
            if not texts[-1]:
                for state in np.flatnonzero(scores + row[-1] > after).tolist():
                    after[state] = scores[state] + row[-1]
                    back[state] = origin[state], len(texts) - 1
            steps.append(back)
            scores = after
            origin = self._freely(scores)
        if not np.isfinite(scores[self._end]):
            return None
        labels = []
        state = origin[self._end]
        for back in reversed(steps):
            state, label = back[state]
            labels.append(label)
        return np.array(labels[::-1], np.int64)

    def _freely(self, scores: np.ndarray) -> list[int]:
        """Follow the edges that take nothing; return where each state's score came from."""
        origin = list(range(len(scores)))
        changed = True
        while changed:
            changed = False
            for start, end in self._machine.free:
                if scores[start] > scores[end]:
                    scores[end] = scores[start]
                    origin[end] = origin[start]
                    changed = True
        return origin

    @staticmethod
    def confidences(
        probabilities: np.ndarray, labels: np.ndarray, texts: Sequence[str]
    ) -> np.ndarray:
        """Return the probability of each label among the characters of its kind."""
        kinds = np.array([_kind(text) for text in texts])
        sums = np.where(kinds[labels][:, None] == kinds, probabilities, 0.0).sum(axis=1)
        chosen = probabilities[np.arange(len(labels)), labels]
        return np.asarray(chosen / (sums + _DOUBT))


def _kind(text: str) -> int:
    return 0 if not text.isalnum() else 1 if text.isdigit() else 2 if text.isupper() else 3
