"""The caller's own costs, read as they are."""

import tracemalloc

import numpy as np
import pytest

from otprop.geometry import Precomputed


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_costs_are_those_given_in_the_order_of_the_sources(dtype):
    cost = np.random.default_rng(0).normal(size=(6, 9)).astype(dtype)
    geometry = Precomputed(cost)
    geometry.add_sources(np.array([8, 0]))
    geometry.add_sources(np.array([4]))
    out = np.empty((2, 2), dtype)
    geometry.fill(np.array([5, 1]), 1, out)
    np.testing.assert_array_equal(out, cost[[5, 1]][:, [0, 4]])
    geometry.fill(np.array([5, 1]), 0, out)  # the first two of three
    np.testing.assert_array_equal(out, cost[[5, 1]][:, [8, 0]])
    assert geometry.dtype == dtype


def test_infinity_is_what_forbids():
    cost = np.zeros((2, 2))
    assert not Precomputed(cost).may_forbid
    cost[0, 1] = np.inf
    assert Precomputed(cost).may_forbid


def test_looking_for_infinity_takes_little_memory():
    cost = np.zeros((2000, 2000))
    tracemalloc.start()
    try:
        assert not Precomputed(cost).may_forbid
        assert tracemalloc.get_traced_memory()[1] < 2**18
    finally:
        tracemalloc.stop()
