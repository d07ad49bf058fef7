"""Tables with few labels, and what can be found again of the rounds that labelled them."""

from functools import cache

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from sklearn import datasets

from tests import oracles

LOADERS = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}


@cache
def real(name):
    """Return X scaled to [0, 1], the true labels, and y with 15 % of them known."""
    X, true = LOADERS[name](return_X_y=True)
    X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-12)
    known = np.random.default_rng(0).random(len(true)) < 0.15
    y = np.where(known, true, -1)
    for array in (X, true, y):
        array.flags.writeable = False
    return X, true, y


def blobs(rows=90, columns=3, classes=3, *, seed=0, spread=0.5, known=0.2):
    """Return points around corners of a cube, their classes, and y with some of them known."""
    rng = np.random.default_rng(seed)
    true = np.arange(rows) % classes
    X = rng.normal(size=(classes, columns))[true] + spread * rng.normal(size=(rows, columns))
    y = np.where(rng.random(rows) < known, true, -1)
    y[:classes] = true[:classes]
    y[-classes:] = -1
    return X, true, y


def squared(X, points=None):
    """Eq. 9."""
    return cdist(X, X if points is None else points, "sqeuclidean")


def rename(y, names):
    """Return y with its class numbers replaced by names, and None for -1."""
    return np.array([None if k < 0 else names[k] for k in y], dtype=object)


# Coordinates on a coarse grid: rows are often the same, and sums and shifts are exact.
GRID = st.integers(-4, 4).map(float)


@st.composite
def tables(draw, *, elements=GRID, least=5, most=16):
    """Draw X and y with two or three classes, each known at least once, and rows to label."""
    rows, columns = draw(st.integers(least, most)), draw(st.integers(1, 3))
    X = draw(arrays(np.float64, (rows, columns), elements=elements))
    classes = draw(st.integers(2, 3))
    known = draw(st.integers(classes, rows - 1))
    y = np.full(rows, -1)
    y[:classes] = np.arange(classes)
    for row in range(classes, known):
        y[row] = draw(st.integers(0, classes - 1))
    order = np.array(draw(st.permutations(range(rows))))
    return X[order], y[order]


@st.composite
def generic(draw):
    """Draw a table in which no two costs are the same, from a seed."""
    rows, classes = draw(st.integers(8, 30)), draw(st.integers(2, 4))
    return blobs(rows, 2, classes, seed=draw(st.integers(0, 10**6)), known=0.3)[::2]


def rounds(model, cost):
    """Yield of each round its number, sources, open targets in reach, f, and the cost between.

    `cost` is that of all rows fitted to all rows fitted.
    """
    order = model._fitted.source_rows
    for number, f in enumerate(model._fitted.replay.potentials, start=1):
        sources = order[: len(f)]
        still_open = (model.round_ >= number) | (model.round_ == -1)
        targets = np.flatnonzero(still_open & np.isfinite(cost[:, sources]).any(axis=1))
        yield number, sources, targets, f, cost[np.ix_(targets, sources)]


def by_class(shares, labels, classes):
    """Eq. 13: shares added up by the sources' class."""
    return np.stack([shares[:, labels == k].sum(axis=1) for k in classes], axis=1)


def certainty(distributions):
    """Eq. 16 and 17, in the paper's base of 2."""
    logs = np.log2(np.where(distributions > 0, distributions, 1.0))
    return 1 + (distributions * logs).sum(axis=1) / np.log2(distributions.shape[1])


def closest_call(model, cost):
    """Return by how little a round's decision could have been another one, in certainty or share.

    What is equal in exact arithmetic may be decided by rounding; laws that hold beyond rounding
    are stated for tables where this is not small.
    """
    calls = [1.0]
    for number, sources, _, f, block in rounds(model, cost):
        shares = oracles.shares(block, f, model.epsilon_)
        U = by_class(shares, model.transduction_[sources], model.classes_)
        scores, bound = certainty(U), model._fitted.replay.thresholds[number - 1]
        gaps = np.abs(scores - bound.alpha)
        if bound.lowered:
            gaps[np.argmax(scores)] = 1.0
        best = np.sort(U, axis=1)
        calls += [gaps.min(), (best[:, -1] - best[:, -2]).min(), model.alpha - bound.alpha or 1.0]
    return float(min(calls))
