"""Time limits, warnings and memory of a fit."""

import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from otprop.benchmark.limits import Meter, OutOfTimeError, noticing, time_limit


def test_what_takes_too_long_is_stopped():
    start = time.perf_counter()
    with pytest.raises(OutOfTimeError, match=r"not done in 0\.1 s"), time_limit(0.1):
        time.sleep(60)
    assert time.perf_counter() - start < 2


def test_no_alarm_rings_after_the_block():
    with time_limit(0.05):
        pass
    time.sleep(0.1)
    with time_limit(None):
        time.sleep(0.01)


def test_warnings_are_noticed_once_each():
    with noticing() as noticed:
        for _ in range(2):
            warnings.warn("slow", UserWarning, stacklevel=1)
        warnings.warn("short", ConvergenceWarning, stacklevel=1)
    assert noticed.messages == ["UserWarning: slow", "ConvergenceWarning: short"]
    assert not noticed.converged


def test_without_a_convergence_warning_it_has_converged():
    with noticing() as noticed:
        warnings.warn("slow", UserWarning, stacklevel=1)
    assert noticed.converged


def test_the_peak_is_that_of_the_block():
    before = Meter().peak_mib()
    meter = Meter()
    block = np.ones(50 * 2**17)  # 50 MiB, touched
    assert meter.peak_mib() - before > 0.9 * 50
    assert meter.before_mib < before + 5
    assert block[-1] == 1
    assert meter.seconds() > 0
