"""What it costs to carry a label from a source to a target (Eq. 9): one class a geometry."""

from otprop.geometry.base import Geometry
from otprop.geometry.euclidean import Euclidean, SparseEuclidean
from otprop.geometry.precomputed import Precomputed

__all__ = ["Euclidean", "Geometry", "Precomputed", "SparseEuclidean"]
