"""What it costs to carry a label from a source to a target (Eq. 9): one class a geometry.

And what a geometry on a graph is made of: nearest rows, weights, diffusion.
"""

from otprop.geometry.approximate import nearest_approximately
from otprop.geometry.base import Geometry, Workers
from otprop.geometry.diffusion import Diffusion, diffuse, walk_steps
from otprop.geometry.euclidean import Euclidean, SparseEuclidean
from otprop.geometry.graph import Graph, local_scales, self_tuned_affinity
from otprop.geometry.induction import new_row_weights
from otprop.geometry.neighbours import Neighbours, nearest
from otprop.geometry.precomputed import Precomputed

__all__ = [
    "Diffusion",
    "Euclidean",
    "Geometry",
    "Graph",
    "Neighbours",
    "Precomputed",
    "SparseEuclidean",
    "Workers",
    "diffuse",
    "local_scales",
    "nearest",
    "nearest_approximately",
    "new_row_weights",
    "self_tuned_affinity",
    "walk_steps",
]
