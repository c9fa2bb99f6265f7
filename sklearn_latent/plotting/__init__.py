"""Displays of fitted models, with the interface of scikit-learn's displays."""

from ._explanation import ExplanationDisplay
from ._fit import FitDisplay
from ._graph import LatentGraphDisplay
from ._images import LatentImagesDisplay
from ._rows_needed import RowsNeededDisplay
from ._trajectory import TrajectoryDisplay

__all__ = [
    "ExplanationDisplay",
    "FitDisplay",
    "LatentGraphDisplay",
    "LatentImagesDisplay",
    "RowsNeededDisplay",
    "TrajectoryDisplay",
]
