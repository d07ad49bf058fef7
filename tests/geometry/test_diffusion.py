"""Diffusion by sparse solves: that of dense algebra, and each column on its own."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from otprop.geometry import Graph, diffuse, walk_steps
from otprop.transport.workers import Workers
from tests.geometry import graphs

SEEDS = st.integers(0, 999)
KAPPA = st.sampled_from([0.01, 0.5, 0.9, 0.99, 0.999])


def diffused(S, B, kappa=0.9, workers=graphs.ALONE, **how):
    return diffuse(S, B, kappa, workers=workers, **how)


def dense(S, B, kappa):
    return np.linalg.solve(np.eye(len(B)) - kappa * S.toarray(), (1 - kappa) * B)


def sources(rows, columns, seed=0):
    """Return columns with a single 1 each, as of labelled rows."""
    B = np.zeros((rows, columns))
    B[np.random.default_rng(seed).integers(0, rows, columns), np.arange(columns)] = 1.0
    return B


def islands(seed=0):
    """Return S of three groups of rows without links between them, and which group each is in."""
    X = np.concatenate([graphs.points(15, 2, seed) + 1e3 * group for group in range(3)])
    return graphs.graph(X, 4).normalised, np.repeat(np.arange(3), 15)


@given(rows=st.integers(2, 40), columns=st.integers(1, 20), kappa=KAPPA, seed=SEEDS)
def test_diffusion_is_that_of_a_dense_solve(rows, columns, kappa, seed):
    S = graphs.graph(graphs.points(rows, 2, seed), 4).normalised
    B = np.random.default_rng(seed).random((rows, columns))
    found = diffused(S, B, kappa, tol=1e-12)
    assert found.converged.all()
    np.testing.assert_allclose(found.values, dense(S, B, kappa), rtol=1e-6, atol=1e-11)
    rest = np.linalg.norm((found.values - kappa * (S @ found.values)) / (1 - kappa) - B, axis=0)
    assert (rest <= 1e-9 * np.linalg.norm(B, axis=0)).all()


@given(seed=SEEDS, kappa=KAPPA)
def test_residuals_are_those_of_the_solution(seed, kappa):
    """Stopped early, so that something is left; where nothing had to be clipped."""
    S = graphs.graph(graphs.points(30, 2, seed), 4).normalised
    B = 1 + np.random.default_rng(seed).random((30, 5))
    found = diffused(S, B, kappa, tol=1e-14, max_iter=3)
    left = (found.values - kappa * (S @ found.values)) / (1 - kappa) - B
    np.testing.assert_allclose(
        found.residuals,
        np.linalg.norm(left, axis=0) / np.linalg.norm(B, axis=0),
        rtol=1e-6,
        atol=1e-12,
    )


def test_a_column_ends_when_its_residual_is_small_enough():
    S = graphs.graph(graphs.points(200), 6).normalised
    B = sources(200, 20)
    loose, tight = diffused(S, B, 0.99, tol=1e-3), diffused(S, B, 0.99, tol=1e-9)
    assert (loose.residuals <= 1e-3).all()
    assert (tight.residuals <= 1e-9).all()
    assert (loose.iterations < tight.iterations).all()
    assert len(set(tight.iterations)) > 1  # ... each at its own
    exact = dense(S, B, 0.99)
    assert np.abs(tight.values - exact).max() < 1e-9 < np.abs(loose.values - exact).max()


def test_what_has_not_converged_says_so():
    S = graphs.graph(graphs.points(200), 6).normalised
    B = np.concatenate([sources(200, 3), np.zeros((200, 1))], axis=1)
    found = diffused(S, B, 0.999, max_iter=4)
    np.testing.assert_array_equal(found.converged, [False, False, False, True])
    np.testing.assert_array_equal(found.iterations, [4, 4, 4, 0])
    assert (found.residuals[:3] > 1e-8).all()
    assert np.isfinite(found.values).all()


def test_a_tolerance_below_rounding_ends_too():
    S = graphs.graph(graphs.points(50), 6).normalised
    found = diffused(S, sources(50, 4), 0.5, tol=0.0, max_iter=5000)
    np.testing.assert_allclose(found.values, dense(S, sources(50, 4), 0.5), atol=1e-14)


@pytest.mark.parametrize("columns", [1, 7, 16, 40])
def test_columns_solved_together_have_the_bits_of_columns_solved_alone(columns):
    S = graphs.graph(graphs.points(150), 5).normalised
    B = np.random.default_rng(0).random((150, columns)) * sources(150, columns).sum(axis=1)[:, None]
    B += sources(150, columns, 1)
    together = diffused(S, B, 0.95)
    with Workers(3) as workers:
        threaded = diffused(S, B, 0.95, workers)
    for found, expected in zip(threaded, together, strict=True):
        np.testing.assert_array_equal(found, expected)
    shuffled = np.random.default_rng(1).permutation(columns)
    other_lanes = diffused(S, np.asfortranarray(B[:, shuffled]), 0.95)
    for found, expected in zip(other_lanes, together, strict=True):
        np.testing.assert_array_equal(found, expected[..., shuffled])
    for column in range(columns):
        alone = diffused(S, B[:, [column]], 0.95)
        for found, expected in zip(alone, together, strict=True):
            np.testing.assert_array_equal(found, expected[..., [column]])


@given(seed=SEEDS, a=st.floats(0, 3), b=st.floats(1e-3, 3))
def test_diffusion_is_linear(seed, a, b):
    S = graphs.graph(graphs.points(30, 2, seed), 4).normalised
    B = np.random.default_rng(seed).random((2, 30, 3))
    one, two, both = (diffused(S, C, tol=1e-12).values for C in (*B, a * B[0] + b * B[1]))
    np.testing.assert_allclose(both, a * one + b * two, rtol=1e-8)


@given(seed=SEEDS, kappa=KAPPA)
def test_no_entry_is_negative(seed, kappa):
    S, _ = islands(seed)
    assert diffused(S, sources(45, 30, seed), kappa, tol=1e-4).values.min() >= 0


def test_what_a_solve_cut_short_leaves_below_zero_is_clipped():
    """On this path, its sixth step leaves entries of −0.18 unless they are clipped."""
    rng = np.random.default_rng(9)
    path = np.diag(rng.random(19), 1)
    S = Graph.of_affinity(path + path.T).normalised
    B = np.zeros((20, 16))
    B[rng.integers(0, 20, 16), np.arange(16)] = 1.0
    for iterations in range(1, 12):
        assert diffused(S, B, 0.99, max_iter=iterations).values.min() >= 0


@given(seed=SEEDS)
def test_components_without_a_source_stay_exactly_zero(seed):
    S, group = islands(seed)
    B = np.zeros((45, 3))
    B[[0, 20, 3], [0, 1, 2]] = 1.0
    B[40, 2] = 1.0
    F = diffused(S, B, 0.99).values
    np.testing.assert_array_equal(F > 0, np.stack([group == 0, group == 1, group != 1], axis=1))


def test_isolated_nodes_keep_their_part_and_zero_columns_are_zero():
    W = np.zeros((4, 4))
    W[0, 1] = W[1, 0] = 1.0
    found = diffused(Graph.of_affinity(W).normalised, np.eye(4)[:, [2, 0]] * [1, 0], 0.8)
    np.testing.assert_allclose(found.values, [[0, 0], [0, 0], [0.2, 0], [0, 0]])
    assert found.converged.all()
    np.testing.assert_array_equal(found.iterations, [1, 0])


def test_no_columns_are_no_work():
    S, _ = islands()
    found = diffused(S, np.zeros((45, 0)))
    assert found.values.shape == (45, 0)
    assert found.residuals.shape == found.converged.shape == found.iterations.shape == (0,)


def test_memory_grows_with_a_group_of_columns_alone():
    n, columns = 4000, 64
    ring = sparse.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1], shape=(n, n))
    S, B = Graph.of_affinity(ring.tocsr()).normalised, sources(n, columns)
    tracemalloc.start()
    try:
        diffused(S, B)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < B.nbytes + 8 * n * 16 * 8  # the result, and some arrays of a group


def walked(walk, F, held, values, steps):
    """Return the same in plain loops."""
    F = F.copy()
    for _ in range(steps):
        after = np.zeros_like(F)
        for i in range(len(F)):
            row = walk[i]
            after[i] = row @ F if row.any() else F[i]
        after[held] = values
        F = after
    return F


@given(seed=SEEDS, steps=st.integers(0, 5))
def test_a_walk_averages_neighbours_and_holds_rows(seed, steps):
    rng = np.random.default_rng(seed)
    half = rng.random((12, 12)) * (rng.random((12, 12)) < 0.1)
    walk = Graph.of_affinity(half + half.T).walk
    F, held = rng.random((12, 3)), np.array([1, 7])
    kept = F.copy()
    values = rng.random((2, 3))
    found = walk_steps(walk, F, held, values, steps)
    np.testing.assert_allclose(found, walked(walk.toarray(), F, held, values, steps), rtol=1e-12)
    np.testing.assert_array_equal(F, kept)


def test_a_long_walk_without_held_rows_keeps_rows_of_distributions():
    walk = graphs.graph(graphs.points(40), 5).walk
    F = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    found = walk_steps(walk, F, np.empty(0, np.intp), np.empty((0, 3)), 200)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
