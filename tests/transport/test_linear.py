import numpy as np
import pytest

from otprop.transport.linear import conjugate_gradients, solve_laplacian


def positive_definite(size, spread, seed=0):
    rng = np.random.default_rng(seed)
    q = np.linalg.qr(rng.standard_normal((size, size)))[0]
    return (q * np.logspace(0, spread, size)) @ q.T, rng.standard_normal(size)


def counted(matrix, diagonal):
    """What is taken from the diagonal, and how often it was asked for."""
    calls = []

    def spread(v):
        calls.append(v)
        return diagonal * v - matrix @ v

    return spread, calls


@pytest.mark.parametrize("size", [1, 2, 10, 50])
@pytest.mark.parametrize("condition", [0.0, 2.0])
def test_conjugate_gradients_are_a_solution(size, condition):
    matrix, right = positive_definite(size, condition)
    diagonal, before = np.diag(matrix).copy(), right.copy()
    spread, _ = counted(matrix, diagonal)
    x, worked = conjugate_gradients(spread, diagonal, right, 1e-12, 500)
    assert worked
    np.testing.assert_allclose(x, np.linalg.solve(matrix, right), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(right, before)


def test_conjugate_gradients_need_as_many_steps_as_there_are_eigenvalues():
    matrix = np.diag([1.0] * 5 + [3.0] * 5)
    spread, calls = counted(matrix, np.ones(10))
    x, worked = conjugate_gradients(spread, np.ones(10), np.arange(10.0), 1e-10, 500)
    assert worked
    assert len(calls) == 2
    np.testing.assert_allclose(x, np.arange(10.0) / np.diag(matrix), atol=1e-12)


def test_conjugate_gradients_are_as_accurate_as_asked():
    matrix, right = positive_definite(60, 3.0)
    steps = []
    for accuracy in (0.5, 1e-2, 1e-6):
        spread, calls = counted(matrix, np.ones(60))
        x, worked = conjugate_gradients(spread, np.ones(60), right, accuracy, 500)
        assert worked
        assert np.linalg.norm(right - matrix @ x) <= 1.001 * accuracy * np.linalg.norm(right)
        steps.append(len(calls))
    assert steps[0] < steps[1] < steps[2]


def test_the_diagonal_takes_out_the_scale():
    """As many steps as without a scale, over twelve orders of magnitude."""
    matrix, right = positive_definite(30, 1.0)
    scale = np.logspace(-6, 6, 30)
    steps = []
    for by in (np.ones(30), scale):
        scaled = by[:, None] * matrix * by
        spread, calls = counted(scaled, np.diag(scaled).copy())
        x, worked = conjugate_gradients(spread, np.diag(scaled).copy(), by * right, 1e-10, 100)
        assert worked
        np.testing.assert_allclose(by * x, np.linalg.solve(matrix, right), rtol=0, atol=1e-7)
        steps.append(len(calls))
    assert abs(steps[1] - steps[0]) <= 1


def test_conjugate_gradients_tell_when_they_were_stopped():
    matrix, right = positive_definite(60, 3.0)
    spread, calls = counted(matrix, np.ones(60))
    x, worked = conjugate_gradients(spread, np.ones(60), right, 1e-6, 3)
    assert not worked
    assert len(calls) == 3
    assert np.isfinite(x).all()


def test_conjugate_gradients_tell_when_the_matrix_is_not_positive():
    spread, _ = counted(np.diag([1.0, -1.0]), np.ones(2))
    x, worked = conjugate_gradients(spread, np.ones(2), np.array([0.1, 1.0]), 1e-6, 50)
    assert not worked
    np.testing.assert_array_equal(x, 0.0)


def graph(size, density, seed=0):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((size, size)) * (rng.random((size, size)) < density), 1)
    weights[np.arange(size - 1), np.arange(1, size)] += 0.1  # so that all hang together
    return weights + weights.T, 0.01 + rng.random(size), rng.standard_normal(size)


@pytest.mark.parametrize("size", [1, 2, 3, 20, 80])
@pytest.mark.parametrize("density", [0.0, 0.1, 0.5, 1.0])
def test_laplacians_are_solved(size, density):
    weights, excess, right = graph(size, density)
    matrix = np.diag(weights.sum(axis=1) + excess) - weights
    before = excess.copy(), right.copy()
    x = solve_laplacian(weights.copy(), excess, right)
    np.testing.assert_allclose(x, np.linalg.solve(matrix, right), rtol=1e-10, atol=1e-11)
    np.testing.assert_array_equal((excess, right), before)


def test_laplacians_of_many_orders_of_magnitude_are_solved():
    """A chain that ends in the ground, by hand: through each link flows what stands before it."""
    links = 10.0 ** np.array([-25.0, -20.0, -10.0, 0.0, 3.0])
    weights = np.diag(links, 1) + np.diag(links, -1)
    right = np.array([1.0, 2.0, 4.0, 0.5, 0.25, 0.25])
    excess = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 2.0])
    x = solve_laplacian(weights, excess, right)
    expected = np.cumsum((np.cumsum(right) / [*links, 2.0])[::-1])[::-1]
    np.testing.assert_allclose(x, expected, rtol=1e-13)
