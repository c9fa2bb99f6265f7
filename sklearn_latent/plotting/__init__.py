"""Displays of fitted models, with the interface of scikit-learn's displays."""

from ._explanation import ExplanationDisplay
from ._fit_display import FitDisplay
from ._graph_display import LatentGraphDisplay
from ._images import LatentImagesDisplay
from ._trajectory import TrajectoryDisplay

__all__ = [
    "ExplanationDisplay",
    "FitDisplay",
    "LatentGraphDisplay",
    "LatentImagesDisplay",
    "TrajectoryDisplay",
]
