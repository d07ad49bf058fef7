"""Label a table by regularised optimal transport, and say how sure each label is."""

from importlib.metadata import version

from otprop.estimator import OTPropagation, load
from otprop.model_file import ModelFileError

__all__ = ["ModelFileError", "OTPropagation", "load"]
__version__ = version("otprop")
