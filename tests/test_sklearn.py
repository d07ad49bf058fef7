"""scikit-learn's own checks, and life inside its tools."""

import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_backend
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from otprop import OTPropagation
from tests import tables

EXPECTED_FAILURES = {
    "check_classifiers_classes": "uses -1 as a class; -1 marks rows without label",
}
EXPECTED_FAILURES_OF_COSTS = EXPECTED_FAILURES | {
    "check_estimators_nan_inf": "wants infinity refused; +inf forbids a pair",
}


@parametrize_with_checks(
    [
        OTPropagation(),
        OTPropagation(scaling="standard", rounds="annealed", diffusion=0.95),
        OTPropagation.paper(),
        OTPropagation.paper(epsilon=1.0, alpha=0.5, stall=0.3, solver="sinkhorn", tol=1e-4),
    ],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [OTPropagation.paper(geometry="precomputed")],
    expected_failed_checks=lambda _: EXPECTED_FAILURES_OF_COSTS,
)
def test_scikit_learn_checks_pass_with_precomputed_costs(estimator, check):
    check(estimator)


X, TRUE, Y = tables.real("iris")


def test_a_clone_has_the_parameters_and_nothing_else():
    model = OTPropagation.paper(epsilon=0.5, stall=0.2, memory_limit="1GB", n_jobs=2).fit(X, Y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert vars(copy).keys() == copy.get_params().keys()


def test_parameters_are_set_by_name():
    model = OTPropagation().set_params(epsilon=3.0, alpha=0.1)
    assert model.get_params()["epsilon"] == 3.0
    assert repr(model) == "OTPropagation(alpha=0.1, epsilon=3.0)"
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(beta=1)
    with pytest.raises(TypeError):
        OTPropagation("euclidean")


def test_it_is_a_classifier_and_says_what_it_takes():
    assert is_classifier(OTPropagation())
    points = get_tags(OTPropagation()).input_tags
    costs = get_tags(OTPropagation.paper(geometry="precomputed")).input_tags
    assert (points.pairwise, points.sparse) == (False, True)
    assert (costs.pairwise, costs.sparse) == (True, False)


def test_a_pipeline_scales_and_labels():
    raw = X * [1.0, 10.0, 100.0, 1000.0]
    pipeline = make_pipeline(StandardScaler(), OTPropagation.paper(alpha=0.5)).fit(raw, Y)
    scaled = StandardScaler().fit_transform(raw)
    alone = OTPropagation.paper(alpha=0.5).fit(scaled, Y)
    np.testing.assert_array_equal(pipeline.predict_proba(raw), alone.predict_proba(scaled))
    assert pipeline.score(raw, TRUE) > 0.85


def test_steps_that_put_out_frames_hand_on_their_names():
    frame = pd.DataFrame(X, columns=list("abcd"))
    pipeline = make_pipeline(StandardScaler(), OTPropagation.paper(alpha=0.5))
    pipeline.set_output(transform="pandas").fit(frame, Y)
    np.testing.assert_array_equal(pipeline[-1].feature_names_in_, list("abcd"))
    with config_context(transform_output="pandas"):
        assert isinstance(pipeline.predict(frame), np.ndarray)


def test_cross_validation_scores_the_labelled_rows_of_a_fold():
    folds = StratifiedKFold(3)
    expected = []
    for kept, left in folds.split(X, Y):
        known = left[Y[left] >= 0]
        model = OTPropagation.paper(alpha=0.5).fit(X[kept], Y[kept])
        expected.append(accuracy_score(Y[known], model.predict(X[known])))
    assert np.mean(expected) > 0.7
    scores = cross_val_score(OTPropagation.paper(alpha=0.5), X, Y, cv=folds, error_score="raise")
    np.testing.assert_allclose(scores, expected)


def test_a_grid_search_scores_the_labelled_rows_of_a_fold():
    search = GridSearchCV(
        OTPropagation.paper(),
        {"alpha": [0.0, 0.5], "epsilon": ["auto", 10.0]},
        cv=StratifiedKFold(3),
        error_score="raise",
    )
    search.fit(X, Y)
    assert search.best_params_["epsilon"] == "auto"
    assert search.best_score_ > 0.8
    assert accuracy_score(search.predict(X), TRUE) > 0.9


def test_a_grid_search_cuts_costs_along_both_sides():
    search = GridSearchCV(
        OTPropagation.paper(geometry="precomputed", epsilon=0.01),
        {"alpha": [0.0, 0.5]},
        cv=StratifiedKFold(3),
        error_score="raise",
    )
    assert search.fit(tables.squared(X), Y).best_score_ > 0.6


def test_rows_left_out_are_predicted():
    found = cross_val_predict(OTPropagation.paper(alpha=0.5), X, TRUE, cv=3)
    assert accuracy_score(TRUE, found) > 0.9


def test_threads_are_those_of_the_context():
    first = OTPropagation.paper(epsilon=0.01).fit(X, Y)
    with parallel_backend("threading", n_jobs=2):
        second = OTPropagation.paper(epsilon=0.01).fit(X, Y)
    np.testing.assert_array_equal(first.label_distributions_, second.label_distributions_)


def test_metadata_routing_finds_nothing_to_route():
    with config_context(enable_metadata_routing=True):
        assert not OTPropagation.paper().get_metadata_routing().fit.requests


def test_the_diagram_of_a_model_is_drawn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "OTPropagation" in OTPropagation.paper().fit(X, Y)._repr_html_()
