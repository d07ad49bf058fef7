"""Fitted models: what is kept of a fit, how it decides new rows and how it explains them."""

from otprop.models.costs import FittedCosts
from otprop.models.graph import FittedGraph
from otprop.models.neighbourhoods import geometry, graph_of, nearest_others, twins

__all__ = ["FittedCosts", "FittedGraph", "geometry", "graph_of", "nearest_others", "twins"]
