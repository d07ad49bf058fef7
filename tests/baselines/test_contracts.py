"""scikit-learn's own checks, the examples of the docstrings, and what all baselines share."""

import doctest
import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading
from sklearn.utils.estimator_checks import parametrize_with_checks

from otprop.baselines import (
    KernelVote,
    LabelledOnly,
    LinearNeighborhoodPropagation,
    SpectralClustering,
    Transductive,
    kernel_vote,
    linear_neighborhood,
    spectral,
    wrappers,
)
from tests import tables

EXPECTED_FAILURES = {
    "check_classifiers_classes": "uses -1 as a class; -1 marks rows without label",
}
MODELS = [
    KernelVote(),
    LinearNeighborhoodPropagation(),
    SpectralClustering(),
    LabelledOnly(KNeighborsClassifier(1)),
    Transductive(LabelSpreading()),
]


@parametrize_with_checks(MODELS, expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize("module", [kernel_vote, linear_neighborhood, spectral, wrappers])
def test_docstring_examples(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


X, TRUE, Y = tables.real("iris")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_all_have_one_shape(model):
    fitted = clone(model).fit(X, Y)
    assert is_classifier(fitted)
    assert fitted.transduction_.shape == Y.shape
    assert fitted.transduction_.dtype == Y.dtype
    assert fitted.n_features_in_ == 4
    np.testing.assert_array_equal(fitted.classes_, [0, 1, 2])
    assert (fitted.transduction_ == TRUE)[Y < 0].mean() > 0.8
    again = clone(model).fit(X, Y)
    np.testing.assert_array_equal(fitted.transduction_, again.transduction_)
    restored = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(restored.predict(X), fitted.predict(X))
