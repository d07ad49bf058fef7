import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from scipy import stats

from otprop.benchmark import statistics
from otprop.benchmark.statistics import (
    average_ranks,
    cliques,
    compare,
    critical_difference,
    friedman,
    nemenyi,
    reading,
    score,
)

# Demšar (2006), Table 6: AUC of C4.5, C4.5+m, C4.5+cf, C4.5+m+cf on 14 data sets.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.975, 0.973],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def draw(rows, methods, *, seed=0, digits=1):
    """Return values with many ties."""
    return np.random.default_rng(seed).random((rows, methods)).round(digits)


def test_score_counts_rows_for_the_best_and_shares_for_the_others():
    values = np.array([[0.5, 1.0, 0.25], [0.8, 0.8, 0.4]])
    assert score(values) == pytest.approx([1.5, 2.0, 0.75])


def test_score_seeks_the_best_of_a_row_among_the_rivals():
    values = np.array([[0.5, 1.0, 0.25], [0.8, 0.8, 0.4]])
    rivals = np.array([True, False, True])
    assert score(values, rivals) == pytest.approx([2.0, 3.0, 1.0])


def test_score_ignores_the_scale_of_a_row():
    values = draw(9, 4, digits=6) + 0.1
    scales = np.linspace(0.2, 3, 9)[:, None]
    assert score(values * scales) == pytest.approx(score(values))


@pytest.mark.parametrize("best", [0.0, -0.1])
def test_score_is_not_defined_where_a_row_has_no_positive_best(best):
    values = np.array([[1.0, 2.0], [best, best - 1]])
    assert np.isnan(score(values)).all()


def test_ranks_are_one_for_the_best_and_shared_by_ties():
    values = np.array([[0.9, 0.5, 0.5, 0.1], [0.3, 0.3, 0.3, 0.3]])
    assert average_ranks(values) == pytest.approx([1.75, 2.5, 2.5, 3.25])


def test_rounding_errors_do_not_break_ties():
    values = np.array([[0.3, 0.1 + 0.2]])
    assert values[0, 0] != values[0, 1]
    assert average_ranks(values) == pytest.approx([1.5, 1.5])


def test_ranks_sum_to_what_there_is_to_share():
    assert average_ranks(draw(20, 6)).sum() == pytest.approx(21)


def test_the_published_example_of_demsar():
    ranks = average_ranks(DEMSAR)
    assert list(ranks.round(3)) == [3.143, 2.000, 2.893, 1.964]
    assert round(critical_difference(4, 14), 2) == 1.25
    assert round(critical_difference(4, 14, alpha=0.10), 2) == 1.12
    # By these differences only the first method and the last two are apart, at 0.10.
    assert cliques(ranks, critical_difference(4, 14, alpha=0.10)) == [(3, 1, 2), (2, 0)]


@pytest.mark.parametrize("seed", range(5))
def test_friedman_agrees_with_scipy(seed):
    values = draw(12, 5, seed=seed)
    assert friedman(values)[:2] == pytest.approx(stats.friedmanchisquare(*values.T))


@pytest.mark.parametrize("seed", range(5))
def test_iman_and_davenports_form_is_the_analysis_of_variance_of_the_ranks(seed):
    values = draw(12, 5, seed=seed)
    ranks = stats.rankdata(-values, axis=1)
    between = 12 * ((ranks.mean(axis=0) - 3) ** 2).sum() / 4
    rest = ranks - ranks.mean(axis=0) - ranks.mean(axis=1, keepdims=True) + 3
    f = between / ((rest**2).sum() / (4 * 11))
    test = friedman(values)
    assert test.f == pytest.approx(f)
    assert test.f_p == pytest.approx(stats.f.sf(f, 4, 44))


def test_friedman_where_all_methods_are_the_same():
    assert friedman(np.full((5, 4), 0.7)) == (0.0, 1.0, 0.0, 1.0)


def test_friedman_where_all_rows_rank_alike():
    test = friedman(np.tile([0.9, 0.5, 0.1], (7, 1)))
    assert test.chi2 == pytest.approx(14)
    assert test.f == np.inf
    assert test.f_p == 0


