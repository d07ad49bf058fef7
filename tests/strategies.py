"""Hypothesis strategies that return a transport problem, and its answer where one is known."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests import oracles


@dataclass(frozen=True)
class Case:
    """A problem of Eq. 11, and the shares (Eq. 12) that solve it if they are known."""

    cost: np.ndarray
    epsilon: float
    source_weights: np.ndarray
    target_weights: np.ndarray
    shares: np.ndarray | None = None

    @property
    def problem(self):
        """What `solve` takes by keyword, the cost left out."""
        return {
            "epsilon": self.epsilon,
            "source_weights": self.source_weights,
            "target_weights": self.target_weights,
        }


def sizes(largest):
    return st.integers(1, largest)


def numbers(low, high):
    return st.floats(low, high, allow_subnormal=False)


def vectors(size, low=-3.0, high=3.0):
    return arrays(np.float64, size, elements=numbers(low, high))


@st.composite
def weights(draw, size, smallest=0.05):
    """Draw positive masses that sum to 1."""
    w = draw(vectors(size, smallest, 1.0))
    return w / w.sum()


@st.composite
def costs(draw, targets, sources, largest=4.0):
    """Draw costs between points, which are often the same, or plain numbers, which often tie."""
    if draw(st.booleans()):
        return draw(arrays(np.float64, (targets, sources), elements=numbers(0.0, largest)))
    x = draw(arrays(np.float64, (targets, 2), elements=numbers(0.0, 1.0)))
    y = draw(arrays(np.float64, (sources, 2), elements=numbers(0.0, 1.0)))
    return ((x[:, None] - y) ** 2).sum(axis=2) * largest / 2


@st.composite
def problems(draw, largest=9, moderation=(0.2, 20.0), smallest_weight=0.05):
    """Draw a problem at an ε that is moderate against a largest cost of 4; no answer known."""
    targets, sources = draw(sizes(largest)), draw(sizes(largest))
    return Case(
        cost=draw(costs(targets, sources)),
        epsilon=4.0 * draw(numbers(*moderation)),
        source_weights=draw(weights(sources, smallest_weight)),
        target_weights=draw(weights(targets, smallest_weight)),
    )


@st.composite
def single_source(draw):
    """Draw l = 1: each target comes from the only source."""
    case = draw(problems())
    cost = case.cost[:, :1]
    return Case(cost, case.epsilon, np.ones(1), case.target_weights, np.ones(cost.shape))


@st.composite
def single_target(draw):
    """Draw u = 1: the shares are the sources' weights, whatever the cost."""
    case = draw(problems(moderation=(1e-3, 20.0)))
    a = case.source_weights
    return Case(case.cost[:1], case.epsilon, a, np.ones(1), a[None, :])


@st.composite
def two_by_two(draw, moderation=(0.2, 20.0)):
    """Draw u = l = 2: a quadratic."""
    cost, epsilon = draw(costs(2, 2)), 4.0 * draw(numbers(*moderation))
    a, b = draw(weights(2)), draw(weights(2))
    return Case(cost, epsilon, a, b, oracles.two_by_two_shares(cost, epsilon, a, b))


@st.composite
def separable(draw):
    """Draw m_ij = c_i + d_j: nothing speaks for any pair, so each target takes the weights."""
    case = draw(problems(moderation=(1e-3, 20.0)))
    targets, sources = case.cost.shape
    cost = draw(vectors(targets))[:, None] + draw(vectors(sources))
    a = case.source_weights
    return Case(cost, case.epsilon, a, case.target_weights, np.tile(a, (targets, 1)))


@st.composite
def diracs(draw):
    """Draw targets and sources on a few places, each with as much to give as to take.

    Places are so far apart (100 ε) that nothing is carried between them.
    """
    places = draw(sizes(4))
    of_target = np.concatenate([np.arange(places), draw(_places(places, 4))])
    of_source = np.concatenate([np.arange(places), draw(_places(places, 4))])
    wealth = draw(weights(places))
    a = _spend(wealth, of_source, draw(weights(len(of_source))))
    b = _spend(wealth, of_target, draw(weights(len(of_target))))
    together = of_target[:, None] == of_source
    answer = np.where(together, a / wealth[of_source], 0.0)
    return Case(np.where(together, 0.0, 1.0), 0.01, a, b, answer)


def _places(places, most):
    return st.lists(st.integers(0, places - 1), max_size=most).map(lambda p: np.array(p, np.intp))


def _spend(wealth, place, part):
    """Share out each place's wealth among those who stand there."""
    return wealth[place] * part / np.bincount(place, part)[place]


@st.composite
def assignments(draw):
    """Draw equal weights and a cheapest assignment that all others exceed by 100 ε and more."""
    size = draw(sizes(8))
    order = np.array(draw(st.permutations(range(size))), np.intp)
    excess = draw(arrays(np.float64, (size, size), elements=numbers(1.0, 3.0)))
    excess[np.arange(size), order] = 0.0
    cost = excess + draw(vectors(size))[:, None] + draw(vectors(size))
    answer = np.zeros((size, size))
    answer[np.arange(size), order] = 1.0
    return Case(cost, 0.01, oracles.uniform(size), oracles.uniform(size), answer)
