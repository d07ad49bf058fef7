"""Classifiers of scikit-learn in the shape of the others."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from otprop.baselines import LabelledOnly, Transductive
from tests import tables

X, TRUE, Y = tables.blobs(90, 3, 3, seed=3, known=0.3)
KNOWN = Y >= 0

SUPERVISED = {
    "1-NN": KNeighborsClassifier(1),
    "SVM": SVC(gamma=2.0),
    "forest": RandomForestClassifier(20, random_state=0),
    "propagation": LabelPropagation(),
    "spreading": LabelSpreading(),
}


@pytest.mark.parametrize("name", SUPERVISED)
def test_labelled_only_is_the_classifier_fitted_by_hand(name):
    model = LabelledOnly(SUPERVISED[name]).fit(X, Y)
    by_hand = SUPERVISED[name].fit(X[KNOWN], Y[KNOWN])
    np.testing.assert_array_equal(model.transduction_, np.where(KNOWN, Y, by_hand.predict(X)))
    np.testing.assert_array_equal(model.predict(X), by_hand.predict(X))
    assert (model.transduction_ == TRUE)[~KNOWN].mean() > 0.7
    if name != "SVM":
        np.testing.assert_array_equal(model.predict_proba(X), by_hand.predict_proba(X))


def test_given_labels_stay_where_the_classifier_disagrees():
    y = np.array([0, 0, 0, 1, 0, 0, -1])
    model = LabelledOnly(KNeighborsClassifier(5)).fit(np.arange(7.0)[:, None], y)
    assert model.predict([[3.0]]) == [0]
    np.testing.assert_array_equal(model.transduction_, [0, 0, 0, 1, 0, 0, 0])


def test_self_training_labels_what_it_left_open():
    training = SelfTrainingClassifier(KNeighborsClassifier(5), threshold=0.99)
    model = Transductive(training).fit(X, Y)
    by_hand = training.fit(X, Y)
    assert (by_hand.transduction_ == -1).any()
    np.testing.assert_array_equal(model.transduction_, np.where(KNOWN, Y, by_hand.predict(X)))
    np.testing.assert_array_equal(model.predict_proba(X), by_hand.predict_proba(X))
    assert (model.transduction_ == TRUE)[~KNOWN].mean() > 0.7


@pytest.mark.parametrize(
    "model",
    [
        LabelledOnly(KNeighborsClassifier(1)),
        Transductive(SelfTrainingClassifier(KNeighborsClassifier(5))),
    ],
)
def test_labels_may_be_names(model):
    names = np.array(["z", "a", "m"])
    plain = model.fit(X, Y)
    expected, new = names[plain.transduction_], names[plain.predict(X)]
    frame = pd.DataFrame(X, columns=list("abc"))
    named = model.fit(frame, tables.rename(Y, names))
    np.testing.assert_array_equal(named.classes_, ["a", "m", "z"])
    np.testing.assert_array_equal(named.feature_names_in_, list("abc"))
    np.testing.assert_array_equal(named.transduction_, expected)
    np.testing.assert_array_equal(named.predict(frame), new)


def test_the_classifier_given_is_left_as_it_was():
    estimator = KNeighborsClassifier(1)
    model = LabelledOnly(estimator).fit(X, Y)
    assert model.estimator is estimator
    assert not hasattr(estimator, "classes_")
    assert model.get_params()["estimator__n_neighbors"] == 1


def test_probabilities_are_there_if_the_classifier_has_them():
    assert hasattr(LabelledOnly(KNeighborsClassifier()), "predict_proba")
    assert not hasattr(LabelledOnly(SVC()), "predict_proba")
    assert not hasattr(LabelledOnly(SVC()).fit(X, Y), "predict_proba")


def test_a_table_without_open_rows():
    model = LabelledOnly(KNeighborsClassifier(5)).fit(X, TRUE)
    np.testing.assert_array_equal(model.transduction_, TRUE)


def test_warnings_of_the_classifier_are_passed_on():
    far = np.where(KNOWN[:, None], X, X + 1e3)
    with pytest.warns(RuntimeWarning, match="invalid value"):
        LabelledOnly(LabelPropagation()).fit(far, Y)


def test_tables_that_cannot_be():
    with pytest.raises(ValueError, match="no labelled row"):
        LabelledOnly(KNeighborsClassifier(1)).fit(X, np.full(len(X), -1))
    with pytest.raises(NotFittedError):
        LabelledOnly(KNeighborsClassifier(1)).predict(X)