@pytest.mark.parametrize(("rows", "methods"), [(12, 5), (36, 10), (3, 3)])
def test_nemenyi_agrees_with_scikit_posthocs(rows, methods):
    values = draw(rows, methods, seed=rows)
    expected = scikit_posthocs.posthoc_nemenyi_friedman(values).to_numpy()
    assert nemenyi(average_ranks(values), rows) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.10])
def test_the_critical_difference_is_where_nemenyis_p_is_alpha(alpha):
    difference = critical_difference(5, 36, alpha)
    ranks = np.array([1.0, 1.0 + difference, 5.0, 4.0, 4.0])
    assert nemenyi(ranks, 36)[0, 1] == pytest.approx(alpha)


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([1.0, 2.0, 3.0], []),
        ([1.0, 1.5, 1.9], [(0, 1, 2)]),
        ([1.9, 1.0, 1.5], [(1, 2, 0)]),
        ([1.0, 1.5, 2.2], [(0, 1), (1, 2)]),
        ([1.0, 1.5, 1.6, 2.2, 4.0], [(0, 1, 2), (1, 2, 3)]),
        ([1.0, 1.1, 4.0, 4.1], [(0, 1), (2, 3)]),
        ([2.0, 2.0, 2.0], [(0, 1, 2)]),
    ],
)
def test_cliques_are_the_longest_runs_within_the_difference(ranks, expected):
    assert cliques(np.array(ranks), 1.0) == expected


@pytest.mark.parametrize("seed", range(20))
def test_cliques_join_exactly_the_pairs_that_differ_by_less(seed):
    ranks = np.random.default_rng(seed).uniform(1, 8, 8)
    found = cliques(ranks, 2.0)
    joined = {frozenset((a, b)) for run in found for a in run for b in run if a != b}
    near = {
        frozenset((a, b))
        for a in range(8)
        for b in range(8)
        if a != b and abs(ranks[a] - ranks[b]) < 2.0
    }
    assert joined == near
    assert not any(set(one) < set(other) for one in found for other in found)


def test_a_comparison_says_all_of_it_by_name():
    values = pd.DataFrame(DEMSAR, columns=["a", "b", "c", "d"])
    found = compare(values, alpha=0.10)
    ranks = average_ranks(DEMSAR)
    assert found.rows == 14
    assert found.alpha == 0.10
    assert list(found.ranks.index) == ["a", "b", "c", "d"]
    assert found.ranks.to_numpy() == pytest.approx(ranks)
    assert found.friedman == friedman(DEMSAR)
    assert found.critical_difference == critical_difference(4, 14, 0.10)
    assert found.p_values.loc["a", "d"] == nemenyi(ranks, 14)[0, 3]
    assert found.cliques == [("d", "b", "c"), ("c", "a")]


@pytest.fixture
def values():
    index = pd.MultiIndex.from_product([["wine", "iris"], [15, 25]], names=["dataset", "percent"])
    return pd.DataFrame({"A": [0.1, 0.3, 0.5, 0.7], "B": [0.2, 0.2, 0.4, 0.8]}, index=index)


def test_the_rows_are_ranked_as_they_are(values):
    pd.testing.assert_frame_equal(reading(values, "rows"), values)


def test_the_data_sets_are_ranked_by_their_means(values):
    expected = pd.DataFrame(
        {"A": [0.2, 0.6], "B": [0.2, 0.6]}, index=pd.Index(["wine", "iris"], name="dataset")
    )
    pd.testing.assert_frame_equal(reading(values, "datasets"), expected)


def test_rows_and_data_sets_with_gaps_are_left_out(values):
    values.iloc[1, 1] = np.nan
    assert list(reading(values, "rows").index) == [("wine", 15), ("iris", 15), ("iris", 25)]
    assert list(reading(values, "datasets").index) == ["iris"]


@pytest.mark.parametrize(
    ("shape", "enough"), [((2, 3), True), ((1, 3), False), ((2, 2), False), ((0, 5), False)]
)
def test_what_is_enough_to_test(shape, enough):
    assert statistics.enough_to_test(pd.DataFrame(np.zeros(shape))) is enough
