"""Data sets as the methods get them."""

import numpy as np
import pytest

from otprop import datasets
from otprop.benchmark import problems
from otprop.benchmark.problems import SCALINGS, problem
from otprop.datasets import Entry


@pytest.fixture
def _mine(monkeypatch):
    monkeypatch.setattr("otprop.datasets.registry._ENTRIES", {})
    features = np.random.default_rng(1).normal(size=(6, 2)) * [1, 100] + 5
    labels = ["c", "a", "b", "c", "a", "b"]
    datasets.register(Entry(name="mine", sources=(lambda: (features, labels),)))
    caches = (problems.problem, problems._table)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.usefixtures("_mine")
def test_a_data_set_comes_scaled_and_with_class_codes():
    plain, small, standard = (problem("mine", scaling, None) for scaling in SCALINGS)
    assert [p.scaling for p in (plain, small, standard)] == ["none", "minmax", "standard"]
    assert plain.truth.tolist() == [2, 0, 1, 2, 0, 1]
    np.testing.assert_array_equal(plain.X, datasets.load("mine").frame)
    np.testing.assert_allclose([small.X.min(axis=0), small.X.max(axis=0)], [[0, 0], [1, 1]])
    np.testing.assert_allclose(standard.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(standard.X.std(axis=0), 1)
