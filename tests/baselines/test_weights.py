"""Weights that rebuild rows from neighbours, against quadratic programs solved by other ways."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize, nnls
from sklearn.neighbors import NearestNeighbors

from otprop.baselines import kernels
from otprop.baselines.linear_neighborhood import neighbourhood
from tests import tables


def gram_of(row, points):
    differences = row - points
    return differences @ differences.T


def scaled(gram, ridge=kernels.RIDGE):
    """The program's matrix: a mean diagonal of 1, and the ridge."""
    mean = np.trace(gram) / len(gram)
    return (gram / mean if mean > 0 else gram) + ridge * np.eye(len(gram))


def solve(gram):
    out = np.empty(len(gram))
    kernels.simplex_weights(gram.copy(), out)
    return out


def by_enumeration(matrix):
    """The least of w'Gw on the simplex: on some support it is least with the sum alone to keep."""
    size = len(matrix)
    best, least = None, np.inf
    for count in range(1, size + 1):
        for support in map(list, combinations(range(size), count)):
            z = np.linalg.solve(matrix[np.ix_(support, support)], np.ones(count))
            if (z > 0).all() and 1 / z.sum() < least:
                least = 1 / z.sum()
                best = np.zeros(size)
                best[support] = z / z.sum()
    return best


def by_least_squares(matrix):
    """w is, but for its length, the non-negative z of least |Rz|² + (1 − Σz)², where G = R'R."""
    root = np.linalg.cholesky(matrix).T
    size = len(matrix)
    z, _ = nnls(np.vstack([root, np.ones(size)]), np.append(np.zeros(size), 1.0))
    return z / z.sum()


