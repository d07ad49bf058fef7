"""The best matching of clusters and classes, against all matchings."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otprop.baselines import best_matching, matched_accuracy


def by_all_matchings(true, clusters):
    """The largest share of rows right, over all ways to give clusters classes of their own."""
    classes, groups = list(np.unique(true)), list(np.unique(clusters))
    nameless = [None] * max(0, len(groups) - len(classes))
    return max(
        np.mean([dict(zip(groups, names, strict=True))[c] == t for t, c in pairs])
        for pairs in [list(zip(true, clusters, strict=True))]
        for names in permutations(classes + nameless, len(groups))
    )


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(3, 6)), min_size=1, max_size=30))
def test_no_matching_is_better(pairs):
    true, clusters = zip(*pairs, strict=True)
    names = best_matching(true, clusters)
    assert len(set(names.values())) == len(names) == min(len(set(true)), len(set(clusters)))
    right = np.mean([names.get(c) == t for t, c in pairs])
    assert right == pytest.approx(by_all_matchings(true, clusters))
    assert matched_accuracy(true, clusters) == pytest.approx(right)


def test_renamed_clusters_are_wholly_right():
    true = np.array([2, 2, 0, 0, 1, 1])
    assert best_matching(true, [7, 7, 9, 9, 8, 8]) == {7: 2, 8: 1, 9: 0}
    assert matched_accuracy(true, [7, 7, 9, 9, 8, 8]) == 1.0


def test_clusters_without_class_are_wrong():
    assert best_matching(["a", "a", "a", "b"], [0, 0, 1, 2]) == {0: "a", 2: "b"}
    assert matched_accuracy(["a", "a", "a", "b"], [0, 0, 1, 2]) == 0.75
