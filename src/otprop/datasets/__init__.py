"""The data sets of the paper's Table 1, and further ones: `load(name)`.

Whatever a table comes from (a folder, the cache, the original files, OpenML), its content is
checked before it is returned.
"""

import otprop.datasets.catalogue  # noqa: F401 - registers the data sets
from otprop.datasets.fetch import OpenML, Originals
from otprop.datasets.formats import delimited
from otprop.datasets.loading import Dataset, load
from otprop.datasets.registry import Entry, find, names, register, title
from otprop.datasets.table import DatasetError, checksum

__all__ = [
    "Dataset",
    "DatasetError",
    "Entry",
    "OpenML",
    "Originals",
    "checksum",
    "delimited",
    "find",
    "load",
    "names",
    "register",
    "title",
]
