"""Problems of classes with bounds on their totals, and what makes a solution one."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from otprop.transport import shares, solve_classes
from tests import oracles, strategies

TOL = 1e-9


@dataclass(frozen=True)
class Classes:
    """A problem with totals that are within the bounds."""

    cost: np.ndarray
    labels: np.ndarray
    epsilon: float
    target_weights: np.ndarray
    totals: np.ndarray
    least: np.ndarray
    most: np.ndarray

    def solve(self, **options):
        bounds = {"least": self.least, "most": self.most, "target_weights": self.target_weights}
        return solve_classes(
            self.cost, self.labels, self.epsilon, **({"tol": TOL} | bounds | options)
        )

    def fixed(self, **options):
        return self.solve(**({"least": self.totals, "most": self.totals} | options))

    @property
    def merged(self):
        """The costs of the classes, in extended precision."""
        columns = [
            oracles.softmin(self.cost[:, self.labels == k], 0.0, self.epsilon)
            for k in range(len(self.totals))
        ]
        return np.stack(columns, axis=1)

    def masses(self, prices):
        """What each class gives, from the shares of the sources."""
        each = self.target_weights @ shares(self.cost, prices[self.labels], self.epsilon)
        return np.bincount(self.labels, each, len(self.totals))


def widened(totals, down, up):
    """Bounds around the totals; 0 leaves none, 1 leaves all room."""
    return totals * (1 - down), totals + (1 - totals) * up


@st.composite
def problems(draw, classes=4, moderation=(0.05, 5.0)):
    case = draw(strategies.problems(largest=7, moderation=moderation))
    count = draw(st.integers(1, min(classes, case.cost.shape[1])))
    rest = case.cost.shape[1] - count
    further = draw(st.lists(st.integers(0, count - 1), min_size=rest, max_size=rest))
    labels = np.array(draw(st.permutations([*range(count), *further])), np.intp)
    totals = draw(strategies.weights(count))
    room = st.one_of(st.just(0.0), st.just(1.0), strategies.numbers(0.0, 1.0))
    down, up = (np.array([draw(room) for _ in range(count)]) for _ in range(2))
    least, most = widened(totals, down, up)
    return Classes(case.cost, labels, case.epsilon, case.target_weights, totals, least, most)


def random_classes(seed, *, targets=60, sources=30, classes=6, room=0.2, scale=0.1):
    rng = np.random.default_rng(seed)
    x, y = rng.random((targets, 3)), rng.random((sources, 3))
    cost = ((x[:, None] - y) ** 2).sum(axis=2)
    labels = rng.permutation(np.arange(sources) % classes)
    totals = rng.dirichlet(np.ones(classes))
    least, most = widened(totals, *(room * rng.random((2, classes))))
    return Classes(cost, labels, scale, rng.dirichlet(np.ones(targets)), totals, least, most)


def assert_optimal(result, case, tol=TOL):
    """Check the conditions of Karush, Kuhn and Tucker, from the sources' shares."""
    h = result.f
    assert result.converged
    assert np.isfinite(h[case.most > 0]).all()
    mass = case.masses(h)
    assert (mass >= case.least - tol - 1e-12).all()
    assert (mass <= case.most + tol + 1e-12).all()
    if case.least.sum() > 1 - 1e-9 or case.most.sum() < 1 + 1e-9:
        return
    loose = case.least < case.most
    np.testing.assert_allclose(mass[loose & (h > 0)], case.least[loose & (h > 0)], atol=2 * tol)
    np.testing.assert_allclose(mass[loose & (h < 0)], case.most[loose & (h < 0)], atol=2 * tol)
