"""scikit-learn's own checks, and life inside its tools."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from otprop import OTPropagation

EXPECTED_FAILURES = {
    "check_classifiers_classes": "uses -1 as a class; -1 marks unlabelled rows, as in LabelSpreading",
}


@parametrize_with_checks(
    [
        OTPropagation(),
        OTPropagation(epsilon=1.0, alpha=0.5, stall=0.3, solver="sinkhorn", tol=1e-4),
        OTPropagation(geometry="precomputed"),
    ],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)
