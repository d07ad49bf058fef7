"""Scalings of the columns, and the choice of what squared distances count."""

from otprop.scaling.columns import SCALINGS, Scaling, can_discriminate, fit_scaling

__all__ = ["SCALINGS", "Scaling", "can_discriminate", "fit_scaling"]
