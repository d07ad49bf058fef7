"""From a distribution to the chance that its largest share is right, learned from hidden labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

if TYPE_CHECKING:
    from otprop.arrays import BoolArray, DoubleArray, IntArray

# Shares closer than this to 0 or 1 say no more than this.
_EDGE = 1e-3
# How far from "a share is a chance" few labels may lead: standard deviations of the prior.
_SHIFT, _STRETCH = 2.0, 1.0
# Rows by which a candidate must lead.
_LEAST_LEAD = 2


class HeldOut(NamedTuple):
    """Distributions of labelled rows found while their labels were hidden, and the labels."""

    distributions: DoubleArray
    labels: IntArray

    @property
    def right(self) -> BoolArray:
        """Whether each row's largest share is that of its class; no row that knows nothing is."""
        knows = self.distributions.max(axis=1) > self.distributions.min(axis=1)
        return np.asarray(knows & (self.distributions.argmax(axis=1) == self.labels))

    @property
    def accuracy(self) -> float:
        """Part of the rows whose largest share is that of their class."""
        return float(self.right.mean())

    @property
    def losses(self) -> DoubleArray:
        """Return each row's squared distance from the right class (Brier's score)."""
        right = np.eye(self.distributions.shape[1])[self.labels]
        return np.asarray(((self.distributions - right) ** 2).sum(axis=1))

    def surely_more_often_right(self, other: HeldOut) -> bool:
        """Whether more of the same rows are right: by two at the least, and by more than chance.

        Of the rows in which the two differ, as many more must be won than lost as the standard
        deviation of a fair coin's tosses. Unlike Brier's score this does not depend on how sure of
        themselves the two are.
        """
        won = int((self.right & ~other.right).sum())
        lost = int((other.right & ~self.right).sum())
        return won - lost >= _LEAST_LEAD and (won - lost) ** 2 > won + lost


class Calibration(NamedTuple):
    """The chance of being right, σ(shift + slope · logit p), with p the largest share."""

    shift: float
    slope: float
    labels: int  # that it was learned from; 0: the share is taken for the chance

    def confidence(self, distributions: DoubleArray) -> DoubleArray:
        """Return the chance that the largest share of each row is that of its class.

        A uniform distribution knows nothing, whatever was learned of others.
        """
        least = 1.0 / distributions.shape[1]
        chance = expit(self.shift + self.slope * _scores(distributions))
        chance[distributions.max(axis=1) <= least] = least
        return np.asarray(np.clip(chance, least, 1.0))


AS_IT_IS = Calibration(shift=0.0, slope=1.0, labels=0)


def calibrate(held_out: HeldOut | None) -> Calibration:
    """Fit the chance of being right to labels that were hidden and found, or not.

    Platt's scaling of the largest share, and his targets: one more row right and one more wrong
    than there were, so that few labels never make sure. A prior keeps to the share itself where
    labels are few.
    """
    if held_out is None or len(held_out.labels) == 0:
        return AS_IT_IS
    scores = _scores(held_out.distributions)
    right = held_out.right
    target = np.where(
        right, (right.sum() + 1.0) / (right.sum() + 2.0), 1.0 / ((~right).sum() + 2.0)
    )

    def loss(parameters: DoubleArray) -> float:
        shift, log_slope = parameters
        z = shift + np.exp(log_slope) * scores
        unlikely = (target * np.logaddexp(0.0, -z) + (1.0 - target) * np.logaddexp(0.0, z)).sum()
        return float(unlikely + ((shift / _SHIFT) ** 2 + (log_slope / _STRETCH) ** 2) / 2.0)

    shift, log_slope = minimize(loss, np.zeros(2), method="BFGS").x
    return Calibration(float(shift), float(np.exp(log_slope)), len(scores))


def _scores(distributions: DoubleArray) -> DoubleArray:
    return np.asarray(logit(np.clip(distributions.max(axis=1), _EDGE, 1.0 - _EDGE)))
