"""The three measures against their definitions."""

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import entropy

from otprop.benchmark.measures import scores

TRUTH = np.repeat([0, 1, 2], [30, 20, 10])
FOUND = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [20, 25, 15]))
FOUND[:25] = 0
TABLE = np.zeros((3, 3))
np.add.at(TABLE, (TRUTH, FOUND), 1)


def test_accuracy_is_the_share_of_rows_found():
    assert scores(TRUTH, FOUND).accuracy == pytest.approx(np.trace(TABLE) / 60)


def test_nmi_is_normalised_by_the_arithmetic_mean():
    rows, columns = entropy(TABLE.sum(axis=1)), entropy(TABLE.sum(axis=0))
    mutual = rows + columns - entropy(TABLE.ravel())
    assert scores(TRUTH, FOUND).nmi == pytest.approx(2 * mutual / (rows + columns))
    assert abs(rows - columns) > 0.05  # so that other means would differ


def test_ari_is_the_rand_index_adjusted_for_chance():
    pairs, rows, columns = (
        comb(counts, 2).sum() for counts in (TABLE, TABLE.sum(axis=1), TABLE.sum(axis=0))
    )
    expected = rows * columns / comb(60, 2)
    most = (rows + columns) / 2
    assert scores(TRUTH, FOUND).ari == pytest.approx((pairs - expected) / (most - expected))


def test_clusters_count_as_the_classes_that_they_match_best():
    turned = (FOUND + 1) % 3
    assert scores(TRUTH, turned, clusters=True) == pytest.approx(scores(TRUTH, FOUND))
    assert scores(TRUTH, turned).accuracy < scores(TRUTH, FOUND).accuracy
