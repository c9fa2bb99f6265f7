"""Displays of fitted models, with the interface of scikit-learn's displays."""

from ._confidence import EdgeConfidenceDisplay
from ._explanation import ExplanationDisplay
from ._fit import FitDisplay
from ._graph import LatentGraphDisplay
from ._images import LatentImagesDisplay
from ._margins import MarginsDisplay
from ._rows_needed import RowsNeededDisplay
from ._schedule import ScheduleDisplay
from ._threshold import ThresholdCurveDisplay, score_and_count
from ._trajectory import TrajectoryDisplay

__all__ = [
    "EdgeConfidenceDisplay",
    "ExplanationDisplay",
    "FitDisplay",
    "LatentGraphDisplay",
    "LatentImagesDisplay",
    "MarginsDisplay",
    "RowsNeededDisplay",
    "ScheduleDisplay",
    "ThresholdCurveDisplay",
    "TrajectoryDisplay",
    "score_and_count",
]