def by_quadratic_program(matrix):
    """SciPy's general solver, on the square of the weights' roots' problem itself."""
    size = len(matrix)
    found = minimize(
        lambda w: w @ matrix @ w,
        np.full(size, 1.0 / size),
        jac=lambda w: 2 * matrix @ w,
        bounds=[(0, 1)] * size,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    assert found.success
    return found.x


def assert_optimal(matrix, w):
    """Karush, Kuhn and Tucker: nothing is gained by moving weight from one entry to another."""
    np.testing.assert_allclose(w.sum(), 1.0, rtol=1e-14)
    assert (w >= 0).all()
    slope = matrix @ w
    slack = 1e-13 * np.abs(matrix).max()
    assert slope.min() >= w @ slope - slack
    assert slope[w > 0].max() <= w @ slope + slack


@st.composite
def neighbourhoods(draw, most=6):
    """Draw a row and its neighbours on a coarse grid: often equal, often more than columns."""
    size, columns = draw(st.integers(1, most)), draw(st.integers(1, 4))
    return draw(arrays(np.float64, (size + 1, columns), elements=tables.GRID))


@given(neighbourhoods())
@example(np.zeros((5, 2)))
def test_weights_are_those_of_the_least_error(points):
    gram = gram_of(points[0], points[1:])
    w, matrix = solve(gram), scaled(gram)
    assert_optimal(matrix, w)
    np.testing.assert_allclose(w, by_enumeration(matrix), atol=1e-6)


@given(neighbourhoods())
def test_the_ridge_costs_no_more_than_it_says(points):
    gram = gram_of(points[0], points[1:])
    w, mean = solve(gram), np.trace(gram) / len(gram)
    least = by_enumeration(scaled(gram, 1e-13))
    assert w @ gram @ w <= least @ gram @ least + 1.01 * kernels.RIDGE * mean


@given(neighbourhoods(most=20))
def test_the_order_of_neighbours_does_not_matter(points):
    order = np.random.default_rng(0).permutation(len(points) - 1)
    gram = gram_of(points[0], points[1:])
    shuffled = gram_of(points[0], points[1:][order])
    np.testing.assert_allclose(solve(shuffled), solve(gram)[order], atol=1e-5)


@pytest.mark.parametrize("columns", [1, 2, 5, 40])
@pytest.mark.parametrize("size", [1, 2, 10, 30])
def test_weights_of_many_neighbours(size, columns):
    rng = np.random.default_rng(size * columns)
    for _ in range(20):
        gram = gram_of(rng.normal(size=columns), rng.normal(size=(size, columns)))
        w, matrix = solve(gram), scaled(gram)
        assert_optimal(matrix, w)
        np.testing.assert_allclose(w, by_least_squares(matrix), atol=1e-5)


def test_weights_by_a_general_solver():
    rng = np.random.default_rng(0)
    for _ in range(10):
        gram = gram_of(rng.normal(size=8), rng.normal(size=(6, 8)))
        np.testing.assert_allclose(solve(gram), by_quadratic_program(scaled(gram)), atol=1e-6)


def test_entries_that_must_leave_again():
    # The nearest neighbour enters first; the two others together do better without it.
    points = np.array([[0.0, 1.0], [-2.0, 0.1], [2.0, 0.1], [3.0, -4.0]])
    gram = gram_of(np.zeros(2), points)
    w = solve(gram)
    assert_optimal(scaled(gram), w)
    np.testing.assert_allclose(w, by_enumeration(scaled(gram)), atol=1e-7)


def test_the_middle_of_two_points():
    np.testing.assert_allclose(solve(gram_of(np.zeros(1), np.array([[-1.0], [1.0]]))), 0.5)
    np.testing.assert_allclose(
        solve(gram_of(np.zeros(1), np.array([[-1.0], [3.0]]))), [0.75, 0.25], rtol=1e-7
    )


def test_a_row_outside_of_the_hull_takes_its_nearest_point():
    w = solve(gram_of(np.zeros(2), np.array([[1.0, 0.0], [2.0, 1.0], [2.0, -1.0]])))
    np.testing.assert_allclose(w, [1.0, 0.0, 0.0], atol=1e-7)


def test_equal_neighbours_share_evenly():
    points = np.array([[1.0, 1.0]] * 3 + [[-1.0, -1.0]] * 2)
    np.testing.assert_allclose(solve(gram_of(np.zeros(2), points)), [1 / 6] * 3 + [1 / 4] * 2)


def test_neighbours_at_the_row_take_all_but_a_trace():
    points = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    w = solve(gram_of(np.zeros(2), points))
    np.testing.assert_allclose(w[:2], 0.5, atol=1e-7)
    assert (w[2:] > 0).all()


def test_of_equal_rows_the_weights_are_even():
    np.testing.assert_array_equal(solve(np.zeros((4, 4))), 0.25)


@given(neighbourhoods(), st.integers(-200, 200))
def test_the_scale_does_not_matter(points, power):
    gram = gram_of(points[0], points[1:])
    np.testing.assert_array_equal(solve(gram * 2.0**power), solve(gram))


@st.composite
def searches(draw):
    table = draw(arrays(np.float64, (draw(st.integers(4, 12)), 2), elements=tables.GRID))
    return table, draw(st.integers(1, len(table) - 1))


@given(searches())
def test_rows_of_the_matrix_are_shares_of_neighbours(search):
    table, count = search
    near = NearestNeighbors(n_neighbors=count).fit(table).kneighbors(return_distance=False)
    W = neighbourhood(table, table, near)
    np.testing.assert_allclose(W.sum(axis=1), 1.0, rtol=1e-12)
    assert W.data.min() > 0
    assert W.data.max() <= 1
    assert W.nnz <= near.size
    for row, (points, weights) in enumerate(zip(near, W.toarray(), strict=True)):
        np.testing.assert_array_equal(np.setdiff1d(np.flatnonzero(weights), points), [])
        expected = by_least_squares(scaled(gram_of(table[row], table[points])))
        np.testing.assert_allclose(weights[points], expected, atol=1e-5)


def test_rows_are_rebuilt_from_other_points():
    rng = np.random.default_rng(0)
    points, table = rng.normal(size=(30, 2)), 0.3 * rng.normal(size=(10, 2))
    near = np.tile(np.arange(30), (10, 1))
    np.testing.assert_allclose(neighbourhood(table, points, near) @ points, table, atol=1e-7)
