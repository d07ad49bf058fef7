"""What OTPropagation is compared with: classifiers of the same shape.

Each is fitted with all rows, those without label marked -1 in y, and then has `transduction_`, a
label for each of them. scikit-learn's own semi-supervised classifiers need nothing from here:
LabelPropagation and LabelSpreading have that shape, and `Transductive` gives it to the others.
"""

from otprop.baselines.kernel_vote import KernelVote
from otprop.baselines.linear_neighborhood import LinearNeighborhoodPropagation
from otprop.baselines.matching import best_matching, matched_accuracy
from otprop.baselines.spectral import SpectralClustering
from otprop.baselines.wrappers import LabelledOnly, Transductive

__all__ = [
    "KernelVote",
    "LabelledOnly",
    "LinearNeighborhoodPropagation",
    "SpectralClustering",
    "Transductive",
    "best_matching",
    "matched_accuracy",
]
