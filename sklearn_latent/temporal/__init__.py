"""Latent variables behind discrete features, in tables and over time."""

from ._estimator import LGLPCCTemporal
from ._forecast import Forecast
from ._graph import TemporalGraph
from ._lpcc_estimator import LPCC
from ._model import LatentDBN
from ._panels.frames import sequences_from_frame
from ._panels.sequences import Sequences
from ._sem import SEMDBN

__all__ = [
    "LPCC",
    "SEMDBN",
    "Forecast",
    "LGLPCCTemporal",
    "LatentDBN",
    "Sequences",
    "TemporalGraph",
    "sequences_from_frame",
]
